"""A store is restored while a worker of its former life holds a result and runs attempts that the backup does not know:
nothing of that is taken for the restored store's own, nothing runs twice at once, and new runs work.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.processes.command_line import astra
from tests.processes.postgres import database, postgres_server
from tests.processes.process import Process
from tests.processes.system import System, running

CODE = """
import json, os, time, uuid

def main():
    folder, gate = FOLDER, "gate"
    me = str(uuid.uuid4())
    while True:
        with open(os.path.join(folder, "ran"), "a") as ran:
            ran.write(json.dumps([me, time.monotonic()]) + "\\n")
        if os.path.exists(os.path.join(folder, gate)):
            return {"by": me}
        time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the backup of a SQLite store is restored."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new' / 'astraflow.db'}"
        return
    with database(request.getfixturevalue("server_url"), "new_life") as url:
        yield url


def slow(folder: Path) -> dict[str, Any]:
    """Notes every moment in which it runs, until the gate is open."""
    folder.mkdir()
    code = f"FOLDER = {str(folder)!r}\n{CODE}"
    return workflow(node("core.python", "slow", parameters={"code": code}), name=folder.name)


def executions(folder: Path) -> dict[str, tuple[float, float]]:
    """From when to when each execution ran."""
    found: dict[str, tuple[float, float]] = {}
    if not (folder / "ran").exists():
        return {}
    for line in (folder / "ran").read_text().splitlines():
        who, at = json.loads(line)
        found[who] = (found.get(who, (at, at))[0], at)
    return found


def command(system: System, *arguments: str) -> Any:
    done = astra("db", *arguments, "--json", cwd=system.folder, **system.environ)
    assert done.code == 0, (arguments, done.out, done.err)
    return done.json


def start_restored(system: System, url: str) -> Process:
    """A scheduler of the restored store where the old one was."""
    arguments = ["server", "--port", str(system.port), "--data-dir", str(system.folder / "new")]
    process = Process(
        "restored", [*arguments, "--database-url", url], system.folder, system.environ
    )
    system.processes.append(process)
    return process.start()


def test_an_old_worker_meets_a_restored_store(tmp_path: Path, new_store: str) -> None:
    held, caught = tmp_path / "held", tmp_path / "caught"
    with running(tmp_path / "site", heartbeat_ms=500) as system:
        rest = system.rest
        runs = [rest.submit(slow(held)), rest.submit(slow(caught))]
        backup = tmp_path / "backup.zip"
        command(system, "backup", str(backup), "--data-dir", str(system.data))

        # The former life goes on: both are given to a worker, which the store of the backup knows nothing of.
        worker = system.new_worker("old", "--max-parallel", "4").start()
        worker.until(lambda: executions(held) and executions(caught), "both run", 30)
        later = rest.submit(slow(tmp_path / "later"))
        system.scheduler.kill()
        (
            held / "gate"
        ).touch()  # it ends within its right: its result is held until somebody takes it

        made = command(
            system, "restore", str(backup), "--database-url", new_store, "--data-dir", "new"
        )
        system.scheduler = start_restored(system, new_store)
        system.scheduler.until_said("restored from a backup")
        assert rest.status("/readyz") == 503
        system.until_ready()

        assert rest.finished(runs[0])["status"] == "succeeded"
        (caught / "gate").touch()
        assert rest.finished(runs[1])["status"] == "succeeded"
        for run_id, folder in zip(runs, (held, caught), strict=True):
            first, second = executions(folder).items()
            assert first[1][1] < second[1][0], "two attempts ran at once"
            result = rest.get(f"runs/{run_id}/nodes/{rest.nodes(run_id)['slow']['nodeId']}")
            assert second[0] in json.dumps(result) and first[0] not in json.dumps(result)
            assert rest.nodes(run_id)["slow"]["attempt"] == made["firstEpoch"] + 1
        assert rest.http.get(f"/api/v1/runs/{later}").status_code == 404

        fresh = tmp_path / "fresh"
        new_run = rest.submit(slow(fresh))
        (fresh / "gate").touch()
        assert rest.finished(new_run)["status"] == "succeeded"
        assert rest.nodes(new_run)["slow"]["attempt"] == 1

        # The wait is once: what is running now is known, and goes on through a restart.
        system.scheduler.stop()
        system.scheduler.start()
        system.until_ready()
        assert "restored from a backup" not in system.scheduler.said()
