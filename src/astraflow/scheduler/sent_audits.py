"""What is audited of a tenant that lives in another shard: an admin of the site acts on any tenant, and somebody who
logs in at the issuer of the site may belong to any. So is what happens in a lane of a tenant that is not its home.

The chain of a tenant's audit is continued by the owner of its home alone. Another owner writes what it has to say with
what it did, in one transaction; the owner of the chain takes it from there and continues the chain, in one transaction,
too. So each is in the chain once, and none is lost.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.errors import STORE_UNAVAILABLE, StoreError
from astraflow.store.rows import SentAuditRow

if TYPE_CHECKING:
    from astraflow.core.fleet.facts import Audited
    from astraflow.scheduler.shard_lanes import ShardLanes
    from astraflow.scheduler.writer import Writer
    from astraflow.store.store import Claim, Store

LOOK_EVERY_S: Final = 1.0
PIECE: Final = 500


class SentAudits:
    """Which audits belong to the chain of another owner. Restored and discarded with an engine."""

    def __init__(self, claim: Claim | None, lanes: ShardLanes) -> None:
        self._claim = claim
        self._lanes = lanes
        self._count = 0

    def takes(self, fact: Audited) -> bool:
        is_home = self._lanes.lane_of(fact.tenant) == HOME_LANE
        return self._claim is not None and not is_home

    def send(self, fact: Audited) -> SentAuditRow:
        assert self._claim is not None
        self._count += 1
        sent_id = f"{self._claim.shard}.{self._claim.epoch:012d}.{self._count:012d}"
        return SentAuditRow(
            sent_id, fact.tenant, fact.at, fact.who, fact.action, fact.corr, fact.code, fact.subject
        )


async def keep_sent_audits(store: Store, writer: Writer) -> None:
    """Continue the chains of this shard with what others have sent, for ever. Raises: StoreError, Unavailable."""
    while True:
        if not await _keep_some(store, writer):
            await asyncio.sleep(LOOK_EVERY_S)


async def keep_restored_audits(store: Store, writer: Writer) -> None:
    """The same where nobody sends any: there are those of a site that was restored here. Never ends."""
    while await _keep_some(store, writer):
        pass
    await asyncio.Event().wait()


async def _keep_some(store: Store, writer: Writer) -> bool:
    """Whether there were any."""
    try:
        rows = await store.sent_audits(PIECE)
    except StoreError as error:
        if error.code is not STORE_UNAVAILABLE:
            raise
        rows = []  # no reason to stop serving: it is read again later
    for row in rows:
        command = KeepAudit(
            tenant=row.tenant, by=row.who, what=row.action, code=row.code, corr=row.corr,
            subject=row.subject, happened_at=row.at, sent_id=row.sent_id,
        )  # fmt: skip
        writer.execute(command)
    if rows:
        await writer.barrier()
    return bool(rows)
