"""Commands that look at PostgreSQL: they say what is wrong, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from astraflow.store.statements import load_migrations
from tests.processes.command_line import astra
from tests.processes.postgres import ask, database, postgres_server

SECRET = {"ASTRA_SCHEDULER_SECRET": "a secret for tests, long enough"}
NEWEST = len(load_migrations("postgres"))


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture
def url(server_url: str) -> Iterator[str]:
    with database(server_url, "looked_at") as url:
        yield url


def schemas(url: str) -> int:
    return int(ask(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'astraflow'"))


def test_the_doctor_finds_a_postgresql_that_cannot_be_reached(tmp_path: Path) -> None:
    done = astra(
        "doctor",
        cwd=tmp_path,
        ASTRA_SCHEDULER_DATABASE_URL="postgresql://me:hunter2@127.0.0.1:1/site",
        **SECRET,
    )
    assert done.code == 1
    assert "fail  store" in done.out
    assert "start PostgreSQL, or correct database_url" in done.out
    assert "hunter2" not in done.out + done.err


def test_the_doctor_asks_postgresql_and_changes_nothing(tmp_path: Path, url: str) -> None:
    def verdict() -> dict[str, str]:
        done = astra("doctor", "--json", cwd=tmp_path, ASTRA_SCHEDULER_DATABASE_URL=url, **SECRET)
        return next(one for one in done.json["checks"] if one["name"] == "store")

    found = verdict()
    assert found["verdict"] == "ok"
    assert "created at the first start" in found["says"]
    assert schemas(url) == 0
    assert astra("db", "migrate", "--database-url", url, cwd=tmp_path, **SECRET).code == 0
    assert f"schema {NEWEST}" in verdict()["says"]
    ask(url, f"INSERT INTO astraflow.migrations VALUES ({NEWEST + 1}, 'later', '99.0')")
    assert verdict()["verdict"] == "fail"


def test_the_status_of_a_database_says_what_is_pending_and_migrates_nothing(
    tmp_path: Path, url: str
) -> None:
    def status(*more: str) -> Any:
        return astra("db", "status", "--database-url", url, *more, cwd=tmp_path, **SECRET)

    shown = status("--json").json
    assert (shown["schemaVersion"], len(shown["pendingMigrations"])) == (0, NEWEST)
    assert schemas(url) == 0
    assert "the store does not exist yet" in status().err
    made = astra("db", "migrate", "--database-url", url, cwd=tmp_path, **SECRET)
    assert made.err == f"Upgraded the schema from version 0 to {NEWEST}\n"
    shown = status("--json").json
    assert (shown["schemaVersion"], shown["pendingMigrations"], shown["runs"]) == (NEWEST, [], 0)
    ask(url, f"DELETE FROM astraflow.migrations WHERE version = {NEWEST}")
    shown = status("--json").json
    assert shown["schemaVersion"] == NEWEST - 1
    assert shown["pendingMigrations"] == [f"{NEWEST:04} {load_migrations('postgres')[-1].name}"]
    assert "upgrade it with `astra db migrate`" in status().err
    assert ask(url, "SELECT max(version) FROM astraflow.migrations") == NEWEST - 1


def test_the_status_names_the_owner(tmp_path: Path, url: str) -> None:
    assert astra("db", "migrate", "--database-url", url, cwd=tmp_path, **SECRET).code == 0
    ask(url, "UPDATE astraflow.shards SET owner = 'otter-7', leased_until = 'infinity'")
    shown = astra("db", "status", "--database-url", url, "--json", cwd=tmp_path, **SECRET).json
    assert shown["openedBy"] == "otter-7"
