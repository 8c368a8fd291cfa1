"""What the schedulers of one store tell one another through it: who lives, where, and which lane is in which shard.

Nothing here is written under a claim. A row is of one process, or says what stays true once it is written.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import astraflow
from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen, PackageWant, ReservedKey, lane_name
from astraflow.core.cluster.parking import KEPT_LOSSES
from astraflow.core.cluster.shards import NodeSeen, ShardSeen
from astraflow.core.cluster.upgrades import KNOWN_S
from astraflow.core.errors import StoreError
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store.content import check_values
from astraflow.store.database import all_rows
from astraflow.store.identity import TOKENS_CHANGE
from astraflow.store.postgres import GONE_S
from astraflow.store.postgres_connection import connect, read_errors
from astraflow.store.rows import LaneRow, SiteRow, TenantRow
from astraflow.store.written_facts import FACTS_VALUES, RAISED_BY, WRITTEN_FACTS, written_facts

if TYPE_CHECKING:
    from astraflow.core.ids import RunId
    from astraflow.store.database import Transaction
    from astraflow.store.postgres import PostgresSite
    from astraflow.store.store import Claim

NOTE_TIMEOUT_S: Final = 1.0
"""For the last words of a process that ends."""
LANES_CHANGE = "lanes_change"
"""The value of the site that differs after each change of lanes."""


class OlderNode(NamedTuple):
    """A node that reads less than others want to write."""

    node_id: str
    url: str
    version: str
    facts_version: int


class StoredCluster:
    """Use from one asyncio loop. `open` first, `close` last."""

    def __init__(self, site: PostgresSite) -> None:
        self._site = site
        self.open = site.open
        self.close = site.close

    async def join_node(self, node_id: str, url: str) -> None:
        """This process begins. Facts that it cannot read are not written from now on, while it says that it lives.

        Raises:
            StoreError: they are written already.
        """
        joined = await self._site.change("join_node", **_row_of(node_id, url))
        if not joined:
            written_facts(await self.changes())
            raise StoreError(
                errors.STORE_CORRUPT, f"the site has no value {WRITTEN_FACTS}: somebody removed it"
            )

    async def renew_node(
        self, node_id: str, url: str, *, is_leaving: bool = False, loads: str = ""
    ) -> None:
        """This process lives. Raises: StoreError."""
        await self._site.change("renew_node", **_row_of(node_id, url, is_leaving, loads))

    async def remove_node(self, node_id: str) -> None:
        """This process ends. Raises: StoreError."""
        await self._site.change("remove_nodes", node_id=node_id)

    async def nodes(self) -> list[NodeSeen]:
        return [NodeSeen(*row) for row in await self._site.rows("look_at_nodes")]

    async def shards(self) -> list[ShardSeen]:
        """Those that a tenant lives in."""
        found = await self._site.rows("look_at_shards", gone_s=GONE_S)
        return [
            ShardSeen(shard, owner, is_free, losses=tuple(losses), place=place)
            for shard, owner, is_free, losses, place in found
        ]

    async def note_loss(self, claim: Claim) -> None:
        """The work of the shard ends this process. On a connection of its own, from any thread: the loop that has the
        others may be blocked. Raises: StoreError, also when it takes too long."""
        note = self._site.statements["note_shard_loss"]
        values = {"shard": claim.shard, "epoch": claim.epoch, "kept": KEPT_LOSSES}
        async with read_errors(), asyncio.timeout(NOTE_TIMEOUT_S):
            connection = await connect(self._site.url)
            try:
                await connection.fetchval(note.text, *note.arguments(values))
            finally:
                connection.terminate()

    async def place_shard(self, shard: int, url: str) -> None:
        """Have the node at a URL serve a shard while it lives; any node, if it is empty. Raises: StoreError."""
        name = f"shard_place/{shard}"
        if url:
            await self._site.change("set_site", name=name, value=url)
        else:
            await self._site.change("forget_site", name=name)

    async def clear_losses(self, shard: int) -> bool:
        """Forget that the work of a shard has ended nodes; False if it never has. Raises: StoreError."""
        return bool(await self._site.change("clear_shard_losses", shard=shard))

    async def lanes(self) -> dict[str, tuple[LaneSeen, ...]]:
        """The lanes of each tenant that has some; the others have one, in shard 0."""
        found: dict[str, tuple[LaneSeen, ...]] = {}
        for row in await all_rows(self._site, LaneRow, "lanes"):
            seen = LaneSeen(row.lane, row.shard, row.state)
            found[row.tenant] = (*found.get(row.tenant, ()), seen)
        return found

    async def lanes_of(self, tenant: str) -> tuple[LaneSeen, ...]:
        """Those of one tenant."""
        rows = await all_rows(self._site, LaneRow, "lanes_of_tenant", tenant=tenant)
        return tuple(LaneSeen(row.lane, row.shard, row.state) for row in rows)

    async def tenants(self) -> list[str]:
        """The names of those that somebody has made."""
        return [row.tenant for row in await all_rows(self._site, TenantRow, "all_tenants")]

    async def master_ids(self) -> list[str]:
        """The master keys that data keys are encrypted with."""
        return [master_id for (master_id,) in await self._site.rows("master_ids")]

    async def add_shards(self, count: int) -> None:
        """Let there be at least so many. Raises: StoreError."""
        await self._site.change("add_shards", count=count)

    async def assign_lane(self, tenant: str) -> None:
        """Choose the shard of the home of a tenant, unless it has one."""
        await self._add_lane(tenant, HOME_LANE)
        await self._site.change("note_lanes_change")

    async def set_lanes(self, tenant: str, count: int) -> bool:
        """Let a tenant have so many lanes; those beyond close. False if there are not enough shards for them."""
        await self._site.change("put_home_lane", tenant=tenant)
        for lane in range(1, count):
            await self._add_lane(tenant, lane)
        await self._site.change("set_lane_states", tenant=tenant, count=count)
        await self._site.change("note_lanes_change")
        return len((await self.lanes())[tenant]) >= count

    async def open_lanes(self, tenant: str) -> None:
        """The home of the tenant knows of its new lanes: they take runs from now on. Raises: StoreError."""
        await self._site.change("open_lanes", tenant=tenant)
        await self._site.change("note_lanes_change")

    async def _add_lane(self, tenant: str, lane: int) -> None:
        check_values(tenant)
        name = lane_name(tenant, lane)
        await self._site.change("assign_lane", tenant=tenant, lane=lane, name=name)

    async def changes(self) -> dict[str, str]:
        """Other values after each change of a token, of lanes, or of the facts that are written."""
        names = [TOKENS_CHANGE, LANES_CHANGE, *FACTS_VALUES]
        return {
            str(name): str(value)
            for name, value in await self._site.rows("site_values", names=names)
        }

    async def raise_facts(self, facts_version: int) -> list[OlderNode]:
        """Let facts up to this version be written, unless nodes read less: those are returned.

        Nodes that join wait for it, so that none of them is overlooked. Raises: StoreError.
        """

        async def script(transaction: Transaction) -> list[OlderNode]:
            await transaction.rows("lock_written_facts")
            wanted = {"facts_version": facts_version}
            found = await transaction.rows("nodes_that_read_less", **wanted, known_s=KNOWN_S)
            if not found and await transaction.change("raise_written_facts", **wanted):
                await transaction.put(SiteRow(RAISED_BY, astraflow.__version__))
            return [OlderNode(*row) for row in found]

        return await self._site.transact(script)

    # -- what the lanes of a tenant agree on ---------------------------------------------------

    async def reserve_key(
        self, tenant: str, key: str, wanted: ReservedKey, now: int, cutoff: int
    ) -> ReservedKey:
        """Whose a key is: of `wanted`, unless somebody has asked before, after `cutoff`. Raises: StoreError."""
        while True:
            found = await self._site.change(
                "reserve_key",
                tenant=tenant,
                key=key,
                lane=wanted.lane,
                fingerprint=wanted.fingerprint,
                now=now,
                cutoff=cutoff,
            )
            if found:  # else another one wrote it just now: this statement does not see that yet
                return ReservedKey(*found[0])

    async def find_key(self, tenant: str, key: str, cutoff: int) -> ReservedKey | None:
        """Whose a key is, if somebody has asked after `cutoff`. Raises: StoreError."""
        found = await self._site.rows("find_lane_key", tenant=tenant, key=key, cutoff=cutoff)
        return ReservedKey(*found[0]) if found else None

    async def move_key(self, tenant: str, key: str, lane: int, to: int) -> None:
        """Give a key to another lane that no run of `lane` has. Raises: StoreError."""
        await self._site.change("move_lane_key", tenant=tenant, key=key, lane=lane, to=to)

    async def lane_of_run(self, tenant: str, run_id: str) -> int | None:
        found = await self._site.rows("lane_of_run", tenant=tenant, run_id=run_id)
        return int(found[0][0]) if found else None

    async def lanes_of_resource(self, tenant: str, resource_id: str) -> list[int]:
        found = await self._site.rows("lanes_of_resource", tenant=tenant, resource_id=resource_id)
        return [int(lane) for (lane,) in found]

    async def want_package(self, tenant: str, name: str, version: str, now: int) -> None:
        await self._site.change("put_want", tenant=tenant, name=name, version=version, now=now)

    async def wanted_packages(self) -> list[PackageWant]:
        return [PackageWant(*row) for row in await self._site.rows("lane_wants")]

    async def refuse_want(self, want: PackageWant, problem: bytes) -> None:
        await self._site.change(
            "refuse_want",
            tenant=want.tenant,
            name=want.name,
            version=want.version,
            problem=problem,
        )

    async def forget_want(self, want: PackageWant) -> None:
        await self._site.change(
            "delete_want", tenant=want.tenant, name=want.name, version=want.version
        )

    # -- whose something is --------------------------------------------------------------------

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


def _row_of(node_id: str, url: str, is_leaving: bool = False, loads: str = "") -> dict[str, Any]:
    return {
        "node_id": node_id,
        "url": url,
        "version": astraflow.__version__,
        "facts_version": FACTS_VERSION,
        "is_leaving": is_leaving,
        "loads": loads,
    }
