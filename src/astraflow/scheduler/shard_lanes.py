"""Which lanes of which tenants live in the shard of a scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from astraflow.core.cluster.lanes import HOME_LANE, lane_name
from astraflow.core.engine.lanes import TenantLanes


class ShardLanes(Protocol):
    """As its process knows it now."""

    def lane_of(self, tenant: str) -> int | None:
        """The lane of a tenant that is in the shard; None: none is."""

    def several(self) -> Mapping[str, TenantLanes]:
        """Of the tenants with a lane in the shard, those that have several."""

    def opening(self) -> list[str]:
        """The tenants whose home is in the shard, and that have lanes which wait to be opened."""

    async def refresh(self) -> None:
        """Know what the store shows now. Raises: StoreError."""


class OnlyLanes:
    """One scheduler for all: each tenant has one lane, which is here."""

    def lane_of(self, tenant: str) -> int | None:
        return HOME_LANE

    def several(self) -> Mapping[str, TenantLanes]:
        return {}

    def opening(self) -> list[str]:
        return []

    async def refresh(self) -> None:
        pass


ONLY_LANES: Final = OnlyLanes()


def name_here(lanes: ShardLanes, tenant: str) -> str:
    """What the engine of the shard keeps of a tenant for itself is stored under this name. What it does for a tenant of
    another shard is stored as the tenant's."""
    return lane_name(tenant, lanes.lane_of(tenant) or HOME_LANE)
