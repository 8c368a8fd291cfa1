"""Who may open a session: credentials, identities, and peers that fight over one.

PROTOCOL §2: "Identity is (tenant, instance id), bound at the first handshake to the credential's
subject; another subject → `E.SESSION.DENIED`." A second connection with the same identity and a good
credential takes over; more than five times a minute is flapping, and the newcomer must wait. "An
incarnation lower than the last seen is refused": two folders with one id would take turns.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from astraflow.core import errors
from astraflow.core.protocol import limits
from astraflow.core.protocol.events import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.core.protocol.control import Handshake, Resume
    from astraflow.core.protocol.events import Authenticate, ResumeClaims, ResumeTokens
    from astraflow.core.protocol.wire import Envelope

QUOTA_RETRY_AFTER_S: Final = 30.0
"""Before a worker that was one too many asks again."""
_OLD_BOOT: Final = (
    "a later boot of this instance id has registered; "
    "a data folder that was copied or put back needs a new id"
)


class Identity(NamedTuple):
    """What makes a worker the same worker: its tenant and its instance id."""

    tenant: str
    worker: str


class Denial(NamedTuple):
    """Why a peer is rejected."""

    code: errors.Code
    reason: str
    retry_after_s: float = 0.0


class Admission:
    """Decides about handshakes and resumes; remembers who owns which identity."""

    __slots__ = (
        "_authenticate",
        "_incarnations",
        "_lanes",
        "_limits",
        "_subjects",
        "_takeovers",
        "_tokens",
    )

    def __init__(self, authenticate: Authenticate, tokens: ResumeTokens) -> None:
        self._authenticate = authenticate
        self._tokens = tokens
        self._subjects: dict[Identity, str] = {}
        self._incarnations: dict[Identity, int] = {}
        self._takeovers: dict[Identity, deque[float]] = {}
        self._limits: dict[str, int] = {}
        self._lanes: dict[str, int] = {}

    def serve_lane(self, tenant: str, lane: int) -> None:
        """The lane of a tenant that is served here; 0 unless it is said."""
        self._lanes[tenant] = lane

    def bind(self, identity: Identity, subject: str, incarnation: int) -> None:
        """Say whom an identity belongs to and which boot of it registered last, as it was before a restart."""
        self._subjects[identity] = subject
        self._incarnations[identity] = incarnation

    def forget(self, identity: Identity) -> None:
        """An identity belongs to nobody any more: who comes next with it, has it."""
        self._subjects.pop(identity, None)
        self._incarnations.pop(identity, None)
        self._takeovers.pop(identity, None)

    def greet(
        self, envelope: Envelope, handshake: Handshake, certificate: object, wall: float
    ) -> Principal | Denial:
        """Decide about a handshake; what it binds is told by `owns` before and after."""
        worker = handshake.worker.worker_instance_id
        if envelope.sender.role != "worker" or envelope.sender.id != worker:
            return Denial(errors.SESSION_DENIED, "the sender is not the worker of the handshake")
        if handshake.protocol not in limits.PROTOCOLS_SUPPORTED:
            known = ", ".join(str(each) for each in limits.PROTOCOLS_SPOKEN)
            return Denial(errors.SESSION_DENIED, f"protocols supported: {known}")
        principal = self.prove(handshake, envelope.tenant, certificate, wall)
        if isinstance(principal, Denial):
            return principal
        if handshake.lane != self._lanes.get(envelope.tenant, 0):
            return Denial(errors.SESSION_DENIED, f"lane {handshake.lane} is not served here")
        identity = Identity(envelope.tenant, worker)
        if self._subjects.setdefault(identity, principal.subject) != principal.subject:
            return Denial(errors.SESSION_DENIED, "the identity belongs to another subject")
        if handshake.worker.incarnation < self._incarnations.get(identity, 0):
            return Denial(errors.SESSION_DENIED, _OLD_BOOT)
        return principal

    def prove(
        self, handshake: Handshake, tenant: str, certificate: object, wall: float
    ) -> Principal | Denial:
        """Check a credential: at the handshake, at each resume and at each renewal."""
        principal = self._authenticate(handshake, tenant, certificate, wall)
        if not isinstance(principal, Principal):
            return Denial(principal, principal.says)
        if principal.tenant != tenant:
            # The same answer as for a token that does not exist: it opens nothing here.
            return Denial(errors.AUTH_INVALID_TOKEN, errors.AUTH_INVALID_TOKEN.says)
        return principal

    def check_resume(
        self, envelope: Envelope, resume: Resume, wall: float
    ) -> ResumeClaims | Denial:
        """Check the token of a resume against the session and the sender that it names."""
        claims = self._tokens.verify(resume.session_token, wall)
        if isinstance(claims, errors.Code):
            return Denial(claims, claims.says)
        if claims.sid != resume.session_id or claims.tenant != envelope.tenant:
            return Denial(errors.SESSION_DENIED, "the token is for another session")
        if envelope.sender.role != "worker" or claims.wid != envelope.sender.id:
            return Denial(errors.SESSION_DENIED, "the token is for another worker")
        return claims

    def limit(self, tenant: str, limit: int | None) -> None:
        """How many workers of a tenant may have a session at once."""
        if limit is None:
            self._limits.pop(tenant, None)
        else:
            self._limits[tenant] = limit

    def check_room(self, identity: Identity, held: Iterable[Identity]) -> Denial | None:
        """Whether its tenant may have one more worker beside those that are here."""
        limit = self._limits.get(identity.tenant)
        if limit is None:
            return None
        others = sum(1 for one in held if one.tenant == identity.tenant and one != identity)
        if others < limit:
            return None
        code = errors.QUOTA_WORKERS
        return Denial(code, f"the tenant may have so many workers: {limit}", QUOTA_RETRY_AFTER_S)

    def is_bound(self, identity: Identity) -> bool:
        return identity in self._subjects

    def take_over(self, identity: Identity, now: float) -> Denial | None:
        """A newcomer wants an identity that has a live connection: may it?"""
        times = self._takeovers.setdefault(identity, deque())
        while times and times[0] <= now - limits.FLAP_WINDOW_S:
            times.popleft()
        if len(times) >= limits.FLAP_MAX_TAKEOVERS:
            return Denial(
                errors.SESSION_DENIED,
                "two processes use one identity",
                limits.FLAP_RETRY_AFTER_S,
            )
        times.append(now)
        return None

    def boot(self, identity: Identity, incarnation: int) -> int | None:
        """Note the incarnation that registers; returns the one before it."""
        before = self._incarnations.get(identity)
        self._incarnations[identity] = incarnation
        return before
