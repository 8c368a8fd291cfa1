"""Session opening on the scheduler's side: from an open connection to an open session, and who is refused.

The rules (PROTOCOL §2, §6):

1. The first frame of a connection is a handshake or a resume, and is checked before anything is
   looked up. Business before the session is open is refused and has no effect.
2. A handshake needs a good credential, and an identity that is unbound or bound to its subject. A
   second connection takes over from the first, which is told `E.SESSION.STALE_BINDING`.
3. A first register makes the session, ends the identity's old one, and is handed up: the session is
   open after `accept`, which comes when the reconciliation is committed.
4. A resume needs a good session token, a session that is known, and a credential that is still good.
   What this gateway does not know (after a restart, or after it declared a worker lost) it refuses:
   `E.SESSION.UNKNOWN` (R3).
5. While `may_speak` says no, this gateway does not own its shard for sure, and opens nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.ids import NO_SESSION, SessionId
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.admission import Admission, Denial, Identity
from astraflow.core.protocol.events import (
    Acked,
    FrameRefused,
    GatewaySettings,
    IdentityBound,
    Principal,
    RegisterArrived,
    ResumeTokens,
)
from astraflow.core.protocol.scheduler_session import SchedulerSession
from astraflow.core.protocol.wire import Envelope, Unreadable, is_sequenced

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from astraflow.core.ids import IdSource
    from astraflow.core.protocol.connection_table import ConnectionTable, PeerConnection
    from astraflow.core.protocol.gateway_outbox import GatewayOutbox
    from astraflow.core.protocol.session_pump import SessionPump


class SessionOpener:
    """Handles frames until the session is open, gives out session tokens, and refuses frames."""

    def __init__(
        self,
        table: ConnectionTable,
        outbox: GatewayOutbox,
        pump: SessionPump,
        admission: Admission,
        *,
        ids: IdSource,
        rng: Random,
        tokens: ResumeTokens,
        settings: GatewaySettings,
        may_speak: Callable[[float], bool] | None,
    ) -> None:
        self._table = table
        self._outbox = outbox
        self._pump = pump
        self._admission = admission
        self._ids = ids
        self._rng = rng
        self._tokens = tokens
        self._settings = settings
        self._may_speak = may_speak

    def on_first(
        self, connection: PeerConnection, envelope: Envelope, now: float, wall: float
    ) -> None:
        connection.tenant = envelope.tenant
        connection.claimed = envelope.sender.id
        payload = envelope.payload
        if not self.speaks(now):
            self._outbox.count("not_spoken")
        elif isinstance(payload, control.Handshake):
            self._on_handshake(connection, envelope, payload, now, wall)
        elif isinstance(payload, control.Resume):
            self._on_resume(connection, envelope, payload, now, wall)
        elif isinstance(payload, Unreadable) and envelope.type == control.HANDSHAKE:
            self._outbox.put_error(connection, envelope.id, payload)
            self._table.deny(connection, payload.message)
        else:
            self._table.deny(
                connection, "the first frame must be control.handshake or control.resume"
            )

    def _on_handshake(
        self,
        connection: PeerConnection,
        envelope: Envelope,
        handshake: control.Handshake,
        now: float,
        wall: float,
    ) -> None:
        identity = Identity(envelope.tenant, handshake.worker.worker_instance_id)
        is_known = self._admission.is_bound(identity)
        principal = self._admission.greet(envelope, handshake, connection.certificate, wall)
        if isinstance(principal, Principal) and identity in self._table.holders:
            principal = self._admission.take_over(identity, now) or principal
        if isinstance(principal, Principal):
            principal = self._admission.check_room(identity, self._table.identities()) or principal
        if isinstance(principal, Denial):
            connection.worker = ""
            self._outbox.audit(connection, "login", principal.code, envelope.id)
            self._table.reset(
                connection,
                principal.code,
                principal.reason,
                retry_after_s=principal.retry_after_s,
            )
            return
        connection.took_over = identity in self._table.holders
        self._displace(identity)
        self._table.hold(connection, identity, principal, handshake)
        connection.greeting_id = envelope.id
        if not is_known:
            self._outbox.events.append(IdentityBound(NO_SESSION, *identity, principal.subject))
        self._outbox.audit(connection, "login", None, envelope.id)
        self._outbox.put_new(connection, control.ACK, control.ControlAck(envelope.id))

    def _on_resume(
        self,
        connection: PeerConnection,
        envelope: Envelope,
        resume: control.Resume,
        now: float,
        wall: float,
    ) -> None:
        session = self._table.sessions.get(resume.session_id)
        denial = self._may_resume(connection, envelope, resume, session, now, wall)
        if denial is not None:
            self._outbox.audit(connection, "resume", denial.code, envelope.id)
            self._table.reset(connection, denial.code, denial.reason)
            return
        assert session is not None
        identity = Identity(session.tenant, session.worker)
        self._displace(identity)
        self._table.hold(connection, identity, session.principal, session.handshake)
        self._carry_on(connection, session, resume.last_seen_seq, now, wall)

    def _may_resume(
        self,
        connection: PeerConnection,
        envelope: Envelope,
        resume: control.Resume,
        session: SchedulerSession | None,
        now: float,
        wall: float,
    ) -> Denial | None:
        claims = self._admission.check_resume(envelope, resume, wall)
        if isinstance(claims, Denial):
            return claims
        if session is None or not session.is_accepted:  # it was never open here
            return Denial(errors.SESSION_UNKNOWN, errors.SESSION_UNKNOWN.says)
        if not session.tokens.use(claims.jti, now):
            self._outbox.count("tokens_replaced")
            return Denial(errors.AUTH_INVALID_TOKEN, errors.AUTH_INVALID_TOKEN.says)
        proof = self._admission.prove(
            session.handshake, session.tenant, connection.certificate, wall
        )
        if isinstance(proof, Denial):
            self._table.end(session, proof.code, proof.reason)
            return proof
        return None

    def _carry_on(
        self,
        connection: PeerConnection,
        session: SchedulerSession,
        last_seen_seq: int | None,
        now: float,
        wall: float,
    ) -> None:
        connection.session = session
        session.conn = connection.conn
        session.heard(now)
        self._outbox.count("resumed")
        acked = session.duplex.resume(now, last_seen_seq, self._settings.window)
        self.tell_acked(session, acked)
        self.put_accept(session, now, wall, resumed=True)
        self._pump.wake(session)

    def _displace(self, identity: Identity) -> None:
        """PROTOCOL §2: "the older gets `control.reset E.SESSION.STALE_BINDING`"."""
        holder = self._table.holders.get(identity)
        if holder is None:
            return
        self._outbox.count("taken_over")
        self._outbox.audit(holder, "takeover", errors.SESSION_STALE_BINDING)
        session = holder.session
        code = errors.SESSION_STALE_BINDING
        self._table.reset(holder, code, code.says, close_code=limits.CLOSE_NORMAL)
        if session is not None and not session.is_accepted:
            self._table.end(session, code, code.says)

    def on_opening(self, connection: PeerConnection, envelope: Envelope, now: float) -> None:
        """Frames between the handshake and the accept."""
        payload = envelope.payload
        session = connection.session
        if envelope.id == connection.greeting_id:
            self._outbox.put_new(connection, control.ACK, control.ControlAck(envelope.id))
        elif isinstance(payload, control.Register):
            if session is None:
                self._begin(connection, envelope.id, payload, now)
            elif envelope.id != session.register_id:
                self._table.deny(connection, "a second register before the session is open")
            # Else it was sent again, because the commit takes its time.
        elif isinstance(payload, Unreadable) and not is_sequenced(envelope.type):
            self.refuse(connection, envelope, payload, now)
        else:
            self._table.deny(connection, f"the session is not open yet: {envelope.type}")

    def _begin(
        self, connection: PeerConnection, frame_id: str, register: control.Register, now: float
    ) -> None:
        """A first register: its session exists from here on, and is open after `accept`."""
        handshake, principal = connection.handshake, connection.principal
        assert handshake is not None
        assert principal is not None
        identity = connection.identity
        old = self._table.by_identity.get(identity)
        session = SchedulerSession(
            SessionId(self._ids.new()),
            connection.conn,
            principal,
            handshake,
            self._outbox.maker_for(identity.tenant),
            self._table.seen_of(identity),
            self._rng,
            self._settings,
            now,
        )
        offered = register.capabilities.features
        session.features = tuple([one for one in control.FEATURES if one in offered])
        # A worker that died has no connection any more: its next boot has killed what it left, and
        # nothing has to run out. One whose connection is open may be alive beside the newcomer.
        is_other_boot = old is not None and old.incarnation != session.incarnation
        displaced = is_other_boot and connection.took_over
        if old is not None:
            code = errors.SESSION_STALE_BINDING
            self._table.end(old, code, code.says)
        self._table.sessions[session.session_id] = session
        self._table.by_identity[identity] = session
        connection.session = session
        previous = self._admission.boot(identity, session.incarnation)
        self.tell_register(session, frame_id, register, True, previous, displaced)
        self._pump.schedule(session)

    def tell_register(
        self,
        session: SchedulerSession,
        frame_id: str,
        register: control.Register,
        first: bool,
        previous: int | None,
        displaced: bool,
    ) -> None:
        session.register_id = frame_id
        self._outbox.events.append(
            RegisterArrived(
                *session.who,
                session.incarnation,
                self._clamp(register),
                frame_id,
                first,
                previous,
                displaced,
                session.handshake.worker,
            )
        )

    def _clamp(self, register: control.Register) -> control.Register:
        """Take what a worker claims down to what is allowed."""
        concurrency = register.capabilities.concurrency
        if concurrency.max_parallel <= self._settings.max_parallel:
            return register
        self._outbox.count("registers_clamped")
        fewer = msgspec.structs.replace(concurrency, max_parallel=self._settings.max_parallel)
        capabilities = msgspec.structs.replace(register.capabilities, concurrency=fewer)
        return msgspec.structs.replace(register, capabilities=capabilities)

    def put_accept(
        self, session: SchedulerSession, now: float, wall: float, *, resumed: bool
    ) -> None:
        assert session.conn is not None
        token, expires_at = self._tokens.mint(
            session.session_id, session.worker, session.tenant, session.tokens.new_id(), wall
        )
        session.token_minted(now, expires_at - wall)
        settings, committed = self._settings, session.duplex.receiving.committed
        accept = control.SessionAccept(
            session.session_id,
            token,
            datetime.fromtimestamp(expires_at, UTC).isoformat().replace("+00:00", "Z"),
            resumed,
            session.worker,
            settings.window,
            settings.max_frame_bytes,
            int(settings.heartbeat_interval_s * 1000),
            int(settings.lease_ttl_s * 1000),
            committed if resumed and committed >= 0 else None,
            control.SessionLimits(
                int(limits.HEARTBEAT_MIN_GAP_S * 1000),
                limits.REFUSALS_MAX,
                int(limits.REFUSALS_WINDOW_S * 1000),
                limits.FLAP_MAX_TAKEOVERS,
                settings.inline_bytes,
                limits.MAX_INVENTORY,
                limits.MAX_PACKAGES,
                limits.MAX_LABELS,
                limits.MAX_ARTIFACTS,
                limits.MAX_CHUNKS,
            ),
            session.features,
        )
        self._outbox.put_new(self._table.connections[session.conn], control.SESSION_ACCEPT, accept)

    def refuse(
        self, connection: PeerConnection, envelope: Envelope, unreadable: Unreadable, now: float
    ) -> None:
        """Tell the worker that a frame cannot be used; the session lives on."""
        self._outbox.count("refused")
        if envelope.type != control.ERROR:
            self._outbox.put_error(connection, envelope.id, unreadable)
        session = connection.session
        if session is not None and session.is_accepted:
            self._outbox.events.append(
                FrameRefused(*session.who, envelope.seq, envelope.type, unreadable)
            )
        self.is_abuse(connection, now)

    def is_abuse(self, connection: PeerConnection, now: float) -> bool:
        """Count a refusal; "10 refusals in 10 s → close 1008"."""
        refusals = connection.refusals
        refusals.append(now)
        while refusals[0] <= now - limits.REFUSALS_WINDOW_S:
            refusals.popleft()
        if len(refusals) < limits.REFUSALS_MAX or connection.conn not in self._table.connections:
            return False
        self._outbox.audit(connection, "frames.refused", errors.SESSION_DENIED)
        self._table.deny(connection, "too many frames were refused")
        return True

    def tell_acked(self, session: SchedulerSession, frame_ids: tuple[str, ...]) -> None:
        if frame_ids:
            through = session.duplex.sending.acked
            self._outbox.events.append(Acked(*session.who, frame_ids, through))

    def renews(self, session: SchedulerSession, now: float) -> bool:
        at = session.renew_at
        return at is not None and now >= at and session.conn is not None and self.speaks(now)

    def renew(self, session: SchedulerSession, now: float, wall: float) -> bool:
        """Give the worker a new token, if its credential is still good."""
        assert session.conn is not None
        connection = self._table.connections[session.conn]
        proof = self._admission.prove(
            session.handshake, session.tenant, connection.certificate, wall
        )
        if isinstance(proof, Denial):
            self._outbox.audit(connection, "token.renew", proof.code)
            self._table.end(session, proof.code, proof.reason)
            return False
        self.put_accept(session, now, wall, resumed=False)
        return True

    def speaks(self, now: float) -> bool:
        return self._may_speak is None or self._may_speak(now)
