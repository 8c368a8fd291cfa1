"""Close stored values whose run was removed: they are kept for as long as the run that they are part of.

A re-run that took a result over refers to the values of the first run, and loses them with it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.engine.commands import CloseResource
from astraflow.core.expressions.stored_value import VALUE_TYPE

if TYPE_CHECKING:
    from astraflow.scheduler.writer import Writer
    from astraflow.store.store import Store

PIECE_VALUES: Final = 200
"""Closed in one sweep."""
BY: Final = "retention"


async def close_stale_values(store: Store, writer: Writer) -> int:
    """Close the values of runs that are not stored any more; returns how many were closed."""
    closed = 0
    gone: dict[tuple[str, str], bool] = {}
    for record in writer.engine.ask.resources_of_type(VALUE_TYPE):
        if record.run_id is None or record.blob is None:
            continue
        if writer.engine.ask.run(record.run_id) is not None:
            continue
        run = (record.tenant, record.run_id)
        if run not in gone:
            gone[run] = await store.find_run(record.tenant, record.run_id) is None
        if not gone[run]:
            continue
        with suppress(errors.Unavailable, errors.Conflict):
            writer.execute(
                CloseResource(
                    tenant=record.tenant,
                    by=BY,
                    subject=record.resource_id,
                    worker_id=record.worker_id,
                    resource_id=record.resource_id,
                )
            )
            closed += 1
        if closed >= PIECE_VALUES:
            break
    return closed
