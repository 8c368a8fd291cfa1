"""The way into a gateway: from an open connection to an open session, and who is turned away.

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
from astraflow.core.protocol import control, limits
from astraflow.core.protocol.admission import Admission, Denial, Identity
from astraflow.core.protocol.events import (
    Acked,
    Authenticate,
    GatewaySettings,
    IdentityBound,
    Principal,
    Refused,
    RegisterArrived,
    SessionTokens,
)
from astraflow.core.protocol.hub import Connection, Hub
from astraflow.core.protocol.scheduler_session import SchedulerSession
from astraflow.core.protocol.wire import Envelope, Unreadable, is_sequenced

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from astraflow.core.ids import IdSource

__all__ = ["Lobby"]


class Lobby(Hub):
    """The opening half of a gateway. Not for use by itself."""

    def __init__(
        self,
        *,
        scheduler_id: str,
        ids: IdSource,
        rng: Random,
        authenticate: Authenticate,
        tokens: SessionTokens,
        settings: GatewaySettings | None = None,
        may_speak: Callable[[float], bool] | None = None,
    ) -> None:
        super().__init__(scheduler_id, ids, settings or GatewaySettings())
        self._rng = rng
        self._tokens = tokens
        self._admission = Admission(authenticate, tokens)
        self._may_speak = may_speak

    def _on_first(
        self, connection: Connection, envelope: Envelope, now: float, wall: float
    ) -> None:
        connection.tenant = envelope.tenant
        connection.claimed = envelope.sender.id
        payload = envelope.payload
        if not self._speaks(now):
            self._count("not_spoken")
        elif isinstance(payload, control.Handshake):
            self._on_handshake(connection, envelope, payload, now, wall)
        elif isinstance(payload, control.Resume):
            self._on_resume(connection, envelope, payload, now, wall)
        elif isinstance(payload, Unreadable) and envelope.type == control.HANDSHAKE:
            self._put(connection, self._maker_for(connection.tenant).error(envelope.id, payload))
            self._deny(connection, payload.message)
        else:
            self._deny(connection, "the first frame must be control.handshake or control.resume")

    def _on_handshake(
        self,
        connection: Connection,
        envelope: Envelope,
        handshake: control.Handshake,
        now: float,
        wall: float,
    ) -> None:
        identity = Identity(envelope.tenant, handshake.worker.worker_instance_id)
        is_known = self._admission.is_bound(identity)
        principal = self._admission.greet(envelope, handshake, connection.certificate, wall)
        if isinstance(principal, Principal) and identity in self._holders:
            principal = self._admission.take_over(identity, now) or principal
        if isinstance(principal, Denial):
            connection.worker = ""
            self._audit(connection, "login", principal.code, envelope.id)
            self._reset(
                connection,
                principal.code,
                principal.reason,
                retry_after_s=principal.retry_after_s,
            )
            return
        connection.took_over = identity in self._holders
        self._displace(identity)
        self._hold(connection, identity, principal, handshake)
        connection.greeting_id = envelope.id
        if not is_known:
            self._events.append(IdentityBound("", *identity, principal.subject))
        self._audit(connection, "login", None, envelope.id)
        self._put_new(connection, control.ACK, control.ControlAck(envelope.id))

    def _on_resume(
        self,
        connection: Connection,
        envelope: Envelope,
        resume: control.Resume,
        now: float,
        wall: float,
    ) -> None:
        session = self._sessions.get(resume.session_id)
        denial = self._may_resume(connection, envelope, resume, session, now, wall)
        if denial is not None:
            self._audit(connection, "resume", denial.code, envelope.id)
            self._reset(connection, denial.code, denial.reason)
            return
        assert session is not None
        identity = Identity(session.tenant, session.worker)
        self._displace(identity)
        self._hold(connection, identity, session.principal, session.handshake)
        self._carry_on(connection, session, resume.last_seen_seq, now, wall)

    def _may_resume(
        self,
        connection: Connection,
        envelope: Envelope,
        resume: control.Resume,
        session: SchedulerSession | None,
        now: float,
        wall: float,
    ) -> Denial | None:
        claims = self._admission.check_resume(envelope, resume, wall)
        if isinstance(claims, Denial):
            return claims
        if session is None or not self._knows(session):
            return Denial(errors.SESSION_UNKNOWN, errors.SESSION_UNKNOWN.says)
        if not session.tokens.use(claims.jti, now):
            self._count("tokens_replaced")
            return Denial(errors.AUTH_INVALID_TOKEN, errors.AUTH_INVALID_TOKEN.says)
        proof = self._admission.prove(
            session.handshake, session.tenant, connection.certificate, wall
        )
        if isinstance(proof, Denial):
            self._end(session, proof.code, proof.reason)
            return proof
        return None

    def _carry_on(
        self,
        connection: Connection,
        session: SchedulerSession,
        last_seen_seq: int | None,
        now: float,
        wall: float,
    ) -> None:
        connection.session = session
        session.conn = connection.conn
        session.heard(now)
        self._count("resumed")
        acked = session.duplex.resume(now, last_seen_seq, self._settings.window)
        self._tell_acked(session, acked)
        self._put_accept(session, now, wall, resumed=True)
        self._stir(session)

    def _knows(self, session: SchedulerSession) -> bool:
        """Whether a session can be resumed: it was open here."""
        return session.is_accepted

    def _displace(self, identity: Identity) -> None:
        """PROTOCOL §2: "the older gets `control.reset E.SESSION.STALE_BINDING`"."""
        holder = self._holders.get(identity)
        if holder is None:
            return
        self._count("taken_over")
        self._audit(holder, "takeover", errors.SESSION_STALE_BINDING)
        session = holder.session
        code = errors.SESSION_STALE_BINDING
        self._reset(holder, code, code.says, close_code=limits.CLOSE_NORMAL)
        if session is not None and not session.is_accepted:
            self._end(session, code, code.says)

    def _hold(
        self,
        connection: Connection,
        identity: Identity,
        principal: Principal,
        handshake: control.Handshake,
    ) -> None:
        connection.worker = identity.worker
        connection.principal = principal
        connection.handshake = handshake
        self._holders[identity] = connection

    def _on_opening(self, connection: Connection, envelope: Envelope, now: float) -> None:
        """Frames between the handshake and the accept."""
        payload = envelope.payload
        session = connection.session
        if envelope.id == connection.greeting_id:
            self._put_new(connection, control.ACK, control.ControlAck(envelope.id))
        elif isinstance(payload, control.Register):
            if session is None:
                self._begin(connection, envelope.id, payload, now)
            elif envelope.id != session.register_id:
                self._deny(connection, "a second register before the session is open")
            # Else it was sent again, because the commit takes its time.
        elif isinstance(payload, Unreadable) and not is_sequenced(envelope.type):
            self._refuse(connection, envelope, payload, now)
        else:
            self._deny(connection, f"the session is not open yet: {envelope.type}")

    def _begin(
        self, connection: Connection, frame_id: str, register: control.Register, now: float
    ) -> None:
        """A first register: its session exists from here on, and is open after `accept`."""
        handshake, principal = connection.handshake, connection.principal
        assert handshake is not None
        assert principal is not None
        identity = connection.identity
        old = self._by_identity.get(identity)
        session = SchedulerSession(
            self._ids.new(),
            connection.conn,
            principal,
            handshake,
            self._maker_for(identity.tenant),
            self._seen_of(identity),
            self._rng,
            self._settings,
            now,
        )
        # A worker that died has no connection any more: its next boot has killed what it left, and
        # nothing has to run out. One whose connection is open may be alive beside the newcomer.
        is_other_boot = old is not None and old.incarnation != session.incarnation
        displaced = is_other_boot and connection.took_over
        if old is not None:
            code = errors.SESSION_STALE_BINDING
            self._end(old, code, code.says)
        self._sessions[session.session_id] = session
        self._by_identity[identity] = session
        connection.session = session
        previous = self._admission.boot(identity, session.incarnation)
        self._tell_register(session, frame_id, register, True, previous, displaced)
        self._schedule(session)

    def _tell_register(
        self,
        session: SchedulerSession,
        frame_id: str,
        register: control.Register,
        first: bool,
        previous: int | None,
        displaced: bool,
    ) -> None:
        session.register_id = frame_id
        self._events.append(
            RegisterArrived(
                session.session_id,
                session.tenant,
                session.worker,
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
        self._count("registers_clamped")
        fewer = msgspec.structs.replace(concurrency, max_parallel=self._settings.max_parallel)
        capabilities = msgspec.structs.replace(register.capabilities, concurrency=fewer)
        return msgspec.structs.replace(register, capabilities=capabilities)

    def _put_accept(
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
        )
        self._put_new(self._connections[session.conn], control.SESSION_ACCEPT, accept)

    def _refuse(
        self, connection: Connection, envelope: Envelope, unreadable: Unreadable, now: float
    ) -> None:
        """Tell the worker that a frame cannot be used; the session lives on."""
        self._count("refused")
        if envelope.type != control.ERROR:
            self._put(connection, self._maker_for(connection.tenant).error(envelope.id, unreadable))
        session = connection.session
        if session is not None and session.is_accepted:
            self._events.append(
                Refused(
                    session.session_id,
                    session.tenant,
                    session.worker,
                    envelope.seq,
                    envelope.type,
                    unreadable,
                )
            )
        self._is_abuse(connection, now)

    def _is_abuse(self, connection: Connection, now: float) -> bool:
        """Count a refusal; "10 refusals in 10 s → close 1008"."""
        refusals = connection.refusals
        refusals.append(now)
        while refusals[0] <= now - limits.REFUSALS_WINDOW_S:
            refusals.popleft()
        if len(refusals) < limits.REFUSALS_MAX or connection.conn not in self._connections:
            return False
        self._audit(connection, "frames.refused", errors.SESSION_DENIED)
        self._deny(connection, "too many frames were refused")
        return True

    def _tell_acked(self, session: SchedulerSession, frame_ids: tuple[str, ...]) -> None:
        if frame_ids:
            through = session.duplex.sending.acked
            self._events.append(
                Acked(session.session_id, session.tenant, session.worker, frame_ids, through)
            )

    def _renews(self, session: SchedulerSession, now: float) -> bool:
        at = session.renew_at
        return at is not None and now >= at and session.conn is not None and self._speaks(now)

    def _renew(self, session: SchedulerSession, now: float, wall: float) -> bool:
        """Give the worker a new token, if its credential is still good."""
        assert session.conn is not None
        connection = self._connections[session.conn]
        proof = self._admission.prove(
            session.handshake, session.tenant, connection.certificate, wall
        )
        if isinstance(proof, Denial):
            self._audit(connection, "token.renew", proof.code)
            self._end(session, proof.code, proof.reason)
            return False
        self._put_accept(session, now, wall, resumed=False)
        return True

    def _deny(self, connection: Connection, reason: str) -> None:
        """`control.reset E.SESSION.DENIED`, close 1008, and no way back into the session."""
        session = connection.session
        if session is not None:
            self._end(session, errors.SESSION_DENIED, reason)
        else:
            self._reset(connection, errors.SESSION_DENIED, reason)

    def _is_from(self, connection: Connection, envelope: Envelope) -> bool:
        sender = envelope.sender
        return (
            envelope.tenant == connection.tenant
            and sender.id == connection.worker
            and sender.role == "worker"
        )

    def _speaks(self, now: float) -> bool:
        return self._may_speak is None or self._may_speak(now)
