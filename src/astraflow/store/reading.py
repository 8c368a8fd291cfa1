"""Rows as a database hands them out, made into the rows of `store.rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astraflow.store.content import MAX_INTEGER
from astraflow.store.rows import (
    PackageRow,
    ResourceRow,
    RunRow,
    WishRow,
    WorkerRow,
    WorkflowRow,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "LAST",
    "LAST_RESOURCE",
    "package_row",
    "resource_row",
    "run_row",
    "wish_row",
    "worker_row",
    "workflow_row",
]

LAST = (MAX_INTEGER, "")
"""Beyond every (time, id): where a list begins."""
LAST_RESOURCE = (MAX_INTEGER, "", "")


def run_row(row: Iterable[Any]) -> RunRow:
    found = dict(zip(RunRow.__struct_fields__, row, strict=True))
    found["cancel_requested"] = bool(found["cancel_requested"])
    return RunRow(**found)


def worker_row(row: Iterable[Any]) -> WorkerRow:
    return WorkerRow(**dict(zip(WorkerRow.__struct_fields__, row, strict=True)))


def workflow_row(row: Iterable[Any]) -> WorkflowRow:
    return WorkflowRow(**dict(zip(WorkflowRow.__struct_fields__, row, strict=True)))


def package_row(row: Iterable[Any]) -> PackageRow:
    return PackageRow(**dict(zip(PackageRow.__struct_fields__, row, strict=True)))


def wish_row(row: Iterable[Any]) -> WishRow:
    return WishRow(**dict(zip(WishRow.__struct_fields__, row, strict=True)))


def resource_row(row: Iterable[Any]) -> ResourceRow:
    found = dict(zip(ResourceRow.__struct_fields__, row, strict=True))
    found["is_artifact"] = bool(found["is_artifact"])
    return ResourceRow(**found)
