"""The scheduler's side of all its sessions, without any I/O.

A gateway is composed of parts, each with one job:

* `ConnectionTable`: who is connected, which sessions exist, and how both end;
* `SessionOpener`: from an open connection to an open session, and who is refused;
* `OpenSessions`: the frames of open sessions;
* `SessionPump`: when the windows of a session send, and all timers;
* `GatewayOutbox`: frames, events and counters that wait to be taken.

The rules that hold over all of them (PROTOCOL §2, §3, §5, §6):

1. A connection is bound to tenant, instance id and role; a frame with others ends it.
2. A register is answered only after its effects are committed (`accept`).
3. A session outlives its connection until three heartbeats are missed.
4. While `may_speak` says no, no session is opened and no heartbeat is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.compilation import mypyc_attr
from astraflow.core.ids import SessionId
from astraflow.core.protocol import codec, control, limits
from astraflow.core.protocol.admission import Admission, Identity
from astraflow.core.protocol.connection_table import ConnectionTable, PeerConnection
from astraflow.core.protocol.duplex import NoSession
from astraflow.core.protocol.events import (
    Authenticate,
    CloseConnection,
    Conn,
    GatewayEvent,
    GatewaySettings,
    Principal,
    ResumeTokens,
    SendFrame,
)
from astraflow.core.protocol.gateway_outbox import GatewayOutbox
from astraflow.core.protocol.open_sessions import OpenSessions
from astraflow.core.protocol.scheduler_session import SchedulerSession
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.protocol.session_opening import SessionOpener
from astraflow.core.protocol.session_pump import SessionPump
from astraflow.core.protocol.wire import AttemptRef, Envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from astraflow.core.ids import IdSource


@mypyc_attr(allow_interpreted_subclasses=True)
class Gateway:
    """All connections and sessions of one scheduler.

    After every input: do what `take_output` says, handle `take_events`, and call `tick` no later
    than at `deadline`. After a stall, feed everything that is readable before calling `tick`: what
    has arrived must not be counted as missed.
    """

    def __init__(
        self,
        *,
        scheduler_id: str,
        ids: IdSource,
        rng: Random,
        authenticate: Authenticate,
        tokens: ResumeTokens,
        settings: GatewaySettings | None = None,
        may_speak: Callable[[float], bool] | None = None,
    ) -> None:
        self._settings = settings or GatewaySettings()
        self._admission = Admission(authenticate, tokens)
        self._outbox = GatewayOutbox(scheduler_id, ids)
        self._table = ConnectionTable(self._settings, self._outbox)
        self._pump = SessionPump(self._table, self._outbox)
        self._opener = SessionOpener(
            self._table,
            self._outbox,
            self._pump,
            self._admission,
            ids=ids,
            rng=rng,
            tokens=tokens,
            settings=self._settings,
            may_speak=may_speak,
        )
        self._open_sessions = OpenSessions(
            self._table, self._outbox, self._pump, self._opener, self._admission
        )

    @property
    def counters(self) -> dict[str, int]:
        return self._outbox.counters

    def take_output(self) -> list[SendFrame | CloseConnection]:
        """What to do on connections, in order."""
        self._pump.flush()
        return self._outbox.take_output()

    def take_events(self) -> list[GatewayEvent]:
        return self._outbox.take_events()

    def deadline(self) -> float | None:
        """When `tick` must be called at the latest; None if nothing is awaited."""
        return self._pump.deadline()

    def session_of(self, tenant: str, worker: str) -> str | None:
        """The id of the open session of a worker."""
        session = self._table.by_identity.get(Identity(tenant, worker))
        return session.session_id if session is not None and session.is_accepted else None

    def check(self) -> None:
        """Assert I5 and the indexes."""
        self._table.check()

    def opened(self, conn: Conn, now: float, certificate: object = None) -> None:
        """A connection was opened; `certificate` is what TLS verified, if anything."""
        self._pump.now = now
        connection = PeerConnection(conn, certificate, now)
        self._table.connections[conn] = connection
        if len(self._table.connections) > self._settings.max_connections:
            self._outbox.count("connections_turned_away")
            reason = "as many connections are open as may be"
            self._table.reset(
                connection, errors.OVERLOADED, reason, close_code=limits.CLOSE_TRY_LATER
            )
            return
        self._pump.set_timer(now + self._settings.handshake_timeout_s, connection)

    def is_connected(self, session_id: SessionId) -> bool:
        """Whether a session has a connection: without one, what is sent waits until it is resumed."""
        session = self._table.sessions.get(session_id)
        return session is not None and session.conn is not None

    def closed(self, conn: Conn, now: float) -> tuple[str, str] | None:
        """A connection is gone. A session that was open on it can be resumed; returns whose it is (tenant, worker)."""
        self._pump.now = now
        connection = self._table.connections.get(conn)
        if connection is None:
            return None
        session = connection.session
        self._table.forget(connection)
        if session is not None and not session.is_accepted:
            # Its worker never learnt of it and will register anew.
            self._table.end(
                session, errors.SESSION_UNKNOWN, "the connection closed before the accept"
            )
        return None if session is None else (session.tenant, session.worker)

    def bad_frame(self, conn: Conn, error: errors.AstraflowError, now: float) -> None:
        """Something that is not a frame arrived: the connection ends, the session does not."""
        self._pump.now = now
        connection = self._table.connections.get(conn)
        if connection is not None:
            self._table.reset_bad_frame(connection, error)

    def abandon(self, conn: Conn, now: float) -> None:
        """`feed` has failed at a frame of this connection: end the connection and its session, whatever they hold."""
        self._pump.now = now
        connection = self._table.connections.get(conn)
        if connection is None:
            return
        self._outbox.count("sessions_abandoned")
        session = connection.session
        if session is not None:
            # What it was about to tell may be half of it; its worker will send it again.
            self._outbox.drop_events_of(session.session_id)
            self._table.end(session, errors.INTERNAL, errors.INTERNAL.says)
        else:
            self._table.reset(connection, errors.INTERNAL, errors.INTERNAL.says)

    def feed(self, conn: Conn, envelope: Envelope, now: float, wall: float) -> None:
        """Take a frame off a connection."""
        self._pump.now = now
        connection = self._table.connections.get(conn)
        if connection is None:
            self._outbox.count("frames_of_closed_connections")
        elif connection.principal is None:
            self._opener.on_first(connection, envelope, now, wall)
        elif not connection.is_sender_of(envelope):
            self._outbox.audit(connection, "frame.foreign", errors.SESSION_DENIED, envelope.id)
            self._table.deny(connection, "the frame names another tenant or sender")
        elif connection.is_open:
            self._open_sessions.on_frame(connection, envelope, now, wall)
        else:
            self._opener.on_opening(connection, envelope, now)

    def tick(self, now: float, wall: float) -> None:
        """Do what is due."""
        self._pump.now = now
        for due in self._pump.take_due():
            if isinstance(due, SchedulerSession):
                if self._table.sessions.get(due.session_id) is due:
                    self._open_sessions.look_at(due, now, wall)
            elif self._table.connections.get(due.conn) is due and not due.is_open:
                self._outbox.count("handshake_timeouts")
                self._table.deny(due, "the opening took too long")

    def close_all(self, code: int = limits.CLOSE_TRY_LATER) -> None:
        """Close every connection. Sessions stay until their heartbeats are missed."""
        for connection in list(self._table.connections.values()):
            self._table.close(connection, code)

    def bind(self, tenant: str, worker: str, subject: str, incarnation: int = 0) -> None:
        """Say whom an identity belongs to, as `IdentityBound` told before a restart, and its last boot."""
        self._admission.bind(Identity(tenant, worker), subject, incarnation)

    def serve_lane(self, tenant: str, lane: int) -> None:
        """Which lane of a tenant is served here, if not its home."""
        self._admission.serve_lane(tenant, lane)

    def limit_sessions(self, tenant: str, limit: int | None) -> None:
        """How many workers of a tenant may have a session at once. Sessions that are open stay."""
        self._admission.limit(tenant, limit)

    def forget(self, tenant: str, worker: str) -> bool:
        """Give an identity free that nobody uses; False if it has a connection or a session."""
        identity = Identity(tenant, worker)
        if not self._table.forget_identity(identity):
            return False
        self._admission.forget(identity)
        return True

    def accept(self, session_id: SessionId, now: float, wall: float) -> bool:
        """The register of this session is committed: acknowledge it, and open the session.

        False if the session is gone, or this gateway may not speak; then nothing is sent.
        """
        self._pump.now = now
        session = self._table.sessions.get(session_id)
        if session is None or session.conn is None or not self._opener.speaks(now):
            return False
        connection = self._table.connections[session.conn]
        if session.register_id is not None:
            self._outbox.put_new(connection, control.ACK, control.ControlAck(session.register_id))
        if not session.is_accepted:
            session.is_accepted = True
            session.heard(now)
            self._outbox.audit(connection, "session.accept", None, session.register_id)
            self._opener.put_accept(session, now, wall, resumed=False)
            self._pump.wake(session)
        return True

    def answer_heartbeat(
        self, session_id: SessionId, frame_id: str, stop: tuple[AttemptRef, ...], now: float
    ) -> bool:
        """Answer a heartbeat; `stop` names attempts that the worker must kill at once.

        False if nobody can be answered, or this gateway may not speak.
        """
        self._pump.now = now
        session = self._table.sessions.get(session_id)
        if session is None or session.conn is None or not self._opener.speaks(now):
            return False
        self._outbox.put(
            self._table.connections[session.conn], session.duplex.answer(frame_id, stop)
        )
        return True

    def answer(self, session_id: SessionId, frame_id: str, now: float) -> bool:
        """Answer a frame that asks for it and needs no commit. False: as `answer_heartbeat`."""
        return self._tell(session_id, control.ACK, control.ControlAck(frame_id), now)

    def tell(self, session_id: SessionId, frame_type: str, payload: object, now: float) -> bool:
        """Send a frame without a seq to a worker that keeps a session with each lane; it is lost with its connection.

        False if nobody is reached, or this gateway may not speak.
        """
        session = self._table.sessions.get(session_id)
        if session is None or control.SEVERAL_LANES not in session.features:
            return False
        return session.is_accepted and self._tell(session_id, frame_type, payload, now)

    def _tell(self, session_id: SessionId, frame_type: str, payload: object, now: float) -> bool:
        self._pump.now = now
        session = self._table.sessions.get(session_id)
        if session is None or session.conn is None or not self._opener.speaks(now):
            return False
        self._outbox.put_new(self._table.connections[session.conn], frame_type, payload)
        return True

    def send(
        self, session_id: SessionId, frame_type: str, payload: object, corr: str | None, now: float
    ) -> str:
        """Queue a frame for a worker, connected or not. Returns its id.

        Raises:
            NoSession: the session is over or not yet open.
            QueueFull: as many frames wait as may wait.
            Unsendable: the receiver would refuse this frame.
        """
        self._pump.now = now
        session = self._table.sessions.get(session_id)
        if session is None or not session.is_accepted:
            raise NoSession
        if self._settings.checks_outgoing:
            codec.check_outgoing(frame_type, payload, max_bytes=self._settings.max_frame_bytes)
        frame = session.maker.make(frame_type, payload, corr)
        try:
            session.duplex.sending.push(frame)
        except QueueFull:
            # It may be full of what could have gone into the window already.
            self._pump.pump(session)
            session.duplex.sending.push(frame)
        self._pump.wake(session)
        return frame.id

    def withdraw(self, session_id: SessionId, frame_id: str) -> bool:
        """Take a frame back; True proves that it never reached a socket."""
        session = self._table.sessions.get(session_id)
        return session is not None and session.duplex.sending.withdraw(frame_id)

    def committed(self, session_id: SessionId, seqs: Iterable[int]) -> bool:
        """The effects of these delivered or refused frames are committed: they may be acked (R1).

        `ack_seq` passes what is whole. False if the session is over.
        """
        session = self._table.sessions.get(session_id)
        if session is None:
            return False
        for seq in seqs:
            session.duplex.commit(seq)
        self._pump.wake(session)
        return True

    def drain(
        self, session_id: SessionId, reason: str, now: float, deadline_s: float | None = None
    ) -> str:
        """Ask a worker to take nothing new. Returns the frame's id. Raises: as `send`."""
        deadline_ms = None if deadline_s is None else int(deadline_s * 1000)
        return self.send(
            session_id, control.DRAIN, control.ControlDrain(reason, deadline_ms), None, now
        )

    def end(
        self,
        session_id: SessionId,
        code: errors.Code,
        now: float,
        reason: str = "",
        *,
        location: str | None = None,
        retry_after_s: float | None = None,
    ) -> bool:
        """End a session; its worker is told, and can only open a new one.

        It does so at `location` (`E.SESSION.MOVED`), and not before `retry_after_s` have passed.
        """
        self._pump.now = now
        session = self._table.sessions.get(session_id)
        if session is None:
            return False
        why = reason or code.says
        self._table.end(session, code, why, location=location, retry_after_s=retry_after_s or 0.0)
        return True

    def revoke(self, is_over: Callable[[Principal], bool], now: float) -> int:
        """End every session and connection whose credential is over; returns how many there were.

        PROTOCOL §2: "Revoking ends the session object and its connections (`control.reset
        E.AUTH.INVALID_TOKEN`) within a second."
        """
        self._pump.now = now
        code = errors.AUTH_INVALID_TOKEN
        revoked = 0
        for session in list(self._table.sessions.values()):
            if is_over(session.principal):
                revoked += 1
                if session.conn is not None:
                    self._outbox.audit(
                        self._table.connections[session.conn], "session.revoke", code
                    )
                self._table.end(session, code, code.says)
        for connection in list(self._table.connections.values()):
            if connection.principal is not None and is_over(connection.principal):
                revoked += 1
                self._table.reset(connection, code, code.says)
        return revoked
