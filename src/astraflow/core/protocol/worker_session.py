"""The worker's side of a session, without any I/O.

How it gets and loses its link is in `worker_link.py`. Here is what happens in an open session:

1. A heartbeat goes out at once and then every interval; jitter only shortens it. One that stays
   unanswered for 3 s closes the link, so that a half-open connection is replaced long before the
   fence.
2. Commands are handed up in order, once, and acknowledged when they are `taken` (R1).
3. What is sent is queued in the session, connected or not (R10), and forgotten by `ack_seq` alone.
4. A worker that fenced itself never resumes (R8): only a register tells the scheduler what was
   stopped.
5. A drained worker closes when `ack_seq` covers all that it sent.

The caller feeds frames of the current connection only: those of a former one are not for us (I5).
"""

from __future__ import annotations

from astraflow.core import errors
from astraflow.core.protocol import business, codec, control, limits
from astraflow.core.protocol.duplex import NoSession
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.protocol.session_states import State, Trigger
from astraflow.core.protocol.wire import AckInfo, Envelope, Unreadable, is_sequenced
from astraflow.core.protocol.worker_events import (
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
    RegisterAnswered,
    RegisterWanted,
    SessionLost,
    Superseded,
    TurnedAway,
    WorkerEvent,
    WorkerIdentity,
    WorkerSettings,
)
from astraflow.core.protocol.worker_link import OPEN, WorkerLink

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
    "RegisterAnswered",
    "RegisterWanted",
    "SessionLost",
    "State",
    "Superseded",
    "TurnedAway",
    "WorkerEvent",
    "WorkerIdentity",
    "WorkerSession",
    "WorkerSettings",
]

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


class WorkerSession(WorkerLink):
    """One worker's session with its scheduler, over any number of connections.

    After every input: send `take_frames`, handle `take_events`, and call `tick` no later than at
    `deadline`. Setting `held` says whether attempts are held: then it does not stay away for long.
    """

    def sent_at(self, frame_id: str) -> float | None:
        """When that heartbeat or register was sent; None if unknown or too long ago."""
        return self._pulse.sent_at(frame_id)

    def deadline(self) -> float | None:
        """When `tick` must be called at the latest; None if nothing is awaited."""
        if self.state is State.BACKOFF:
            return self._retry_at
        if self.state is State.NEW:
            return self._connect_ends
        if self.state in (State.HANDSHAKING, State.REGISTERED):
            return min(self._opening_ends, self._opening_repeats)
        if self.state not in OPEN:
            return None
        assert self._duplex is not None
        self._pump_stirred()
        if self._duplex.sending.broken:
            return self._now
        windows, pulse = self._duplex.deadline(), self._pulse.deadline()
        if windows is None or pulse is None:
            return pulse if windows is None else windows
        return min(windows, pulse)

    def check(self) -> None:
        """Assert what must hold between two inputs (I6)."""
        assert self.state not in OPEN or self._duplex is not None
        assert (self._duplex is None) == (self.session_id is None)
        assert self.state is not State.READY or not self._is_draining
        self._pulse.check()
        if self._duplex is not None:
            self._duplex.check()

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
        elif self.state is State.NEW:
            if self._connect_ends is not None and now >= self._connect_ends:
                self._count("connect_timeouts")
                self._lose_link(now)
        elif self.state in (State.HANDSHAKING, State.REGISTERED):
            self._tick_opening(now)
        elif self.state in OPEN:
            self._tick_open(now)

    def register(self, register: control.Register, now: float) -> str:
        """Answer `RegisterWanted`, or replace packages, labels and capabilities in an open session.

        Returns the frame's id. Without a link nothing is sent: `RegisterWanted` comes again.
        """
        self._now = now
        frame = self._maker.asking(control.REGISTER, register)
        if self.state is State.REGISTERED:
            self._opening = frame
            self._opening_repeats = now + self._settings.opening_repeat_s
        elif self.state not in OPEN:
            return frame.id
        else:
            self._offering = frame.id
        self._pulse.remember(frame.id, now)
        self._frames.append(frame)
        return frame.id

    def heartbeat(self, heartbeat: control.Heartbeat, now: float) -> str:
        """Answer `HeartbeatDue`. Returns the frame's id.

        Without a link nothing is sent: `HeartbeatDue` comes again.
        """
        self._now = now
        if self.state not in OPEN:
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
        frame_id: str | None = None,
    ) -> str:
        """Queue a business frame in the session, connected or not (R10). Returns its id.

        `biz.exec.feedback` waits behind all else and may be shed; `feedback=False` lets the last
        chunks of an attempt go before its result. `frame_id` is the id of what was sent before:
        PROTOCOL §1: "a frame resent in a new session keeps its `id`", so that a scheduler that has
        committed it drops it.

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
        frame = self._maker.make(frame_type, payload, corr, None, frame_id)
        is_feedback = frame_type == business.FEEDBACK if feedback is None else feedback
        if frame_type == business.RESULT and corr is not None and self._duplex.sending.has_feedback:
            self._duplex.sending.promote(lambda queued: queued.corr == corr)
        try:
            self._duplex.push(frame, feedback=is_feedback)
        except QueueFull:
            # It may be full of what could have gone into the window already.
            self._is_stirred = True
            self._pump_stirred()
            self._duplex.push(frame, feedback=is_feedback)
        self._is_stirred = True
        return frame.id

    def replace(self, frame_id: str, frame_type: str, payload: object, corr: str | None) -> bool:
        """Put a failure in the place of a poisoned frame; it keeps the frame's id and seq."""
        if self._duplex is None:
            return False
        frame = self._maker.make(frame_type, payload, corr, None, frame_id)
        return self._duplex.sending.replace(frame_id, frame)

    def taken(self, seq: int, session_id: str | None = None) -> None:
        """A delivered command was taken: its ack may go out (R1).

        Who takes commands later than in the step that delivered them must say of which session
        the seq is: a new session counts from 0 again.
        """
        is_former = session_id is not None and session_id != self.session_id
        if self._duplex is None or is_former or seq > self._duplex.receiving.delivered:
            self._count("taken_late")
            return
        self._duplex.commit(seq)
        self._is_stirred = True

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
        if self.state in OPEN:
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
        if self.state in OPEN:
            self._frames.append(self._maker.asking(control.HANDSHAKE, self._handshake()))

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
        self._is_stirred = True
        if self._is_finished:
            self._end_if_done()

    def _on_control(self, envelope: Envelope, now: float) -> None:
        if self._duplex is not None and self.state in OPEN:
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
        if self._duplex is None or self.state not in OPEN:
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
        if ack is not None and ack.is_window_ack:
            self._on_window_ack(ack.seq, ack.bitmap, ack.window, now)

    def _on_window_ack(self, seq: int | None, bitmap: str, window: int | None, now: float) -> None:
        assert self._duplex is not None
        frame_ids = self._duplex.on_ack(seq, bitmap, window, now)
        if frame_ids:
            self._events.append(Acked(frame_ids))

    def _on_control_ack(self, ack: control.ControlAck, now: float) -> None:
        if self.state in OPEN and ack.is_window_ack:
            self._on_window_ack(ack.ack_seq, ack.ack_bitmap, ack.recv_window, now)
        if ack.for_ is None:
            return
        if self._opening is not None and ack.for_ == self._opening.id:
            self._on_opening_acked(now)
            return
        sent_at = self._pulse.answered(ack.for_)
        if sent_at is not None:
            self._events.append(HeartbeatAnswered(ack.for_, sent_at, ack.stop))
        elif ack.for_ == self._offering:
            self._offering = None
            self._events.append(RegisterAnswered(ack.for_))

    def _on_opening_acked(self, now: float) -> None:
        assert self._opening is not None
        if self.state is State.HANDSHAKING and self._opening.type == control.HANDSHAKE:
            self._opening = None
            self._go(Trigger.GREETED)
            self._events.append(RegisterWanted())
        self._opening_repeats = now + self._settings.opening_repeat_s

    def _tick_open(self, now: float) -> None:
        assert self._duplex is not None
        self._duplex.pump(now, self._frames)
        if self._duplex.sending.broken:
            self._count("links_broken")
            self._break_link(now)
            return
        if self._pulse.is_overdue(now):
            self._count("heartbeats_unanswered")
            self._break_link(now)
            return
        due_at = self._pulse.due_at
        if due_at is not None and now >= due_at:
            self._ask_heartbeat()

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
