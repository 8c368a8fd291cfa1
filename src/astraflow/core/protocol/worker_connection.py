"""A worker's connection to its scheduler: asked for, opening, open, lost, and asked for again.

1. `Connect` asks for a connection. When there is one, the opening frame (a handshake, a register or a
   resume) is repeated until it is answered, and given up after a timeout.
2. A connection that is lost is asked for again after a backoff, at the address that the scheduler
   gave, if it gave one.

Sessions outlive connections: what a session is, is in `worker_session.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.protocol.backoff import ReconnectBackoff
from astraflow.core.protocol.session_states import SessionState, SessionTrigger, next_state
from astraflow.core.protocol.worker_events import Connect, Disconnect, WorkerEvent

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.protocol.wire import Envelope
    from astraflow.core.protocol.worker_events import SessionSettings

OPEN = (SessionState.READY, SessionState.DRAINING)
OPENING = (SessionState.HANDSHAKING, SessionState.REGISTERED)
UNCONNECTED = (SessionState.NEW, SessionState.BACKOFF)


class WorkerOutbox:
    """Frames for the connection, events for the agent, and counters, until they are taken."""

    __slots__ = ("counters", "events", "frames")

    def __init__(self) -> None:
        self.frames: list[Envelope] = []
        self.events: list[WorkerEvent] = []
        self.counters: dict[str, int] = {}

    def count(self, name: str) -> None:
        self.counters[name] = self.counters.get(name, 0) + 1


class WorkerConnection:
    """One connection after the other, and the state of the session machine."""

    def __init__(self, outbox: WorkerOutbox, rng: Random, settings: SessionSettings) -> None:
        self.state = SessionState.NEW
        self.location: str | None = None
        """Where the scheduler has sent this worker; None for the configured address."""
        self.retry_at = 0.0
        self.opening: Envelope | None = None
        """The frame of the opening that was not answered yet."""
        self._outbox = outbox
        self._settings = settings
        self._backoff = ReconnectBackoff(rng, settings.backoff_base_s, settings.backoff_cap_s)
        self._connect_ends: float | None = None
        self._is_closing = False
        self._opening_ends = 0.0
        self._opening_repeats = 0.0
        outbox.events.append(Connect(0.0, None))

    def go(self, trigger: SessionTrigger) -> None:
        self.state = next_state(self.state, trigger)

    def connected(self, now: float) -> bool:
        """A connection was opened. True if it was awaited: then call `open_with`."""
        if self.state is SessionState.BACKOFF:
            self.go(SessionTrigger.RETRY_DUE)
        if self.state is not SessionState.NEW:
            self._outbox.count("unexpected_connections")
            return False
        self.go(SessionTrigger.CONNECTED)
        self._is_closing = False
        self._outbox.frames.clear()
        self._opening_ends = now + self._settings.handshake_timeout_s
        return True

    def disconnected(self, now: float) -> bool:
        """The connection is gone, or could not be opened. True if that is news."""
        if self.state is SessionState.CLOSED:
            return False
        if self._is_closing:
            self._is_closing = False
            self._confirm_close(now)
            return False
        if self.state in UNCONNECTED:
            # A scheduler that sent us elsewhere may be wrong by now: go back to the known address.
            self.location = None
        return True

    def open_with(self, frame: Envelope, now: float) -> None:
        """Send a frame of the opening, and repeat it until it is answered."""
        self.opening = frame
        self.delay_repeat(now)
        self._outbox.frames.append(frame)

    def delay_repeat(self, now: float) -> None:
        self._opening_repeats = now + self._settings.opening_repeat_s

    def entered(self) -> None:
        """The session is open on this connection."""
        self.opening = None
        self._backoff.reset()

    def close(self, code: int) -> None:
        self._is_closing = True
        self._outbox.events.append(Disconnect(code))

    def lost(self) -> None:
        self.go(SessionTrigger.LINK_LOST)
        self.opening = None

    def retry(
        self, now: float, *, held: bool, at_once: bool, retry_after_s: float, denied: bool
    ) -> None:
        """Ask for the next connection, after a backoff unless `at_once`."""
        wait_s = 0.0
        if not at_once:
            wait_s = self._backoff.next_s(held=held, retry_after_s=retry_after_s, denied=denied)
        self._ask_to_connect(now + wait_s)

    def deadline(self) -> float | None:
        """When `tick` must be called while the session is not open."""
        if self.state is SessionState.BACKOFF:
            return self.retry_at
        if self.state is SessionState.NEW:
            return self._connect_ends
        if self.state in OPENING:
            return min(self._opening_ends, self._opening_repeats)
        return None

    def tick(self, now: float) -> bool:
        """Do what is due while the session is not open. True if the connection must be given up."""
        if self.state is SessionState.BACKOFF:
            if now >= self.retry_at:
                self.go(SessionTrigger.RETRY_DUE)
        elif self.state is SessionState.NEW:
            if self._connect_ends is not None and now >= self._connect_ends:
                self._outbox.count("connect_timeouts")
                return True
        elif self.state in OPENING:
            return self._tick_opening(now)
        return False

    def _tick_opening(self, now: float) -> bool:
        if now >= self._opening_ends:
            self._outbox.count("handshake_timeouts")
            return True
        if now >= self._opening_repeats:
            self.delay_repeat(now)
            if self.opening is not None:
                self._outbox.frames.append(self.opening)
        return False

    def _confirm_close(self, now: float) -> None:
        """What `Disconnect` asked for is done, and the next try is already set.

        Or else the shell does not confirm, and it is that next try which failed, perhaps a hair
        before its time. Nothing tells the two apart, so the try is given out once more: to a shell
        that has it in hand this says nothing new, and the other one does not wait for ever.
        """
        self._ask_to_connect(max(now, self.retry_at))

    def _ask_to_connect(self, at: float) -> None:
        self.retry_at = at
        self._connect_ends = at + self._settings.handshake_timeout_s
        self._outbox.events.append(Connect(at, self.location))
