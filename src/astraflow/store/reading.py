"""Rows as a database hands them out, made into the rows of `store.rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astraflow.store.content import MAX_INTEGER
from astraflow.store.rows import RunRow, WorkerRow, WorkflowRow

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LAST", "run_row", "worker_row", "workflow_row"]

LAST = (MAX_INTEGER, "")
"""Beyond every (time, id): where a list begins."""


def run_row(row: Iterable[Any]) -> RunRow:
    found = dict(zip(RunRow.__struct_fields__, row, strict=True))
    found["cancel_requested"] = bool(found["cancel_requested"])
    return RunRow(**found)


def worker_row(row: Iterable[Any]) -> WorkerRow:
    return WorkerRow(**dict(zip(WorkerRow.__struct_fields__, row, strict=True)))


def workflow_row(row: Iterable[Any]) -> WorkflowRow:
    return WorkflowRow(**dict(zip(WorkflowRow.__struct_fields__, row, strict=True)))
