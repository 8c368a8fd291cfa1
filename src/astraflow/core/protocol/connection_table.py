"""The connections and sessions of one gateway, and the three ways in which they end.

* a *connection* closes: its session lives on, to be resumed, until three heartbeats are missed;
* a connection is *reset*: the peer is told why first;
* a *session* ends: it can never be resumed again, and the engine is told.

One identity has at most one connection (`holders`) and one session (`by_identity`): I5.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.admission import Identity
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.duplex import SeenFrames
from astraflow.core.protocol.events import CloseConnection, Conn, PeerRejected, SessionEnded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astraflow.core.protocol.control import Handshake
    from astraflow.core.protocol.events import GatewaySettings, Principal
    from astraflow.core.protocol.gateway_outbox import GatewayOutbox
    from astraflow.core.protocol.scheduler_session import SchedulerSession
    from astraflow.core.protocol.wire import Envelope

# A peer that sent no readable frame yet has no tenant; the envelope of its reset needs one.
_NO_TENANT = "-"


class PeerConnection:
    """One connection: opening until it has a principal, greeted until it has a session."""

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

    def is_sender_of(self, envelope: Envelope) -> bool:
        """Whether a frame names the tenant and the worker that this connection is bound to."""
        sender = envelope.sender
        return (
            envelope.tenant == self.tenant and sender.id == self.worker and sender.role == "worker"
        )

    @property
    def is_open(self) -> bool:
        return self.session is not None and self.session.is_accepted


class ConnectionTable:
    """Who is connected, and which session a connection carries."""

    def __init__(self, settings: GatewaySettings, outbox: GatewayOutbox) -> None:
        self.connections: dict[Conn, PeerConnection] = {}
        self.holders: dict[Identity, PeerConnection] = {}
        self.sessions: dict[str, SchedulerSession] = {}
        self.by_identity: dict[Identity, SchedulerSession] = {}
        self._settings = settings
        self._outbox = outbox
        self._seen: dict[Identity, SeenFrames] = {}

    def hold(
        self,
        connection: PeerConnection,
        identity: Identity,
        principal: Principal,
        handshake: Handshake,
    ) -> None:
        """A connection has proved its identity, and is the only one that has it."""
        connection.worker = identity.worker
        connection.principal = principal
        connection.handshake = handshake
        self.holders[identity] = connection

    def close(
        self, connection: PeerConnection, code: int, rejected: PeerRejected | None = None
    ) -> None:
        """Close a connection; its session lives on."""
        self._outbox.output.append(CloseConnection(connection.conn, code, rejected))
        self.forget(connection)

    def forget(self, connection: PeerConnection) -> None:
        """A connection is gone; its session lives on."""
        self.connections.pop(connection.conn, None)
        if self.holders.get(connection.identity) is connection:
            del self.holders[connection.identity]
        session = connection.session
        connection.session = None
        if session is not None and session.conn == connection.conn:
            session.conn = None

    def reset(
        self,
        connection: PeerConnection,
        code: errors.Code,
        reason: str,
        *,
        close_code: int = limits.CLOSE_POLICY,
        retry_after_s: float = 0.0,
        location: str | None = None,
    ) -> None:
        """Tell the peer why, and close the connection; its session lives on."""
        retry_after_ms = int(retry_after_s * 1000) or None
        reset = control.Reset(code.code, reason, retry_after_ms, location)
        self._outbox.put_new(connection, control.RESET, reset)
        worker = connection.worker or connection.claimed
        self.close(
            connection, close_code, PeerRejected(connection.tenant, worker, code.code, reason)
        )

    def reset_bad_frame(self, connection: PeerConnection, error: errors.AstraflowError) -> None:
        """Something that is not a frame arrived: the connection ends, the session does not."""
        self._outbox.count("bad_frames")
        close_code = limits.CLOSE_PROTOCOL_ERROR
        if isinstance(error, BadFrame):
            close_code = error.close_code
        self.reset(connection, error.code, error.message, close_code=close_code)

    def end(
        self,
        session: SchedulerSession,
        code: errors.Code,
        reason: str,
        *,
        lost: bool = False,
        retry_after_s: float = 0.0,
        location: str | None = None,
    ) -> None:
        """End a session, and with it its connection."""
        if session.conn is not None:
            connection = self.connections[session.conn]
            self.reset(connection, code, reason, retry_after_s=retry_after_s, location=location)
        self.sessions.pop(session.session_id, None)
        identity = Identity(session.tenant, session.worker)
        if self.by_identity.get(identity) is session:
            del self.by_identity[identity]
        self._outbox.events.append(SessionEnded(*session.who, code.code, lost))

    def deny(self, connection: PeerConnection, reason: str) -> None:
        """`control.reset E.SESSION.DENIED`, close 1008; the session, if there is one, ends."""
        session = connection.session
        if session is not None:
            self.end(session, errors.SESSION_DENIED, reason)
        else:
            self.reset(connection, errors.SESSION_DENIED, reason)

    def identities(self) -> Iterator[Identity]:
        """Whoever has a session, or a connection that will have one."""
        yield from self.by_identity
        yield from (one for one in self.holders if one not in self.by_identity)

    def seen_of(self, identity: Identity) -> SeenFrames:
        """The frames of this identity that were committed last, over all its sessions."""
        seen = self._seen.pop(identity, None) or SeenFrames(max(self._settings.window, 1))
        # The newest goes last, so that the first to be forgotten is the longest gone.
        self._seen[identity] = seen
        if len(self._seen) > self._settings.max_connections:
            del self._seen[next(iter(self._seen))]
        return seen

    def forget_identity(self, identity: Identity) -> bool:
        """False if the identity has a connection or a session."""
        if identity in self.holders or identity in self.by_identity:
            return False
        self._seen.pop(identity, None)
        return True

    def check(self) -> None:
        """Assert I5 and the indexes."""
        for identity, session in self.by_identity.items():
            assert identity == (session.tenant, session.worker)
            assert self.sessions[session.session_id] is session
            session.check()
        assert len(self.by_identity) == len(self.sessions)
        for identity, holder in self.holders.items():
            assert self.connections[holder.conn] is holder
            assert holder.identity == identity
        for connection in self.connections.values():
            session_of_it = connection.session
            assert session_of_it is None or session_of_it.conn == connection.conn
            assert session_of_it is None or self.holders[connection.identity] is connection
