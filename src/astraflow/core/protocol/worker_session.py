"""The worker's side of a session, without any I/O. How it gets and loses its connections is in `worker_connection.py`.

Opening:

1. A new session: the handshake is acknowledged, `RegisterWanted` asks for the inventory, the
   register goes out, the accept opens the session. A resumed one opens with the accept alone, and
   both sides send again what the other has not acknowledged.
2. A session outlives its connection: its windows and what is queued in them live on.
3. Any `control.reset` but the one for a bad frame ends the session: the windows are discarded, and
   a new session begins at 1. `E.SESSION.STALE_BINDING` says that another process has this identity:
   the worker is over and does not fight back.

While it is open:

1. A heartbeat goes out at once and then every interval; jitter only shortens it. One that stays
   unanswered for 3 s closes the connection, so that a half-open one is replaced long before the
   fence.
2. Commands are handed up in order, once, and acknowledged when they are `taken` (R1).
3. What is sent is queued in the session, connected or not (R10), and forgotten by `ack_seq` alone.
4. A worker that fenced itself never resumes (R8): only a register tells the scheduler what was
   stopped.
5. A drained worker closes when `ack_seq` covers all that it sent.

The caller feeds frames of the current connection only: those of a former one are not for us (I5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.ids import SessionId
from astraflow.core.protocol import business, codec, control, limits
from astraflow.core.protocol.duplex import NoSession, SeenFrames
from astraflow.core.protocol.frames import FrameMaker
from astraflow.core.protocol.heartbeats import HeartbeatTracker
from astraflow.core.protocol.live_session import LiveSession
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.protocol.session_states import SessionState, SessionTrigger
from astraflow.core.protocol.wire import Envelope, Sender, Unreadable, is_sequenced
from astraflow.core.protocol.worker_connection import (
    OPEN,
    OPENING,
    UNCONNECTED,
    WorkerConnection,
    WorkerOutbox,
)
from astraflow.core.protocol.worker_events import (
    CommandRefused,
    Credential,
    DrainAsked,
    FrameRejected,
    HeartbeatAnswered,
    HeartbeatDue,
    HungerTold,
    LanesTold,
    RegisterAnswered,
    RegisterWanted,
    SessionLost,
    SessionReady,
    SessionRefused,
    SessionSettings,
    SlotsAnswered,
    Superseded,
    WorkerEvent,
    WorkerIdentity,
)

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.ids import IdSource

_POISON_CODES = (limits.CLOSE_PROTOCOL_ERROR, limits.CLOSE_BAD_TEXT, limits.CLOSE_TOO_BIG)


class WorkerSession:
    """One worker's session with its scheduler, over any number of connections.

    After every input: send `take_frames`, handle `take_events`, and call `tick` no later than at
    `deadline`. Setting `held` says whether attempts are held: then it does not stay away for long.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        credential: Credential,
        *,
        ids: IdSource,
        rng: Random,
        settings: SessionSettings | None = None,
    ) -> None:
        self.held = False
        self._identity = identity
        self._credential = credential
        self._rng = rng
        self._settings = settings or SessionSettings()
        self._maker = FrameMaker(identity.tenant, Sender("worker", identity.worker_id), ids)
        self._outbox = WorkerOutbox()
        self._connection = WorkerConnection(self._outbox, rng, self._settings)
        self._heartbeats = HeartbeatTracker(rng, self._settings.heartbeat_answer_timeout_s)
        self._seen = SeenFrames()
        self._session: LiveSession | None = None
        self._was_moved = False  # since the last session: sent to another scheduler
        self._now = 0.0
        self._is_draining = False
        self._is_finished = False
        self._offering: str | None = None  # a later register that was not answered yet
        self._giving: str | None = None  # the newest `control.slots`, until it is answered

    @property
    def state(self) -> SessionState:
        return self._connection.state

    @property
    def session_id(self) -> str | None:
        return None if self._session is None else self._session.session_id

    @property
    def counters(self) -> dict[str, int]:
        return self._outbox.counters

    @property
    def is_bundled(self) -> bool:
        """Whether several frames may go in one message."""
        return self._session is not None and control.FRAMES_BUNDLED in self._session.features

    @property
    def is_open(self) -> bool:
        """Whether there is a session, connected or not: `send` queues in it."""
        return self._session is not None

    @property
    def is_ready(self) -> bool:
        """Whether frames flow now."""
        return self._connection.state in OPEN

    def take_frames(self) -> list[Envelope]:
        """The frames to put on the current connection, in order."""
        session = self._session
        if session is not None and session.is_woken and self._connection.state in OPEN:
            session.flush(self._now)
        frames, self._outbox.frames = self._outbox.frames, []
        return frames

    def take_events(self) -> list[WorkerEvent]:
        events, self._outbox.events = self._outbox.events, []
        return events

    def connected(self, now: float) -> None:
        """A connection was opened: resume the session, or begin a new one."""
        self._now = now
        if not self._connection.connected(now):
            return
        session = self._session
        if session is None:
            frame = self._maker.asking(control.HANDSHAKE, self._handshake())
        else:
            committed = session.duplex.receiving.committed
            seen = None if committed < 0 else committed
            lane = self._identity.lane
            resume = control.Resume(session.session_id, session.token, seen, lane)
            frame = self._maker.asking(control.RESUME, resume)
        self._connection.open_with(frame, now)

    def disconnected(self, now: float, close_code: int | None = None) -> None:
        """The connection is gone, or could not be opened."""
        self._now = now
        if not self._connection.disconnected(now):
            return
        if close_code in _POISON_CODES and self._session is not None:
            self._session.strike()
        self._lose_connection(now)

    def sent_at(self, frame_id: str) -> float | None:
        """When that heartbeat or register was sent; None if unknown or too long ago."""
        return self._heartbeats.sent_at(frame_id)

    def deadline(self) -> float | None:
        """When `tick` must be called at the latest; None if nothing is awaited."""
        session = self._session
        if self._connection.state not in OPEN or session is None:
            return self._connection.deadline()
        if session.is_woken:
            session.flush(self._now)
        if session.duplex.sending.broken:
            return self._now
        windows, heartbeats = session.duplex.deadline(), self._heartbeats.deadline()
        if windows is None or heartbeats is None:
            return heartbeats if windows is None else windows
        return min(windows, heartbeats)

    def check(self) -> None:
        """Assert what must hold between two inputs (I6)."""
        assert self._connection.state not in OPEN or self._session is not None
        assert self._connection.state is not SessionState.READY or not self._is_draining
        self._heartbeats.check()
        if self._session is not None:
            self._session.duplex.check()

    def bad_frame(self, error: errors.AstraflowError, now: float) -> None:
        """The peer sent something that is not a frame: the connection ends, the session does not."""
        self._now = now
        if self._connection.state in (*UNCONNECTED, SessionState.CLOSED):
            return
        self._outbox.count("bad_frames")
        code = (
            error.close_code if isinstance(error, codec.BadFrame) else limits.CLOSE_PROTOCOL_ERROR
        )
        reset = control.Reset(error.code.code, error.message)
        self._outbox.frames.append(self._maker.make(control.RESET, reset))
        self._connection.close(code)
        self._lose_connection(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._now = now
        if self._session is not None and self._connection.state in OPEN:
            self._tick_open(self._session, now)
        elif self._connection.tick(now):
            if self._connection.state in OPENING:
                self._connection.close(limits.CLOSE_NORMAL)
            self._lose_connection(now)

    def register(self, register: control.Register, now: float) -> str:
        """Answer `RegisterWanted`, or replace packages, labels and capabilities in an open session.

        Returns the frame's id. Without a link nothing is sent: `RegisterWanted` comes again.
        """
        self._now = now
        frame = self._maker.asking(control.REGISTER, register)
        if self._connection.state is SessionState.REGISTERED:
            self._connection.open_with(frame, now)
        elif self._connection.state in OPEN:
            self._offering = frame.id
            self._outbox.frames.append(frame)
        else:
            return frame.id
        self._heartbeats.remember(frame.id, now)
        return frame.id

    def heartbeat(self, heartbeat: control.Heartbeat, now: float) -> str:
        """Answer `HeartbeatDue`. Returns the frame's id.

        Without a link nothing is sent: `HeartbeatDue` comes again.
        """
        self._now = now
        if self._session is None or self._connection.state not in OPEN:
            return self._maker.ids.new()
        # The ack tells the scheduler what the worker had taken when it made its list of attempts.
        ack = self._session.duplex.riding_ack(request=True, always=True)
        frame = self._maker.make(control.HEARTBEAT, heartbeat, None, ack)
        self._heartbeats.sent(frame.id, now)
        self._outbox.frames.append(frame)
        return frame.id

    def give_slots(self, slots: int, now: float) -> str | None:
        """Tell the scheduler how many slots are for this lane. Returns the frame's id; `SlotsAnswered` says that it
        counts so. Without a link nothing is sent: after `SessionReady` it is to be told again."""
        self._now = now
        if self._connection.state not in OPEN:
            return None
        frame = self._maker.asking(control.SLOTS, control.Slots(slots))
        self._giving = frame.id
        self._outbox.frames.append(frame)
        return frame.id

    def send(
        self,
        frame_type: str,
        payload: object,
        corr: str | None,
        now: float,
        *,
        feedback: bool | None = None,
        frame_id: str | None = None,
    ) -> str:
        """Queue a business frame in the session, connected or not (R10). Returns its id.

        `biz.exec.feedback` waits behind all else and may be shed; `feedback=False` lets the last
        chunks of an attempt go before its result. `frame_id` is the id of what was sent before:
        PROTOCOL §1: "a frame resent in a new session keeps its `id`", so that a scheduler that has
        committed it drops it.

        Raises:
            NoSession: there is none; what must not be lost is sent again after `SessionReady`.
            QueueFull: wait for acks.
            Unsendable: the receiver would refuse this frame.
        """
        self._now = now
        session = self._session
        if session is None:
            raise NoSession
        is_feedback = frame_type == business.FEEDBACK if feedback is None else feedback
        try:
            return session.send(frame_type, payload, corr, is_feedback, frame_id).id
        except QueueFull:
            # It may be full of what could have gone into the window already.
            if self._connection.state in OPEN:
                session.flush(now)
            return session.send(frame_type, payload, corr, is_feedback, frame_id).id

    def replace(self, frame_id: str, frame_type: str, payload: object, corr: str | None) -> bool:
        """Put a failure in the place of a poisoned frame; it keeps the frame's id and seq."""
        session = self._session
        return session is not None and session.replace(frame_id, frame_type, payload, corr)

    def taken(self, seq: int, session_id: SessionId | None = None) -> None:
        """A delivered command was taken: its ack may go out (R1).

        Who takes commands later than in the step that delivered them must say of which session
        the seq is: a new session counts from 0 again.
        """
        session = self._session
        is_former = session is None or session_id not in (None, session.session_id)
        if session is None or is_former or not session.taken(seq):
            self._outbox.count("taken_late")

    def fenced(self, now: float) -> None:
        """The worker stopped its work by itself: drop the session and register anew (R8)."""
        self._now = now
        if self._connection.state is SessionState.CLOSED:
            return
        self._drop_session(None)
        if self._connection.state not in UNCONNECTED:
            self._connection.close(limits.CLOSE_NORMAL)
            self._lose_connection(now)

    def start_drain(self, now: float) -> None:
        """The worker itself wants to stop: "heartbeats at once with `draining: true`"."""
        self._now = now
        self._drain()
        if self._connection.state in OPEN:
            self._ask_heartbeat()

    def finished(self, now: float) -> None:
        """Nothing runs and nothing more will be sent: close when `ack_seq` covers the outbox."""
        self._now = now
        self._is_finished = True
        self._end_if_done()

    def rotate(self, credential: Credential, now: float) -> None:
        """Use a new credential from now on, and present it in an open session."""
        self._now = now
        self._credential = credential
        if self._connection.state in OPEN:
            self._outbox.frames.append(self._maker.asking(control.HANDSHAKE, self._handshake()))

    def feed(self, envelope: Envelope, now: float) -> None:
        """Take a frame of the current connection."""
        self._now = now
        if self._connection.state in (*UNCONNECTED, SessionState.CLOSED):
            self._outbox.count("frames_without_link")
            return
        if envelope.tenant != self._identity.tenant or envelope.sender.role != "scheduler":
            self._outbox.count("foreign_frames")
            return
        if is_sequenced(envelope.type):
            self._on_sequenced(envelope, now)
        elif isinstance(envelope.payload, Unreadable):
            self._on_unreadable_control(envelope)
        else:
            self._on_control(envelope, now)
        if self._session is not None:
            self._session.is_woken = True
        if self._is_finished:
            self._end_if_done()

    def _on_control(self, envelope: Envelope, now: float) -> None:
        if self._session is not None and self._connection.state in OPEN:
            self._session.on_riding_ack(envelope.ack, now)
        payload = envelope.payload
        if isinstance(payload, control.ControlAck):
            self._on_control_ack(payload, now)
        elif isinstance(payload, control.SessionAccept):
            self._on_accept(payload, now)
        elif isinstance(payload, control.Reset):
            self._on_reset(payload, now)
        elif isinstance(payload, control.Hunger):
            self._outbox.events.append(HungerTold(payload.tasks, payload.runs))
        elif isinstance(payload, control.Lanes):
            self._outbox.events.append(LanesTold(payload.lanes))
        elif isinstance(payload, control.ControlError):
            self._outbox.events.append(
                FrameRejected(payload.for_, payload.code, payload.message, payload.pointer)
            )
        else:
            self._outbox.count("unexpected_frames")

    def _on_sequenced(self, envelope: Envelope, now: float) -> None:
        session = self._session
        if session is None or self._connection.state not in OPEN:
            self._outbox.count("unexpected_frames")
            return
        if envelope.seq is None:
            bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "has no seq", pointer="/seq")
            self.bad_frame(bad, now)
            return
        session.on_riding_ack(envelope.ack, now)
        for ready in session.duplex.receive(envelope):
            if isinstance(ready.payload, control.ControlDrain) and self._identity.is_home:
                self._on_drain(ready, ready.payload)
            else:
                session.deliver(ready)

    def _on_drain(self, envelope: Envelope, drain: control.ControlDrain) -> None:
        assert envelope.seq is not None
        deadline_s = None if drain.deadline_ms is None else drain.deadline_ms / 1000
        self._drain()
        self._outbox.events.append(DrainAsked(envelope.seq, drain.reason, deadline_s))

    def _on_unreadable_control(self, envelope: Envelope) -> None:
        unreadable = envelope.payload
        assert isinstance(unreadable, Unreadable)
        if unreadable.code is errors.CMD_UNKNOWN:
            # "Unknown `control.*`: acked if asked, counted, dropped."
            self._outbox.count("unknown_control")
            if envelope.ack is not None and envelope.ack.request:
                answer = control.ControlAck(envelope.id)
                self._outbox.frames.append(self._maker.make(control.ACK, answer))
            return
        self._outbox.count("refused")
        if envelope.type != control.ERROR:
            self._outbox.frames.append(self._maker.error(envelope.id, unreadable))
        self._outbox.events.append(CommandRefused(envelope, unreadable))

    def _on_control_ack(self, ack: control.ControlAck, now: float) -> None:
        if self._session is not None and self._connection.state in OPEN and ack.is_window_ack:
            self._session.on_ack(ack.ack_seq, ack.ack_bitmap, ack.recv_window, now)
        if ack.for_ is None:
            return
        opening = self._connection.opening
        if opening is not None and ack.for_ == opening.id:
            self._on_opening_acked(opening, now)
            return
        sent_at = self._heartbeats.answered(ack.for_)
        if sent_at is not None:
            self._outbox.events.append(HeartbeatAnswered(ack.for_, sent_at, ack.stop))
        elif ack.for_ == self._offering:
            self._offering = None
            self._outbox.events.append(RegisterAnswered(ack.for_))
        elif ack.for_ == self._giving:
            self._giving = None
            self._outbox.events.append(SlotsAnswered(ack.for_))

    def _on_opening_acked(self, opening: Envelope, now: float) -> None:
        if self._connection.state is SessionState.HANDSHAKING and opening.type == control.HANDSHAKE:
            self._connection.opening = None
            self._connection.go(SessionTrigger.GREETED)
            self._outbox.events.append(RegisterWanted())
        self._connection.delay_repeat(now)

    def _tick_open(self, session: LiveSession, now: float) -> None:
        session.duplex.pump(now, self._outbox.frames)
        if session.duplex.sending.broken:
            self._outbox.count("links_broken")
            self._break_connection(now)
            return
        if self._heartbeats.is_overdue(now):
            self._outbox.count("heartbeats_unanswered")
            self._break_connection(now)
            return
        due_at = self._heartbeats.due_at
        if due_at is not None and now >= due_at:
            self._ask_heartbeat()

    def _end_if_done(self) -> None:
        if self._connection.state is SessionState.CLOSED:
            return
        duplex = None if self._session is None else self._session.duplex
        if duplex is not None and not duplex.sending.is_idle:
            return
        if self._connection.state not in UNCONNECTED:
            # The commands taken last are acknowledged before the connection goes.
            if duplex is not None and duplex.receiving.is_ack_owed():
                self._outbox.frames.append(duplex.answer(None))
            self._connection.close(limits.CLOSE_NORMAL)
        self._connection.go(SessionTrigger.FINISHED)

    def _on_accept(self, accept: control.SessionAccept, now: float) -> None:
        session, connection = self._session, self._connection
        is_current = session is not None and session.session_id == accept.session_id
        if (
            connection.state is SessionState.REGISTERED
            and not accept.resumed
            and connection.opening is not None
        ):
            self._begin_session(accept)
        elif session is not None and is_current and not accept.resumed:
            # "An accept that carries the current `session_id` and `resumed: false` changes the
            # token only."
            session.token = accept.session_token
        elif session is not None and is_current and connection.state is SessionState.HANDSHAKING:
            connection.go(SessionTrigger.RESUMED)
            session.resume(accept, now)
            session.token = accept.session_token
            self._enter_open(accept)
        else:
            self._outbox.count("unexpected_frames")

    def _begin_session(self, accept: control.SessionAccept) -> None:
        assert self._session is None
        self._session = LiveSession(
            accept, self._maker, self._seen, self._rng, self._settings, self._outbox
        )
        self._connection.go(SessionTrigger.ACCEPTED)
        self._enter_open(accept)

    def _enter_open(self, accept: control.SessionAccept) -> None:
        self._was_moved = False
        self._connection.entered()
        self._heartbeats.interval_s = accept.heartbeat_interval_ms / 1000
        if self._is_draining:
            self._connection.go(SessionTrigger.DRAIN)
        self._outbox.events.append(
            SessionReady(
                accept.resumed,
                accept.session_id,
                accept.lease_ttl_ms / 1000,
                self._heartbeats.interval_s,
                accept.max_frame_bytes,
            )
        )
        self._ask_heartbeat()

    def _on_reset(self, reset: control.Reset, now: float) -> None:
        """The peer ends the link, and with it the session unless it only minded one frame."""
        self._outbox.count("resets")
        if reset.code == errors.SESSION_STALE_BINDING.code:
            self._drop_session(reset.code)
            self._connection.close(limits.CLOSE_NORMAL)
            self._connection.go(SessionTrigger.SUPERSEDED)
            self._outbox.events.append(Superseded())
            return
        was_resuming = (
            self._connection.state is SessionState.HANDSHAKING and self._session is not None
        )
        was_opening = self._connection.state in OPENING and not was_resuming
        if reset.code == errors.PROTOCOL_BAD_FRAME.code:
            if self._session is not None:
                self._session.strike()
        else:
            self._drop_session(reset.code)
        # Who is sent on twice is sent in a circle, or to where nobody listens any more: that takes time to change.
        is_moved = reset.code == errors.SESSION_MOVED.code
        goes_at_once = is_moved and not self._was_moved
        self._was_moved = is_moved
        if is_moved:
            self._connection.location = reset.location
        self._connection.close(limits.CLOSE_NORMAL)
        retry_after_s = (reset.retry_after_ms or 0) / 1000
        # "INVALID_TOKEN on *resume* → handshake at once; on *handshake* → backoff ≥ 30 s." A session
        # that is unknown, or a tenant that moved, is also no reason to wait.
        at_once = retry_after_s == 0 and (
            (was_resuming and self._session is None and not is_moved) or goes_at_once
        )
        is_denied = was_opening and reset.code.startswith("E.AUTH.")
        self._lose_connection(now, at_once=at_once, retry_after_s=retry_after_s, denied=is_denied)
        self._outbox.events.append(
            SessionRefused(reset.code, reset.reason, self._connection.retry_at)
        )

    def _handshake(self) -> control.Handshake:
        who, proof = self._identity, self._credential
        auth = control.Auth(proof.mode, proof.token, proof.fingerprint)
        named = (who.worker_id, who.incarnation, who.name, who.version, who.hostname)
        worker = control.HandshakeWorker(*named)
        return control.Handshake(limits.PROTOCOLS_SUPPORTED[-1], auth, worker, who.lane)

    def _ask_heartbeat(self) -> None:
        self._heartbeats.due_at = None
        self._outbox.events.append(HeartbeatDue())

    def _break_connection(self, now: float) -> None:
        self._connection.close(limits.CLOSE_NORMAL)
        self._lose_connection(now)

    def _lose_connection(
        self, now: float, *, at_once: bool = False, retry_after_s: float = 0.0, denied: bool = False
    ) -> None:
        self._connection.lost()
        self._heartbeats.stop()
        self._giving = None
        if self._is_finished and (self._session is None or self._session.duplex.sending.is_idle):
            self._connection.go(SessionTrigger.FINISHED)
            return
        self._connection.retry(
            now, held=self.held, at_once=at_once, retry_after_s=retry_after_s, denied=denied
        )

    def _drop_session(self, code: str | None) -> None:
        if self._session is not None:
            self._session = None
            self._outbox.events.append(SessionLost(code))

    def _drain(self) -> None:
        self._is_draining = True
        if self._connection.state is SessionState.READY:
            self._connection.go(SessionTrigger.DRAIN)
