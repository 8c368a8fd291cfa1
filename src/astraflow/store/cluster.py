"""What the schedulers of one store tell one another through it: who lives, where, and which lane is in which shard.

Nothing here is written under a claim. A row is of one process, or says what stays true once it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import astraflow
from astraflow.core.cluster.shards import NodeSeen, ShardSeen
from astraflow.store.content import check_values
from astraflow.store.database import all_rows
from astraflow.store.identity import TOKENS_CHANGE
from astraflow.store.postgres import GONE_S
from astraflow.store.rows import LaneRow, TenantRow

if TYPE_CHECKING:
    from astraflow.core.ids import RunId
    from astraflow.store.postgres import PostgresSite

Lane = tuple[str, int]
"""A tenant and the number of its lane."""


class StoredCluster:
    """Use from one asyncio loop. `open` first, `close` last."""

    def __init__(self, site: PostgresSite) -> None:
        self._site = site
        self.open = site.open
        self.close = site.close

    async def renew_node(self, node_id: str, url: str, *, is_leaving: bool = False) -> None:
        """This process lives. Raises: StoreError."""
        await self._site.change(
            "renew_node",
            node_id=node_id,
            url=url,
            version=astraflow.__version__,
            is_leaving=is_leaving,
        )

    async def remove_node(self, node_id: str) -> None:
        """This process ends. Raises: StoreError."""
        await self._site.change("remove_nodes", node_id=node_id)

    async def nodes(self) -> list[NodeSeen]:
        return [NodeSeen(*row) for row in await self._site.rows("look_at_nodes")]

    async def shards(self) -> list[ShardSeen]:
        """Those that a tenant lives in."""
        found = await self._site.rows("look_at_shards", gone_s=GONE_S)
        return [ShardSeen(*row) for row in found]

    async def lanes(self) -> dict[Lane, int]:
        """The shard of each lane that has one; the others are in shard 0."""
        rows = await all_rows(self._site, LaneRow, "lanes")
        return {(row.tenant, row.lane): row.shard for row in rows}

    async def tenants(self) -> list[str]:
        """The names of those that somebody has made."""
        return [row.tenant for row in await all_rows(self._site, TenantRow, "all_tenants")]

    async def assign_lane(self, tenant: str, lane: int = 0) -> None:
        """Choose the shard of a lane, unless it has one."""
        check_values(tenant)
        await self._site.change("assign_lane", tenant=tenant, lane=lane)

    async def tokens_change(self) -> str | None:
        """Another value after each change of a token."""
        found = await self._site.rows("find_site", name=TOKENS_CHANGE)
        return str(found[0][0]) if found else None

    async def tenant_of_token(self, digest: bytes) -> str | None:
        found = await self._site.rows("tenant_of_token", digest=digest)
        return str(found[0][0]) if found else None

    async def tenant_of_run(self, run_id: RunId) -> str | None:
        found = await self._site.rows("tenant_of_run", run_id=run_id)
        return str(found[0][0]) if found else None

    async def tenant_of_hook(self, hook_id: str) -> str | None:
        """The tenant of the trigger that has this address."""
        found = await self._site.rows("tenant_of_hook", hook_id=hook_id)
        return str(found[0][0]) if found else None
