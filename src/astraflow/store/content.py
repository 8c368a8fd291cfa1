"""Checks of values that no back end can store. All back ends refuse them in the same words, before a write.

PostgreSQL cannot hold U+0000 in text, SQLite cannot hold lone surrogates, neither holds integers beyond 64 bits.
A row that one of them refused and another took would make them different stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.store.rows import ACTIVE_RUNS
from astraflow.store.tables import REMOVED, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.store.rows import (
        Changes,
        FactSegment,
        PackageRow,
        RunChange,
        RunRow,
        WorkflowRow,
    )

MAX_INTEGER = 2**63 - 1
MIN_INTEGER = -(2**63)


def check_changes(changes: Changes) -> None:
    """
    Raises:
        StoreError: a row cannot be stored; the pointer says which value of which row.
    """
    for name in WRITTEN:
        rows = getattr(changes, name)
        if rows and not (name == "segments" and _are_storable(rows)):
            _check_rows(name, rows)
    _check_statuses("runs", changes.runs)
    _check_statuses("run_changes", changes.run_changes)
    for name in REMOVED:
        keys = getattr(changes, name)
        if keys:
            check_values(*keys)


def check_row(row: msgspec.Struct) -> None:
    _check_rows(type(row).__name__, (row,))


def check_values(*values: object) -> None:
    """Refuse values that cannot be stored; they cannot be asked for either.

    Raises:
        StoreError: a value cannot be in any store.
    """
    for value in values:
        if isinstance(value, (tuple, list)):
            check_values(*value)
        elif isinstance(value, str) and not _is_storable(value):
            raise refused("a text holds U+0000 or a lone surrogate")
        elif isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
            raise refused("an integer is beyond 64 bits")


def refused(message: str, pointer: str | None = None) -> errors.StoreError:
    return errors.StoreError(errors.STORE_REFUSED, message, pointer=pointer)


def other_digest(row: PackageRow, stored: str) -> errors.Conflict:
    """What is published stays as it is: what was tested is what runs."""
    return errors.Conflict(
        errors.PKG_CONFLICT,
        f"{row.name} {row.version} is published with another content "
        f"({stored[:12]}…, not {row.sha256[:12]}…): give the changed package a new version",
    )


def stale_workflow(row: WorkflowRow) -> errors.Conflict:
    return errors.Conflict(
        errors.WORKFLOW_CONFLICT,
        f"the stored version is not the one before {row.version}: {row.workflow_id}",
    )


def stale_draft(workflow_id: str, stored: int) -> errors.Conflict:
    said = f"at revision {stored} by now" if stored else "gone by now"
    return errors.Conflict(errors.WORKFLOW_CONFLICT, f"the draft is {said}: {workflow_id}")


def _check_rows(table: str, rows: Iterable[msgspec.Struct]) -> None:
    for index, row in enumerate(rows):
        for field, value in zip(row.__struct_fields__, msgspec.structs.astuple(row), strict=True):
            kind = type(value)
            if kind is str:
                if not _is_storable(value):
                    raise refused(
                        f"a text holds U+0000 or a lone surrogate: {field}",
                        f"/{table}/{index}/{field}",
                    )
            elif kind is int and not MIN_INTEGER <= value <= MAX_INTEGER:
                raise refused(f"an integer is beyond 64 bits: {field}", f"/{table}/{index}/{field}")


def _are_storable(segments: list[FactSegment]) -> bool:
    """Whether all of them surely are. Segments are most of what is written: all texts are looked at as one."""
    ids = "".join([segment.run_id for segment in segments])
    numbers = [segment.first for segment in segments]
    numbers += [segment.last for segment in segments]
    is_inside = min(numbers) >= MIN_INTEGER and max(numbers) <= MAX_INTEGER
    return is_inside and ids.isascii() and "\0" not in ids


def _is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_statuses(table: str, rows: Iterable[RunRow | RunChange]) -> None:
    """A run is over exactly when it has an end: lists read the status, the sweep reads the time."""
    for index, row in enumerate(rows):
        if (row.finished_at is None) != (row.status in ACTIVE_RUNS):
            raise refused(
                f"a run that is {row.status} contradicts its finished_at: {row.finished_at}",
                f"/{table}/{index}/finished_at",
            )
