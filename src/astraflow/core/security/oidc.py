"""Logging in at an OpenID Connect issuer: what is decided about it.

1. A login that was begun is known by a signed text in a cookie of the browser: its state, its nonce and its PKCE
   verifier. It is good for ten minutes, for one callback.
2. The signature of an ID token is checked before this is asked. Then its issuer, its audience, its times and its nonce
   must be those of this login. Every reason has its sentence, for the log; the person sees one.
3. A person is known by the issuer and its subject alone: names and addresses change and are given to others.
4. The first group of the settings that the person has says the tenant and the role. Without one there is no login.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core.security.policy import PERSON_ROLES, Role
from astraflow.core.security.tokens import LEEWAY_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.security.keys import KeyRing

FLOW_TTL_S: Final = 600
"""How long somebody may take at the issuer."""
USER_PREFIX: Final = "oidc-"
_DEFAULT_TENANT: Final = "default"
_PLAIN_SUBJECT: Final = re.compile(r"(?!sha256-)[a-z0-9._@-]{1,100}")
_MAX_SUBJECT_CHARS: Final = 255
_LAST_TIME: Final = 1e12
"""JSON has numbers that are later than every time."""


class OidcFlow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="oidc"):
    """A login that was begun."""

    state: str
    nonce: str
    verifier: str
    exp: int

    @property
    def challenge(self) -> str:
        """The PKCE challenge, by S256."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


_FLOW_DECODER: Final = msgspec.json.Decoder(OidcFlow)
_ENCODER: Final = msgspec.json.Encoder()


class OidcFlows:
    """Signs logins that were begun, and takes each once."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._used: dict[str, int] = {}

    def sign(self, flow: OidcFlow) -> str:
        return self._ring.sign(_ENCODER.encode(flow))

    def take(self, text: str, state: str, wall: float) -> OidcFlow | None:
        """The login that a callback with this state ends; None: there is none, it is over, or it was taken before."""
        body = self._ring.verify(text)
        if body is None:
            return None
        try:
            flow = _FLOW_DECODER.decode(body)
        except msgspec.DecodeError:
            return None
        is_same = hmac.compare_digest(flow.state.encode(), state.encode("utf-8", "replace"))
        if not is_same or wall >= flow.exp or flow.state in self._used:
            return None
        self._used = {one: exp for one, exp in self._used.items() if wall < exp}
        self._used[flow.state] = flow.exp
        return flow


def claims_problem(
    claims: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str, wall: float
) -> str | None:
    """Why an ID token is not one of this login; None if it is."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != issuer:
        return "the token is of another issuer"
    if client_id not in audiences:
        return "the token is for another client"
    is_shared = "azp" in claims or len(audiences) > 1
    if is_shared and claims.get("azp") != client_id:
        return "the token was given to another client"
    return _times_problem(claims, wall) or _person_problem(claims, nonce)


def _times_problem(claims: Mapping[str, Any], wall: float) -> str | None:
    times = [_time_of(one) for one in (claims.get("exp"), claims.get("iat"), claims.get("nbf", 0))]
    expires, issued, begins = times
    if expires is None or issued is None or begins is None:
        return "the token does not say when it counts"
    if wall >= expires + LEEWAY_S:
        return "the token has expired"
    if wall < issued - LEEWAY_S or wall < begins - LEEWAY_S:
        return "the token is of the future"
    return None


def _time_of(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if -_LAST_TIME < value < _LAST_TIME else None


def _person_problem(claims: Mapping[str, Any], nonce: str) -> str | None:
    told, subject = claims.get("nonce"), claims.get("sub")
    if not isinstance(told, str) or not hmac.compare_digest(told.encode(), nonce.encode()):
        return "the token has another nonce"
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT_CHARS:
        return "the token names nobody"
    return None


def user_name_of(subject: str) -> str:
    """The name of the user for a subject of an issuer. Two subjects of one issuer never have the same."""
    if _PLAIN_SUBJECT.fullmatch(subject) is not None:
        return USER_PREFIX + subject
    digest = hashlib.sha256(subject.encode("utf-8", "replace")).hexdigest()
    return f"{USER_PREFIX}sha256-{digest[:32]}"


def other_user_name_of(subject: str, issuer: str) -> str:
    """The name for a subject whose first name somebody else has: a user of another issuer, or one with a password."""
    digest = hashlib.sha256(f"{issuer}\0{subject}".encode("utf-8", "replace")).hexdigest()
    return f"{USER_PREFIX}sha256-{digest[:32]}"


def groups_of(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """The groups in a claim: a list of texts, or one text."""
    value = claims.get(name)
    if isinstance(value, str):
        return frozenset({value})
    if not isinstance(value, list):
        return frozenset()
    return frozenset(one for one in value if isinstance(one, str))


class GroupRoles:
    """What the groups of the issuer may do here."""

    def __init__(self, wanted: Mapping[str, str]) -> None:
        """Raises: ValueError, with what is wrong."""
        self._granted = [(group, *_grant_of(group, text)) for group, text in wanted.items()]

    def granted(self, groups: frozenset[str]) -> tuple[str, Role] | None:
        """Tenant and role of somebody with these groups; None: none of them counts here."""
        for group, tenant, role in self._granted:
            if group in groups:
                return tenant, role
        return None


def _grant_of(group: str, text: str) -> tuple[str, Role]:
    tenant, colon, role = text.rpartition(":")
    if role not in {one.value for one in PERSON_ROLES} or (colon and not tenant):
        known = ", ".join(sorted(one.value for one in PERSON_ROLES))
        raise ValueError(f"the group {group!r} must have ROLE or TENANT:ROLE, a role of {known}")
    return tenant or _DEFAULT_TENANT, Role(role)
