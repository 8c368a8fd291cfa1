"""The two tokens that we sign: of a worker's session, and of one attempt of a task.

1. A token opens one thing. A session token opens the session it names; a task token opens one
   attempt of one task of one run. The two cannot be taken for each other: their claims have
   different names, and unknown or missing claims are refused.
2. Every reason not to accept a token gives the same answer. Nothing is looked up before it.
3. The wall clock is passed in, as seconds since the epoch. A token counts for `LEEWAY_S` longer
   than it says, because clocks differ (R13); no lease or timeout depends on it.
4. A token may run out before the work does (R15). `needs_renewal` says when the next answer to a
   heartbeat should carry a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.ids import SessionId

if TYPE_CHECKING:
    from astraflow.core.security.keys import KeyRing

LEEWAY_S: Final = 60.0
SESSION_TTL_S: Final = 3_600
SESSION_TTL_MAX_S: Final = 86_400
"""A stolen session token is worth a day at most; a living session renews long before."""
TASK_TTL_S: Final = 3_600
TASK_TTL_MAX_S: Final = 7_200


class SessionClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PROTOCOL §2: "a signed JWT {sid, wid, tenant, exp} (wid = instance id)". "Each token has its own `jti`"."""

    sid: str
    wid: str
    tenant: str
    exp: int
    jti: str


class TaskClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PROTOCOL §9: "claims tenant, workspace, run, task, attempt, exp"."""

    tenant: str
    workspace: str
    run: str
    task: str
    attempt: int
    exp: int


_SESSION_DECODER: Final = msgspec.json.Decoder(SessionClaims)
_TASK_DECODER: Final = msgspec.json.Decoder(TaskClaims)
_ENCODER: Final = msgspec.json.Encoder()


class SessionTokens:
    """Mints and verifies the tokens with which a worker resumes its session."""

    __slots__ = ("_ring", "_ttl_s")

    def __init__(self, ring: KeyRing, ttl_s: int = SESSION_TTL_S) -> None:
        """Raises: Refused, when the lifetime is not above 0 or is over the maximum."""
        _refuse_weak_ttl(ttl_s, SESSION_TTL_MAX_S)
        self._ring = ring
        self._ttl_s = ttl_s

    def mint(
        self, session_id: SessionId, worker_id: str, tenant: str, token_id: str, wall: float
    ) -> tuple[str, int]:
        """Return a token and the second in which it expires."""
        claims = SessionClaims(session_id, worker_id, tenant, int(wall) + self._ttl_s, token_id)
        return self._ring.sign(_ENCODER.encode(claims)), claims.exp

    def verify(self, token: str, wall: float) -> SessionClaims | errors.Code:
        """Return the claims, or the one refusal. The caller compares them with the session."""
        body = self._ring.verify(token)
        if body is None:
            return errors.AUTH_INVALID_TOKEN
        try:
            claims = _SESSION_DECODER.decode(body)
        except msgspec.DecodeError:
            return errors.AUTH_INVALID_TOKEN
        return claims if wall < claims.exp + LEEWAY_S else errors.AUTH_INVALID_TOKEN

    def needs_renewal(self, expires_at: float, wall: float) -> bool:
        """Say whether half of the token's life is over."""
        return wall >= expires_at - self._ttl_s / 2


class TaskTokens:
    """Mints and verifies the tokens with which a worker without a session reports an attempt."""

    __slots__ = ("_ring", "_ttl_s")

    def __init__(self, ring: KeyRing, ttl_s: int = TASK_TTL_S) -> None:
        """Raises: Refused, when the lifetime is not above 0 or is over the maximum."""
        _refuse_weak_ttl(ttl_s, TASK_TTL_MAX_S)
        self._ring = ring
        self._ttl_s = ttl_s

    def mint(
        self, *, tenant: str, workspace: str, run: str, task: str, attempt: int, wall: float
    ) -> tuple[str, int]:
        """Return a token and the second in which it expires."""
        claims = TaskClaims(tenant, workspace, run, task, attempt, int(wall) + self._ttl_s)
        return self._ring.sign(_ENCODER.encode(claims)), claims.exp

    def verify(self, token: str, task: str, wall: float) -> TaskClaims | errors.Code:
        """Return the claims if the token is for the task of the path.

        Then compare the attempt with the current one: a genuine token of an older attempt is not
        a bad token but a late worker, who gets 409 and both numbers (PROTOCOL §9).
        """
        body = self._ring.verify(token)
        if body is None:
            return errors.INVALID_TOKEN
        try:
            claims = _TASK_DECODER.decode(body)
        except msgspec.DecodeError:
            return errors.INVALID_TOKEN
        is_good = claims.task == task and wall < claims.exp + LEEWAY_S
        return claims if is_good else errors.INVALID_TOKEN

    def needs_renewal(self, expires_at: float, wall: float) -> bool:
        """Say whether half of the token's life is over."""
        return wall >= expires_at - self._ttl_s / 2


def refuse_weak_heartbeat(interval_s: float, timeout_s: float) -> None:
    """Raises: Refused, when one lost heartbeat would be taken for a dead worker (R14)."""
    if interval_s <= 0 or timeout_s < 2 * interval_s:
        raise errors.Refused(
            errors.AUTH_WEAK_CONFIG,
            "the heartbeat timeout must be at least twice an interval above 0: "
            f"{timeout_s:g} s at {interval_s:g} s",
        )


def _refuse_weak_ttl(ttl_s: int, max_s: int) -> None:
    if not 0 < ttl_s <= max_s:
        raise errors.Refused(
            errors.AUTH_WEAK_CONFIG, f"a token must live 1 to {max_s} seconds, not: {ttl_s}"
        )
