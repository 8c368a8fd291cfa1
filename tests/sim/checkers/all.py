"""All checkers of a world, and the watched variants of the product's objects that feed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.agent.agent import Agent
from astraflow.core.engine.wait_reasons import Reasons
from astraflow.core.protocol import business
from astraflow.core.protocol.duplex import Duplex
from astraflow.core.protocol.events import Delivered as GatewayDelivered
from astraflow.core.protocol.events import FrameRefused as GatewayRefused
from astraflow.core.protocol.events import RegisterArrived, SessionEnded
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.worker_events import (
    CommandDelivered,
    CommandRefused,
    DrainAsked,
    FramesAcked,
    SessionLost,
    SessionReady,
    WorkerEvent,
)
from astraflow.core.protocol.worker_session import WorkerSession
from tests.sim.checkers.attempts import AttemptChecker
from tests.sim.checkers.calls import CallChecker
from tests.sim.checkers.deadlines import DeadlineChecker
from tests.sim.checkers.resources import ResourceChecker
from tests.sim.checkers.rollouts import RolloutChecker
from tests.sim.checkers.session import SessionChecker
from tests.sim.checkers.state import StateChecker
from tests.sim.features import PairChecker
from tests.sim.world import Violation

if TYPE_CHECKING:
    from typing import Any

    from astraflow.core.engine.view import View
    from tests.sim.checkers.attempts import Worker
    from tests.sim.config import Config
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.store import Store
    from tests.sim.worker import WorkerProcess
    from tests.sim.world import World

__all__ = ["Checkers", "WatchedAgent", "WatchedGateway", "WatchedWorkerSession"]


class WatchedGateway(Gateway):
    """The gateway, with what it delivers shown to the checkers."""

    checkers: Checkers

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._duplexes: dict[str, Duplex] = {}

    def take_events(self) -> list[Any]:
        events = super().take_events()
        for event in events:
            if isinstance(event, GatewayDelivered | GatewayRefused) and event.seq is not None:
                dropped = self._duplexes[event.session_id].counters["resent_in_new_session"]
                self.checkers.sessions.on_delivered(
                    "scheduler", str(id(self)), event.session_id, event.seq, dropped
                )
            elif isinstance(event, RegisterArrived) and event.session_id in self._table.sessions:
                self._duplexes[event.session_id] = self._table.sessions[event.session_id].duplex
            elif isinstance(event, SessionEnded):
                self.checkers.seen("session ended")
        return events


class WatchedWorkerSession(WorkerSession):
    """The worker's session, with what it delivers shown to the checkers."""

    checkers: Checkers
    process: Worker

    def take_events(self) -> list[Any]:
        events = super().take_events()
        for event in events:
            if isinstance(event, CommandDelivered | DrainAsked):
                self._delivered(event.seq)
            elif isinstance(event, CommandRefused) and event.envelope.seq is not None:
                self._delivered(event.envelope.seq)
            elif isinstance(event, SessionReady):
                self.checkers.seen("session resumed" if event.resumed else "session opened")
                if not event.resumed:
                    self.process.ready_at = self.checkers.world.now
            elif isinstance(event, SessionLost):
                self.checkers.seen("session reset")
        return events

    def _delivered(self, seq: int) -> None:
        reader = f"{self.process.worker_id}/{self.process.incarnation}"
        assert self.session_id is not None
        self.checkers.sessions.on_delivered("worker", reader, self.session_id, seq)


class WatchedAgent(Agent):
    """The agent, with the acks of its results shown to the checkers."""

    def _on_event(self, event: WorkerEvent, now: float) -> None:
        if isinstance(event, FramesAcked):
            checkers = self.session.checkers  # type: ignore[attr-defined]
            for held in self.attempts.reports():
                if held.frame_id in event.frame_ids:
                    checkers.attempts.on_result_acked(held.task_id, held.attempt, held.report)
        elif isinstance(event, SessionReady) and not event.resumed and len(self._notices):
            self.session.checkers.seen("notice resent")  # type: ignore[attr-defined]
        super()._on_event(event, now)


class Checkers:
    """What a world is checked by."""

    def __init__(self, world: World, config: Config, store: Store) -> None:
        self.world = world
        self.config = config
        self.store = store
        self.state = StateChecker(world, config, store)
        self.attempts = AttemptChecker(world, store, self.state)
        self.sessions = SessionChecker(world)
        self.resources = ResourceChecker(world, store, self.state)
        self.rollouts = RolloutChecker(world, config, store)
        self.pairs = PairChecker(world, store)
        self.deadlines = DeadlineChecker(world, config, store)
        self.accepted: dict[str, int] = {}
        self.cancelled: dict[str, None] = {}
        self.gateway_class: type[WatchedGateway] = WatchedGateway
        self.worker_session_class: type[WatchedWorkerSession] = WatchedWorkerSession
        self.agent_class: type[WatchedAgent] = WatchedAgent
        store.on_commit.insert(0, self.state.on_commit)
        self.calls = CallChecker(world, store, self.state)

    def seen(self, what: str) -> None:
        self.world.sometimes(what)

    # -- told by the world ------------------------------------------------------------------

    def attempt_started(self, worker: Worker, dispatch: business.Dispatch) -> None:
        self.world.log(f"{worker.worker_id} starts {dispatch.task_id} {dispatch.attempt}")
        self.attempts.on_start(worker, dispatch)

    def attempt_finished(self, worker: Worker, result: business.Result) -> None:
        self.world.log(f"{worker.worker_id} ends {result.task_id} {result.attempt} {result.status}")

    def attempt_ended(self, task_id: str, attempt: int) -> None:
        self.attempts.on_end(task_id, attempt)

    def told_accepted(self, run_id: str, number: int) -> None:
        """I7: an acknowledged submission exists, with the acknowledged content."""
        self.accepted[run_id] = number
        stored = self.store.runs.get(run_id)
        if stored is None:
            raise Violation("I7", f"run {run_id} was acknowledged and is not stored")
        first = stored.facts[0].fact
        if getattr(first, "fingerprint", None) != f"print-{number}":
            raise Violation("I7", f"run {run_id} is stored with another content")

    def told_cancelled(self, run_id: str) -> None:
        if run_id not in self.state.cancelled:
            raise Violation("I14", f"the cancel of {run_id} was acknowledged and is not stored")
        self.cancelled[run_id] = None

    def scheduler_gone(self, scheduler: SchedulerProcess) -> None:
        """Take what the dead one has counted, for the *sometimes*."""
        assert scheduler.engine is not None
        self._add(scheduler.engine.view.counters)
        self._add(scheduler.engine.gateway.counters)

    def worker_gone(self, worker: WorkerProcess) -> None:
        assert worker.agent is not None
        self._add(worker.agent.counters)

    def _add(self, counters: dict[str, int]) -> None:
        for what, count in counters.items():
            self.world.seen[what] = self.world.seen.get(what, 0) + count

    def look_at_windows(self, duplex: Duplex) -> None:
        """Note what the windows of one end of a session have been through."""
        sending, receiving = duplex.sending, duplex.receiving
        if sending.queued and sending.in_flight >= self.config.window:
            self.seen("window full")
        if receiving._bitmap() != "0":  # `ack` would count as sent
            self.seen("bitmap non-zero")
        if receiving.counters["duplicates"]:
            self.seen("duplicate dropped")

    # -- asked by the world -----------------------------------------------------------------

    def check_waits(self, view: View) -> None:
        """I26: a task that waits for a worker says for what; one that cannot is in no queue, and waits for ever."""
        reasons = Reasons(view)
        for run in view.runs:
            for index, task in enumerate(run.tasks):
                if not task.is_waiting:
                    continue
                reason = reasons.of(run, index)
                if reason is None:
                    raise Violation(
                        "I26", f"{run.run_id}.{index} waits for nothing: {task.state!r}"
                    )
                self.world.sometimes(f"waited for {reason.kind}")

    def check_all(self, schedulers: list[SchedulerProcess], workers: list[WorkerProcess]) -> None:
        """The invariants that every object can tell of itself (I2, I4, I6, I23)."""
        for scheduler in schedulers:
            if scheduler.engine is not None:
                scheduler.engine.check()
                self.check_waits(scheduler.engine.view)
        for worker in workers:
            if worker.agent is None:
                continue
            worker.agent.check()
            session = worker.agent.session._session
            if session is not None:
                self.look_at_windows(session.duplex)
