"""A worker's way to its scheduler: connecting, opening or resuming a session, losing it again.

1. It asks for a connection (`Connect`). When there is one, it resumes the session that it has, or
   begins a new one with a handshake.
2. A new session: the handshake is acknowledged, `RegisterWanted` asks for the inventory, the
   register goes out, the accept opens the session. A resumed one opens with the accept alone, and
   both sides send again what the other has not acknowledged.
3. The link breaks: back off and resume. The session, its windows and what is queued in them live on.
4. The session ends (any `control.reset` but the one for a bad frame): the windows are discarded and
   a new session begins at 1.
5. `E.SESSION.STALE_BINDING` on the current connection: another process has this identity. It is
   over; do not fight back.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.backoff import Backoff
from astraflow.core.protocol.duplex import Duplex, SeenFrames
from astraflow.core.protocol.frames import FrameMaker
from astraflow.core.protocol.pulse import Pulse
from astraflow.core.protocol.session_states import State, Trigger, next_state
from astraflow.core.protocol.wire import Envelope, Sender
from astraflow.core.protocol.worker_events import (
    Acked,
    CloseConnection,
    Connect,
    Credential,
    HeartbeatDue,
    Poisoned,
    Ready,
    SessionLost,
    Superseded,
    TurnedAway,
    WorkerEvent,
    WorkerIdentity,
    WorkerSettings,
)

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.ids import IdSource

__all__ = ["OPEN", "WorkerLink"]

OPEN = (State.READY, State.DRAINING)
_POISON_CODES = (limits.CLOSE_PROTOCOL_ERROR, limits.CLOSE_BAD_TEXT, limits.CLOSE_TOO_BIG)


class WorkerLink:
    """The opening half of a `WorkerSession`. Not for use by itself."""

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
        self._is_stirred = False  # whether the windows may have something to say
        self._location: str | None = None
        self._retry_at = 0.0
        self._connect_ends: float | None = None
        self._is_closing = False
        self._opening: Envelope | None = None
        self._offering: str | None = None  # a later register that was not answered yet
        self._opening_ends = 0.0
        self._opening_repeats = 0.0
        self._pulse = Pulse(rng, self._settings.heartbeat_answer_timeout_s)
        self._frames: list[Envelope] = []
        self._events: deque[WorkerEvent] = deque([Connect(0.0, None)])

    @property
    def is_open(self) -> bool:
        """Whether there is a session, connected or not: `send` queues in it."""
        return self._duplex is not None

    @property
    def is_ready(self) -> bool:
        """Whether frames flow now."""
        return self.state in OPEN

    def take_frames(self) -> list[Envelope]:
        """The frames to put on the current connection, in order."""
        self._pump_stirred()
        frames, self._frames = self._frames, []
        return frames

    def _pump_stirred(self) -> None:
        """Let the windows speak, once for all that came since they last did."""
        if self._is_stirred:
            self._is_stirred = False
            if self._duplex is not None and self.state in OPEN:
                self._duplex.pump(self._now, self._frames)

    def take_events(self) -> list[WorkerEvent]:
        events = list(self._events)
        self._events.clear()
        return events

    def connected(self, now: float) -> None:
        """A connection was opened."""
        self._now = now
        if self.state is State.BACKOFF:
            self._go(Trigger.RETRY_DUE)
        if self.state is not State.NEW:
            self._count("unexpected_connections")
            return
        self._go(Trigger.CONNECTED)
        self._is_closing = False
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
        if self._is_closing:
            self._is_closing = False
            self._confirm_close(now)
            return
        if self.state in (State.NEW, State.BACKOFF):
            # A scheduler that sent us elsewhere may be wrong by now: go back to the known address.
            self._location = None
        if close_code in _POISON_CODES:
            self._strike()
        self._lose_link(now)

    def _confirm_close(self, now: float) -> None:
        """What `CloseConnection` asked for is done, and the next try is already set.

        Or else the shell does not confirm, and it is that next try which failed, perhaps a hair
        before its time. Nothing tells the two apart, so the try is given out once more: to a shell
        that has it in hand this says nothing new, and the other one does not wait for ever.
        """
        self._ask_to_connect(max(now, self._retry_at))

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
        self._events.append(TurnedAway(reset.code, reset.reason, self._retry_at))

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

    def _tick_opening(self, now: float) -> None:
        if now >= self._opening_ends:
            self._count("handshake_timeouts")
            self._close(limits.CLOSE_NORMAL)
            self._lose_link(now)
        elif now >= self._opening_repeats:
            self._opening_repeats = now + self._settings.opening_repeat_s
            if self._opening is not None:
                self._frames.append(self._opening)

    def _ask_heartbeat(self) -> None:
        self._pulse.due_at = None
        self._events.append(HeartbeatDue())

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
        self._ask_to_connect(now + wait)

    def _ask_to_connect(self, at: float) -> None:
        self._retry_at = at
        self._connect_ends = at + self._settings.handshake_timeout_s
        self._events.append(Connect(at, self._location))

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

    def _strike(self) -> None:
        """PROTOCOL §1: "if the same first unacked frame closes the link twice it is replaced"."""
        poisoned = None if self._duplex is None else self._duplex.strike()
        if poisoned is not None:
            self._events.append(Poisoned(poisoned))

    def _close(self, code: int) -> None:
        self._is_closing = True
        self._events.append(CloseConnection(code))

    def _go(self, trigger: Trigger) -> None:
        self.state = next_state(self.state, trigger)

    def _count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1
