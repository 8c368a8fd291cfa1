"""The audit: its rows by page, oldest or newest first, and where the chain of each tenant ends. Commits write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from astraflow.core.security.audit_chain import ChainHead
from astraflow.store.content import MAX_INTEGER
from astraflow.store.database import all_rows
from astraflow.store.rows import AuditHeadRow, AuditRow, SentAuditRow
from astraflow.store.tables import table_of

if TYPE_CHECKING:
    from astraflow.store.database import Database, RawRow


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows. None: all. Times are wall-clock milliseconds; `since` is included, `until` is not."""

    who: str | None = None
    action: str | None = None
    prefix: str | None = None
    """How the action begins."""
    code: str | None = None
    outcome: Literal["ok", "refused"] | None = None
    corr: str | None = None
    worker: str | None = None
    since: int | None = None
    until: int | None = None


EVERYTHING = AuditFilter()


class StoredAudits:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def audit(
        self,
        tenant: str,
        *,
        limit: int,
        before: int | None = None,
        wanted: AuditFilter = EVERYTHING,
    ) -> list[tuple[int, AuditRow]]:
        """Newest first, each with its id; `before` is the last id of the page before."""
        last = MAX_INTEGER if before is None else before
        filters = msgspec.structs.asdict(wanted)
        found = await self._database.rows(
            "audit", tenant=tenant, limit=limit, before=last, **filters
        )
        return _numbered(found)

    async def audit_after(
        self, tenant: str, *, limit: int, after: int = 0, wanted: AuditFilter = EVERYTHING
    ) -> list[tuple[int, AuditRow]]:
        """Oldest first, each with its id; `after` is the last id of the page before."""
        filters = msgspec.structs.asdict(wanted)
        found = await self._database.rows(
            "audit_after", tenant=tenant, limit=limit, after=after, **filters
        )
        return _numbered(found)

    async def audit_heads(self) -> list[AuditHeadRow]:
        """Where the chain of each tenant of the shard ends."""
        return await all_rows(
            self._database, AuditHeadRow, "audit_heads", shard=self._database.shard
        )

    async def sent_audits(self, limit: int) -> list[SentAuditRow]:
        """What the owners of other shards have sent to the tenants of this one, in the order of each."""
        shard = self._database.shard
        return await all_rows(self._database, SentAuditRow, "sent_audits", shard=shard, limit=limit)

    async def audit_head(self, tenant: str) -> tuple[ChainHead, int]:
        """Where the chain of a tenant ends, and the last number that retention has removed from its beginning."""
        found = await self._database.rows("audit_head", tenant=tenant)
        if not found:
            return ChainHead(), 0
        ((number, digest, removed),) = found
        return ChainHead(number, digest), removed


def _numbered(found: list[RawRow]) -> list[tuple[int, AuditRow]]:
    decode = table_of(AuditRow).decode
    return [(number, decode(values)) for number, *values in found]
