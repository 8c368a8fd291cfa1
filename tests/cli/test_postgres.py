"""Commands that look at PostgreSQL: they say what is wrong, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import astraflow
from astraflow.core.facts_version import FACTS_VERSION
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


class TestParkedShards:
    @pytest.fixture
    def parked(self, tmp_path: Path, url: str) -> str:
        assert astra("db", "migrate", "--database-url", url, cwd=tmp_path, **SECRET).code == 0
        lost = "ARRAY[now(), now(), now()]"
        ask(url, f"UPDATE astraflow.shards SET lost_at = {lost} WHERE shard IN (0, 5)")
        ask(
            url,
            "INSERT INTO astraflow.lanes (tenant, lane, shard, name) VALUES ('acme', 0, 3, 'acme')",
        )
        return url

    def test_they_are_listed_with_what_to_do(self, tmp_path: Path, parked: str) -> None:
        done = astra("db", "nodes", "--database-url", parked, cwd=tmp_path, **SECRET)
        assert done.code == 0, done
        line = next(one for one in done.out.splitlines() if "parked" in one)
        assert line.split()[:3] == ["0", "parked", "3"]
        assert "default" in line
        assert "hint: cancel the runs" in done.err
        assert "`astra db unpark 0`" in done.err
        assert "unpark 5" not in done.err, "no tenant lives in it"

    def test_one_is_unparked_once_and_no_other_with_it(self, tmp_path: Path, parked: str) -> None:
        def unpark(shard: str, *more: str) -> Any:
            said = ("db", "unpark", shard, "--database-url", parked, *more)
            return astra(*said, cwd=tmp_path, **SECRET)

        for shard, why in (
            ("3", "Shard 3 is not parked"),
            ("5", "No tenant lives in shard 5; shards with tenants: 0, 3"),
            ("99999999999999999999", "No tenant lives in shard 99999999999999999999"),
        ):
            refused = unpark(shard, "--json")
            assert (refused.code, refused.json["code"]) == (1, "E.SHARD.NOT_PARKED")
            assert why in refused.json["detail"]
        for shard in ("-1", "x", "0.5", ""):
            assert unpark(shard).code == 2
        assert unpark("0", "--json").json == {"shard": 0, "state": "open"}
        again = unpark("0")
        assert again.code == 1
        assert "Shard 0 is not parked" in again.err
        assert ask(parked, "SELECT cardinality(lost_at) FROM astraflow.shards WHERE shard = 5") == 3

    def test_a_database_that_was_never_used_has_none(self, tmp_path: Path, url: str) -> None:
        said = ("db", "unpark", "0", "--database-url", url, "--json")
        refused = astra(*said, cwd=tmp_path, **SECRET)
        assert (refused.code, refused.json["code"]) == (1, "E.SHARD.NOT_PARKED")
        assert schemas(url) == 0

    def test_sqlite_has_no_shards_to_park(self, tmp_path: Path) -> None:
        refused = astra("db", "unpark", "0", "--json", cwd=tmp_path)
        assert (refused.code, refused.json["code"]) == (2, "E.CONFIG.INVALID")
        assert "SQLite is used by one scheduler" in refused.json["detail"]


class TestPlacedShards:
    @pytest.fixture
    def site(self, tmp_path: Path, url: str) -> str:
        assert astra("db", "migrate", "--database-url", url, cwd=tmp_path, **SECRET).code == 0
        for name, seen in (
            ("otter-1", "now() + interval '1 hour'"),
            ("otter-2", "now() - interval '1 minute'"),
        ):
            ask(
                url,
                "INSERT INTO astraflow.nodes (node_id, url, version, is_leaving, started_at, seen_at) "
                f"VALUES ('{name}', 'http://{name}:8080', '1', false, now(), {seen})",
            )
        return url

    def test_a_shard_is_placed_at_a_node_that_lives_and_let_go(
        self, tmp_path: Path, site: str
    ) -> None:
        def move(*said: str) -> Any:
            more = ("--database-url", site, "--json")
            return astra("db", "move", *said, *more, cwd=tmp_path, **SECRET)

        def placed() -> Any:
            said = ("db", "nodes", "--database-url", site, "--json")
            return astra(*said, cwd=tmp_path, **SECRET).json["placedShards"]

        for name in ("otter-1", "http://otter-1:8080", "http://otter-1:8080/"):
            assert move("0", name).json == {"shard": 0, "url": "http://otter-1:8080"}
            assert placed() == [{"shard": 0, "url": "http://otter-1:8080"}]
        for said, why in (
            (("0", "otter-2"), "those that live: http://otter-1:8080"),
            (("0", "x' OR true"), "No scheduler that lives is called x' OR true"),
            (("5", "otter-1"), "No tenant lives in shard 5; shards with tenants: 0"),
        ):
            refused = move(*said)
            assert (refused.code, refused.json["code"]) == (1, "E.SHARD.NOT_MOVED")
            assert why in refused.json["detail"]
        for wrong in (("0",), ("0", "otter-1", "--anywhere")):
            assert move(*wrong).json["code"] == "E.CONFIG.INVALID"
        assert move("-1", "otter-1").code == 2
        assert placed() == [{"shard": 0, "url": "http://otter-1:8080"}]
        for _ in range(2):
            assert move("0", "--anywhere").json == {"shard": 0, "url": None}
        assert placed() == []

    def test_sqlite_has_no_shards_to_move(self, tmp_path: Path) -> None:
        refused = astra("db", "move", "0", "--anywhere", "--json", cwd=tmp_path)
        assert (refused.code, refused.json["code"]) == (2, "E.CONFIG.INVALID")
        assert "SQLite is used by one scheduler" in refused.json["detail"]


NODE = (
    "INSERT INTO astraflow.nodes (node_id, url, version, facts_version, is_leaving, started_at, seen_at) "
    "VALUES ('{0}', 'http://{0}', '{1}', {2}, false, now(), now() + interval '1 hour')"
)


@pytest.fixture
def site(tmp_path: Path, url: str) -> str:
    """A database with two schedulers of different releases."""
    assert astra("db", "migrate", "--database-url", url, cwd=tmp_path, **SECRET).code == 0
    ask(url, NODE.format("otter", astraflow.__version__, FACTS_VERSION))
    ask(url, NODE.format("heron", "0.0.9", FACTS_VERSION - 1))
    return url


def test_the_versions_of_all_schedulers_are_shown(tmp_path: Path, site: str) -> None:
    def nodes(*more: str) -> Any:
        return astra("db", "nodes", "--database-url", site, *more, cwd=tmp_path, **SECRET)

    shown = {one["nodeId"]: one for one in nodes("--json").json["nodes"]}
    assert (shown["heron"]["version"], shown["heron"]["factsVersion"]) == (
        "0.0.9",
        FACTS_VERSION - 1,
    )
    said = nodes()
    assert astraflow.__version__ in said.out and "0.0.9" in said.out
    assert "schedulers of several versions" in said.err
    ask(site, "DELETE FROM astraflow.nodes WHERE node_id = 'heron'")
    assert "several versions" not in nodes().err


def test_the_version_of_facts_is_raised_by_hand_when_all_schedulers_read_it(
    tmp_path: Path, site: str
) -> None:
    def facts(*more: str) -> Any:
        given = ("db", "facts-version", "--database-url", site, *more)
        return astra(*given, cwd=tmp_path, **SECRET)

    now = str(FACTS_VERSION)
    assert facts("--json").json == {
        "written": FACTS_VERSION,
        "readByAll": FACTS_VERSION - 1,
        "readByThisVersion": FACTS_VERSION,
    }
    asked = facts("--raise", now)
    assert asked.code == 2 and "--yes" in asked.err
    older = facts("--raise", now, "--yes")
    assert older.code != 0 and "heron at http://heron runs 0.0.9" in older.err
    assert "otter" not in older.err
    ask(site, "DELETE FROM astraflow.nodes WHERE node_id = 'heron'")
    assert facts("--raise", now, "--yes", "--json").json == {"written": FACTS_VERSION}
    for wrong in (str(FACTS_VERSION + 1), str(10**30)):
        beyond = facts("--raise", wrong, "--yes")
        assert beyond.code != 0 and wrong in beyond.err
    assert facts("--raise", "0", "--yes").code == 2


def test_facts_of_a_later_release_are_shown_and_nothing_else_is(tmp_path: Path, site: str) -> None:
    later = FACTS_VERSION + 1
    ask(site, f"UPDATE astraflow.site SET value = '{later}' WHERE name = 'facts_version'")

    def shown(*command: str) -> Any:
        return astra(*command, "--database-url", site, cwd=tmp_path, **SECRET)

    facts = shown("db", "facts-version", "--json").json
    assert facts == {"written": later, "readByThisVersion": FACTS_VERSION}
    status = shown("db", "status")
    assert f"{later}" in status.out and "a newer version of AstraFlow wrote the store" in status.err
    assert "runs" not in shown("db", "status", "--json").json
    for command in (("db", "nodes"), ("db", "migrate")):
        done = shown(*command)
        assert done.code != 0 and f"facts of version {later}" in done.err
    environ = {"ASTRA_SCHEDULER_DATABASE_URL": site, **SECRET}
    assert astra("doctor", cwd=tmp_path, **environ).code == 1


def test_a_store_that_nobody_has_made_has_no_facts(tmp_path: Path, url: str) -> None:
    given = ("db", "facts-version", "--database-url", url)
    shown = astra(*given, "--json", cwd=tmp_path, **SECRET).json
    assert shown == {"written": None, "readByThisVersion": FACTS_VERSION}
    refused = astra(*given, "--raise", "1", "--yes", cwd=tmp_path, **SECRET)
    assert refused.code != 0 and "No scheduler of this version" in refused.err
    assert schemas(url) == 0


def test_with_sqlite_the_version_of_facts_is_not_raised_by_hand(tmp_path: Path) -> None:
    assert astra("db", "migrate", cwd=tmp_path).code == 0
    shown = astra("db", "facts-version", "--json", cwd=tmp_path).json
    assert shown["written"] == 1
    refused = astra("db", "facts-version", "--raise", "1", "--yes", cwd=tmp_path)
    assert refused.code != 0 and "the scheduler raises it when it starts" in refused.err
