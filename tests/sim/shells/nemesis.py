"""What breaks a world of shells, and mends it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.sim.shells.keeping import KeepingWorker
from tests.sim.shells.wire import TO_SCHEDULER, TO_WORKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.shells.site import Site

__all__ = ["Nemesis"]


class Nemesis:
    """One task for each fault of the seed, until `heal`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.world = site.world
        self._off: list[asyncio.TimerHandle] = []

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        plan: tuple[tuple[str, float, Callable[[], None]], ...] = (
            ("cut", 5.0, self._cut),
            ("black_hole", 6.0, self._black_hole),
            ("scheduler_crash", 8.0, self._crash_scheduler),
            ("standby", 10.0, self._cut_off_store),
            ("outage", 10.0, self._outage),
            ("worker_crash", 8.0, self._crash_worker),
            ("stall", 8.0, self._stall),
            ("reregister", 3.0, self._reregister),
            ("evict", 4.0, self._evict),
            ("host_crash", 5.0, self._crash_host),
            ("blobs", 8.0, self._lose_blobs),
            ("drain", 8.0, self._drain),
            ("clock", 8.0, self._set_clock),
        )
        tasks = [
            group.create_task(self._again(mean, act), name=f"nemesis: {fault}")
            for fault, mean, act in plan
            if self.site.config.has(fault)
        ]
        if self.site.config.copies:
            again = self._again(4.0, self._stop_for_long)
            tasks.append(group.create_task(again, name="nemesis: long stops"))
        if self.site.config.gone:
            tasks.append(group.create_task(self._lose_worker(), name="nemesis: gone"))
        return tasks

    async def _lose_worker(self) -> None:
        """A machine never comes back."""
        await asyncio.sleep(self.world.rng.random() * self.site.config.fault_phase_s)
        worker = self.world.rng.choice(self.site.workers)
        worker.is_gone = True
        worker.crash()

    async def _again(self, mean: float, act: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self.world.delay(mean))
            act()

    def heal(self) -> None:
        """Links open, the store answers, the dead are started."""
        self.site.network.heal()
        self.site.disk.heal()
        self.site.mirror.is_healed = True
        self.site.shelf.out_until = 0.0
        for scheduler in self.site.schedulers:
            if scheduler.handle is not None:
                scheduler.handle.cut_off_until = 0.0
            scheduler.start()
        for timer in self._off:
            timer.cancel()
        for worker in self.site.workers:
            worker.boot()

    def _cut(self) -> None:
        wires = self.site.network.wires
        if wires:
            tells = self.world.rng.choice(
                ((TO_SCHEDULER, TO_WORKER), (TO_SCHEDULER,), (TO_WORKER,), ())
            )
            self.world.rng.choice(wires).cut(tells=tells)

    def _black_hole(self) -> None:
        worker = self.world.rng.choice(self.site.workers)
        direction = self.world.rng.choice((TO_SCHEDULER, TO_WORKER))
        until = self.world.now + 0.1 + self.world.rng.random() ** 2 * 20
        self.site.network.blocked[worker.name, direction] = until

    def _crash_scheduler(self) -> None:
        scheduler = self.world.rng.choice(self.site.schedulers)
        scheduler.crash()
        self.world.after(0.05 + self.world.rng.random() * 3, scheduler.start)

    def _cut_off_store(self) -> None:
        """One that reaches its workers and not the store: its claim runs out under it."""
        for scheduler in self.site.schedulers:
            if scheduler.epoch and scheduler.handle is not None:
                seconds = 1.0 + self.world.rng.random() * 15
                scheduler.handle.cut_off_until = self.world.now + seconds
                self.world.log(f"{scheduler.name} is cut off from the store")

    def _outage(self) -> None:
        self.site.disk.out_until = self.world.now + self.world.rng.random() * 4
        self.world.log("the store is out")

    def _crash_worker(self) -> None:
        worker = self.world.rng.choice(self.site.workers)
        worker.crash()
        self.world.after(0.05 + self.world.rng.random() * 3, worker.boot)

    def _stop_for_long(self) -> None:
        """A machine that keeps something is off for longer than anybody waits for it."""
        keepers: list[Any] = [one for one in self.site.workers if one.link is not None]
        holding = [one for one in keepers if one.keeping.kept]
        if not holding:
            return
        worker = self.world.rng.choice(holding)
        worker.crash()
        seconds = 8.0 + self.world.rng.random() * 8
        self._off.append(self.site.loop.call_later(seconds, worker.boot))

    def _keeper(self) -> KeepingWorker:
        worker = self.world.rng.choice(self.site.workers)
        assert isinstance(worker, KeepingWorker)
        return worker

    def _evict(self) -> None:
        self._keeper().evict()

    def _crash_host(self) -> None:
        self._keeper().crash_host()

    def _drain(self) -> None:
        """SIGTERM: it finishes what runs, ends in order, and is started anew on the same disk."""
        link = self._keeper().link
        if link is not None:
            link.drain(5.0)

    def _lose_blobs(self) -> None:
        self.site.shelf.out_until = self.world.now + self.world.rng.random() * 5

    def _set_clock(self) -> None:
        """Forward by more than makes a time late, or back.

        Between two transactions only: within one, the checkers know the order of facts by their times.
        """
        serving = [
            one.scheduler.serving for one in self.site.schedulers if one.epoch and one.scheduler
        ]
        if any(one.engine.has_decided for one in serving):
            return
        seconds = self.world.rng.choice((-90.0, -7.0, 7.0, 65.0, 150.0))
        self.site.clock.set_wall(seconds)
        self.world.sometimes("clock set back" if seconds < 0 else "clock set forward")
        self.world.log(f"the clock is set by {seconds} s")

    def _stall(self) -> None:
        self.site.loop.stall(self.world.rng.random() * 5)

    def _reregister(self) -> None:
        worker = self.world.rng.choice(self.site.workers)
        if worker.link is not None and worker.link._group is not None:
            worker.link.agent.reoffer(self.world.now)
            worker.link._wake()
