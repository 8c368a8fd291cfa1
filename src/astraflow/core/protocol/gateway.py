"""The scheduler's side of all its sessions, without any I/O.

How a session opens is in `lobby.py`, how things end in `hub.py`. Here is what happens while it is
open (PROTOCOL §2, §3, §5, §6):

1. A connection is bound to tenant, instance id and role; a frame with others ends it.
2. A register is answered only after its effects are committed (`accept`). Only the first of a
   session reconciles; a later one replaces what the worker offers.
3. Sequenced frames are handed up in order, once, and acknowledged when they are `committed`: R1.
4. A frame that cannot be used is answered with `control.error`, handed up as `Refused`, and its seq
   consumed; ten of them in ten seconds end the session.
5. A session outlives its connection until three heartbeats are missed.
6. While `may_speak` says no, no heartbeat is answered.
"""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import business, codec, control, limits
from astraflow.core.protocol.admission import Denial, Identity
from astraflow.core.protocol.duplex import NoSession
from astraflow.core.protocol.events import (
    Acked,
    Audited,
    Authenticate,
    CloseConnection,
    Conn,
    Delivered,
    GatewayEvent,
    GatewaySettings,
    HeartbeatArrived,
    IdentityBound,
    Missed,
    PeerError,
    Principal,
    Refused,
    RegisterArrived,
    SendFrame,
    SessionEnded,
    SessionTokens,
)
from astraflow.core.protocol.hub import Connection
from astraflow.core.protocol.lobby import Lobby
from astraflow.core.protocol.scheduler_session import SchedulerSession
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.protocol.wire import AckInfo, AttemptRef, Envelope, Unreadable, is_sequenced

__all__ = [
    "Acked",
    "Audited",
    "Authenticate",
    "CloseConnection",
    "Conn",
    "Delivered",
    "Gateway",
    "GatewayEvent",
    "GatewaySettings",
    "HeartbeatArrived",
    "IdentityBound",
    "Missed",
    "NoSession",
    "PeerError",
    "Principal",
    "Refused",
    "RegisterArrived",
    "SendFrame",
    "SessionEnded",
    "SessionTokens",
]

# What only a scheduler sends; a worker that sends it is confused, or is not one.
_DOWNWARD = frozenset(
    {
        business.DISPATCH,
        business.CANCEL,
        business.NEXT_RESPONSE,
        business.PKG_INSTALL,
        business.PKG_UNINSTALL,
        business.RESOURCE_CLEANUP,
        business.RESOURCE_EXPORT,
        business.RESOURCE_TOUCH,
        control.DRAIN,
    }
)


class Gateway(Lobby):
    """All connections and sessions of one scheduler.

    After every input: do what `take_output` says, handle `take_events`, and call `tick` no later
    than at `deadline`. After a stall, feed everything that is readable before calling `tick`: what
    has arrived must not be counted as missed.
    """

    def opened(self, conn: Conn, now: float, certificate: object = None) -> None:
        """A connection was opened; `certificate` is what TLS verified, if anything."""
        self._now = now
        connection = Connection(conn, certificate, now)
        self._connections[conn] = connection
        if len(self._connections) > self._settings.max_connections:
            self._count("connections_turned_away")
            reason = "as many connections are open as may be"
            self._reset(connection, errors.OVERLOADED, reason, close_code=limits.CLOSE_TRY_LATER)
            return
        self._set_timer(now + self._settings.handshake_timeout_s, connection)

    def is_connected(self, session_id: str) -> bool:
        """Whether a session has a connection: without one, what is sent waits until it is resumed."""
        session = self._sessions.get(session_id)
        return session is not None and session.conn is not None

    def closed(self, conn: Conn, now: float) -> tuple[str, str] | None:
        """A connection is gone. A session that was open on it can be resumed; returns whose it is (tenant, worker)."""
        self._now = now
        connection = self._connections.get(conn)
        if connection is None:
            return None
        session = connection.session
        self._forget(connection)
        if session is not None and not session.is_accepted:
            # Its worker never learnt of it and will register anew.
            self._end(session, errors.SESSION_UNKNOWN, "the connection closed before the accept")
        return None if session is None else (session.tenant, session.worker)

    def bad_frame(self, conn: Conn, error: errors.AstraflowError, now: float) -> None:
        """Something that is not a frame arrived: the connection ends, the session does not."""
        self._now = now
        connection = self._connections.get(conn)
        if connection is None:
            return
        self._count("bad_frames")
        close_code = limits.CLOSE_PROTOCOL_ERROR
        if isinstance(error, codec.BadFrame):
            close_code = error.close_code
        self._reset(connection, error.code, error.message, close_code=close_code)

    def abandon(self, conn: Conn, now: float) -> None:
        """`feed` has failed at a frame of this connection: end the connection and its session, whatever they hold."""
        self._now = now
        connection = self._connections.get(conn)
        if connection is None:
            return
        self._count("sessions_abandoned")
        session = connection.session
        if session is not None:
            # What it was about to tell may be half of it; its worker will send it again.
            session_id = session.session_id
            self._events = [event for event in self._events if event.session_id != session_id]
            self._end(session, errors.INTERNAL, errors.INTERNAL.says)
        else:
            self._reset(connection, errors.INTERNAL, errors.INTERNAL.says)

    def feed(self, conn: Conn, envelope: Envelope, now: float, wall: float) -> None:
        """Take a frame off a connection."""
        self._now = now
        connection = self._connections.get(conn)
        if connection is None:
            self._count("frames_of_closed_connections")
        elif connection.principal is None:
            self._on_first(connection, envelope, now, wall)
        elif not self._is_from(connection, envelope):
            self._audit(connection, "frame.foreign", errors.SESSION_DENIED, envelope.id)
            self._deny(connection, "the frame names another tenant or sender")
        elif connection.is_open:
            self._on_frame(connection, envelope, now, wall)
        else:
            self._on_opening(connection, envelope, now)

    def tick(self, now: float, wall: float) -> None:
        """Do what is due."""
        self._now = now
        for due in self._take_due(now):
            if isinstance(due, SchedulerSession):
                if self._sessions.get(due.session_id) is due:
                    self._look_at(due, now, wall)
            elif self._connections.get(due.conn) is due and not due.is_open:
                self._count("handshake_timeouts")
                self._deny(due, "the opening took too long")

    def close_all(self, code: int = limits.CLOSE_TRY_LATER) -> None:
        """Close every connection. Sessions stay until their heartbeats are missed."""
        for connection in list(self._connections.values()):
            self._close(connection, code)

    def bind(self, tenant: str, worker: str, subject: str, incarnation: int = 0) -> None:
        """Say whom an identity belongs to, as `IdentityBound` told before a restart, and its last boot."""
        self._admission.bind(Identity(tenant, worker), subject, incarnation)

    def forget(self, tenant: str, worker: str) -> bool:
        """Give an identity free that nobody uses; False if it has a connection or a session."""
        identity = Identity(tenant, worker)
        if identity in self._holders or identity in self._by_identity:
            return False
        self._admission.forget(identity)
        self._seen.pop(identity, None)
        return True

    def accept(self, session_id: str, now: float, wall: float) -> bool:
        """The register of this session is committed: acknowledge it, and open the session.

        False if the session is gone, or this gateway may not speak; then nothing is sent.
        """
        self._now = now
        session = self._sessions.get(session_id)
        if session is None or session.conn is None or not self._speaks(now):
            return False
        connection = self._connections[session.conn]
        if session.register_id is not None:
            self._put_new(connection, control.ACK, control.ControlAck(session.register_id))
        if not session.is_accepted:
            session.is_accepted = True
            session.heard(now)
            self._audit(connection, "session.accept", None, session.register_id)
            self._put_accept(session, now, wall, resumed=False)
            self._stir(session)
        return True

    def deny(self, session_id: str, code: errors.Code, reason: str, now: float) -> bool:
        """The register of this session is refused; it is over."""
        return self.end(session_id, code, now, reason)

    def answer_heartbeat(
        self, session_id: str, frame_id: str, stop: tuple[AttemptRef, ...], now: float
    ) -> bool:
        """Answer a heartbeat; `stop` names attempts that the worker must kill at once.

        False if nobody can be answered, or this gateway may not speak.
        """
        self._now = now
        session = self._sessions.get(session_id)
        if session is None or session.conn is None or not self._speaks(now):
            return False
        self._put(self._connections[session.conn], session.duplex.answer(frame_id, stop))
        return True

    def send(
        self, session_id: str, frame_type: str, payload: object, corr: str | None, now: float
    ) -> str:
        """Queue a frame for a worker, connected or not. Returns its id.

        Raises:
            NoSession: the session is over or not yet open.
            QueueFull: as many frames wait as may wait.
            Unsendable: the receiver would refuse this frame.
        """
        self._now = now
        session = self._sessions.get(session_id)
        if session is None or not session.is_accepted:
            raise NoSession
        if self._settings.checks_outgoing:
            codec.check_outgoing(frame_type, payload, max_bytes=self._settings.max_frame_bytes)
        frame = session.maker.make(frame_type, payload, corr)
        try:
            session.duplex.push(frame, feedback=False)
        except QueueFull:
            # It may be full of what could have gone into the window already.
            self._pump(session, now)
            session.duplex.push(frame, feedback=False)
        self._stir(session)
        return frame.id

    def withdraw(self, session_id: str, frame_id: str) -> bool:
        """Take a frame back; True proves that it never reached a socket."""
        session = self._sessions.get(session_id)
        return session is not None and session.duplex.sending.withdraw(frame_id)

    def committed(self, session_id: str, seq: int) -> bool:
        """The effect of *this one* delivered or refused frame is committed: it may be acked (R1).

        Call it for each; `ack_seq` passes what is whole. False if the session is over.
        """
        session = self._sessions.get(session_id)
        if session is None:
            return False
        session.duplex.commit(seq)
        self._stir(session)
        return True

    def drain(
        self, session_id: str, reason: str, now: float, deadline_s: float | None = None
    ) -> str:
        """Ask a worker to take nothing new. Returns the frame's id. Raises: as `send`."""
        deadline_ms = None if deadline_s is None else int(deadline_s * 1000)
        return self.send(session_id, control.DRAIN, control.Drain(reason, deadline_ms), None, now)

    def end(
        self,
        session_id: str,
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
        self._now = now
        session = self._sessions.get(session_id)
        if session is None:
            return False
        why = reason or code.says
        self._end(session, code, why, location=location, retry_after_s=retry_after_s or 0.0)
        return True

    def revoke(self, subject: str, now: float, tenant: str | None = None) -> int:
        """End every session and connection of a subject; returns how many there were.

        PROTOCOL §2: "Revoking ends the session object and its connections (`control.reset
        E.AUTH.INVALID_TOKEN`) within a second."
        """
        self._now = now
        code = errors.AUTH_INVALID_TOKEN
        revoked = 0
        for session in list(self._sessions.values()):
            if _is_of(session.principal, subject, tenant):
                revoked += 1
                if session.conn is not None:
                    self._audit(self._connections[session.conn], "session.revoke", code)
                self._end(session, code, code.says)
        for connection in list(self._connections.values()):
            if _is_of(connection.principal, subject, tenant):
                revoked += 1
                self._reset(connection, code, code.says)
        return revoked

    def _on_frame(
        self, connection: Connection, envelope: Envelope, now: float, wall: float
    ) -> None:
        session = connection.session
        assert session is not None
        if is_sequenced(envelope.type) != (envelope.seq is not None):
            # "`seq` is on every sequenced frame and on no other."
            bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "seq", pointer="/seq")
            self.bad_frame(connection.conn, bad, now)
            return
        self._on_riding_ack(session, envelope.ack, now)
        if envelope.seq is not None:
            for ready in session.duplex.receive(envelope):
                self._deliver(connection, session, ready, now)
        elif isinstance(envelope.payload, Unreadable):
            self._on_unreadable_control(connection, envelope, envelope.payload, now)
        else:
            self._on_control(connection, session, envelope, now, wall)
        if session.session_id in self._sessions:
            self._stir(session)

    def _deliver(
        self, connection: Connection, session: SchedulerSession, envelope: Envelope, now: float
    ) -> None:
        seq, payload = envelope.seq, envelope.payload
        assert seq is not None
        if isinstance(payload, Unreadable):
            self._refuse(connection, envelope, payload, now)
        elif envelope.type in _DOWNWARD:
            unknown = Unreadable(errors.CMD_UNKNOWN, "/type", "not a frame for a scheduler")
            self._refuse(connection, envelope, unknown, now)
        elif envelope.type.startswith("ext.") and not self._has_hook(envelope.type):
            self._count("ext_dropped")
            session.duplex.commit(seq)
        else:
            self._events.append(
                Delivered(session.session_id, session.tenant, session.worker, seq, envelope)
            )

    def _has_hook(self, frame_type: str) -> bool:
        return frame_type.startswith(self._settings.ext_types)

    def _on_control(
        self,
        connection: Connection,
        session: SchedulerSession,
        envelope: Envelope,
        now: float,
        wall: float,
    ) -> None:
        payload = envelope.payload
        if isinstance(payload, control.ControlAck):
            if payload.is_window_ack:
                self._on_window_ack(
                    session, payload.ack_seq, payload.ack_bitmap, payload.recv_window, now
                )
        elif isinstance(payload, control.Heartbeat):
            self._on_heartbeat(connection, session, envelope, payload, now)
        elif isinstance(payload, control.Register):
            self._on_later_register(session, envelope.id, payload)
        elif isinstance(payload, control.Handshake):
            self._on_new_bearer(connection, session, envelope, payload, wall)
        elif isinstance(payload, control.Resume):
            # The accept was slow, and the resume was sent again.
            self._put_accept(session, now, wall, resumed=True)
        elif isinstance(payload, control.ControlError):
            who = (session.session_id, session.tenant, session.worker)
            self._events.append(
                PeerError(*who, payload.for_, payload.code, payload.message, payload.pointer)
            )
        elif isinstance(payload, control.Reset):
            self._count("resets_received")
            self._close(connection, limits.CLOSE_NORMAL)
        else:
            self._count("unexpected_frames")

    def _on_heartbeat(
        self,
        connection: Connection,
        session: SchedulerSession,
        envelope: Envelope,
        heartbeat: control.Heartbeat,
        now: float,
    ) -> None:
        session.heard(now)
        if not connection.may_beat(now):
            self._count("heartbeats_too_fast")
            if self._is_abuse(connection, now):
                return
        ack = envelope.ack
        # A worker whose heartbeats say nothing of what it had taken had taken what it acked before:
        # the frames of a connection arrive in the order in which they were sent.
        is_said = ack is not None and ack.is_window_ack
        taken = ack.seq if ack is not None and is_said else session.duplex.sending.acked
        self._events.append(
            HeartbeatArrived(
                session.session_id,
                session.tenant,
                session.worker,
                heartbeat,
                envelope.id,
                now,
                taken,
            )
        )

    def _on_later_register(
        self, session: SchedulerSession, frame_id: str, register: control.Register
    ) -> None:
        if frame_id == session.register_id:
            conn = session.conn
            assert conn is not None
            self._put_new(self._connections[conn], control.ACK, control.ControlAck(frame_id))
            return
        self._tell_register(session, frame_id, register, False, session.incarnation, False)

    def _on_new_bearer(
        self,
        connection: Connection,
        session: SchedulerSession,
        envelope: Envelope,
        handshake: control.Handshake,
        wall: float,
    ) -> None:
        """PROTOCOL §2: "Sent in a live session it presents a new bearer token, nothing else.\""""
        if envelope.id != connection.greeting_id:
            principal = self._admission.greet(envelope, handshake, connection.certificate, wall)
            if isinstance(principal, Denial):
                self._audit(connection, "token.rotate", principal.code, envelope.id)
                self._end(session, principal.code, principal.reason)
                return
            self._audit(connection, "token.rotate", None, envelope.id)
            session.principal = connection.principal = principal
            session.handshake = msgspec.structs.replace(session.handshake, auth=handshake.auth)
        self._put_new(connection, control.ACK, control.ControlAck(envelope.id))

    def _on_unreadable_control(
        self, connection: Connection, envelope: Envelope, unreadable: Unreadable, now: float
    ) -> None:
        if unreadable.code is not errors.CMD_UNKNOWN:
            self._refuse(connection, envelope, unreadable, now)
            return
        # "Unknown `control.*`: acked if asked, counted, dropped."
        self._count("unknown_control")
        if envelope.ack is not None and envelope.ack.request:
            self._put_new(connection, control.ACK, control.ControlAck(envelope.id))

    def _on_riding_ack(self, session: SchedulerSession, ack: AckInfo | None, now: float) -> None:
        if ack is not None and ack.is_window_ack:
            self._on_window_ack(session, ack.seq, ack.bitmap, ack.window, now)

    def _on_window_ack(
        self,
        session: SchedulerSession,
        seq: int | None,
        bitmap: str,
        window: int | None,
        now: float,
    ) -> None:
        self._tell_acked(session, session.duplex.on_ack(seq, bitmap, window, now))

    def _look_at(self, session: SchedulerSession, now: float, wall: float) -> None:
        while session.count_missed(now):
            if session.is_lost:
                reason = "three heartbeats were missed"
                self._end(session, errors.SESSION_UNKNOWN, reason, lost=True)
                return
            self._events.append(
                Missed(session.session_id, session.tenant, session.worker, session.missed)
            )
        if self._renews(session, now) and not self._renew(session, now, wall):
            return
        self._stir(session)


def _is_of(principal: Principal | None, subject: str, tenant: str | None) -> bool:
    return (
        principal is not None
        and principal.subject == subject
        and (tenant is None or principal.tenant == tenant)
    )
