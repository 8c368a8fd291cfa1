"""The connections and sessions of one gateway, and how they end.

Here is what does not depend on what frames mean: who is connected, which session a connection
carries, when to look at a session again, and the three ways in which things end:

* a *connection* closes: its session lives on, to be resumed, until three heartbeats are missed;
* a connection is *reset*: the peer is told why first;
* a *session* ends: it can never be resumed again, and the engine is told.

One identity has at most one connection (`_holders`) and one session (`_by_identity`): I5.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from astraflow.core.protocol import control, limits
from astraflow.core.protocol.admission import Identity
from astraflow.core.protocol.duplex import SeenFrames
from astraflow.core.protocol.events import (
    Audited,
    CloseConnection,
    Conn,
    GatewayEvent,
    GatewaySettings,
    SendFrame,
    SessionEnded,
    TurnedAway,
)
from astraflow.core.protocol.frames import FrameMaker
from astraflow.core.protocol.scheduler_session import SchedulerSession
from astraflow.core.protocol.wire import Sender

if TYPE_CHECKING:
    from astraflow.core.errors import Code
    from astraflow.core.ids import IdSource
    from astraflow.core.protocol.control import Handshake
    from astraflow.core.protocol.events import Principal
    from astraflow.core.protocol.wire import Envelope

__all__ = ["Connection", "Hub"]

# A peer that sent no readable frame yet has no tenant; the envelope of its reset needs one.
_NO_TENANT = "-"


class Connection:
    """One connection: opening until it has a principal, greeted until it has a session."""

    __slots__ = (
        "_beaten_at",
        "_beats",
        "certificate",
        "claimed",
        "conn",
        "greeting_id",
        "handshake",
        "principal",
        "refusals",
        "session",
        "tenant",
        "took_over",
        "worker",
    )

    def __init__(self, conn: Conn, certificate: object, now: float) -> None:
        self.conn = conn
        self.certificate = certificate
        self.tenant = _NO_TENANT
        self.worker = ""
        self.claimed = ""  # the worker that the first frame named
        self.principal: Principal | None = None
        self.handshake: Handshake | None = None
        self.greeting_id: str | None = None
        self.session: SchedulerSession | None = None
        self.took_over = False  # another connection of the identity was open when it was greeted
        self._beats = 1.0
        self._beaten_at = now
        self.refusals: deque[float] = deque()

    def may_beat(self, now: float) -> bool:
        """Whether a heartbeat that arrives now is one of a flood.

        Counted over time, not from one to the next: those that came while the scheduler stood still, or the link was
        slow, arrive all at once.
        """
        gained = (now - self._beaten_at) / limits.HEARTBEAT_MIN_GAP_S
        self._beats = min(self._beats + gained, limits.HEARTBEAT_BURST)
        self._beaten_at = now
        if self._beats < 1.0:
            return False
        self._beats -= 1.0
        return True

    @property
    def identity(self) -> Identity:
        return Identity(self.tenant, self.worker)

    @property
    def is_open(self) -> bool:
        return self.session is not None and self.session.is_accepted


class Hub:
    """The tables behind a gateway. Not for use by itself."""

    def __init__(self, scheduler_id: str, ids: IdSource, settings: GatewaySettings) -> None:
        self.counters: dict[str, int] = {}
        self._settings = settings
        self._ids = ids
        self._sender = Sender("scheduler", scheduler_id)
        self._connections: dict[Conn, Connection] = {}
        self._holders: dict[Identity, Connection] = {}
        self._sessions: dict[str, SchedulerSession] = {}
        self._by_identity: dict[Identity, SchedulerSession] = {}
        self._seen: dict[Identity, SeenFrames] = {}
        self._output: list[SendFrame | CloseConnection] = []
        self._events: list[GatewayEvent] = []
        self._timers: list[tuple[float, int, Connection | SchedulerSession]] = []
        self._timers_set = 0
        self._now = 0.0
        self._stirred: dict[str, SchedulerSession] = {}

    def take_output(self) -> list[SendFrame | CloseConnection]:
        """What to do on connections, in order."""
        self._pump_stirred()
        output, self._output = self._output, []
        return output

    def take_events(self) -> list[GatewayEvent]:
        events, self._events = self._events, []
        return events

    def deadline(self) -> float | None:
        """When `tick` must be called at the latest; None if nothing is awaited."""
        self._pump_stirred()
        return self._timers[0][0] if self._timers else None

    def session_of(self, tenant: str, worker: str) -> str | None:
        """The id of the open session of a worker."""
        session = self._by_identity.get(Identity(tenant, worker))
        return session.session_id if session is not None and session.is_accepted else None

    def check(self) -> None:
        """Assert I5 and the indexes."""
        for identity, session in self._by_identity.items():
            assert identity == (session.tenant, session.worker)
            assert self._sessions[session.session_id] is session
            session.check()
        assert len(self._by_identity) == len(self._sessions)
        for identity, holder in self._holders.items():
            assert self._connections[holder.conn] is holder
            assert holder.identity == identity
        for connection in self._connections.values():
            session_of_it = connection.session
            assert session_of_it is None or session_of_it.conn == connection.conn
            assert session_of_it is None or self._holders[connection.identity] is connection

    # --- sending ---

    def _maker_for(self, tenant: str) -> FrameMaker:
        # Not kept: a stranger may name any tenant. A session keeps its own.
        return FrameMaker(tenant, self._sender, self._ids)

    def _put(self, connection: Connection, envelope: Envelope) -> None:
        self._output.append(SendFrame(connection.conn, envelope))

    def _put_new(self, connection: Connection, frame_type: str, payload: object) -> None:
        self._put(connection, self._maker_for(connection.tenant).make(frame_type, payload))

    def _stir(self, session: SchedulerSession) -> None:
        """Let the windows of a session speak when output is taken next: once for all that came before."""
        self._stirred[session.session_id] = session

    def _pump_stirred(self) -> None:
        while self._stirred:
            stirred, self._stirred = self._stirred, {}
            for session_id, session in stirred.items():
                if self._sessions.get(session_id) is session:
                    self._pump(session, self._now)

    def _pump(self, session: SchedulerSession, now: float) -> None:
        """Put on the wire what the windows of a connected session have to send."""
        if session.conn is not None and session.is_accepted:
            frames: list[Envelope] = []
            session.duplex.pump(now, frames)
            for frame in frames:
                self._output.append(SendFrame(session.conn, frame))
            if session.duplex.sending.broken:
                self._count("links_broken")
                self._close(self._connections[session.conn], limits.CLOSE_NORMAL)
        self._schedule(session)

    # --- time ---

    def _schedule(self, session: SchedulerSession) -> None:
        # Two timers, because heartbeats are seconds away and acks milliseconds: with one, every
        # ack would leave another far-away entry behind.
        far, near = session.far_deadline(), session.near_deadline()
        if session.far_at is None or far < session.far_at:
            session.far_at = far
            self._set_timer(far, session)
        if near is not None and (session.near_at is None or near < session.near_at):
            session.near_at = near
            self._set_timer(near, session)

    def _set_timer(self, at: float, of: Connection | SchedulerSession) -> None:
        self._timers_set += 1
        heappush(self._timers, (at, self._timers_set, of))

    def _take_due(self, now: float) -> list[Connection | SchedulerSession]:
        """What must be looked at now: opening connections, and sessions, each once."""
        due: list[Connection | SchedulerSession] = []
        while self._timers and self._timers[0][0] <= now:
            at, _, thing = heappop(self._timers)
            if isinstance(thing, Connection) or thing.timer_rang(at):
                due.append(thing)
        return due

    # --- endings ---

    def _close(
        self, connection: Connection, code: int, turned_away: TurnedAway | None = None
    ) -> None:
        """Close a connection; its session lives on."""
        self._output.append(CloseConnection(connection.conn, code, turned_away))
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection.conn, None)
        if self._holders.get(connection.identity) is connection:
            del self._holders[connection.identity]
        session = connection.session
        connection.session = None
        if session is not None and session.conn == connection.conn:
            session.conn = None

    def _reset(
        self,
        connection: Connection,
        code: Code,
        reason: str,
        *,
        close_code: int = limits.CLOSE_POLICY,
        retry_after_s: float = 0.0,
        location: str | None = None,
    ) -> None:
        """Tell the peer why, and close the connection; its session lives on."""
        retry_after_ms = int(retry_after_s * 1000) or None
        reset = control.Reset(code.code, reason, retry_after_ms, location)
        self._put_new(connection, control.RESET, reset)
        who = connection.worker or connection.claimed
        self._close(connection, close_code, TurnedAway(connection.tenant, who, code.code, reason))

    def _end(
        self,
        session: SchedulerSession,
        code: Code,
        reason: str,
        *,
        lost: bool = False,
        retry_after_s: float = 0.0,
        location: str | None = None,
    ) -> None:
        """End a session, and with it its connection."""
        if session.conn is not None:
            connection = self._connections[session.conn]
            self._reset(connection, code, reason, retry_after_s=retry_after_s, location=location)
        self._sessions.pop(session.session_id, None)
        identity = Identity(session.tenant, session.worker)
        if self._by_identity.get(identity) is session:
            del self._by_identity[identity]
        self._events.append(
            SessionEnded(session.session_id, session.tenant, session.worker, code.code, lost)
        )

    # --- noting ---

    def _seen_of(self, identity: Identity) -> SeenFrames:
        seen = self._seen.pop(identity, None) or SeenFrames(max(self._settings.window, 1))
        # The newest goes last, so that the first to be forgotten is the longest gone.
        self._seen[identity] = seen
        if len(self._seen) > self._settings.max_connections:
            del self._seen[next(iter(self._seen))]
        return seen

    def _audit(
        self,
        connection: Connection,
        action: str,
        code: Code | None,
        frame_id: str | None = None,
    ) -> None:
        session, principal = connection.session, connection.principal
        self._events.append(
            Audited(
                "" if session is None else session.session_id,
                connection.tenant,
                connection.worker,
                action,
                None if code is None else code.code,
                None if principal is None else principal.subject,
                frame_id,
            )
        )

    def _count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1
