"""What a handler may see, start and close: the borders round a host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from astraflow.core.ids import TaskId
from tests.worker.hosts.stage import Stage, error_of, is_alive, staged, value_of, wait_until_dead


async def test_a_handler_sees_only_the_variables_that_programs_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_SECRET_KEY", "hidden")
    monkeypatch.setenv("ASTRA_WORKER_AUTH_TOKEN", "hidden")
    monkeypatch.setenv("SHOWN_KEY", "shown")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("ASTRA_CHROMIUM", "/opt/chromium")

    named = ("SHOWN_KEY", "ASTRA_WORKER_AUTH_TOKEN")
    async with staged(tmp_path, environment=named) as stage:
        seen = value_of(await stage.outcome_of("nasty.variables"))
        assert "hidden" not in seen.values()
        assert seen["SHOWN_KEY"] == "shown"
        assert (seen["LC_TIME"], seen["ASTRA_CHROMIUM"]) == ("C", "/opt/chromium")
        assert seen["PATH"] == os.environ["PATH"]
        assert len(seen) < len(os.environ)


def test_a_worker_hides_its_token_from_its_own_user(tmp_path: Path) -> None:
    """A process of the same user reads what it can of a process that has hidden its secrets."""
    program = """
import ctypes, os, sys
sys.path[:0] = sys.argv[1:]
from astraflow.worker.privacy import hide_secrets

def look():
    child = os.fork()
    if child == 0:
        try:
            with open(f"/proc/{os.getppid()}/environ") as environ:
                print("seen" if "hidden" in environ.read() else "not there", flush=True)
        except PermissionError:
            print("refused", flush=True)
        os._exit(0)
    os.waitpid(child, 0)

if os.geteuid() == 0:  # for root nothing is hidden
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a process that was that user from its start
look()
hide_secrets()
assert "ASTRA_WORKER_AUTH_TOKEN" not in os.environ
look()
"""
    source = Path(__file__).resolve().parents[3] / "src"
    ended = subprocess.run(
        [sys.executable, "-c", program, str(source)],
        env={"PATH": os.environ["PATH"], "ASTRA_WORKER_AUTH_TOKEN": "hidden"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.stdout, ended.returncode) == ("seen\nrefused\n", 0), ended.stderr


async def test_a_host_that_starts_too_many_processes_is_killed_and_says_why(tmp_path: Path) -> None:
    async with staged(tmp_path, max_processes=20) as stage:
        error = error_of(await stage.outcome_of("nasty.crowd", {"count": 40}))
        assert error.code == "E.RUNNER.LIMIT"
        assert "allowed are 20" in error.message
        assert (await stage.outcome_of("core.noop", task="t2")).status == "SUCCEEDED"


@pytest.mark.parametrize(
    ("node", "given"),
    [
        ("close_pipe", {"which": "write_fd"}),
        ("close_pipe", {"which": "read_fd"}),
        ("close_everything", {}),
    ],
)
async def test_a_handler_that_closes_its_pipes_does_not_wedge_its_package(
    tmp_path: Path, node: str, given: dict[str, str]
) -> None:
    async with staged(tmp_path) as stage:
        stage.start(f"nasty.{node}", given)
        await stage.until_ready()
        # Another attempt of the package, which the broken host is given, too.
        stage.start("nasty.variables", task="t2")
        first = error_of(await stage.outcome("t1"))
        assert first.code in ("E.RUNNER.CRASHED", "E.TASK.HOST_LOST")
        await stage.outcome("t2")
        assert (await stage.outcome_of("nasty.variables", task="t3")).status == "SUCCEEDED"


class TestProcesses:
    @pytest.mark.parametrize("how", ["popen", "asyncio", "fork"])
    async def test_a_failed_attempt_leaves_no_process(self, tmp_path: Path, how: str) -> None:
        async with staged(tmp_path) as stage:
            await stage.outcome_of("core.noop", task="other")
            given = {"how": how, "end": "fail"}
            error_of(await stage.outcome_of("nasty.leave_behind", given))
            for pid in _started(stage):
                wait_until_dead(pid)
            assert (await stage.outcome_of("nasty.variables", task="t2")).status == "SUCCEEDED"
            assert stage.pool.stats().died_total == 0

    @pytest.mark.parametrize("how", ["popen", "asyncio", "fork"])
    async def test_a_cancelled_attempt_leaves_no_process(self, tmp_path: Path, how: str) -> None:
        async with staged(tmp_path) as stage:
            stage.start("nasty.leave_behind", {"how": how, "end": "hang"})
            await stage.up()
            pids = _started(stage)
            assert all(map(is_alive, pids))
            stage.pool.cancel(TaskId("t1"), 1, 30.0, "not wanted")
            assert (await stage.outcome("t1")).status == "CANCELLED"
            for pid in pids:
                wait_until_dead(pid)
            assert stage.pool.stats().hosts == 1

    async def test_what_a_successful_attempt_started_stays_until_its_host_ends(
        self, tmp_path: Path
    ) -> None:
        async with staged(tmp_path) as stage:
            given = {"how": "popen", "end": "succeed"}
            value = value_of(await stage.outcome_of("nasty.leave_behind", given))
            await stage.outcome_of("nasty.variables", task="t2")
            assert is_alive(value["pid"]) and is_alive(value["below"])
        for pid in (value["pid"], value["below"]):
            wait_until_dead(pid)


def _started(stage: Stage) -> list[int]:
    (line,) = stage.texts("log")
    return [int(pid) for pid in line.split()]
