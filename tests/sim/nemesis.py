"""The nemesis: the fault plan drawn from the seed, and the end of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.config import Config
from tests.sim.world import World

if TYPE_CHECKING:
    from tests.sim.network import Network
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.store import Store
    from tests.sim.worker import WorkerProcess

__all__ = ["Nemesis"]


class Nemesis:
    """Breaks things until it is told to stop, then mends all of them."""

    def __init__(
        self,
        world: World,
        config: Config,
        network: Network,
        store: Store,
        schedulers: list[SchedulerProcess],
        workers: list[WorkerProcess],
    ) -> None:
        self.world = world
        self.config = config
        self.network = network
        self.store = store
        self.schedulers = schedulers
        self.workers = workers
        self.is_over = False

    def start(self) -> None:
        every = self.config.crash_every_s
        plan: list[tuple[str, float, Callable[[], None]]] = [
            ("partition", 8.0, self._partition),
            ("cut", 6.0, self._cut),
            ("scheduler_crash", every, self._crash_scheduler),
            ("takeover", 20.0, self._freeze_scheduler),
            ("scheduler_pause", 12.0, self._pause_scheduler),
            ("worker_crash", every, self._crash_worker),
            ("worker_pause", 10.0, self._pause_worker),
            ("worker_slow", 20.0, self._slow_worker),
            ("host_crash", 5.0, self._crash_host),
            ("wall_jump", 15.0, self._jump),
            ("drain", 20.0, self._drain),
            ("store_split", 15.0, self._split_store),
            ("reregister", 2.0, self._reregister),
        ]
        if self.config.resources:
            plan.append(("evict", 3.0, self._evict))
        if self.config.resources and self.config.copies:
            self.world.after(self.world.delay(12.0), self._again, 12.0, self._stop_worker_for_long)
        if self.config.gone:
            self.world.after(self.world.rng.random() * 30, self._lose_worker)
        for fault, mean, act in plan:
            if self.config.has(fault):
                self.world.after(self.world.delay(mean), self._again, mean, act)

    def _again(self, mean: float, act: Callable[[], None]) -> None:
        if self.is_over:
            return
        act()
        self.world.after(self.world.delay(mean), self._again, mean, act)

    def heal(self) -> None:
        """Faults stop, links open, the paused wake, the dead restart."""
        self.is_over = True
        self.network.heal()
        self.store.is_healed = True
        for scheduler in self.schedulers:
            scheduler.store_back_at = 0.0
            scheduler.wake()
            if scheduler.is_dead:
                scheduler.start()
        for worker in self.workers:
            worker.wake()
            worker.boot()

    def _worker(self) -> WorkerProcess:
        return self.world.rng.choice(self.workers)

    def _stop_worker_for_long(self) -> None:
        """A machine is off for longer than anybody waits for what it has."""
        worker = self._worker()
        worker.crash()
        self.world.after(12.0 + self.world.rng.random() * 20, worker.boot)

    def _partition(self) -> None:
        worker = self._worker()
        seconds = 0.1 + self.world.rng.random() ** 2 * 30
        directions = self.world.rng.choice(((0,), (1,), (0, 1)))
        self.world.log(f"partition {worker.worker_id} {directions}")
        for direction in directions:
            self.network.block(worker, direction, seconds)

    def _cut(self) -> None:
        if self.network.connections:
            conn = self.world.rng.choice(self.network.connections)
            self.network.break_connection(conn, told=self.world.rng.random() < 0.7)

    def _crash_scheduler(self) -> None:
        scheduler = self.world.rng.choice(self.schedulers)
        if scheduler.is_dead:
            return
        scheduler.crash()
        self.world.after(0.05 + self.world.rng.random() * 5, self._restart, scheduler)

    def _restart(self, scheduler: SchedulerProcess) -> None:
        if scheduler.is_dead:
            scheduler.start()

    def _freeze_scheduler(self) -> None:
        """Frozen for longer than the shard lease: another one takes over, then it wakes."""
        scheduler = next((one for one in self.schedulers if one.is_serving), None)
        if scheduler is not None:
            self.world.log(f"freeze {scheduler.name}")
            scheduler.pause()
            self.world.after(7 + self.world.rng.random() * 8, scheduler.wake)

    def _pause_scheduler(self) -> None:
        scheduler = self.world.rng.choice(self.schedulers)
        if scheduler.is_serving:
            scheduler.pause()
            self.world.after(0.1 + self.world.rng.random() * 3, scheduler.wake)

    def _crash_worker(self) -> None:
        worker = self._worker()
        worker.crash()
        self.world.after(0.05 + self.world.rng.random() * 5, worker.boot)

    def _lose_worker(self) -> None:
        """A machine that never comes back."""
        worker = self._worker()
        worker.is_gone = True
        worker.crash()

    def _pause_worker(self) -> None:
        worker = self._worker()
        if worker.agent is not None and not worker.is_paused:
            self.world.log(f"pause {worker.worker_id}")
            worker.pause()
            self.world.after(0.1 + self.world.rng.random() * 15, worker.wake)

    def _slow_worker(self) -> None:
        """A machine that is short of CPU: for a while it runs a twentieth of the time."""
        worker = self._worker()
        for step in range(20):
            self.world.after(step * 0.5, worker.pause)
            self.world.after(step * 0.5 + 0.475, worker.wake)

    def _crash_host(self) -> None:
        worker = self._worker()
        for host in list(worker.hosts.values()):
            worker.crash_host(host)
        worker.keeping.lose_memory()

    def _evict(self) -> None:
        self._worker().keeping.evict_one()

    def _jump(self) -> None:
        seconds = self.world.rng.choice((3600.0, -3600.0, 86400.0, -86400.0))
        clocks = [one.clock for one in self.schedulers] + [one.clock for one in self.workers]
        self.world.rng.choice(clocks).jump(seconds)

    def _split_store(self) -> None:
        """A scheduler that reaches its workers and not the store: the shard lease runs out under it."""
        scheduler = next((one for one in self.schedulers if one.is_serving), None)
        if scheduler is not None:
            seconds = 1 + self.world.rng.random() * 29
            self.world.log(f"{scheduler.name} is cut off from the store for {seconds:.1f} s")
            scheduler.store_back_at = self.world.now + seconds

    def _reregister(self) -> None:
        self._worker().reoffer()

    def _drain(self) -> None:
        self._worker().drain()
