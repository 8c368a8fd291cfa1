"""What tenants use of their quotas, in all shards and lanes of a site."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.engine.queries import TenantUsage
from astraflow.core.security.policy import SITE_TENANT
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.other_shards import OtherShards
    from astraflow.scheduler.shard_lanes import ShardLanes


class LaneUsage(NamedTuple):
    """What the engine of one lane counts."""

    lane: int
    usage: TenantUsage


class TenantUsages:
    """Use from the scheduler's loop."""

    def __init__(self, current: Current, lanes: ShardLanes, others: OtherShards) -> None:
        self._current = current
        self._lanes = lanes
        self._others = others

    async def of(self, tenants: Collection[str]) -> dict[str, TenantUsage]:
        """By tenant; one is missing if the owner of one of its lanes does not answer. Raises: Unavailable."""
        here = self.here(tenants)
        several = self._lanes.several()
        if all(tenant in here and tenant not in several for tenant in tenants):
            return {tenant: counted.usage for tenant, counted in here.items()}
        return await self._others.usages()

    def here(self, tenants: Iterable[str]) -> dict[str, LaneUsage]:
        """Of those with a lane in this shard. Raises: Unavailable."""
        ask, shard = self._current.engine.ask, self._current.claim.shard
        found = {}
        for tenant in tenants:
            lane = self._lanes.lane_of(tenant)
            is_site = tenant == SITE_TENANT and shard == HOME_SHARD
            is_known = lane != HOME_LANE or is_site or ask.tenant(tenant) is not None
            if lane is not None and is_known:
                found[tenant] = LaneUsage(lane, ask.usage(tenant))
        return found


def joined(counted: Iterable[LaneUsage]) -> TenantUsage:
    """What a tenant uses in all of its lanes. A worker has a session with each; the home counts them."""
    lanes = list(counted)
    return TenantUsage(
        sum(one.usage.runs for one in lanes),
        sum(one.usage.tasks for one in lanes),
        max((one.usage.workers for one in lanes if one.lane == HOME_LANE), default=0),
        sum(one.usage.disk_bytes for one in lanes),
        sum(one.usage.memory_bytes for one in lanes),
    )
