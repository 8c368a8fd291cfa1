"""`core.noop` through a real host: what an attempt costs the worker and the host, and how much memory a host holds."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import msgspec
import uvloop

from astraflow.clock import SystemClock
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import HostPool, PoolSettings, core_package
from astraflow.worker.resources import LocalResourceRegistry, RegistryBroker
from benchmarks.figures import Figure
from benchmarks.usage import cpu_s

ATTEMPTS = 10_000
ROUND_TRIPS = 1_000
FENCE_S = 60.0


class _Load:
    """Keeps so many attempts in flight until all have ended."""

    def __init__(self, folder: Path) -> None:
        self._clock = SystemClock()
        spec = core_package()
        self.registry = LocalResourceRegistry(
            folder, folder / "data", worker_id="worker", clock=self._clock
        )
        self.pool = HostPool(
            folder=folder,
            clock=self._clock,
            settings=PoolSettings(),
            packages=lambda name, version: spec,
            events=self,
            broker=RegistryBroker(self.registry, "worker"),
        )
        self._number = 0
        self._left = self._open = 0
        self._done = asyncio.Event()

    def finished(self, result: business.Result) -> None:
        assert result.status == "SUCCEEDED", result.error
        self._open -= 1
        if self._left:
            self._start()
        elif self._open == 0:
            self._done.set()

    def gone(self, task_id: str, attempt: int) -> None:
        raise AssertionError("nothing is killed here")

    def feedback(self, feedback: business.Feedback) -> None:
        raise AssertionError("nothing is said here")

    def call(self, request: business.NextRequest) -> None:
        raise AssertionError("nothing is called here")

    def _start(self) -> None:
        self._number += 1
        self._left -= 1
        self._open += 1
        dispatch = business.Dispatch(
            RunId("01J8ZQ5T9GQ4X7V2N3M1K0HABC"),
            TaskId(f"task-{self._number}"),
            1,
            0,
            "node",
            "core.noop",
            business.PackageId("core", "1.0.0"),
            msgspec.Raw(b'{"text":"hello","number":5}'),
            business.LeaseGrant(30_000, "heartbeat"),
        )
        self.pool.start(dispatch, self._clock.now() + FENCE_S)

    async def run(self, attempts: int, in_flight: int) -> float:
        """Seconds that all of them took."""
        self._left, self._open = attempts, 0
        self._done.clear()
        begin = time.perf_counter()
        for _ in range(in_flight):
            self._start()
        await self._done.wait()
        return time.perf_counter() - begin


async def _measure(folder: Path) -> list[Figure]:
    load = _Load(folder)
    cold_s = await load.run(1, 1)
    (path,) = (folder / "hosts").glob("*.json")
    pids: dict[str, int] = msgspec.json.decode(path.read_bytes())
    await load.run(ATTEMPTS // 10, 64)
    worker, host = time.process_time(), cpu_s(pids["host_pid"])
    wall_s = await load.run(ATTEMPTS, 64)
    worker_us = (time.process_time() - worker) / ATTEMPTS * 1e6
    host_us = (cpu_s(pids["host_pid"]) - host) / ATTEMPTS * 1e6
    trip_us = await load.run(ROUND_TRIPS, 1) / ROUND_TRIPS * 1e6
    held = sum(_pss_mib(pids[name]) for name in ("host_pid", "guard_pid"))
    await load.pool.close()
    load.registry.close()
    return [
        Figure("64 in flight: CPU of the worker per attempt", worker_us, "µs", 25),
        Figure("64 in flight: CPU of the host per attempt", host_us, "µs", 25),
        Figure("64 in flight: attempts", ATTEMPTS / wall_s, "/s"),
        Figure("one in flight: round trip", trip_us, "µs", 200),
        Figure("first result of a cold host", cold_s * 1000, "ms"),
        Figure("memory of an idle host and its guard", held, "MiB", 40),
    ]


def _pss_mib(pid: int) -> float:
    """Pages that processes share are counted in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def figures() -> list[Figure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(Path(folder)))
