"""Remove workers that have not connected for a long time, with their rows.

The row of a worker says when it was last seen; of one that stays connected it is written anew once a day, so that a
restart of the scheduler does not make it look old.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.engine.commands import ForgetWorker
from astraflow.store.retention import cutoff_ms

if TYPE_CHECKING:
    from astraflow.scheduler.writer import Writer

NOTE_MS: Final = 24 * 3600 * 1000
PIECE_WORKERS: Final = 200
"""Looked at in one sweep, the longest away first."""


def forget_stale_workers(writer: Writer, keep_s: float | None, now_ms: int) -> None:
    """`now_ms`: the time by which things may be removed, 0 while there is none."""
    cutoff = cutoff_ms(now_ms, keep_s)
    if cutoff is None:
        return
    noted = max(cutoff, now_ms - NOTE_MS)
    rows = writer.rows.workers.values()
    old = [row for row in rows if row.seen_at < noted]
    old.sort(key=lambda row: row.seen_at)
    # A scheduler that restarts has another engine soon: the next sweep looks again.
    with suppress(errors.Unavailable):
        for row in old[:PIECE_WORKERS]:
            is_stale = row.seen_at < cutoff
            writer.execute(
                ForgetWorker(tenant=row.tenant, worker_id=row.worker_id, is_stale=is_stale)
            )
