"""A transaction's rows as the arguments of one statement: an array per column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.store.rows import Submission

if TYPE_CHECKING:
    from collections.abc import Collection, Container

    from astraflow.store.rows import Changes

__all__ = ["commit_arguments"]

_row = msgspec.structs.astuple


def commit_arguments(changes: Changes) -> list[Any]:
    """What follows the fence in the arguments of the query `commit`.

    A statement sees the tables as they were before it: a run that is made and changed at once is made as it ends up,
    and of several changes of one row only the last is written.
    """
    changed = {change.run_id: change for change in changes.run_changes}
    runs = []
    for run in changes.runs:
        change = changed.pop(run.run_id, None)
        if change is not None:
            run = msgspec.structs.replace(run, **msgspec.structs.asdict(change))
        runs.append(run)
    arguments: list[Any] = [sum(len(page.body) for page in changes.pages)]
    arguments += _columns(changes.pages, 4)
    arguments += _columns(changed.values(), 6)
    keys = {
        (run.tenant, run.idempotency_key): Submission(
            run.tenant, run.idempotency_key, run.fingerprint, run.run_id, run.created_at
        )
        for run in runs
        if run.idempotency_key is not None
    }
    workers = {(worker.tenant, worker.worker_id): worker for worker in changes.workers}
    arguments += _columns(changes.plans, 3)
    arguments += _columns(runs, 15)
    arguments += _columns(keys.values(), 5)
    arguments += _columns(workers.values(), 13)
    arguments += _columns(changes.events, 5)
    arguments += _columns(changes.audits, 7)
    arguments += _holdings(changes)
    arguments += _keys(changes.workers_gone, workers, 2)
    return arguments


def _holdings(changes: Changes) -> list[Any]:
    """What is put stays: a key that is both put and gone is put."""
    resources = {(one.tenant, one.worker_id, one.resource_id): one for one in changes.resources}
    affinities = {(one.tenant, one.key): one for one in changes.affinities}
    wishes = {(one.tenant, one.worker_id, one.name, one.version): one for one in changes.wishes}
    return [
        *_columns(resources.values(), 15),
        *_keys(changes.resources_gone, resources, 3),
        *_columns(affinities.values(), 5),
        *_keys(changes.affinities_gone, affinities, 2),
        *_columns(wishes.values(), 10),
        *_keys(changes.wishes_gone, wishes, 4),
    ]


def _keys(
    gone: Collection[tuple[str, ...]], put: Container[object], width: int
) -> list[tuple[str, ...]]:
    left = [key for key in gone if key not in put]
    return list(zip(*left, strict=True)) if left else [()] * width


def _columns(rows: Collection[msgspec.Struct], width: int) -> list[tuple[Any, ...]]:
    return list(zip(*map(_row, rows), strict=True)) if rows else [()] * width
