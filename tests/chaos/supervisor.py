"""A system whose workers are each behind a proxy of its own, with a timeline; what dies is restarted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.proxy import Proxy
from tests.processes.process import Process
from tests.processes.system import System
from tests.processes.waiting import LOOK_S, is_seen

__all__ = ["HEARTBEAT_MS", "LEASE_S", "SHORT", "Boot", "Supervisor", "supervised"]

HEARTBEAT_MS = 500
LEASE_S = 6 * HEARTBEAT_MS / 1000
"""Short, so that what takes a lease to show fits into a test; the fence is at 0.6 of it."""
SHORT = {
    "ASTRA_SCHEDULER_DISPATCH_ACK_TIMEOUT_MS": "1500",
    "ASTRA_SCHEDULER_CANCEL_GRACE_MS": "1000",
    "ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS": "5",
}
LEFT_S = 5.0


@dataclass(frozen=True)
class Boot:
    """One start of a process."""

    name: str
    wall_ms: int


class Supervisor:
    """The processes of one chaos run. `note` is its timeline."""

    def __init__(self, system: System, *, is_loud: bool = False) -> None:
        self.system = system
        self.timeline: list[tuple[float, str]] = []
        self.boots: list[Boot] = []
        self.proxies: dict[str, Proxy] = {}
        self.unwanted: set[str] = set()
        """The names of those that stay down."""
        self._is_loud = is_loud
        self._began = time.monotonic()

    @property
    def scheduler(self) -> Process:
        return self.system.scheduler

    @property
    def schedulers(self) -> list[Process]:
        workers = self.workers
        return [one for one in self.system.processes if one not in workers]

    @property
    def workers(self) -> list[Process]:
        return list(self.system.workers.values())

    def note(self, text: str) -> None:
        at = time.monotonic() - self._began
        self.timeline.append((at, text))
        if self._is_loud:
            print(f"{at:8.2f}  {text}", flush=True)

    # -- starting and stopping --------------------------------------------------------------

    async def open(self, workers: int, slots: int) -> None:
        self.spawn(self.scheduler)
        await asyncio.to_thread(self.system.until_ready)
        for number in range(workers):
            name = f"worker{number}"
            proxy = self.proxies[name] = Proxy(self.system.port)
            await proxy.open()
            url = f"ws://127.0.0.1:{proxy.port}/ws/worker"
            self.spawn(self.system.new_worker(name, "--max-parallel", str(slots), url=url))

    def spawn(self, process: Process, **environ: str) -> None:
        """Start it. `environ`: for this boot alone."""
        self.unwanted.discard(process.name)
        self.boots.append(Boot(process.name, int(time.time() * 1000)))
        process.start(**environ)
        extra = " ".join(f"{name}={value}" for name, value in environ.items())
        self.note(f"start {process.name} as {process.pid} {extra}".rstrip())

    async def keep_alive(self) -> None:
        """Restart what dies, until cancelled."""
        while True:
            for process in list(self.system.processes):
                if process.name not in self.unwanted and not process.is_alive():
                    self.note(f"{process.name} has ended with {process.code}")
                    self.spawn(process)
            await asyncio.sleep(LOOK_S)

    async def stop(self, process: Process) -> int:
        """Told to end, it does; its exit code."""
        self.unwanted.add(process.name)
        return await asyncio.to_thread(process.stop)

    async def close(self) -> None:
        """Leave nothing behind, in whatever state it is."""
        for process in self.system.processes:
            self.unwanted.add(process.name)
            if process.is_alive():
                process.kill()
        # Hosts end with their workers; what is still there was left behind by a bug.
        await is_seen(lambda: not self.system.family(), LEFT_S)
        self.system.close()
        for proxy in self.proxies.values():
            await proxy.close()

    # -- faults -----------------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        if process.is_alive():
            self.note(f"kill -9 {process.name} {process.pid}")
            process.kill()

    async def freeze(self, process: Process, seconds: float) -> None:
        if process.is_alive():
            self.note(f"freeze {process.name} for {seconds:.1f} s")
            with process.frozen():
                await asyncio.sleep(seconds)
            self.note(f"thaw {process.name}")


@asynccontextmanager
async def supervised(
    folder: Path,
    *,
    workers: int = 3,
    slots: int = 8,
    database_url: str | None = None,
    heartbeat_ms: int = HEARTBEAT_MS,
    is_loud: bool = False,
) -> AsyncIterator[Supervisor]:
    """A running system; killed, whatever happens, at the end."""
    system = System(folder, heartbeat_ms=heartbeat_ms, database_url=database_url, environ=SHORT)
    supervisor = Supervisor(system, is_loud=is_loud)
    try:
        await supervisor.open(workers, slots)
        yield supervisor
    finally:
        await supervisor.close()
