"""The site: disk, network, schedulers and workers of one world, and what must hold of them at every moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from astraflow.core import errors
from astraflow.scheduler.writer import WAIT_S
from tests.sim.checkers import Checkers
from tests.sim.loop import LoopClock, VirtualLoop
from tests.sim.mirror import Mirror
from tests.sim.shells.blobs import BlobShelf
from tests.sim.shells.disk import Disk, Handle
from tests.sim.shells.firing import FiringChecker
from tests.sim.shells.keeping import Boot, KeepingWorker
from tests.sim.shells.processes import SchedulerProcess, WorkerProcess
from tests.sim.shells.wire import Network
from tests.sim.shells.world import LoopWorld
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.serving import Serving
    from astraflow.scheduler.writer import Writer
    from tests.sim.shells.config import Config

__all__ = ["Site"]

NO_DISK = Path("/nonexistent")
CHECK_EVERY = 25
"""Moments at which nothing is ready, between two at which everything is looked at."""


class Site:
    """Made inside a running virtual loop; its processes are tasks of `group`."""

    def __init__(
        self,
        loop: VirtualLoop,
        config: Config,
        group: asyncio.TaskGroup,
        folder: Path = NO_DISK,
        *,
        keep_transcript: bool = False,
    ) -> None:
        """`folder` has the disks of workers that keep something."""
        self.loop = loop
        self.config = config
        self.group = group
        self.is_over = False
        self.handle_class = Handle
        self.clock = LoopClock(loop)
        self.world = LoopWorld(loop, config.seed, keep_transcript=keep_transcript)
        self.mirror = Mirror()
        # The checkers of the core world read the same names of a config and of a store.
        self.checkers = Checkers(self.world, config, self.mirror)  # type: ignore[arg-type]
        self.disk = Disk(self.world, config, self.clock, self.mirror)
        self.shelf = BlobShelf(self.disk)
        self.network = Network(self.world, config.delay_s, self.front)
        self.folder = folder
        self._boots: dict[str, Boot] = {}
        self._idles = 0
        self.published = asyncio.Event()
        self.activated: dict[tuple[str, str], dict[str, None]] = {}
        """By tenant and package: the versions that have been stored as the active one."""
        self.copied: dict[tuple[str, str, str], None] = {}
        """The resources whose copies have been stored."""
        self.mirror.on_rows.append(self.on_rows)
        self.firing = FiringChecker(self)
        self.disk.on_triggers.append(self.firing.on_triggers)
        self.mirror.on_commit.append(self.firing.on_commit)
        count = 2 if config.has("standby") else 1
        self.schedulers = [SchedulerProcess(self, f"sched-{number}") for number in range(count)]
        kind = KeepingWorker if config.keeps else WorkerProcess
        self.workers: list[WorkerProcess] = [kind(self, number) for number in range(config.workers)]
        rollouts: Any = self.checkers.rollouts
        rollouts.workers, rollouts.serving = self.workers, self._serving
        loop.on_idle = self.check_idle

    def new_boot(self, worker: KeepingWorker) -> Boot:
        boot = Boot(worker, len(self._boots))
        self._boots[boot.host] = boot
        return boot

    def boot_at(self, host: str) -> Boot:
        """The boot that sends a request, by the address that it knows its scheduler by."""
        return self._boots[host]

    def boot_in(self, folder: Path) -> Boot:
        """The boot whose folder this is, or is in."""
        return next(
            one for one in reversed(self._boots.values()) if folder.is_relative_to(one.folder)
        )

    def front(self) -> Scheduler:
        """Where a new connection goes: the one that serves, and of two the newer.

        Raises:
            Unavailable: nobody does.
        """
        scheduler = self.front_process().scheduler
        assert scheduler is not None
        return scheduler

    def front_process(self) -> SchedulerProcess:
        """Raises: Unavailable."""
        newest = max(self.schedulers, key=lambda one: one.epoch)
        if newest.epoch == 0 or newest.scheduler is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "nobody serves")
        return newest

    def _serving(self) -> Serving | None:
        """What decides now, as the checkers of the core worlds ask for it."""
        newest = max(self.schedulers, key=lambda one: one.epoch)
        return newest.scheduler.serving if newest.epoch and newest.scheduler is not None else None

    def start(self) -> None:
        for scheduler in self.schedulers:
            scheduler.start()
        for worker in self.workers:
            self.world.after(self.world.rng.random(), worker.boot)

    async def stop(self) -> None:
        """End everything in order."""
        self.is_over = True
        for worker in self.workers:
            await worker.stop()
        for scheduler in self.schedulers:
            await scheduler.stop()

    # -- what must hold ---------------------------------------------------------------------

    def check_idle(self) -> None:
        """Nothing is ready to run: whoever still waits must wait for something that comes."""
        if self.loop.failures:
            failed = self.loop.failures[0]
            if isinstance(failed.get("exception"), Violation):
                raise failed["exception"]
            raise Violation("crash", f"{failed['message']}: {failed.get('exception')!r}")
        for process in self.schedulers:
            if process.epoch and process.scheduler is not None:
                self._check_writer(process.scheduler.serving.writer)
                self._check_active(process.scheduler)
        self._check_triggers()
        for worker in self.workers:
            if worker.link is not None:
                self._check_link(worker)
            if isinstance(worker, KeepingWorker):
                worker.check_installer()
        self._idles += 1
        if self._idles % CHECK_EVERY == 0:
            self._check_whole()

    def _check_triggers(self) -> None:
        newest = max(self.schedulers, key=lambda one: one.epoch)
        if newest.scheduler is None or newest.epoch != self.disk.epoch:
            return
        table = newest.scheduler.triggers.table
        if not table._turn.locked() and not table._is_stale:
            self.firing.check_table(table.all())

    def _check_whole(self) -> None:
        """The invariants that every object can tell of itself, now and then."""
        for process in self.schedulers:
            if process.epoch and process.scheduler is not None:
                engine = process.scheduler.serving.engine
                engine.check()
                self.checkers.check_waits(engine.view)
        for worker in self.workers:
            if isinstance(worker, KeepingWorker):
                worker.check()

    def _check_active(self, scheduler: Scheduler) -> None:
        """I28: whoever asks for the active version is told of one that became active in the store."""
        if not self.config.has_archives:
            return
        for (tenant, name), active in scheduler.packages.repository._active.items():
            if active.version not in self.activated.get((tenant, name), {}):
                raise Violation(
                    "I28", f"{name} {active.version} is told as active, and is not stored so"
                )

    def on_rows(self, changes: Any) -> None:
        """What only worlds of shells see of a transaction that was written."""
        for active in changes.active_versions:
            self.activated.setdefault((active.tenant, active.name), {})[active.version] = None
        for row in changes.resources:
            if row.blob is None:
                continue
            self.copied[row.tenant, row.worker_id, row.resource_id] = None
            if not self.shelf.has(row.blob):
                raise Violation("I20", f"the copy of {row.resource_id} is stored and not there")

    def _check_writer(self, writer: Writer) -> None:
        if writer._waiting is None or writer._waiting.done():
            return  # it commits, or is about to run
        if writer.engine.has_decided and not self._is_waiting_for_company(writer):
            raise Violation("wake-up", "the writer sleeps, and a decision waits for its commit")
        if writer.engine.gateway._outbox.output or writer.engine._sending._for_shell:
            raise Violation("wake-up", "the writer sleeps, and there is something to say")
        if writer._barriers:
            raise Violation("wake-up", "the writer sleeps, and somebody waits at a barrier")
        deadline = writer.engine.deadline()
        if deadline is not None and (writer._timer.at is None or writer._timer.at > deadline):
            raise Violation("wake-up", "the writer sleeps, and its timer is not set")

    def _is_waiting_for_company(self, writer: Writer) -> bool:
        """Starts may wait for a moment, and for nothing but the timer that ends it."""
        until = writer._wait_until
        if until is None or writer._timer.at is None or writer._timer.at > until:
            return False
        return writer.engine.may_wait and until <= self.clock.now() + WAIT_S

    def _check_link(self, worker: WorkerProcess) -> None:
        link = worker.link
        assert link is not None
        if link._group is None or link._over.done() or link._is_woken:
            return
        if link.agent._actions:
            raise Violation("wake-up", f"{worker.name} sleeps, and has something to do")
        deadline = link.agent.deadline()
        if deadline is not None and (link._timer.at is None or link._timer.at > deadline):
            raise Violation("wake-up", f"{worker.name} sleeps, and its timer is not set")

    def what_is_open(self) -> str | None:
        """Why the world is not at rest."""
        for run_id, run in self.mirror.runs.items():
            if not run.is_finished:
                return f"run {run_id} has not ended"
        if (owed := self.firing.what_is_open()) is not None:
            return owed
        for process in self.schedulers:
            current = process.scheduler._current if process.scheduler is not None else None
            if current is not None and current.is_serving and len(current.engine.view.leases):
                return f"{process.name} holds leases of ended runs"
        for worker in self.workers:
            if worker.held_attempts:
                return f"{worker.name} still runs {worker.held_attempts}"
            if worker.link is not None and not worker.link.agent.attempts.is_empty:
                return f"{worker.name} still holds {worker.link.agent.attempts.named()}"
        return None

    def what_is_held(self) -> tuple[str, str] | None:
        """Of resources and packages: the invariant that does not hold yet, and how."""
        if not self.config.keeps:
            return None
        serving, known = self._serving(), cast("Any", self.workers)
        view = serving.engine.view if serving is not None else None
        trouble = self.checkers.resources.trouble(view, known)
        return trouble or (self.checkers.rollouts.trouble(view) if self.config.rollouts else None)

    def knows(self, worker: WorkerProcess) -> bool:
        """Whether whoever serves has not forgotten it."""
        serving = self._serving()
        if serving is None:
            return True
        return serving.engine.view.workers.find(worker.tenant, worker.worker_id) is not None

    def check_nothing_left(self) -> None:
        """After the end: no task but the one that asks, no timer, no follower, no connection."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            raise Violation("left", f"tasks are left: {self.loop.stacks()}")
        timers = [timer for timer in self.loop.timers() if timer.when() > self.loop.time()]
        if timers:
            raise Violation("left", f"timers are left: {timers}")
        if self.network.wires:
            raise Violation("left", f"{len(self.network.wires)} connections are left")
