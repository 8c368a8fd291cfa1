"""Workers that have not been there for long are forgotten, with what is kept about them.

The row of a worker says when it was last seen; of one that stays connected it is written anew once a day, so that a
restart of the scheduler does not make it look old.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.engine.forgetting import forget_worker, note_worker
from astraflow.core.engine.view import View
from astraflow.store.retention import cutoff_ms

if TYPE_CHECKING:
    from astraflow.scheduler.writer import Writer

__all__ = ["NOTE_MS", "PIECE_WORKERS", "forget_stale_workers"]

NOTE_MS: Final = 24 * 3600 * 1000
PIECE_WORKERS: Final = 200
"""Looked at in one sweep, the longest away first."""


def forget_stale_workers(writer: Writer, keep_s: float | None, now_ms: int) -> None:
    """`now_ms`: the time by which things may be removed, 0 while there is none."""
    cutoff = cutoff_ms(now_ms, keep_s)
    if cutoff is None:
        return
    noted = max(cutoff, now_ms - NOTE_MS)
    old = [row for row in writer.ledger.workers.values() if row.seen_at < noted]
    old.sort(key=lambda row: row.seen_at)
    gateway = writer.engine.gateway

    def look(view: View) -> None:
        for row in old[:PIECE_WORKERS]:
            worker = view.workers.find(row.tenant, row.worker_id)
            if worker is not None and worker.session_id is not None:
                note_worker(view, row.tenant, row.worker_id)
            elif row.seen_at < cutoff:
                forget_worker(view, gateway, row.tenant, row.worker_id)

    if old:
        # One that starts over has another engine soon: the next sweep looks again.
        with suppress(errors.Unavailable):
            writer.act(lambda now, at: writer.engine.operate(look, now, at))
