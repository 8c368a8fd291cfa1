"""The lanes of tenants, as an admin of the site sees and sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, LaneSeen, lane_name
from astraflow.core.contract.tenants import Lane, LaneList
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.security.policy import SITE_TENANT
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.serving import Parts


class TenantLaneService:
    """Use from the scheduler's loop."""

    def __init__(self, parts: Parts, current: Current) -> None:
        self._parts = parts
        self._current = current

    async def set(self, tenant: str, count: int, *, by: str) -> LaneList:
        """Raises: Conflict: there cannot be so many; StoreError."""
        cluster = self._parts.cluster
        if cluster is None:
            if count > 1:
                raise _refused("several lanes need PostgreSQL")
            return await self.get(tenant)
        has_several = len(await cluster.lanes_of(tenant)) > 1
        if count > 1 and not has_several and not self._parts.several_lanes:
            raise _refused("several lanes are on trial: the setting several_lanes is off")
        is_enough = await cluster.set_lanes(tenant, count)
        what, subject = "tenant.lanes", f"{tenant} {count}"
        self._current.execute(KeepAudit(tenant=tenant, by=by, what=what, subject=str(count)))
        if tenant != SITE_TENANT:
            self._current.execute(KeepAudit(tenant=SITE_TENANT, by=by, what=what, subject=subject))
        await self._current.writer.barrier()
        if not is_enough:
            raise _refused(
                "each lane of a tenant needs a shard of its own, and there are not enough"
            )
        return await self.get(tenant)

    async def get(self, tenant: str) -> LaneList:
        """Raises: StoreError."""
        cluster = self._parts.cluster
        if cluster is None:
            here = self._parts.scheduler_id
            waiting = self._current.engine.ask.waiting(tenant)
            alone = Lane(lane=HOME_LANE, state="open", shard=HOME_SHARD, node=here, waiting=waiting)
            return LaneList(tenant=tenant, lanes=[alone])
        owners = {one.shard: one.owner for one in await cluster.shards() if not one.is_free}
        loads: dict[str, int] = {}
        for node in await cluster.nodes():
            if node.is_live and node.loads:
                loads |= msgspec.json.decode(node.loads, type=dict[str, int])
        lanes = await cluster.lanes_of(tenant) or (LaneSeen(HOME_LANE, HOME_SHARD),)
        shown = [
            Lane(
                lane=one.lane,
                state=one.state,
                shard=one.shard,
                node=owners.get(one.shard),
                waiting=loads.get(lane_name(tenant, one.lane)),
            )
            for one in lanes
        ]
        return LaneList(tenant=tenant, lanes=shown)


def _refused(why: str) -> errors.Conflict:
    return errors.Conflict(errors.LANES_REFUSED, why)
