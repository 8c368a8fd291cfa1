"""The audit as the API asks for it: pages, an export, the verification of its chain, and what requests leave in it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable
from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.security.audit_chain import ChainHead, ChainReport, ChainVerifier
from astraflow.core.security.rates import KeyedRateLimit
from astraflow.scheduler.current import Current
from astraflow.store.audits import AuditFilter
from astraflow.store.rows import AuditRow
from astraflow.store.store import Store

NumberedRow = tuple[int, AuditRow]

PIECE: Final = 500
"""Rows that are in memory at once."""
READS_BURST: Final = 30
READS_PER_SECOND: Final = 0.5
"""Exports and verifications of a tenant: each reads everything."""
TRIES: Final = 3
"""Retention may remove the beginning of a chain while it is verified: then it is verified again."""


class Audits:
    """The audit of all tenants."""

    def __init__(self, store: Store, current: Current, clock: Clock) -> None:
        self._store = store
        self._current = current
        self._clock = clock
        self._of_tenant = KeyedRateLimit(READS_PER_SECOND, READS_BURST)

    def keep(
        self, tenant: str, by: str, action: str, code: errors.Code | None = None, subject: str = ""
    ) -> None:
        """Keep what somebody did, or with which code it was refused. Raises: Unavailable."""
        said = None if code is None else code.code
        self._current.execute(
            KeepAudit(tenant=tenant, by=by, what=action, code=said, subject=subject)
        )

    async def keep_durably(self, tenant: str, by: str, action: str, subject: str) -> None:
        """Keep what somebody did; when this returns, that is durable. Raises: Unavailable."""
        self.keep(tenant, by, action, subject=subject)
        await self._current.writer.barrier()

    def count_read(self, tenant: str) -> None:
        """Somebody wants to read the whole audit of a tenant. Raises: Unavailable, if too many did."""
        wait_s = self._of_tenant.take(tenant, self._clock.now())
        if wait_s > 0:
            raise errors.Unavailable(
                errors.QUOTA_RATE,
                "the audit of the tenant is exported or verified too often",
                detail={"retryAfterSeconds": math.ceil(wait_s)},
            )

    async def page(
        self, tenant: str, wanted: AuditFilter, *, limit: int, before: int | None
    ) -> list[NumberedRow]:
        """Newest first, with everything that is decided by now. Raises: Unavailable."""
        await self._current.writer.barrier()
        return await self._store.audit(tenant, limit=limit, before=before, wanted=wanted)

    async def pieces(self, tenant: str, wanted: AuditFilter) -> AsyncIterator[list[NumberedRow]]:
        """All rows up to the newest one of now, oldest first, a piece at a time. Raises: Unavailable."""
        await self._current.writer.barrier()
        newest = await self._store.audit(tenant, limit=1, wanted=wanted)
        end = newest[0][0] if newest else 0
        after = 0
        while after < end:
            rows = await self._store.audit_after(tenant, limit=PIECE, after=after, wanted=wanted)
            yield [row for row in rows if row[0] <= end]
            after = rows[-1][0] if rows else end

    async def verify(self, tenant: str, expected: Iterable[ChainHead]) -> ChainReport:
        """Verify the chain of a tenant: against its stored end, against the end that this process has in memory, and
        against heads that were noted elsewhere.

        Raises: Unavailable.
        """
        writer = self._current.writer
        ours = writer.rows.audit_chains.head(tenant)
        known = [*expected, ours] if ours.number else [*expected]
        await writer.barrier()
        report, removed = await self._verify_once(tenant, known)
        for _ in range(TRIES - 1):
            _, removed_now = await self._store.audit_head(tenant)
            if report.problem is None or removed_now == removed:
                break
            report, removed = await self._verify_once(tenant, known)
        return report

    async def _verify_once(
        self, tenant: str, known: Iterable[ChainHead]
    ) -> tuple[ChainReport, int]:
        head, removed = await self._store.audit_head(tenant)
        verifier = ChainVerifier(head, removed, known)
        after = 0
        while verifier.problem is None:
            rows = await self._store.audit_after(tenant, limit=PIECE, after=after)
            for _, row in rows:
                verifier.take(row)
            if len(rows) < PIECE:
                break
            after = rows[-1][0]
        now, _ = await self._store.audit_head(tenant)
        return verifier.finish(now.number), removed
