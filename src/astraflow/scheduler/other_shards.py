"""What a scheduler asks of the other shards of its site, whoever owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from astraflow.core.cluster.lanes import HOME_LANE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.core.contract.events import RunSnapshot, WorkerLoad
    from astraflow.core.contract.reruns import BulkItem
    from astraflow.core.engine.queries import TenantUsage
    from astraflow.core.ids import RunId
    from astraflow.scheduler.bulk_runs import RunOrder
    from astraflow.scheduler.feed import Feed


class OtherShards(Protocol):
    """As its process knows them."""

    def lanes_of(self, tenant: str) -> Sequence[int]:
        """All lanes that a tenant has."""

    def feed_of(self, tenant: str, lane: int) -> Feed | None:
        """What is committed in a lane of a tenant, wherever that is; None: the lane is not known here yet."""

    async def snapshot(self, tenant: str, lane: int, run_id: RunId) -> RunSnapshot | None:
        """An active run, as its engine knows it; None: its owner does not answer. Raises: NotFound."""

    async def loads(self, tenant: str, lane: int) -> dict[str, WorkerLoad] | None:
        """What the workers of a tenant do, as the engine of a lane knows; None: its owner does not answer."""

    async def usages(self) -> dict[str, TenantUsage]:
        """What tenants use in all of their lanes; without those of which an owner does not answer."""

    async def carry_out(self, lane: int, order: RunOrder) -> BulkItem | None:
        """Have a lane carry out an order about one of its runs; None: its owner does not answer."""


class NoOtherShards:
    """One scheduler for all."""

    def lanes_of(self, tenant: str) -> Sequence[int]:
        return (HOME_LANE,)

    def feed_of(self, tenant: str, lane: int) -> Feed | None:
        return None

    async def snapshot(self, tenant: str, lane: int, run_id: RunId) -> RunSnapshot | None:
        return None

    async def loads(self, tenant: str, lane: int) -> dict[str, WorkerLoad] | None:
        return None

    async def usages(self) -> dict[str, TenantUsage]:
        return {}

    async def carry_out(self, lane: int, order: RunOrder) -> BulkItem | None:
        return None


NO_OTHER_SHARDS: Final = NoOtherShards()
