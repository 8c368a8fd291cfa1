"""Two schedulers on one PostgreSQL, a worker that knows both: one dies or freezes, the other and the work go on.

How long it took is printed, not asserted: the figures are in docs/chaos.md.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.postgres import postgres_server
from tests.processes.process import Process
from tests.processes.rest import Rest
from tests.processes.system import System, port_of
from tests.processes.waiting import until

WAITS = """
import os, time

def main(folder):
    open(os.path.join(folder, f"started-{ctx.attempt}"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.05)
    return ctx.attempt
"""


class Pair:
    """An owner, another scheduler, and a worker that knows both, with the numbers that a site has which sets none."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.owner, self.other = system.scheduler, system.new_scheduler()
        self.began = 0.0

    def start(self) -> None:
        self.system.start()
        self.other.start()
        until(lambda: self.is_ready(self.other), "a second scheduler that is ready")
        urls = [f"ws://127.0.0.1:{port_of(one)}/ws/worker" for one in (self.owner, self.other)]
        self.system.new_worker("worker", url=",".join(urls)).start()

    def asked(self, scheduler: Process) -> Rest:
        """The client, which asks this one from now on."""
        self.system.hand_over(scheduler)
        return self.system.rest

    def is_ready(self, scheduler: Process) -> bool:
        """Whether it answers requests, itself or through the owner."""
        try:
            url = f"http://127.0.0.1:{port_of(scheduler)}/readyz"
            return httpx.get(url, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def print(self, what: str) -> None:
        print(f"{time.monotonic() - self.began:6.2f} s  {what}")


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """On a PostgreSQL of its own, not started."""
    with postgres_server() as url:
        made = System(tmp_path, heartbeat_ms=None, database_url=url)
        try:
            yield made
        finally:
            made.close()


def _submit(rest: Rest, code: str, **inputs: Any) -> str:
    python = node("core.python", parameters={"code": code, "inputs": inputs})
    answer = rest.ask("POST", "/api/v1/runs", json={"workflow": workflow(python)})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def _answers_through_the_owner(pair: Pair) -> None:
    """A scheduler that owns nothing has requests answered by the one that does."""
    here = {
        path: pair.asked(pair.owner).http.get(path).json()
        for path in ("/readyz", "/api/v1/runs", "/api/v1/workers", "/api/v1/me")
    }
    there = {path: pair.asked(pair.other).http.get(path).json() for path in here}
    assert there == here


def _survives(pair: Pair, fault: Callable[[Pair], Process]) -> None:
    """An attempt that is under way when the owner goes is finished, as the attempt that it is, by the next."""
    folder = pair.system.folder
    long = _submit(pair.asked(pair.owner), WAITS, folder=str(folder))
    until(lambda: (folder / "started-1").exists(), "the attempt")
    rest = pair.asked(fault(pair))
    rest.ask("GET", "/readyz")
    pair.print("the next scheduler is ready")
    short = _submit(rest, "def main():\n    return 1\n")
    pair.print("it has taken a run in")
    assert rest.finished(short)["status"] == "succeeded"
    pair.print("a worker has done it")
    (folder / "go").touch()
    view = rest.finished(long)
    pair.print("the attempt that was under way has ended")
    (node,) = view["nodes"]
    assert (view["status"], node["attempt"]) == ("succeeded", 1)
    assert not (folder / "started-2").exists()


def _kill_with_another(pair: Pair) -> Process:
    _answers_through_the_owner(pair)
    pair.began = time.monotonic()
    pair.owner.kill()
    return pair.other


def _kill_alone(pair: Pair) -> Process:
    pair.other.stop()
    pair.began = time.monotonic()
    pair.owner.kill()
    return pair.owner.start()


def _freeze(pair: Pair) -> Process:
    pair.began = time.monotonic()
    pair.owner.send(signal.SIGSTOP)
    return pair.other


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", [_kill_with_another, _kill_alone, _freeze])
def test_a_take_over_keeps_the_attempts_that_are_under_way(
    system: System, fault: Callable[[Pair], Process]
) -> None:
    pair = Pair(system)
    pair.start()
    _survives(pair, fault)
    if fault is _freeze:
        _wakes_up_without_a_right(pair)


def _wakes_up_without_a_right(pair: Pair) -> None:
    """It writes nothing any more, and has requests answered by the scheduler that took over."""
    pair.owner.send(signal.SIGCONT)
    assert pair.asked(pair.other).ask("GET", "/readyz").status_code == 200
    pair.owner.until_said("another scheduler has taken over")
    until(lambda: pair.is_ready(pair.owner), "a scheduler that knows the owner")
    run_id = _submit(pair.asked(pair.owner), "def main():\n    return 1\n")
    view = pair.asked(pair.other).finished(run_id)
    assert view["status"] == "succeeded"


@pytest.mark.timeout(120)
def test_a_scheduler_with_blobs_of_its_own_is_refused_before_it_could_take_over(
    system: System,
) -> None:
    system.start()
    other = system.new_scheduler()
    other.arguments[other.arguments.index("--data-dir") + 1] = str(system.folder / "elsewhere")
    assert other.start().wait() != 0
    assert "blobs_url must name the folder or bucket that the other" in other.said()
    assert system.rest.status("/readyz") == 200
