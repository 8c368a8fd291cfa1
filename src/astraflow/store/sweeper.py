"""Retention: what is held, and the removal of what is past its limits, a bounded piece at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from astraflow.store import retention as limits_of
from astraflow.store.content import check_values
from astraflow.store.retention import (
    PIECE_BYTES,
    PIECE_ROWS,
    PIECE_RUNS,
    PIECE_SEGMENTS,
    Finished,
    Span,
    Swept,
    Usage,
    beyond,
    cutoff_ms,
    pick,
)

if TYPE_CHECKING:
    from astraflow.store.database import Database, Reader, Transaction
    from astraflow.store.store import Claim, Retention


class _Count(msgspec.Struct):
    """What a sweep counted under a claim, less what it has removed since: only the owner of the claim removes."""

    epoch: int
    finished: int
    plan_bytes: int
    """Bytes of plans that are not among those held."""


class Sweeper:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._count: _Count | None = None
        """After a piece with more to come. Counting takes as long as there is much, so a sweep counts once."""

    async def usage(self) -> Usage:
        ((held, runs, active, version),) = await self._database.rows("usage")
        return Usage(held, runs, active, version)

    async def sweep(self, claim: Claim, retention: Retention, now_ms: int) -> Swept:
        """Remove a bounded piece of what is past its retention. Active runs are never touched."""
        check_values(now_ms)
        # What to remove is found outside of the transaction: what is over stays over.
        count = await self._take_count(claim)
        ((held,),) = await self._database.rows("held_bytes")
        found = await self._database.rows("oldest_finished", limit=PIECE_RUNS + 1)
        # Before a run goes for the size of the store, the surplus of everything else must have gone.
        has_surplus = await _has_surplus(self._database, retention)
        limits = msgspec.structs.replace(retention, max_bytes=None) if has_surplus else retention
        oldest = [Finished(*row) for row in found]
        runs, has_more = pick(oldest, limits, now_ms, count.finished, held + count.plan_bytes)
        script = partial(
            _remove, shard=claim.shard, runs=runs, limits=retention, now_ms=now_ms, count=count
        )
        swept = await self._database.write(claim, script)
        if has_more or swept.more:
            self._count = count
            return msgspec.structs.replace(swept, more=True)
        return swept

    async def _take_count(self, claim: Claim) -> _Count:
        """What the piece before this one left, which is less than what is stored if runs have ended since. A sweep that
        failed leaves none: nobody knows what it removed."""
        count, self._count = self._count, None
        if count is not None and count.epoch == claim.epoch:
            return count
        ((finished, plan_bytes),) = await self._database.rows("count_held")
        return _Count(claim.epoch, finished, plan_bytes)


async def _has_surplus(reader: Reader, limits: Retention) -> bool:
    """Whether there are more events or audits than may be."""
    spans = [Span(*row) for row in await reader.rows("event_spans")]
    if beyond(spans, limits.tenant_events):
        return True
    ((audits,),) = await reader.rows("count_audits")
    return limits.audits is not None and audits > limits.audits


async def _remove(
    transaction: Transaction,
    *,
    shard: int,
    runs: list[Finished],
    limits: Retention,
    now_ms: int,
    count: _Count,
) -> Swept:
    """Remove these runs, and a piece of everything else that is past its retention. Both go off the count."""
    removed = await _remove_runs(transaction, runs, count)
    has_segments = await _remove_segments(transaction, shard)
    events = await _remove_events(transaction, limits, now_ms)
    audits = await _remove_audits(transaction, limits, now_ms)
    most = max(events, audits, await _remove_ended(transaction, now_ms))
    is_shrinking = await transaction.give_space_back()
    more = has_segments or most >= PIECE_ROWS or is_shrinking
    return Swept(removed, events, audits, more=more)


async def _remove_runs(transaction: Transaction, runs: list[Finished], count: _Count) -> int:
    if not runs:
        return 0
    run_ids = [run.run_id for run in runs]
    await transaction.change("doom_runs", run_ids=run_ids)
    removed = await transaction.change("delete_runs", run_ids=run_ids)
    plan_ids = sorted({run.plan_id for run in runs})
    plans = await transaction.rows("delete_unused_plans", plan_ids=plan_ids)
    count.finished -= removed
    count.plan_bytes -= sum(size for (size,) in plans)
    return removed


async def _remove_segments(transaction: Transaction, shard: int) -> bool:
    """Remove a piece of the segments of removed runs; whether some are left."""
    doomed = await transaction.rows("doomed_segments", limit=PIECE_SEGMENTS)
    size = taken = 0
    while taken < len(doomed) and size < PIECE_BYTES:
        size += doomed[taken][2]
        taken += 1
    if taken:
        run_id, last, _ = doomed[taken - 1]
        whole = sorted({row[0] for row in doomed[:taken]} - {run_id})
        await transaction.change("delete_segments", shard=shard, run_ids=whole)
        await transaction.change("delete_first_segments", shard=shard, run_id=run_id, last=last)
    await transaction.change("forget_doomed")
    return taken < len(doomed) or len(doomed) == PIECE_SEGMENTS


async def _remove_events(transaction: Transaction, limits: Retention, now_ms: int) -> int:
    removed = 0
    cutoff = cutoff_ms(now_ms, limits.tenant_events_s)
    if cutoff is not None:
        removed += await _remove_old_events(transaction, cutoff)
    spans = [Span(*row) for row in await transaction.rows("event_spans")]
    for tenant, last in beyond(spans, limits.tenant_events):
        removed += await transaction.change("delete_events", tenant=tenant, last=last)
    return removed


async def _remove_old_events(transaction: Transaction, cutoff: int) -> int:
    removed = 0
    for tenant, first, last in await transaction.rows(
        "old_events", cutoff=cutoff, piece=PIECE_ROWS
    ):
        left = PIECE_ROWS - removed
        if last is not None and left:
            upto = min(last, first + left - 1)
            removed += await transaction.change("delete_events", tenant=tenant, last=upto)
    return removed


async def _remove_audits(transaction: Transaction, limits: Retention, now_ms: int) -> int:
    removed = 0
    cutoff = cutoff_ms(now_ms, limits.audit_s)
    if cutoff is not None:
        ((last,),) = await transaction.rows("last_old_audit", cutoff=cutoff, piece=PIECE_ROWS)
        removed += await _remove_first_audits(transaction, last)
    if limits.audits is not None:
        keep = limits.audits
        ((last,),) = await transaction.rows("last_surplus_audit", keep=keep, piece=PIECE_ROWS)
        removed += await _remove_first_audits(transaction, last)
    return removed


async def _remove_first_audits(transaction: Transaction, last: int) -> int:
    """Remove the front of the audit, and note what is removed of each chain: nobody else removes anything."""
    if not last:
        return 0
    await transaction.change("note_removed_audits", last=last)
    return await transaction.change("delete_audits", last=last)


async def _remove_ended(transaction: Transaction, now_ms: int) -> int:
    """Remove a piece of what has its own term; the rows of the kind that had most of them."""
    most = 0
    for query, keep_ms in (
        ("delete_submissions", limits_of.KEY_MS),
        ("delete_lane_keys", limits_of.KEY_MS),
        ("delete_ended_resources", limits_of.RESOURCE_MS),
        ("delete_ended_intents", limits_of.INTENT_MS),
        ("delete_ended_rollouts", limits_of.ROLLOUT_MS),
        ("delete_ended_tokens", limits_of.TOKEN_MS),
    ):
        removed = await transaction.change(
            query,
            cutoff=now_ms - keep_ms,
            copy_cutoff=now_ms - limits_of.COPY_MS,
            piece=PIECE_ROWS,
        )
        most = max(most, removed)
    return most
