"""The streams of tenants. Commits write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.database import all_rows
from astraflow.store.rows import TenantEvent

if TYPE_CHECKING:
    from astraflow.store.database import Database


class StoredEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def event_heads(self) -> dict[str, int]:
        """The number of the last event of the stream of each tenant of the shard."""
        return dict(
            map(tuple, await self._database.rows("event_heads", shard=self._database.shard))
        )

    async def last_tenant_event(self, tenant: str) -> int:
        """The number of the last event of the stream of a lane, by its name; 0: it has none."""
        ((last,),) = await self._database.rows("last_tenant_event", tenant=tenant)
        return int(last or 0)

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]:
        return await all_rows(
            self._database, TenantEvent, "tenant_events", tenant=tenant, after=after, limit=limit
        )
