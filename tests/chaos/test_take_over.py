"""Two schedulers on one PostgreSQL, a worker that knows both: one dies or freezes, the other and the work go on.

How long it took is printed, not asserted: the figures are in docs/chaos.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.postgres import postgres_server
from tests.chaos.supervisor import TOKEN, Process, Supervisor
from tests.chaos.waiting import until
from tests.chaos.workload import run_of

WITHIN_S = 60.0
AS_SHIPPED = {
    "ASTRA_SCHEDULER_HEARTBEAT_INTERVAL_MS": "5000",
    "ASTRA_SCHEDULER_LEASE_TTL_MS": "30000",
    "ASTRA_SCHEDULER_SHARD_LEASE_MS": "8000",
    "ASTRA_SCHEDULER_DISPATCH_ACK_TIMEOUT_MS": "5000",
}
"""The numbers that a site has which sets none: what is kept here is kept there."""

WAITS = """
import os, time

def main(folder):
    open(os.path.join(folder, f"started-{ctx.attempt}"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.05)
    return ctx.attempt
"""


def _port(process: Process) -> int:
    return int(process.arguments[process.arguments.index("--port") + 1])


class Site:
    """An owner, a standby unless there is none, and a worker."""

    def __init__(self, supervisor: Supervisor, folder: Path) -> None:
        self.supervisor = supervisor
        self.owner = supervisor.scheduler
        self.standby = supervisor.new_scheduler()
        self.folder = folder
        self.began = 0.0
        self.http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {TOKEN}"}, timeout=httpx.Timeout(5.0)
        )
        for process in (self.owner, self.standby):
            process.environ.update(AS_SHIPPED)

    async def start(self) -> None:
        await self.supervisor.start_scheduler()
        self.supervisor.spawn(self.standby)
        self.supervisor.retired.append(self.standby)
        await until(
            lambda: "standby: waiting for the claim held by " in self.standby.said(), WITHIN_S
        )
        folder = self.folder / "worker"
        folder.mkdir()
        urls = ",".join(
            f"ws://127.0.0.1:{_port(one)}/ws/worker" for one in (self.owner, self.standby)
        )
        worker = Process(
            "worker", ["worker", "--scheduler-url", urls, "--data-dir", str(folder)], folder
        )
        self.supervisor.retired.append(worker)
        self.supervisor.spawn(worker)

    async def ask(self, process: Process, method: str, path: str, **more: Any) -> httpx.Response:
        return await self.http.request(method, f"http://127.0.0.1:{_port(process)}{path}", **more)

    async def answered(
        self, process: Process, method: str, path: str, **more: Any
    ) -> httpx.Response:
        """Ask until there is an answer that is not "later"."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    answer = await self.ask(process, method, path, **more)
                    if answer.status_code != 503:
                        return answer
                await asyncio.sleep(0.02)

    async def submit(self, process: Process, code: str, **inputs: Any) -> str:
        node = {
            "id": str(uuid.uuid4()),
            "type": "core.python",
            "parameters": {"code": code, "inputs": inputs},
        }
        answer = await self.answered(process, "POST", "/api/v1/runs", json=run_of([node], []))
        assert answer.status_code == 202, answer.text
        return str(answer.json()["runId"])

    async def ended(self, process: Process, run_id: str) -> dict[str, Any]:
        async with asyncio.timeout(WITHIN_S):
            while True:
                answer = await self.answered(process, "GET", f"/api/v1/runs/{run_id}")
                view: dict[str, Any] = answer.json()
                if view["finishedAt"] is not None:
                    return view
                await asyncio.sleep(0.02)

    def print(self, what: str) -> None:
        print(f"{time.monotonic() - self.began:6.2f} s  {what}")


@asynccontextmanager
async def site(folder: Path, url: str) -> AsyncIterator[Site]:
    supervisor = Supervisor(folder, database_url=url)
    made = Site(supervisor, folder)
    try:
        await made.start()
        yield made
    finally:
        await made.http.aclose()
        await supervisor.close()


async def _is_standby(made: Site) -> None:
    """It answers from the first moment, and says why it does not serve."""
    assert (await made.ask(made.standby, "GET", "/healthz")).status_code == 200
    assert (await made.ask(made.standby, "GET", "/metrics")).status_code == 200
    for path in ("/readyz", "/api/v1/runs", "/api/v1/events", "/api/v1/workers"):
        answer = await made.ask(made.standby, "GET", path)
        assert answer.status_code == 503, path
        assert "standby: waiting for the claim held by " in answer.json()["detail"], path
        assert int(answer.headers["retry-after"]) >= 1


async def _survives(made: Site, fault: Callable[[Site], Awaitable[Process]]) -> None:
    """An attempt that is under way when the owner goes is finished, as the attempt that it is, by the next."""
    long = await made.submit(made.owner, WAITS, folder=str(made.folder))
    await until(lambda: (made.folder / "started-1").exists(), WITHIN_S)
    made.began = time.monotonic()
    new = await fault(made)
    await made.answered(new, "GET", "/readyz")
    made.print("the next scheduler is ready")
    short = await made.submit(new, "def main():\n    return 1\n")
    made.print("it has taken a run in")
    assert (await made.ended(new, short))["status"] == "succeeded"
    made.print("a worker has done it")
    (made.folder / "go").touch()
    view = await made.ended(new, long)
    made.print("the attempt that was under way has ended")
    (node,) = view["nodes"]
    assert (view["status"], node["attempt"]) == ("succeeded", 1)
    assert not (made.folder / "started-2").exists()


async def _kill_with_standby(made: Site) -> Process:
    await _is_standby(made)
    made.began = time.monotonic()
    made.supervisor.kill(made.owner)
    return made.standby


async def _kill_alone(made: Site) -> Process:
    await made.supervisor.stop(made.standby)
    made.began = time.monotonic()
    made.supervisor.kill(made.owner)
    await until(lambda: not made.owner.is_alive(), WITHIN_S)
    made.supervisor.spawn(made.owner)
    return made.owner


async def _freeze(made: Site) -> Process:
    made.began = time.monotonic()
    made.supervisor.signal(made.owner, signal.SIGSTOP)
    return made.standby


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", [_kill_with_standby, _kill_alone, _freeze])
def test_a_take_over_keeps_the_attempts_that_are_under_way(
    tmp_path: Path, fault: Callable[[Site], Awaitable[Process]]
) -> None:
    async def case(url: str) -> None:
        async with site(tmp_path, url) as made:
            await _survives(made, fault)
            if fault is _freeze:
                await _wakes_up_without_a_right(made)

    with postgres_server() as url:
        asyncio.run(case(url))


async def _wakes_up_without_a_right(made: Site) -> None:
    made.supervisor.signal(made.owner, signal.SIGCONT)
    awake = await made.answered(made.standby, "GET", "/readyz")
    assert awake.status_code == 200
    await until(lambda: "standby: waiting for the claim held by " in made.owner.said(), WITHIN_S)
    answer = await made.ask(made.owner, "POST", "/api/v1/runs", json=run_of([], []))
    assert answer.status_code == 503


@pytest.mark.timeout(120)
def test_a_scheduler_with_blobs_of_its_own_is_refused_before_it_could_take_over(
    tmp_path: Path,
) -> None:
    async def case(url: str) -> None:
        supervisor = Supervisor(tmp_path, database_url=url)
        try:
            await supervisor.start_scheduler()
            other = supervisor.new_scheduler()
            place = other.arguments.index("--data-dir") + 1
            other.arguments[place] = str(tmp_path / "elsewhere")
            supervisor.retired.append(other)
            supervisor.spawn(other)
            assert not await supervisor.is_ready(other)
            assert "blobs_url must name the folder or bucket that the other" in other.said()
            assert other.popen is not None
            assert other.popen.returncode != 0
            async with httpx.AsyncClient() as http:
                assert (await http.get(f"{supervisor.base_url}/readyz")).status_code == 200
        finally:
            await supervisor.close()

    with postgres_server() as url:
        asyncio.run(case(url))
