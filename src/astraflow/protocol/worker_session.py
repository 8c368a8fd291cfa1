"""The worker's side of a session, without any I/O.

What it does, in the order of a session's life (PROTOCOL §2):

1. It asks for a connection (`Connect`). When there is one, it resumes the session it has, or begins
   a new one with a handshake.
2. A new session: the handshake is acknowledged, `RegisterWanted` asks for the inventory, the
   register goes out, the accept opens the session. A resumed one opens with the accept alone, and
   both sides send again what the other has not acknowledged.
3. Open: a heartbeat at once and then every interval; jitter only shortens it. One that stays
   unanswered for 3 s closes the link, so that a half-open connection is replaced long before the
   fence.
4. The link breaks: back off and resume. The session, its windows and what is queued in them live on,
   so results that finish while offline are queued too (R10).
5. The session ends (any `control.reset` but the one for a bad frame, or `fenced`): the windows are
   discarded and a new session begins at 1. A worker that fenced itself never resumes (R8): only a
   register tells the scheduler what was stopped.
6. `E.SESSION.STALE_BINDING` on the current connection: another process has this identity. It is over.

The caller feeds frames of the current connection only: those of a former one are not for us (I5).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from astraflow import errors
from astraflow.protocol import business, codec, control, limits
from astraflow.protocol.backoff import Backoff
from astraflow.protocol.duplex import Duplex, SeenFrames
from astraflow.protocol.frames import FrameMaker
from astraflow.protocol.pulse import Pulse
from astraflow.protocol.session_states import State, Trigger, next_state
from astraflow.protocol.wire import AckInfo, Envelope, Sender, Unreadable, is_sequenced
from astraflow.protocol.worker_events import (
    Acked,
    CloseConnection,
    Connect,
    Credential,
    Delivered,
    DrainAsked,
    HeartbeatAnswered,
    HeartbeatDue,
    PeerError,
    Poisoned,
    Ready,
    Refused,
    RegisterWanted,
    SessionLost,
    Superseded,
    WorkerEvent,
    WorkerIdentity,
    WorkerSettings,
)

if TYPE_CHECKING:
    from random import Random

    from astraflow.ids import IdSource

__all__ = [
    "Acked",
    "CloseConnection",
    "Connect",
    "Credential",
    "Delivered",
    "DrainAsked",
    "HeartbeatAnswered",
    "HeartbeatDue",
    "NoSession",
    "PeerError",
    "Poisoned",
    "Ready",
    "Refused",
    "RegisterWanted",
    "SessionLost",
    "State",
    "Superseded",
    "WorkerEvent",
    "WorkerIdentity",
    "WorkerSession",
    "WorkerSettings",
]

_OPEN = (State.READY, State.DRAINING)
# What only a worker sends; a scheduler that sends it is confused, or is not one.
_UPWARD = frozenset(
    {
        business.FEEDBACK,
        business.RESULT,
        business.EXEC_ERROR,
        business.NEXT_REQUEST,
        business.PKG_EVENT,
        business.PKG_CATALOG,
        business.RESOURCE_EVENT,
    }
)
_POISON_CODES = (limits.CLOSE_PROTOCOL_ERROR, limits.CLOSE_BAD_TEXT, limits.CLOSE_TOO_BIG)


class NoSession(errors.Unavailable):
    """There is no session to queue in: keep it, and send it after the next `Ready`."""

    def __init__(self) -> None:
        super().__init__(errors.SESSION_UNKNOWN, "there is no session now")


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
        settings: WorkerSettings | None = None,
    ) -> None:
        self.state = State.NEW
        self.held = False
        self.session_id: str | None = None
        self.counters: dict[str, int] = {}
        self._identity = identity
        self._credential = credential
        self._rng = rng
        self._settings = settings or WorkerSettings()
        self._maker = FrameMaker(identity.tenant, Sender("worker", identity.worker_id), ids)
        self._backoff = Backoff(rng, self._settings.backoff_base_s, self._settings.backoff_cap_s)
        self._seen = SeenFrames()
        self._token = ""
        self._duplex: Duplex | None = None
        self._now = 0.0
        self._is_draining = False
        self._is_finished = False
        self._location: str | None = None
        self._retry_at = 0.0
        self._opening: Envelope | None = None
        self._opening_ends = 0.0
        self._opening_repeats = 0.0
        self._pulse = Pulse(rng, self._settings.heartbeat_answer_timeout_s)
        self._frames: list[Envelope] = []
        self._events: deque[WorkerEvent] = deque([Connect(0.0, None)])

    # --- what the layer above may ask ---

    @property
    def is_open(self) -> bool:
        """Whether there is a session, connected or not: `send` queues in it."""
        return self._duplex is not None

    @property
    def is_ready(self) -> bool:
        """Whether frames flow now."""
        return self.state in _OPEN

    def sent_at(self, frame_id: str) -> float | None:
        """When that heartbeat or register was sent; None if unknown or too long ago."""
        return self._pulse.sent_at(frame_id)

    def take_frames(self) -> list[Envelope]:
        """The frames to put on the current connection, in order."""
        frames, self._frames = self._frames, []
        return frames

    def take_events(self) -> list[WorkerEvent]:
        events = list(self._events)
        self._events.clear()
        return events

    def deadline(self) -> float | None:
        """When `tick` must be called at the latest; None if nothing is awaited."""
        if self.state is State.BACKOFF:
            return self._retry_at
        if self.state in (State.HANDSHAKING, State.REGISTERED):
            return min(self._opening_ends, self._opening_repeats)
        if self.state not in _OPEN:
            return None
        assert self._duplex is not None
        windows, pulse = self._duplex.deadline(), self._pulse.deadline()
        if windows is None or pulse is None:
            return pulse if windows is None else windows
        return min(windows, pulse)

    def check(self) -> None:
        """Assert what must hold between two inputs (I6)."""
        assert self.state not in _OPEN or self._duplex is not None
        assert (self._duplex is None) == (self.session_id is None)
        assert not self._frames or self.state not in (State.NEW,)
        assert self.state is not State.READY or not self._is_draining
        self._pulse.check()
        if self._duplex is not None:
            self._duplex.check()

    # --- the link ---

    def connected(self, now: float) -> None:
        """A connection was opened."""
        self._now = now
        if self.state is State.BACKOFF:
            self._go(Trigger.RETRY_DUE)
        if self.state is not State.NEW:
            self._count("unexpected_connections")
            return
        self._go(Trigger.CONNECTED)
        self._frames.clear()
        self._opening_ends = now + self._settings.handshake_timeout_s
        if self._duplex is None:
            self._open_with(control.HANDSHAKE, self._handshake(), now)
        else:
            assert self.session_id is not None
            committed = self._duplex.receiving.committed
            seen = None if committed < 0 else committed
            resume = control.Resume(self.session_id, self._token, seen)
            self._open_with(control.RESUME, resume, now)

    def disconnected(self, now: float, close_code: int | None = None) -> None:
        """The connection is gone, or could not be opened."""
        self._now = now
        if self.state is State.CLOSED:
            return
        if self.state is State.BACKOFF and now < self._retry_at:
            # The shell confirms what `CloseConnection` asked for; the next try is already set.
            return
        if self.state in (State.NEW, State.BACKOFF):
            # A scheduler that sent us elsewhere may be wrong by now: go back to the known address.
            self._location = None
        if close_code in _POISON_CODES:
            self._strike()
        self._lose_link(now)

    def bad_frame(self, error: errors.AstraflowError, now: float) -> None:
        """The peer sent something that is not a frame: the connection ends, the session does not."""
        self._now = now
        if self.state in (State.NEW, State.BACKOFF, State.CLOSED):
            return
        self._count("bad_frames")
        code = (
            error.close_code if isinstance(error, codec.BadFrame) else limits.CLOSE_PROTOCOL_ERROR
        )
        reset = control.Reset(error.code.code, error.message)
        self._frames.append(self._maker.make(control.RESET, reset))
        self._close(code)
        self._lose_link(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._now = now
        if self.state is State.BACKOFF:
            if now >= self._retry_at:
                self._go(Trigger.RETRY_DUE)
        elif self.state in (State.HANDSHAKING, State.REGISTERED):
            self._tick_opening(now)
        elif self.state in _OPEN:
            self._tick_open(now)

    # --- the layer above ---

    def register(self, register: control.Register, now: float) -> str:
        """Answer `RegisterWanted`, or replace packages, labels and capabilities in an open session.

        Returns the frame's id. Without a link nothing is sent: `RegisterWanted` comes again.
        """
        self._now = now
        frame = self._maker.asking(control.REGISTER, register)
        if self.state is State.REGISTERED:
            self._opening = frame
            self._opening_repeats = now + self._settings.opening_repeat_s
        elif self.state not in _OPEN:
            return frame.id
        self._pulse.remember(frame.id, now)
        self._frames.append(frame)
        return frame.id

    def heartbeat(self, heartbeat: control.Heartbeat, now: float) -> str:
        """Answer `HeartbeatDue`. Returns the frame's id.

        Without a link nothing is sent: `HeartbeatDue` comes again.
        """
        self._now = now
        if self.state not in _OPEN:
            return self._maker.ids.new()
        assert self._duplex is not None
        # The ack tells the scheduler what the worker had taken when it made its list of attempts.
        ack = self._duplex.riding_ack(request=True, always=True)
        frame = self._maker.make(control.HEARTBEAT, heartbeat, None, ack)
        self._pulse.sent(frame.id, now)
        self._frames.append(frame)
        return frame.id

    def send(
        self,
        frame_type: str,
        payload: object,
        corr: str | None,
        now: float,
        *,
        feedback: bool | None = None,
    ) -> str:
        """Queue a business frame in the session, connected or not (R10). Returns its id.

        `biz.exec.feedback` waits behind all else and may be shed; `feedback=False` lets the last
        chunks of an attempt go before its result.

        Raises:
            NoSession: there is none; what must not be lost is sent again after `Ready`.
            QueueFull: wait for acks.
            Unsendable: the receiver would refuse this frame.
        """
        self._now = now
        if self._duplex is None:
            raise NoSession
        if self._settings.checks_outgoing:
            codec.check_outgoing(frame_type, payload, max_bytes=self._settings.max_frame_bytes)
        frame = self._maker.make(frame_type, payload, corr)
        is_feedback = frame_type == business.FEEDBACK if feedback is None else feedback
        self._duplex.push(frame, feedback=is_feedback)
        self._pump(now)
        return frame.id

    def replace(self, frame_id: str, frame_type: str, payload: object, corr: str | None) -> bool:
        """Put a failure in the place of a poisoned frame; it keeps the frame's id and seq."""
        if self._duplex is None:
            return False
        who = self._maker
        frame = Envelope(frame_type, frame_id, "", who.tenant, who.sender, payload, corr)
        return self._duplex.sending.replace(frame_id, frame)

    def taken(self, seq: int) -> None:
        """A delivered command was taken: its ack may go out (R1). Of a former session: nothing."""
        if self._duplex is None or seq > self._duplex.receiving.delivered:
            self._count("taken_late")
            return
        self._duplex.commit(seq)
        self._pump(self._now)

    def fenced(self, now: float) -> None:
        """The worker stopped its work by itself: drop the session and register anew (R8)."""
        self._now = now
        if self.state is State.CLOSED:
            return
        self._drop_session(None)
        if self.state not in (State.NEW, State.BACKOFF):
            self._close(limits.CLOSE_NORMAL)
            self._lose_link(now)

    def start_drain(self, now: float) -> None:
        """The worker itself wants to stop: "heartbeats at once with `draining: true`"."""
        self._now = now
        self._drain()
        if self.state in _OPEN:
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
        if self.state in _OPEN:
            self._frames.append(self._maker.asking(control.HANDSHAKE, self._handshake()))

    # --- frames ---

    def feed(self, envelope: Envelope, now: float) -> None:
        """Take a frame of the current connection."""
        self._now = now
        if self.state in (State.NEW, State.BACKOFF, State.CLOSED):
            self._count("frames_without_link")
            return
        if envelope.tenant != self._identity.tenant or envelope.sender.role != "scheduler":
            self._count("foreign_frames")
            return
        if is_sequenced(envelope.type):
            self._on_sequenced(envelope, now)
        elif isinstance(envelope.payload, Unreadable):
            self._on_unreadable_control(envelope)
        else:
            self._on_control(envelope, now)
        self._pump(now)
        if self._is_finished:
            self._end_if_done()

    def _on_control(self, envelope: Envelope, now: float) -> None:
        if self._duplex is not None and self.state in _OPEN:
            self._on_riding_ack(envelope.ack, now)
        payload = envelope.payload
        if isinstance(payload, control.ControlAck):
            self._on_control_ack(payload, now)
        elif isinstance(payload, control.SessionAccept):
            self._on_accept(payload, now)
        elif isinstance(payload, control.Reset):
            self._on_reset(payload, now)
        elif isinstance(payload, control.ControlError):
            self._events.append(
                PeerError(payload.for_, payload.code, payload.message, payload.pointer)
            )
        else:
            self._count("unexpected_frames")

    def _on_sequenced(self, envelope: Envelope, now: float) -> None:
        if self._duplex is None or self.state not in _OPEN:
            self._count("unexpected_frames")
            return
        if envelope.seq is None:
            bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "has no seq", pointer="/seq")
            self.bad_frame(bad, now)
            return
        self._on_riding_ack(envelope.ack, now)
        for ready in self._duplex.receive(envelope):
            self._deliver(ready)

    def _deliver(self, envelope: Envelope) -> None:
        seq, payload = envelope.seq, envelope.payload
        assert seq is not None
        assert self._duplex is not None
        if isinstance(payload, control.Drain):
            deadline = None if payload.deadline_ms is None else payload.deadline_ms / 1000
            self._drain()
            self._events.append(DrainAsked(seq, payload.reason, deadline))
        elif isinstance(payload, Unreadable):
            self._refuse(envelope, payload)
        elif envelope.type in _UPWARD:
            unknown = Unreadable(errors.CMD_UNKNOWN, "/type", "not a frame for a worker")
            self._refuse(envelope, unknown)
        elif envelope.type.startswith("ext."):
            self._count("ext_dropped")
            self._duplex.commit(seq)
        else:
            self._events.append(Delivered(seq, envelope))

    def _refuse(self, envelope: Envelope, unreadable: Unreadable) -> None:
        """PROTOCOL §1: "their seq is consumed and acked … the session lives on"."""
        assert self._duplex is not None
        assert envelope.seq is not None
        self._count("refused")
        self._duplex.commit(envelope.seq)
        self._frames.append(self._maker.error(envelope.id, unreadable))
        self._events.append(Refused(envelope, unreadable))

    def _on_unreadable_control(self, envelope: Envelope) -> None:
        unreadable = envelope.payload
        assert isinstance(unreadable, Unreadable)
        if unreadable.code is errors.CMD_UNKNOWN:
            # "Unknown `control.*`: acked if asked, counted, dropped."
            self._count("unknown_control")
            if envelope.ack is not None and envelope.ack.request:
                answer = control.ControlAck(envelope.id)
                self._frames.append(self._maker.make(control.ACK, answer))
            return
        self._count("refused")
        if envelope.type != control.ERROR:
            self._frames.append(self._maker.error(envelope.id, unreadable))
        self._events.append(Refused(envelope, unreadable))

    def _on_riding_ack(self, ack: AckInfo | None, now: float) -> None:
        if ack is not None and ack.window is not None:
            self._on_window_ack(ack.seq, ack.bitmap, ack.window, now)

    def _on_window_ack(self, seq: int | None, bitmap: str, window: int, now: float) -> None:
        assert self._duplex is not None
        frame_ids = self._duplex.on_ack(seq, bitmap, window, now)
        if frame_ids:
            self._events.append(Acked(frame_ids))

    def _on_control_ack(self, ack: control.ControlAck, now: float) -> None:
        if self.state in _OPEN and ack.recv_window is not None:
            self._on_window_ack(ack.ack_seq, ack.ack_bitmap, ack.recv_window, now)
        if ack.for_ is None:
            return
        if self._opening is not None and ack.for_ == self._opening.id:
            self._on_opening_acked(now)
            return
        sent_at = self._pulse.answered(ack.for_)
        if sent_at is not None:
            self._events.append(HeartbeatAnswered(ack.for_, sent_at, ack.stop))

    def _on_opening_acked(self, now: float) -> None:
        assert self._opening is not None
        if self.state is State.HANDSHAKING and self._opening.type == control.HANDSHAKE:
            self._opening = None
            self._go(Trigger.GREETED)
            self._events.append(RegisterWanted())
        self._opening_repeats = now + self._settings.opening_repeat_s

    # --- opening ---

    def _on_accept(self, accept: control.SessionAccept, now: float) -> None:
        if self.state is State.REGISTERED and not accept.resumed and self._opening is not None:
            self._begin_session(accept, now)
        elif self.session_id == accept.session_id and not accept.resumed:
            # "An accept that carries the current `session_id` and `resumed: false` changes the
            # token only."
            self._token = accept.session_token
        elif self.state is State.HANDSHAKING and self.session_id == accept.session_id:
            self._resume_session(accept, now)
        else:
            self._count("unexpected_frames")

    def _begin_session(self, accept: control.SessionAccept, now: float) -> None:
        assert self._duplex is None
        self.session_id = accept.session_id
        self._duplex = Duplex(
            self._maker,
            min(accept.window, self._settings.window),
            self._seen,
            self._rng,
            queue_limit=self._settings.queue_limit,
        )
        self._go(Trigger.ACCEPTED)
        self._enter_open(accept, now)

    def _resume_session(self, accept: control.SessionAccept, now: float) -> None:
        assert self._duplex is not None
        self._go(Trigger.RESUMED)
        acked = self._duplex.resume(now, accept.last_seen_seq, accept.window)
        if acked:
            self._events.append(Acked(acked))
        self._enter_open(accept, now)

    def _enter_open(self, accept: control.SessionAccept, now: float) -> None:
        self._opening = None
        self._token = accept.session_token
        self._backoff.reset()
        self._pulse.interval_s = accept.heartbeat_interval_ms / 1000
        if self._is_draining:
            self._go(Trigger.DRAIN)
        self._events.append(
            Ready(
                accept.resumed,
                accept.session_id,
                accept.lease_ttl_ms / 1000,
                self._pulse.interval_s,
                accept.max_frame_bytes,
            )
        )
        self._ask_heartbeat()

    def _on_reset(self, reset: control.Reset, now: float) -> None:
        """The peer ends the link, and with it the session unless it only minded one frame."""
        self._count("resets")
        if reset.code == errors.SESSION_STALE_BINDING.code:
            self._drop_session(reset.code)
            self._close(limits.CLOSE_NORMAL)
            self._go(Trigger.SUPERSEDED)
            self._events.append(Superseded())
            return
        was_resuming = self.state is State.HANDSHAKING and self._duplex is not None
        was_opening = self.state in (State.HANDSHAKING, State.REGISTERED) and not was_resuming
        if reset.code == errors.PROTOCOL_BAD_FRAME.code:
            self._strike()
        else:
            self._drop_session(reset.code)
        if reset.code == errors.SESSION_MOVED.code:
            self._location = reset.location
        self._close(limits.CLOSE_NORMAL)
        retry_after_s = (reset.retry_after_ms or 0) / 1000
        # "INVALID_TOKEN on *resume* → handshake at once; on *handshake* → backoff ≥ 30 s." A session
        # that is unknown, or a tenant that moved, is also no reason to wait.
        at_once = retry_after_s == 0 and (
            (was_resuming and self._duplex is None) or reset.code == errors.SESSION_MOVED.code
        )
        is_denied = was_opening and reset.code.startswith("E.AUTH.")
        self._lose_link(now, at_once=at_once, retry_after_s=retry_after_s, denied=is_denied)

    def _open_with(self, frame_type: str, payload: object, now: float) -> None:
        self._opening = self._maker.asking(frame_type, payload)
        self._opening_repeats = now + self._settings.opening_repeat_s
        self._frames.append(self._opening)

    def _handshake(self) -> control.Handshake:
        who, proof = self._identity, self._credential
        return control.Handshake(
            limits.PROTOCOLS_SUPPORTED[-1],
            control.Auth(proof.mode, proof.token, proof.fingerprint),
            control.HandshakeWorker(
                who.worker_id, who.incarnation, who.name, who.version, who.hostname
            ),
        )

    # --- time ---

    def _tick_opening(self, now: float) -> None:
        if now >= self._opening_ends:
            self._count("handshake_timeouts")
            self._close(limits.CLOSE_NORMAL)
            self._lose_link(now)
        elif now >= self._opening_repeats:
            self._opening_repeats = now + self._settings.opening_repeat_s
            if self._opening is not None:
                self._frames.append(self._opening)

    def _tick_open(self, now: float) -> None:
        if self._pulse.is_overdue(now):
            self._count("heartbeats_unanswered")
            self._break_link(now)
            return
        due_at = self._pulse.due_at
        if due_at is not None and now >= due_at:
            self._ask_heartbeat()
        self._pump(now)

    def _ask_heartbeat(self) -> None:
        self._pulse.due_at = None
        self._events.append(HeartbeatDue())

    def _pump(self, now: float) -> None:
        if self._duplex is None or self.state not in _OPEN:
            return
        self._duplex.pump(now, self._frames)
        if self._duplex.sending.broken:
            self._count("links_broken")
            self._break_link(now)

    # --- endings ---

    def _break_link(self, now: float) -> None:
        self._close(limits.CLOSE_NORMAL)
        self._lose_link(now)

    def _lose_link(
        self,
        now: float,
        *,
        at_once: bool = False,
        retry_after_s: float = 0.0,
        denied: bool = False,
    ) -> None:
        self._go(Trigger.LINK_LOST)
        self._opening = None
        self._pulse.stop()
        if self._is_finished and (self._duplex is None or self._duplex.sending.is_idle):
            self._go(Trigger.FINISHED)
            return
        wait = 0.0
        if not at_once:
            wait = self._backoff.next_s(held=self.held, retry_after_s=retry_after_s, denied=denied)
        self._retry_at = now + wait
        self._events.append(Connect(self._retry_at, self._location))

    def _drop_session(self, code: str | None) -> None:
        if self._duplex is None:
            return
        self._duplex = None
        self.session_id = None
        self._token = ""
        self._events.append(SessionLost(code))

    def _drain(self) -> None:
        self._is_draining = True
        if self.state is State.READY:
            self._go(Trigger.DRAIN)

    def _end_if_done(self) -> None:
        if self.state is State.CLOSED:
            return
        if self._duplex is not None and not self._duplex.sending.is_idle:
            return
        if self.state not in (State.NEW, State.BACKOFF):
            # The commands taken last are acknowledged before the link goes.
            if self._duplex is not None and self._duplex.receiving.is_ack_owed():
                self._frames.append(self._duplex.answer(None))
            self._close(limits.CLOSE_NORMAL)
        self._go(Trigger.FINISHED)

    def _strike(self) -> None:
        """PROTOCOL §1: "if the same first unacked frame closes the link twice it is replaced"."""
        poisoned = None if self._duplex is None else self._duplex.strike()
        if poisoned is not None:
            self._events.append(Poisoned(poisoned))

    def _close(self, code: int) -> None:
        self._events.append(CloseConnection(code))

    def _go(self, trigger: Trigger) -> None:
        self.state = next_state(self.state, trigger)

    def _count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1
