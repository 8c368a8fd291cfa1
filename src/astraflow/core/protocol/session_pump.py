"""When the sessions of a gateway send, and when they must be looked at again.

A session that something happened to is *woken*; its windows send once, when output is taken next,
for everything that came before.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from astraflow.core.protocol import limits
from astraflow.core.protocol.connection_table import ConnectionTable, PeerConnection
from astraflow.core.protocol.events import SendFrame

if TYPE_CHECKING:
    from astraflow.core.protocol.gateway_outbox import GatewayOutbox
    from astraflow.core.protocol.scheduler_session import SchedulerSession
    from astraflow.core.protocol.wire import Envelope


class SessionPump:
    """The timers of a gateway, and the sessions that have something to send."""

    __slots__ = ("_outbox", "_table", "_timers", "_timers_set", "_woken", "now")

    def __init__(self, table: ConnectionTable, outbox: GatewayOutbox) -> None:
        self.now = 0.0
        """The latest time that the gateway was told."""
        self._table = table
        self._outbox = outbox
        self._timers: list[tuple[float, int, PeerConnection | SchedulerSession]] = []
        self._timers_set = 0
        self._woken: dict[str, SchedulerSession] = {}

    def __len__(self) -> int:
        """How many timers are set, obsolete ones included."""
        return len(self._timers)

    def wake(self, session: SchedulerSession) -> None:
        """Let the windows of a session send when output is taken next."""
        self._woken[session.session_id] = session

    def flush(self) -> None:
        """Let every session that was woken send."""
        while self._woken:
            woken, self._woken = self._woken, {}
            for session_id, session in woken.items():
                if self._table.sessions.get(session_id) is session:
                    self.pump(session)

    def pump(self, session: SchedulerSession) -> None:
        """Send what the windows of a connected session have to send."""
        if session.conn is not None and session.is_accepted:
            frames: list[Envelope] = []
            session.duplex.pump(self.now, frames)
            for frame in frames:
                self._outbox.output.append(SendFrame(session.conn, frame))
            if session.duplex.sending.broken:
                self._outbox.count("links_broken")
                self._table.close(self._table.connections[session.conn], limits.CLOSE_NORMAL)
        self.schedule(session)

    def schedule(self, session: SchedulerSession) -> None:
        """Set the timers of a session."""
        # Two timers, because heartbeats are seconds away and acks milliseconds: with one, every
        # ack would leave another far-away entry behind.
        far, near = session.far_deadline(), session.near_deadline()
        if session.far_at is None or far < session.far_at:
            session.far_at = far
            self.set_timer(far, session)
        if near is not None and (session.near_at is None or near < session.near_at):
            session.near_at = near
            self.set_timer(near, session)

    def set_timer(self, at: float, target: PeerConnection | SchedulerSession) -> None:
        self._timers_set += 1
        heappush(self._timers, (at, self._timers_set, target))

    def take_due(self) -> list[PeerConnection | SchedulerSession]:
        """What must be looked at now: opening connections, and sessions, each once."""
        due: list[PeerConnection | SchedulerSession] = []
        while self._timers and self._timers[0][0] <= self.now:
            at, _, target = heappop(self._timers)
            if isinstance(target, PeerConnection) or target.timer_rang(at):
                due.append(target)
        return due

    def deadline(self) -> float | None:
        """When something is due next."""
        self.flush()
        return self._timers[0][0] if self._timers else None
