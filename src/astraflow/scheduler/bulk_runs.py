"""Orders about many runs, each carried out in the lane of its run, whoever serves that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.contract.reruns import BulkItem
from astraflow.core.errors import AstraflowError
from astraflow.core.ids import RunId
from astraflow.scheduler.reruns import RerunOrder

if TYPE_CHECKING:
    from astraflow.scheduler.other_shards import OtherShards
    from astraflow.scheduler.reruns import Reruns
    from astraflow.scheduler.runs import Runs


class CancelOrder(msgspec.Struct, frozen=True, tag="cancel"):
    """A run that somebody cancels."""

    tenant: str
    run_id: RunId
    by: str


RunOrder = CancelOrder | RerunOrder

_order: Final[msgspec.msgpack.Decoder[RunOrder]] = msgspec.msgpack.Decoder(RunOrder)
encode_order: Final = msgspec.msgpack.Encoder().encode


def decode_order(body: bytes) -> RunOrder:
    """Raises: msgspec.DecodeError."""
    return _order.decode(body)


class BulkRuns:
    """Use from the scheduler's loop."""

    def __init__(self, runs: Runs, reruns: Reruns, others: OtherShards) -> None:
        self._runs = runs
        self._reruns = reruns
        self._others = others

    async def carry_out(self, lane: int, order: RunOrder) -> BulkItem:
        """In the lane of the run; what is refused is said in the item."""
        if lane == HOME_LANE or len(self._others.lanes_of(order.tenant)) <= 1:
            return await self.carry_out_here(order)
        done = await self._others.carry_out(lane, order)
        if done is not None:
            return done
        code = errors.SHARD_UNREACHABLE
        message = "the scheduler of the run does not answer; it may have been carried out"
        return BulkItem(run_id=order.run_id, code=code.code, message=message)

    async def carry_out_here(self, order: RunOrder) -> BulkItem:
        """Of a run whose lane is in this shard."""
        try:
            if isinstance(order, CancelOrder):
                await self._runs.cancel(order.tenant, order.run_id, order.by)
                return BulkItem(run_id=order.run_id)
            done = await self._reruns.submit(order)
        except AstraflowError as error:
            return BulkItem(run_id=order.run_id, code=error.code.code, message=error.message)
        return BulkItem(run_id=order.run_id, new_run_id=done.run.run_id)
