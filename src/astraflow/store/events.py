"""The streams of tenants and the audit. Commits write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.content import MAX_INTEGER
from astraflow.store.database import all_rows
from astraflow.store.rows import AuditRow, TenantEvent
from astraflow.store.tables import table_of

if TYPE_CHECKING:
    from astraflow.store.database import Database


class StoredEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def event_heads(self) -> dict[str, int]:
        """The number of the last event of each tenant's stream."""
        spans = await self._database.rows("event_spans")
        return {tenant: last for tenant, _, last in sorted(map(tuple, spans))}

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]:
        return await all_rows(
            self._database, TenantEvent, "tenant_events", tenant=tenant, after=after, limit=limit
        )

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        """Newest first, each with its number; `before` is the last number of the page before."""
        last = MAX_INTEGER if before is None else before
        found = await self._database.rows("audit", tenant=tenant, limit=limit, before=last)
        decode = table_of(AuditRow).decode
        return [(number, decode(values)) for number, *values in found]
