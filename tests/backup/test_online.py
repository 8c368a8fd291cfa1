"""Backups of a store under load: one consistent snapshot, whole or not there, of which every run can be finished."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.command_line import Done, Terminal, astra
from tests.processes.postgres import database, postgres_server
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import System, running
from tests.processes.waiting import until


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    if request.param == "sqlite":
        with running(tmp_path / "site", workers=1) as started:
            yield started
        return
    with (
        database(request.getfixturevalue("server_url"), "online") as url,
        running(tmp_path / "site", workers=1, database_url=url) as started,
    ):
        yield started


def hello() -> dict[str, Any]:
    code = "def main():\n    return {'n': 1}"
    steps = [node("core.python", name, parameters={"code": code}) for name in ("one", "two")]
    return workflow(*steps)


class Load(threading.Thread):
    """Submits runs until it is told to stop."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.ends = url, threading.Event()
        self.accepted: list[str] = []
        self.failures: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            while not self.ends.is_set():
                response = http.post("/api/v1/runs", json={"workflow": hello()})
                if response.status_code == 202:
                    self.accepted.append(response.json()["runId"])
                else:
                    self.failures.append(response.text)

    def __enter__(self) -> Load:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.join()


def place(system: System) -> list[str]:
    options = ["--data-dir", str(system.data)]
    return options + (["--database-url", system.database_url] if system.database_url else [])


def test_a_backup_under_load_is_a_whole_store(system: System, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    with Load(system.url) as load:
        until(lambda: len(load.accepted) >= 20, "load")
        before = len(load.accepted)
        done = astra(
            "db", "backup", str(file), *place(system), "--json", cwd=tmp_path, **system.environ
        )
        after = len(load.accepted)
        assert done.code == 0, done
        until(lambda: len(load.accepted) >= after + 20, "load that goes on")
    assert not load.failures
    assert before <= done.json["rows"]["runs"] <= after + 1
    assert done.json["blobs"] >= 1, "the archives of the packages that come with it"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir() if "partial" in one.name] == []
    verified = astra("db", "verify", str(file), cwd=tmp_path)
    assert verified.code == 0 and verified.err.startswith("ok: "), verified

    # Every run that the backup holds ends in a restored store, with its own blobs and worker.
    other = tmp_path / "other"
    data = ["--data-dir", str(other / "scheduler")]
    done = astra("db", "restore", str(file), *data, "--json", cwd=tmp_path, **system.environ)
    assert done.code == 0, done
    with running(other, workers=1) as restored:
        listed = restored.rest.get("runs", limit=200)["items"]
        assert listed and {run["runId"] for run in listed} <= set(load.accepted)
        for run in listed:
            assert restored.rest.finished(run["runId"])["status"] == "succeeded"
        restored.rest.read_everything()


def test_a_backup_that_is_killed_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    """The process is killed while its file has some bytes, again and again; the last one is left to its end."""
    with running(tmp_path / "site") as system:
        for _ in range(30):
            system.rest.submit(hello())
        file = tmp_path / "kept" / "backup.zip"
        file.parent.mkdir()
        for number in range(3):
            arguments = ["db", "backup", str(file), *place(system)]
            process = Process(f"backup-{number}", arguments, tmp_path, system.environ).start()
            process.until(lambda: list(file.parent.iterdir()), "a file")
            process.kill()
            assert not file.exists()
            assert all(one.name.endswith(".partial") for one in file.parent.iterdir())
        done = astra("db", "backup", str(file), *place(system), cwd=tmp_path, **system.environ)
        assert done.code == 0 and file.exists(), done
        for left in file.parent.glob(".*.partial"):
            done = astra("db", "verify", str(left), cwd=tmp_path)
            assert done.code == 1 and "error: not a whole backup" in done.err


def test_commands_refuse_what_would_harm(tmp_path: Path) -> None:
    with running(tmp_path / "site") as system:
        file = str(tmp_path / "backup.zip")

        def command(name: str, file: str, *more: str) -> Done:
            return astra("db", name, file, *place(system), *more, cwd=tmp_path, **system.environ)

        assert command("backup", file).code == 0
        again = command("backup", file)
        assert again.code == 2 and "Confirmation required" in again.err
        assert command("backup", file, "--yes").code == 0
        nowhere = command("backup", str(tmp_path / "no" / "b"))
        assert nowhere.code == 1 and "Cannot write the backup: No such file" in nowhere.err

        used = command("restore", file, "--replace", "--yes")
        assert used.code == 3 and f"Process {system.scheduler.pid}" in used.err
        assert system.rest.status("/readyz") == 200
        system.scheduler.stop()
        full = command("restore", file, "--json")
        assert full.code == 3 and full.json["code"] == "E.STORE.NOT_EMPTY"
        unsure = command("restore", file, "--replace")
        assert unsure.code == 2 and "Confirmation required" in unsure.err
        done = command("restore", file, "--replace", "--yes")
        assert done.code == 0, done
        assert not [one for one in os.listdir(system.data) if one.endswith("restoring")]
        system.start()
        assert system.rest.get("runs")["items"] == []


def test_a_terminal_shows_how_far_it_is(tmp_path: Path) -> None:
    assert astra("db", "migrate", "--data-dir", "var", cwd=tmp_path).code == 0
    shown = Terminal("db", "backup", "backup.zip", "--data-dir", "var", cwd=tmp_path)
    assert shown.end() == 0
    assert "Backing up: " in shown.seen and "Wrote backup.zip" in shown.seen
