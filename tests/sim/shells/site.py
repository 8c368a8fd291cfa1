"""The site: disk, network, schedulers and workers of one world, and what must hold of them at every moment."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from astraflow.core import errors
from tests.sim.checkers import Checkers
from tests.sim.loop import LoopClock, VirtualLoop
from tests.sim.mirror import Mirror
from tests.sim.shells.disk import Disk, Handle
from tests.sim.shells.processes import SchedulerProcess, WorkerProcess
from tests.sim.shells.wire import Network
from tests.sim.shells.world import LoopWorld
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.writer import Writer
    from tests.sim.shells.config import Config

__all__ = ["Site"]


class Site:
    """Made inside a running virtual loop; its processes are tasks of `group`."""

    def __init__(
        self,
        loop: VirtualLoop,
        config: Config,
        group: asyncio.TaskGroup,
        *,
        keep_transcript: bool = False,
    ) -> None:
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
        self.network = Network(self.world, config.delay_s, self.front)
        count = 2 if config.has("standby") else 1
        self.schedulers = [SchedulerProcess(self, f"sched-{number}") for number in range(count)]
        self.workers = [WorkerProcess(self, number) for number in range(config.workers)]
        loop.on_idle = self.check_idle

    def front(self) -> Scheduler:
        """Where a new connection goes: the one that serves, and of two the newer.

        Raises:
            Unavailable: nobody does.
        """
        newest = max(self.schedulers, key=lambda one: one.epoch)
        if newest.epoch == 0 or newest.scheduler is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "nobody serves")
        return newest.scheduler

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
        for worker in self.workers:
            if worker.link is not None:
                self._check_link(worker)

    def _check_writer(self, writer: Writer) -> None:
        if writer._waiting is None or writer._waiting.done():
            return  # it commits, or is about to run
        if writer.engine.has_decided:
            raise Violation("wake-up", "the writer sleeps, and a decision waits for its commit")
        if writer.engine.gateway._outbox.output or writer.engine._sending._for_shell:
            raise Violation("wake-up", "the writer sleeps, and there is something to say")
        if writer._barriers:
            raise Violation("wake-up", "the writer sleeps, and somebody waits at a barrier")
        deadline = writer.engine.deadline()
        if deadline is not None and (writer._timer.at is None or writer._timer.at > deadline):
            raise Violation("wake-up", "the writer sleeps, and its timer is not set")

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
        for process in self.schedulers:
            current = process.scheduler._current if process.scheduler is not None else None
            if current is not None and current.is_serving and len(current.engine.view.leases):
                return f"{process.name} holds leases of ended runs"
        for worker in self.workers:
            if worker.hosts is not None and worker.hosts.running:
                return f"{worker.name} still runs {list(worker.hosts.running)}"
            if worker.link is not None and not worker.link.agent.attempts.is_empty:
                return f"{worker.name} still holds {worker.link.agent.attempts.named()}"
        return None

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
