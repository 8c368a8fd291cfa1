"""Stores of earlier versions, kept as they were: each is opened, served, read through the API, and its runs are ended.

A folder beside this file is a store, made by `make_store.py` with the version that it is named after.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from astraflow.store.backup_file import reading
from astraflow.store.statements import load_migrations
from tests.compat.make_store import ENVIRON, stable, tenant_events
from tests.processes.command_line import astra
from tests.processes.postgres import database, postgres_server
from tests.processes.system import SECRET, System, running

KEPT = sorted(one.parent for one in Path(__file__).parent.glob("*/expected.json"))
MAX_BYTES = 300 * 1024
NEWEST = len(load_migrations("sqlite"))


def missing(wanted: Any, found: Any, where: str = "") -> list[str]:
    """What was answered once and is not any more. More may be there; a list may have more items, in any order."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [f"{where}: {found!r} instead of an object"]
        return [
            problem
            for key, value in wanted.items()
            for problem in (
                missing(value, found[key], f"{where}/{key}")
                if key in found
                else [f"{where}/{key} is missing"]
            )
        ]
    if isinstance(wanted, list):
        others = found if isinstance(found, list) else []
        return [
            f"{where}: no item like {value!r}"
            for value in wanted
            if all(missing(value, other) for other in others)
        ]
    return [] if wanted == found else [f"{where}: {found!r} instead of {wanted!r}"]


@pytest.mark.parametrize(
    ("wanted", "found", "problems"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 0),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}, {"b": 1, "c": 0}]}, 0),
        ({"a": 1}, {"a": 2}, 1),
        ({"a": 1, "b": 1}, {}, 2),
        ([1, 2], [2], 1),
        ({"a": 1}, [1], 1),
    ],
)
def test_what_is_missing_is_found(wanted: Any, found: Any, problems: int) -> None:
    assert len(missing(wanted, found)) == problems


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_kept_store_is_small_and_says_what_it_is(kept: Path) -> None:
    expected = json.loads((kept / "expected.json").read_text())
    assert kept.name == f"{expected['software']}-schema-{expected['schemaVersion']}"
    assert (kept / "astraflow.db.gz").stat().st_size < MAX_BYTES
    with reading(kept / "store.backup") as reader:
        reader.verify()
        assert reader.manifest.schema_version == expected["schemaVersion"] <= NEWEST


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


def put_file(kept: Path, system: Path) -> None:
    """The SQLite file as it was, with its blobs."""
    data = system / "scheduler"
    data.mkdir(parents=True)
    (data / "astraflow.db").write_bytes(gzip.decompress((kept / "astraflow.db.gz").read_bytes()))
    with zipfile.ZipFile(kept / "store.backup") as archive:
        blobs = [name for name in archive.namelist() if name.startswith("blobs/")]
        archive.extractall(data, blobs)
    assert blobs


def restore_backup(kept: Path, system: Path, url: str) -> None:
    place = ["--data-dir", str(system / "scheduler"), "--database-url", url]
    system.mkdir()
    environ = {**ENVIRON, "ASTRA_SCHEDULER_SECRET": SECRET}
    done = astra("db", "restore", str(kept / "store.backup"), *place, cwd=system, **environ)
    assert done.code == 0, done


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_kept_file_is_served_and_its_runs_end(kept: Path, tmp_path: Path) -> None:
    put_file(kept, tmp_path / "site")
    with running(tmp_path / "site", environ=ENVIRON) as system:
        check(kept, system)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_kept_backup_is_served_by_postgresql_and_its_runs_end(
    kept: Path, tmp_path: Path, server_url: str
) -> None:
    with database(server_url, "kept") as url:
        restore_backup(kept, tmp_path / "site", url)
        with running(tmp_path / "site", environ=ENVIRON, database_url=url) as system:
            check(kept, system)


def check(kept: Path, system: System) -> None:
    expected = json.loads((kept / "expected.json").read_text())
    rest = system.rest
    assert rest.get("audit/verify")["ok"], "the chain of the audit goes on"
    wrong = {
        path: problems
        for path, answer in expected["reads"].items()
        if (problems := missing(answer, stable(rest.get(path))))
    }
    assert wrong == {}
    events = expected["tenantEvents"]
    assert missing(events, tenant_events(rest, len(events))) == []
    system.new_worker("new").start()
    for run_id, what in expected["active"].items():
        if "approve" in what:
            path = f"/api/v1/runs/{run_id}/nodes/{what['approve']}/approval"
            assert rest.http.post(path, json={"approved": True}).status_code == 204
        elif "signal" in what:
            path = f"/api/v1/runs/{run_id}/signals/{what['signal']}"
            assert rest.http.post(path, json={"payload": {}}).is_success
        assert rest.finished(run_id)["status"] == "succeeded", (what, rest.nodes(run_id))
    rest.read_everything()
