"""What happens in an open session, on the scheduler's side (PROTOCOL §2, §3, §5, §6).

1. Sequenced frames are handed up in order, once, and acknowledged when they are `committed`: R1.
2. A frame that cannot be used is answered with `control.error`, handed up as `Refused`, and its seq
   consumed; ten of them in ten seconds end the session.
3. Only the first register of a session reconciles; a later one replaces what the worker offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import codec, control, limits
from astraflow.core.protocol.admission import Admission, Denial
from astraflow.core.protocol.events import (
    Delivered,
    HeartbeatArrived,
    Missed,
    PeerError,
    SlotsArrived,
)
from astraflow.core.protocol.frame_table import ONLY_FOR_WORKER
from astraflow.core.protocol.wire import AckInfo, Envelope, Unreadable, is_sequenced

if TYPE_CHECKING:
    from astraflow.core.protocol.connection_table import ConnectionTable, PeerConnection
    from astraflow.core.protocol.gateway_outbox import GatewayOutbox
    from astraflow.core.protocol.scheduler_session import SchedulerSession
    from astraflow.core.protocol.session_opening import SessionOpener
    from astraflow.core.protocol.session_pump import SessionPump


class OpenSessions:
    """Handles the frames of open sessions, and looks at them when their timers ring."""

    __slots__ = ("_admission", "_opener", "_outbox", "_pump", "_table")

    def __init__(
        self,
        table: ConnectionTable,
        outbox: GatewayOutbox,
        pump: SessionPump,
        opener: SessionOpener,
        admission: Admission,
    ) -> None:
        self._table = table
        self._outbox = outbox
        self._pump = pump
        self._opener = opener
        self._admission = admission

    def on_frame(
        self, connection: PeerConnection, envelope: Envelope, now: float, wall: float
    ) -> None:
        session = connection.session
        assert session is not None
        seq = envelope.seq
        if is_sequenced(envelope.type) != (seq is not None):
            # "`seq` is on every sequenced frame and on no other."
            bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "seq", pointer="/seq")
            self._table.reset_bad_frame(connection, bad)
            return
        if envelope.ack is not None:
            self._on_riding_ack(session, envelope.ack, now)
        if seq is not None:
            for ready in session.duplex.receive(envelope):
                self._deliver(connection, session, ready, now)
        elif isinstance(envelope.payload, Unreadable):
            self._on_unreadable_control(connection, envelope, envelope.payload, now)
        else:
            self._on_control(connection, session, envelope, now, wall)
        if session.session_id in self._table.sessions:
            self._pump.wake(session)

    def _deliver(
        self, connection: PeerConnection, session: SchedulerSession, envelope: Envelope, now: float
    ) -> None:
        seq, payload = envelope.seq, envelope.payload
        assert seq is not None
        if isinstance(payload, Unreadable):
            self._opener.refuse(connection, envelope, payload, now)
        elif envelope.type in ONLY_FOR_WORKER:
            unknown = Unreadable(errors.CMD_UNKNOWN, "/type", "not a frame for a scheduler")
            self._opener.refuse(connection, envelope, unknown, now)
        elif envelope.type.startswith("ext."):
            self._outbox.count("ext_dropped")
            session.duplex.commit(seq)
        else:
            self._outbox.events.append(Delivered(*session.who, seq, envelope))

    def _on_control(
        self,
        connection: PeerConnection,
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
        elif isinstance(payload, control.Slots):
            self._on_slots(connection, session, envelope.id, payload.slots, now)
        elif isinstance(payload, control.Register):
            self._on_later_register(session, envelope.id, payload)
        elif isinstance(payload, control.Handshake):
            self._on_new_bearer(connection, session, envelope, payload, wall)
        elif isinstance(payload, control.Resume):
            # The accept was slow, and the resume was sent again.
            self._opener.put_accept(session, now, wall, resumed=True)
        elif isinstance(payload, control.ControlError):
            code, message = payload.code, payload.message
            self._outbox.events.append(
                PeerError(*session.who, payload.for_, code, message, payload.pointer)
            )
        elif isinstance(payload, control.Reset):
            self._outbox.count("resets_received")
            if payload.code == errors.PROTOCOL_BAD_FRAME.code:
                # Frames go one by one after it: only the bad one is refused again.
                kept = [one for one in session.features if one != control.FRAMES_BUNDLED]
                session.features = tuple(kept)
            self._table.close(connection, limits.CLOSE_NORMAL)
        else:
            self._outbox.count("unexpected_frames")

    def _on_heartbeat(
        self,
        connection: PeerConnection,
        session: SchedulerSession,
        envelope: Envelope,
        heartbeat: control.Heartbeat,
        now: float,
    ) -> None:
        session.heard(now)
        if self._is_flood(connection, now):
            return
        ack = envelope.ack
        # A worker whose heartbeats say nothing of what it had taken had taken what it acked before:
        # the frames of a connection arrive in the order in which they were sent.
        is_said = ack is not None and ack.is_window_ack
        taken = ack.seq if ack is not None and is_said else session.duplex.sending.acked
        self._outbox.events.append(
            HeartbeatArrived(*session.who, heartbeat, envelope.id, now, taken)
        )

    def _on_slots(
        self,
        connection: PeerConnection,
        session: SchedulerSession,
        frame_id: str,
        slots: int,
        now: float,
    ) -> None:
        if not self._is_flood(connection, now):
            self._outbox.events.append(SlotsArrived(*session.who, slots, frame_id))

    def _is_flood(self, connection: PeerConnection, now: float) -> bool:
        """Count a heartbeat, or a frame that is answered as one is; whether the connection ends for it."""
        if connection.may_beat(now):
            return False
        self._outbox.count("heartbeats_too_fast")
        return self._opener.is_abuse(connection, now)

    def _on_later_register(
        self, session: SchedulerSession, frame_id: str, register: control.Register
    ) -> None:
        if frame_id == session.register_id:
            conn = session.conn
            assert conn is not None
            self._outbox.put_new(
                self._table.connections[conn], control.ACK, control.ControlAck(frame_id)
            )
            return
        self._opener.tell_register(session, frame_id, register, False, session.incarnation, False)

    def _on_new_bearer(
        self,
        connection: PeerConnection,
        session: SchedulerSession,
        envelope: Envelope,
        handshake: control.Handshake,
        wall: float,
    ) -> None:
        """PROTOCOL §2: "Sent in a live session it presents a new bearer token, nothing else.\""""
        if envelope.id != connection.greeting_id:
            principal = self._admission.greet(envelope, handshake, connection.certificate, wall)
            if isinstance(principal, Denial):
                self._outbox.audit(connection, "token.rotate", principal.code, envelope.id)
                self._table.end(session, principal.code, principal.reason)
                return
            self._outbox.audit(connection, "token.rotate", None, envelope.id)
            session.principal = connection.principal = principal
            session.handshake = msgspec.structs.replace(session.handshake, auth=handshake.auth)
        self._outbox.put_new(connection, control.ACK, control.ControlAck(envelope.id))

    def _on_unreadable_control(
        self, connection: PeerConnection, envelope: Envelope, unreadable: Unreadable, now: float
    ) -> None:
        if unreadable.code is not errors.CMD_UNKNOWN:
            self._opener.refuse(connection, envelope, unreadable, now)
            return
        # "Unknown `control.*`: acked if asked, counted, dropped."
        self._outbox.count("unknown_control")
        if envelope.ack is not None and envelope.ack.request:
            self._outbox.put_new(connection, control.ACK, control.ControlAck(envelope.id))

    def _on_riding_ack(self, session: SchedulerSession, ack: AckInfo, now: float) -> None:
        if ack.is_window_ack:
            self._on_window_ack(session, ack.seq, ack.bitmap, ack.window, now)

    def _on_window_ack(
        self,
        session: SchedulerSession,
        seq: int | None,
        bitmap: str,
        window: int | None,
        now: float,
    ) -> None:
        self._opener.tell_acked(session, session.duplex.on_ack(seq, bitmap, window, now))

    def look_at(self, session: SchedulerSession, now: float, wall: float) -> None:
        while session.count_missed(now):
            if session.is_lost:
                reason = "three heartbeats were missed"
                self._table.end(session, errors.SESSION_UNKNOWN, reason, lost=True)
                return
            self._outbox.events.append(Missed(*session.who, session.missed))
        if self._opener.renews(session, now) and not self._opener.renew(session, now, wall):
            return
        self._pump.wake(session)
