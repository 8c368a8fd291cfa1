"""The task tokens of HTTP pools: minted with each push, checked at each callback, renewed by heartbeats."""

from __future__ import annotations

from astraflow.core import errors
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.protocol.business import Dispatch
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import TaskClaims, TaskTokens


class PoolTokens:
    """Each pool has its own time to live."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._any = TaskTokens(ring)
        self._by_ttl: dict[int, TaskTokens] = {}

    def mint(self, pool: PoolRecord, dispatch: Dispatch, wall: float) -> tuple[str, int]:
        """The token of an attempt, and the second in which it expires."""
        return self._of(pool.token_ttl_s).mint(
            tenant=pool.tenant,
            workspace=pool.workspace,
            run=dispatch.run_id,
            task=dispatch.task_id,
            attempt=dispatch.attempt,
            wall=wall,
        )

    def renew(self, pool: PoolRecord, claims: TaskClaims, wall: float) -> tuple[str, int] | None:
        """A new token of the same scope, once half of the life of the old one is over."""
        tokens = self._of(pool.token_ttl_s)
        if not tokens.needs_renewal(claims.exp, wall):
            return None
        return tokens.mint(
            tenant=claims.tenant,
            workspace=claims.workspace,
            run=claims.run,
            task=claims.task,
            attempt=claims.attempt,
            wall=wall,
        )

    def verify(self, token: str, task_id: str, wall: float) -> TaskClaims:
        """Raises: Refused, with the one refusal."""
        claims = self._any.verify(token, task_id, wall)
        if isinstance(claims, errors.Code):
            raise errors.Refused(claims, claims.says)
        return claims

    def _of(self, ttl_s: int) -> TaskTokens:
        found = self._by_ttl.get(ttl_s)
        if found is None:
            found = self._by_ttl[ttl_s] = TaskTokens(self._ring, ttl_s)
        return found
