"""The fault plan of a seed, and what each fault does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.chaos import proc
from tests.chaos.proxy import DOWN, UP, Weather
from tests.chaos.supervisor import LEASE_S, Supervisor
from tests.chaos.workload import Api
from tests.processes.postgres import terminate_backends
from tests.processes.process import Process
from tests.processes.waiting import is_seen, until_seen

__all__ = ["FAULTS", "ON_POSTGRES", "Kill", "Nemesis"]

POINTS = ("before-commit", "after-commit", "before-send", "after-send")
BEYOND_LEASE_S = LEASE_S * 1.4
POINT_WAIT_S = 20.0
"""For a scheduler to come to the point at which it is to die; an idle one may not."""


WORKING_S = 60.0


@dataclass(frozen=True)
class Kill:
    """Something that ended attempts: when, and the hosts in which they were."""

    kind: str
    at_ns: int
    host_pids: frozenset[int]


@dataclass
class Nemesis:
    """Does faults one after another; heals what it has bent before the next."""

    supervisor: Supervisor
    api: Api
    truth: Path
    rng: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    kills: list[Kill] = field(default_factory=list)
    owns_scheduler: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a scheduler is to die by its own hand: whoever else kills it must wait."""

    async def run(self, until: float, pause_s: tuple[float, float], plan: Sequence[str]) -> None:
        """Draw faults until a time of the loop's clock."""
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await self.do(self.rng.choice(plan))
            await asyncio.sleep(self.rng.uniform(*pause_s))

    async def do(self, fault: str) -> None:
        self.counts[fault] += 1
        await (FAULTS | ON_POSTGRES)[fault](self)

    def _any_worker(self) -> Process:
        return self.rng.choice(self.supervisor.workers)

    def _host_pids(self, worker: Process) -> frozenset[int]:
        return frozenset(host.host_pid for host in proc.hosts_of(worker.folder / "kept"))

    def _ended(self, kind: str, pids: frozenset[int]) -> None:
        self.kills.append(Kill(kind, time.monotonic_ns(), pids))

    async def until_working(self) -> None:
        """Until a node starts that had not: a fault of an idle system shows little."""
        before = self.started()
        await until_seen(lambda: self.started() > before, WORKING_S)

    def started(self) -> int:
        return sum(1 for _ in self.truth.iterdir())

    # -- kills ------------------------------------------------------------------------------

    async def kill_scheduler(self) -> None:
        async with self.owns_scheduler:
            self.supervisor.kill(self.supervisor.scheduler)

    async def kill_at_point(self) -> None:
        await self.kill_scheduler_at((self.rng.choice(POINTS), self.rng.randint(1, 30)))

    async def kill_scheduler_at(self, *points: tuple[str, int]) -> int:
        """Start schedulers that each die at a named point, one after another; how many came to it."""
        supervisor = self.supervisor
        scheduler = supervisor.scheduler
        died = 0
        async with self.owns_scheduler:
            supervisor.unwanted.add(scheduler.name)
            supervisor.kill(scheduler)
            for point, times in points:
                supervisor.spawn(scheduler, ASTRA_CHAOS_POINT=f"{point}:{times}")
                supervisor.unwanted.add(scheduler.name)
                if await is_seen(lambda: not scheduler.is_alive(), POINT_WAIT_S):
                    died += 1
                    self.counts[point] += 1
                else:
                    supervisor.kill(scheduler)
            supervisor.unwanted.discard(scheduler.name)
        return died

    async def kill_worker(self) -> None:
        worker = self._any_worker()
        pids = self._host_pids(worker)
        self.supervisor.kill(worker)
        self._ended("worker", pids)

    async def kill_host(self) -> None:
        await self._signal_hosts("host", lambda host: host.host_pid)

    async def kill_guard(self) -> None:
        await self._signal_hosts("guard", lambda host: host.guard_pid)

    async def _signal_hosts(self, kind: str, pid_of: Callable[[proc.Host], int]) -> None:
        if (found := self._any_host()) is None:
            return
        worker, host = found
        self.supervisor.note(f"kill -9 {kind} {pid_of(host)} of {worker.name}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid_of(host), signal.SIGKILL)
        self._ended(kind, frozenset({host.host_pid}))

    def _any_host(self) -> tuple[Process, proc.Host] | None:
        """One that lives, of this run, so that it is ours to end."""
        alive = self.supervisor.system.family()
        found = [
            (worker, host)
            for worker in self.supervisor.workers
            for host in proc.hosts_of(worker.folder / "kept")
            if {host.guard_pid, host.host_pid} <= alive.keys()
        ]
        return self.rng.choice(found) if found else None

    # -- freezes ----------------------------------------------------------------------------

    async def freeze_worker(self) -> None:
        worker = self._any_worker()
        pids = self._host_pids(worker)
        seconds = self.rng.choice((0.3, 1.0, BEYOND_LEASE_S, BEYOND_LEASE_S * 1.5))
        if seconds > LEASE_S:
            self._ended("freeze", pids)
        await self.supervisor.freeze(worker, seconds)

    async def freeze_scheduler(self) -> None:
        seconds = self.rng.choice((0.3, 1.0, BEYOND_LEASE_S))
        async with self.owns_scheduler:
            await self.supervisor.freeze(self.supervisor.scheduler, seconds)

    async def freeze_host(self) -> None:
        if (found := self._any_host()) is None:
            return
        worker, (_, pid) = found
        seconds = self.rng.choice((0.5, BEYOND_LEASE_S))
        self.supervisor.note(f"freeze host {pid} of {worker.name} for {seconds:.1f} s")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(seconds)
        if pid in self.supervisor.system.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    # -- the network ------------------------------------------------------------------------

    async def cut(self) -> None:
        worker = self._any_worker()
        self.supervisor.note(f"cut {worker.name} off with a reset")
        self.supervisor.proxies[worker.name].cut()

    async def black_hole(self) -> None:
        seconds = self.rng.choice((0.5, 2.0, BEYOND_LEASE_S))
        ways = self.rng.choice(((UP,), (DOWN,), (UP, DOWN)))
        await self._weather(ways, Weather(is_silent=True), seconds, "silence")

    async def delay(self) -> None:
        await self._weather((UP, DOWN), Weather(delay_s=self.rng.uniform(0.05, 0.6)), 3.0, "delay")

    async def split(self) -> None:
        await self._weather((UP, DOWN), Weather(is_split=True), 3.0, "split")

    async def throttle(self) -> None:
        await self._weather((UP, DOWN), Weather(bytes_per_s=40_000.0), 3.0, "throttle")

    async def _weather(
        self, ways: Sequence[str], weather: Weather, seconds: float, name: str
    ) -> None:
        worker = self._any_worker()
        proxy = self.supervisor.proxies[worker.name]
        self.supervisor.note(f"{name} {'/'.join(ways)} of {worker.name} for {seconds:.1f} s")
        for way in ways:
            proxy.set(way, weather)
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.heal()

    # -- PostgreSQL -------------------------------------------------------------------------

    async def terminate_backends(self) -> None:
        ended = await terminate_backends(self.supervisor.system.store_url)
        self.supervisor.note(f"terminated {ended} connections of the store")

    async def take_over(self) -> None:
        """Freeze the scheduler until another has its place, then let it wake and find out."""
        async with self.owns_scheduler:
            await self._take_over()

    async def _take_over(self) -> None:
        supervisor, system = self.supervisor, self.supervisor.system
        old, new = system.scheduler, system.new_scheduler()
        supervisor.unwanted.add(old.name)
        if not old.is_alive():
            return
        supervisor.note(f"freeze {old.name}, and start another")
        with old.frozen():
            supervisor.spawn(new)
            system.hand_over(new)
            await asyncio.to_thread(new.line, lambda line: line.startswith("listening on "))
            for proxy in supervisor.proxies.values():
                proxy.target = system.port
                proxy.cut()
            await self.until_working()
        supervisor.note(f"thaw {old.name}")
        await self.until_working()
        code = await supervisor.stop(old)
        supervisor.note(f"{old.name} was told to stop and ended with {code}")
        assert code == 0, old.said()

    # -- clients ----------------------------------------------------------------------------

    async def slow_reader(self) -> None:
        """A client that opens the tenant's stream and reads nothing of it."""
        self.supervisor.note("a reader that does not read, for 3 s")
        with contextlib.suppress(OSError, httpx.TransportError):
            async with asyncio.timeout(3.0):
                async with self.api.stream("/api/v1/events"):
                    await asyncio.Event().wait()


FAULTS: dict[str, Callable[[Nemesis], Awaitable[None]]] = {
    "kill scheduler": Nemesis.kill_scheduler,
    "kill scheduler at a point": Nemesis.kill_at_point,
    "kill worker": Nemesis.kill_worker,
    "kill host": Nemesis.kill_host,
    "kill guard": Nemesis.kill_guard,
    "freeze worker": Nemesis.freeze_worker,
    "freeze scheduler": Nemesis.freeze_scheduler,
    "freeze host": Nemesis.freeze_host,
    "cut": Nemesis.cut,
    "black hole": Nemesis.black_hole,
    "delay": Nemesis.delay,
    "split": Nemesis.split,
    "throttle": Nemesis.throttle,
    "slow reader": Nemesis.slow_reader,
}
ON_POSTGRES: dict[str, Callable[[Nemesis], Awaitable[None]]] = {
    "terminate backends": Nemesis.terminate_backends,
    "take over": Nemesis.take_over,
}
"""Faults that only a store on a server has."""
