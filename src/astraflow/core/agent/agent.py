"""The agent: the pure half of a worker. One session, what the worker holds, and what is owed both ways.

Rule 1: after any stall the fence is checked before any frame is handled (PROTOCOL §5.3): every input begins with it.
Rule 2: a worker that fenced registers anew instead of resuming (R8), and registers only when everything it killed is
        dead, so that its inventory is true.
Rule 3: a command is taken (and may be acked) when its effect is in the attempts; a result leaves the attempts only by
        `ack_seq` (R1, R10). After a new session every held report is sent again (R3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from astraflow.core import errors
from astraflow.core.agent.actions import (
    Action,
    Exit,
    ForwardAnswer,
    HandUp,
    InterruptAttempt,
    KillAttempt,
    StartAttempt,
)
from astraflow.core.agent.held_attempts import HeldAttempt, HeldAttempts
from astraflow.core.agent.notices import Notices
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.protocol.session_states import SessionState
from astraflow.core.protocol.wire import AttemptRef, Envelope, Wire
from astraflow.core.protocol.worker_events import (
    CommandDelivered,
    CommandRefused,
    Connect,
    Disconnect,
    DrainAsked,
    FrameRejected,
    FramesAcked,
    HeartbeatAnswered,
    HeartbeatDue,
    HungerTold,
    LanesTold,
    Poisoned,
    RegisterAnswered,
    RegisterWanted,
    SessionLost,
    SessionReady,
    SessionRefused,
    SlotsAnswered,
    Superseded,
    WorkerEvent,
)
from astraflow.core.protocol.worker_session import WorkerSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.core.protocol.worker_events import Credential

TIMEOUT_GRACE_S = 0.0
DRAIN_GRACE_S = 0.0


class RegisterOffer(msgspec.Struct, frozen=True):
    """What a worker offers, as its register says it; the inventory is the agent's."""

    capabilities: control.Capabilities
    payload_types: tuple[str, ...] = ()
    packages: tuple[control.RegisteredPackage, ...] = ()
    labels: dict[str, str] = {}
    slots: int | None = None
    """Of `max_parallel`, those that are for the lane of the session; None: all of them."""


class Agent:
    """Drives a `WorkerSession` and `HeldAttempts`; the shell carries out its actions."""

    def __init__(
        self,
        session: WorkerSession,
        attempts: HeldAttempts,
        offer: Callable[[], RegisterOffer],
        metrics: Callable[[], control.HeartbeatMetrics] = control.HeartbeatMetrics,
        inventory: Callable[[], control.HeartbeatPackages] = control.HeartbeatPackages,
    ) -> None:
        self.session = session
        self.attempts = attempts
        self.counters: dict[str, int] = {}
        self._offer = offer
        self._metrics = metrics
        self._inventory = inventory
        self._notices = Notices(session)
        self._actions: list[Action] = []
        self._heartbeats: dict[str, tuple[AttemptRef, ...]] = {}
        self._waiting_calls: list[tuple[HeldAttempt, business.NextRequest]] = []
        self._register_wanted = False
        self._untold_offer = (
            False  # what is offered has changed, and no answer says that it is known
        )
        self._offer_frame: str | None = None
        self._drain_deadline: float | None = None
        self._is_over = False

    # -- inputs -----------------------------------------------------------------------------

    def connected(self, now: float) -> None:
        self._guard(now)
        self.session.connected(now)
        self._take_events(now)

    def disconnected(self, now: float, close_code: int | None = None) -> None:
        """The socket is gone, or could not be opened; `close_code` as the scheduler gave it."""
        self._guard(now)
        self.session.disconnected(now, close_code)
        self._take_events(now)

    def feed(self, envelope: Envelope, now: float) -> None:
        self._guard(now)
        self.session.feed(envelope, now)
        self._take_events(now)

    def bad_frame(self, error: errors.AstraflowError, now: float) -> None:
        self._guard(now)
        self.session.bad_frame(error, now)
        self._take_events(now)

    def tick(self, now: float) -> None:
        self._guard(now)
        self.session.tick(now)
        self._take_events(now)

    def finished(self, result: business.Result, now: float) -> None:
        """The host says how an attempt ended."""
        self._guard(now)
        held = self.attempts.find(result.task_id, result.attempt)
        if held is None or held.phase == "done":
            self._count("end of an attempt that is not held")
        elif held.phase == "killing":
            # It finished as it was being killed. Past the fence its word does not count (Rule 3 there).
            self.attempts.drop(held)
        else:
            self.attempts.finish(held, self._as_reported(held, result))
            self._send_report(held, now)
        self._take_events(now)

    def gone(self, task_id: TaskId, attempt: int, now: float) -> None:
        """A killed attempt is dead: its process group is gone."""
        self._guard(now)
        held = self.attempts.find(task_id, attempt)
        if held is not None and held.phase == "killing":
            self.attempts.drop(held)
        self._take_events(now)

    def feedback(self, feedback: business.Feedback, now: float) -> None:
        """Telemetry of a running attempt; shed first when the window is full."""
        held = self.attempts.find(feedback.task_id, feedback.attempt)
        if held is None or held.phase == "done" or not self.session.is_open:
            self._count("feedback dropped")
            return
        try:
            self.session.send(business.FEEDBACK, feedback, feedback.task_id, now)
        except errors.AstraflowError:
            self._count("feedback dropped")  # best effort: it must not hurt the attempt

    def reoffer(self, now: float) -> None:
        """Packages, labels or capabilities have changed: tell the scheduler, again and again until it answers.
        A register that was lost with its connection is not told by a session that goes on."""
        self._guard(now)
        self._untold_offer = True
        self._tell_offer(now)
        self._take_events(now)

    def tell(self, key: str, frame_type: str, payload: Wire, corr: str | None, now: float) -> None:
        """Say how a package or a resource is: the newest word per key reaches the scheduler, whatever happens to
        sessions meanwhile."""
        self._notices.tell(key, frame_type, payload, corr, now)

    def call(self, request: business.NextRequest, now: float) -> None:
        """An attempt calls the rest of its chain; the answer comes as an `ForwardAnswer`, if it still waits."""
        self._guard(now)
        held = self.attempts.find(request.task_id, request.attempt)
        if held is None or held.phase != "running":
            self._count("call of an attempt that does not run")
        else:
            held.calls[request.request_id] = request
            self._send_call(held, request, now)
        self._take_events(now)

    def drain(self, now: float, deadline_s: float | None = None) -> None:
        """SIGTERM: take nothing new, finish what runs, then end."""
        self._guard(now)
        self._start_drain(now, deadline_s)
        self.session.start_drain(now)
        self._take_events(now)

    def rotate(self, credential: Credential, now: float) -> None:
        """Use another credential from now on, also in the open session (PROTOCOL §2)."""
        self.session.rotate(credential, now)
        self._take_events(now)

    def give_slots(self, slots: int, now: float) -> None:
        """Tell the lane of this session how many slots are for it; `SlotsAnswered` is the answer. Without a connection
        nothing is told, and nothing answered."""
        self.session.give_slots(slots, now)

    def give_up_session(self, now: float) -> None:
        """Go on with a new session: what the scheduler counted with in this one does not hold any more."""
        self._guard(now)
        self.session.fenced(now)
        self._take_events(now)

    def deadline(self) -> float | None:
        """When `tick` is due."""
        first = self.session.deadline()
        for when in (self.attempts.deadline(), self._drain_deadline):
            if when is not None and (first is None or when < first):
                first = when
        return first

    def check(self) -> None:
        """Assert what must always hold between two inputs."""
        self.session.check()
        self.attempts.check()
        self._notices.check()

    # -- outputs ----------------------------------------------------------------------------

    def take_frames(self) -> list[Envelope]:
        return self.session.take_frames()

    def take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    # -- fences, timeouts, drain ------------------------------------------------------------

    def _guard(self, now: float) -> None:
        attempts = self.attempts
        if now >= attempts.check_at and attempts.is_due(now):
            self._guard_attempts(now)
        if self._drain_deadline is not None and now >= self._drain_deadline:
            self._drain_deadline = None
            for held in self.attempts.working():
                if held.phase == "running":
                    self._stop(held, DRAIN_GRACE_S, "drain")

    def _guard_attempts(self, now: float) -> None:
        fenced = self.attempts.past_fence(now)
        for held in fenced:
            self._kill(held, "fence")
        if fenced:
            self._count("self-fenced")
            self.session.fenced(now)
            self._take_events(now)
        for held in self.attempts.past_timeout(now):
            self._stop(held, TIMEOUT_GRACE_S, "timeout")

    def _stop(self, held: HeldAttempt, grace_s: float, why: str) -> None:
        held.phase = "stopping"
        held.why = why
        self._actions.append(InterruptAttempt(held.task_id, held.attempt, grace_s, why))

    def _kill(self, held: HeldAttempt, why: str) -> None:
        held.phase = "killing"
        held.why = why
        self._actions.append(KillAttempt(held.task_id, held.attempt, why))

    def _start_drain(self, now: float, deadline_s: float | None) -> None:
        self.attempts.is_draining = True
        if deadline_s is not None:
            self._drain_deadline = now + deadline_s

    # -- session events ---------------------------------------------------------------------

    def _take_events(self, now: float) -> None:
        while events := self.session.take_events():
            for event in events:
                self._on_event(event, now)
        if self._register_wanted and not self._is_killing():
            self._register_wanted = False
            self._untold_offer = False  # this one tells it
            self._register(now)
            self._take_events(now)
        self.session.held = not self.attempts.is_empty
        if self.attempts.is_draining:
            self._end_drain(now)

    def _on_event(self, event: WorkerEvent, now: float) -> None:
        match event:
            case CommandDelivered(seq, envelope):
                self._on_frame(envelope, now)
                self.session.taken(seq)
            case FramesAcked(frame_ids):
                self.attempts.committed(frame_ids)
                self._notices.acked(frame_ids)
                self._notices.send(now)
                self._send_reports(now)  # there may be room now for one that found the queue full
                self._send_waiting_calls(now)
            case HeartbeatDue():
                self._heartbeat(now)
                self._tell_offer(now)
            case RegisterAnswered(frame_id):
                if frame_id == self._offer_frame:
                    self._untold_offer = False
            case HeartbeatAnswered(frame_id, sent_at, stop):
                self._on_answer(frame_id, sent_at, stop)
            case RegisterWanted():
                self._register_wanted = True
            case SessionReady(resumed):
                self._actions.append(event)
                self._on_ready(resumed, now)
            case SessionLost():
                self._heartbeats.clear()
                self._waiting_calls.clear()
                self._notices.session_lost()
                for held in self.attempts.reports():
                    held.is_queued = False
            case DrainAsked(seq, _, deadline_s):
                self._actions.append(event)
                self._start_drain(now, deadline_s)
                self.session.taken(seq)
            case Connect() | Disconnect() | SessionRefused():
                self._actions.append(event)
            case LanesTold() | HungerTold() | SlotsAnswered():
                self._actions.append(event)
            case Superseded():
                self._on_superseded()
            case Poisoned(frame_id):
                self._replace_poisoned(frame_id)
            case CommandRefused():
                self._count("unreadable frame")
            case FrameRejected():
                self._count("frame rejected by the scheduler")
            case _:
                assert_never(event)

    def _is_killing(self) -> bool:
        return any(held.phase == "killing" for held in self.attempts.working())

    def _tell_offer(self, now: float) -> None:
        if self._untold_offer and self.session.is_ready:
            self._offer_frame = self._register(now)

    def _register(self, now: float) -> str:
        offer = self._offer()
        return self.session.register(
            control.Register(
                offer.capabilities,
                offer.payload_types,
                offer.packages,
                offer.labels,
                tuple(held.ref for held in self.attempts.working()),
                tuple(held.ref for held in self.attempts.reports()),
                offer.slots,
            ),
            now,
        )

    def _on_ready(self, resumed: bool, now: float) -> None:
        if resumed:
            return
        # Before the results: a result may name what a notice tells of.
        self._notices.send(now)
        self._send_reports(now)
        # PROTOCOL §10: an unanswered request "is repeated after a new session".
        for held in self.attempts.working():
            for request in list(held.calls.values()):
                self._send_call(held, request, now)

    def _send_call(self, held: HeldAttempt, request: business.NextRequest, now: float) -> None:
        if not self.session.is_open:
            return
        try:
            self.session.send(business.NEXT_REQUEST, request, request.task_id, now)
        except QueueFull:
            self._count("call waits for room")  # until the next ack
            self._waiting_calls.append((held, request))
        except errors.LocalProtocolError as error:
            # No session will ever carry it, and nobody else can tell the attempt so.
            self._count("unsendable call")
            problem = business.AttemptError(
                errors.NEXT_INVALID.code, "USER_CODE", error.message, retryable=False
            )
            who = (request.run_id, request.task_id, request.attempt, request.request_id)
            self._on_answer_to_call(business.NextResponse(*who, error=problem))

    def _send_waiting_calls(self, now: float) -> None:
        waiting, self._waiting_calls = self._waiting_calls, []
        for held, request in waiting:
            if held.phase == "running":
                self._send_call(held, request, now)

    def _on_answer_to_call(self, response: business.NextResponse) -> None:
        held = self.attempts.find(response.task_id, response.attempt)
        if held is None or held.calls.pop(response.request_id, None) is None:
            self._count("answer that nobody waits for")
        else:
            self._actions.append(ForwardAnswer(response))

    def _heartbeat(self, now: float) -> None:
        named = self.attempts.named()
        frame_id = self.session.heartbeat(
            control.Heartbeat(
                draining=self.attempts.is_draining,
                attempts=named,
                metrics=self._metrics(),
                packages=self._inventory(),
            ),
            now,
        )
        self._heartbeats[frame_id] = named

    def _on_answer(self, frame_id: str, sent_at: float, stop: tuple[AttemptRef, ...]) -> None:
        named = self._heartbeats.pop(frame_id, ())
        self.attempts.answered(named, sent_at)
        for ref in stop:
            held = self.attempts.find(ref.task_id, ref.attempt)
            if held is not None and held.phase in ("running", "stopping"):
                self._kill(held, "no longer leased")

    def _on_superseded(self) -> None:
        for held in self.attempts.working():
            if held.phase != "killing":
                self._kill(held, "superseded")
        self._is_over = True
        self._actions.append(Exit(1, "another process has this worker's identity"))

    # -- frames -----------------------------------------------------------------------------

    def _on_frame(self, envelope: Envelope, now: float) -> None:
        payload = envelope.payload
        if isinstance(payload, business.Dispatch):
            self._on_dispatch(payload, now)
        elif isinstance(payload, business.ExecCancel):
            self._on_cancel(payload)
        elif isinstance(payload, business.NextResponse):
            self._on_answer_to_call(payload)
        else:
            self._actions.append(HandUp(envelope))

    def _on_dispatch(self, dispatch: business.Dispatch, now: float) -> None:
        sent_at = self.session.sent_at(dispatch.lease.since)
        offered = self.attempts.offer(dispatch, sent_at, now)
        if isinstance(offered, HeldAttempt):
            self._actions.append(StartAttempt(dispatch))
        elif offered is not None:
            refusal = business.ExecError(
                dispatch.run_id, dispatch.task_id, dispatch.attempt, offered
            )
            self._count(f"refused: {offered}")
            self.session.send(business.EXEC_ERROR, refusal, dispatch.task_id, now)
        else:
            self._on_known(dispatch, now)

    def _on_known(self, dispatch: business.Dispatch, now: float) -> None:
        """PROTOCOL §5.8: "running → acked again, not started again; finished → the stored result is
        sent again"."""
        held = self.attempts.find(dispatch.task_id, dispatch.attempt)
        assert held is not None
        if held.phase == "done":
            held.is_queued = False
            self._send_report(held, now)

    def _on_cancel(self, cancel: business.ExecCancel) -> None:
        held = self.attempts.find(cancel.task_id, cancel.attempt)
        if held is None:
            self.attempts.refuse_later(cancel.task_id, cancel.attempt)
        elif held.phase == "running":
            self._stop(held, cancel.grace_ms / 1000, "cancel")

    def _send_reports(self, now: float) -> None:
        for held in self.attempts.reports():
            if not held.is_queued:
                self._send_report(held, now)

    def _send_report(self, held: HeldAttempt, now: float) -> None:
        """Put a held report into the send queue, if there is a session that has one (R10)."""
        if not self.session.is_open or held.is_queued:
            return
        assert held.report is not None
        try:
            self._queue(held, held.report, now)
        except errors.LocalProtocolError as error:
            # PROTOCOL §1: a result that the receiver would refuse "becomes FAILED".
            self._count("unsendable result")
            code, message = error.code.code, error.message
            problem = business.AttemptError(code, "USER_CODE", message, retryable=False)
            held.report = _failed(held, problem)
            self._queue(held, held.report, now)

    def _queue(
        self, held: HeldAttempt, report: business.Result | business.ExecError, now: float
    ) -> None:
        # PROTOCOL §1: "a frame resent in a new session keeps its `id`".
        try:
            frame_id = self.session.send(
                business.RESULT, report, held.task_id, now, frame_id=held.frame_id
            )
        except QueueFull:
            self._count("report waits for room")  # until the next ack
        else:
            self.attempts.queued(held, frame_id)

    def _replace_poisoned(self, frame_id: str) -> None:
        """PROTOCOL §1: a frame that closed the link twice "is replaced by that failure"."""
        self._count("poisoned frame")
        held = self.attempts.find_report(frame_id)
        if held is None:
            return
        problem = business.AttemptError(
            errors.RESULT_INVALID.code, "USER_CODE", "the scheduler refused the frame", False
        )
        held.report = _failed(held, problem)
        self.session.replace(frame_id, business.RESULT, held.report, held.task_id)

    def _as_reported(self, held: HeldAttempt, result: business.Result) -> business.Result:
        """What the end of a stopped attempt means: the host only knows that it was stopped."""
        if result.status != "CANCELLED" or held.why in (None, "cancel"):
            return result
        if held.why == "timeout":
            problem = business.AttemptError(
                errors.RUNNER_TIMEOUT.code, "TIMEOUT", "the attempt ran longer than allowed"
            )
        else:
            problem = business.AttemptError(
                errors.TASK_DRAINED.code, "INFRASTRUCTURE", "stopped at the drain's deadline"
            )
        return _failed(held, problem)

    def _end_drain(self, now: float) -> None:
        """PROTOCOL §2: "close when `ack_seq` covers the outbox", in which refusals are, too."""
        if self._is_over or not self.attempts.is_draining or not self.attempts.is_empty:
            return
        self.session.finished(now)
        if self.session.state is SessionState.CLOSED:
            self._is_over = True
            self._take_events(now)
            self._actions.append(Exit(0, "drained"))

    def _count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1


def _failed(held: HeldAttempt, error: business.AttemptError) -> business.Result:
    run_id = held.dispatch.run_id
    return business.Result(run_id, held.task_id, held.attempt, "FAILED", error=error)
