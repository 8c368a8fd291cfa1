"""The commit on PostgreSQL: one statement, made from the structs of the rows, and its arguments.

Every list of `Changes` is one part of the statement, and every column of it is one array. All parts hang on the row
that carries the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from astraflow.store.rows import Changes, SubmissionRow
from astraflow.store.run_rows import submissions_of
from astraflow.store.statements import compiled, conflict_text, load_queries
from astraflow.store.tables import REMOVED, WRITTEN, Table, keys_to_remove, table_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from astraflow.store.store import Claim
    from astraflow.store.tables import SqlType

_ARRAYS: dict[SqlType, str] = {
    "text": "text[]",
    "integer": "bigint[]",
    "boolean": "boolean[]",
    "bytes": "bytea[]",
}
_STEP: Final = ("segments",)
_END: Final = ("run_changes", *_STEP, "events")
_START: Final = ("plans", "runs", *_STEP, "events")
_LISTS: Final = (_STEP, _END, _START, (*_START, "run_changes"), Changes.__struct_fields__)
"""What a commit writes that lets runs go on, ends some, starts some, does all of it; or writes anything else."""
_values = msgspec.structs.astuple


class Fence(NamedTuple):
    """The first parameters of the statement."""

    shard: int
    epoch: int
    writer: int
    number: int
    held_bytes: int
    changed: int
    """Rows of runs that must be there to be changed."""


class CommitStatement:
    """Made once, from the query `commit` and the structs of the rows: for all lists of `Changes`, or for some."""

    def __init__(self, lists: Collection[str]) -> None:
        self._puts = [(name, table_of(kind)) for name, kind in WRITTEN.items() if name in lists]
        if "runs" in lists:
            self._puts.append(("submissions", table_of(SubmissionRow)))
        self._removals = [(name, table_of(kind)) for name, kind in REMOVED.items() if name in lists]
        writes = [_put_part(name, table) for name, table in self._puts]
        writes += [_removal_part(name, table) for name, table in self._removals]
        count = "(SELECT count(*) FROM put_run_changes)" if "run_changes" in lists else "0"
        query = load_queries("postgres")["commit"].replace("/* writes */", ", ".join(writes))
        query = query.replace("/* count */", count)
        self.text, self.names, _ = compiled(query, "postgres", Fence._fields)

    def arguments(self, claim: Claim, writer: int, number: int, changes: Changes) -> list[Any]:
        """A statement sees the tables as they were before it: `changes` are settled, and of several rows with one key
        only the last is written. A key that is both put and removed is put.
        """
        changed = {change.run_id: change for change in changes.run_changes}
        made: dict[str, Collection[Any]] = {
            "run_changes": changed.values(),
            "submissions": submissions_of(changes.runs),
        }
        held_bytes = sum(len(segment.body) for segment in changes.segments)
        fence = Fence(claim.shard, claim.epoch, writer, number, held_bytes, len(changed))
        arguments: list[Any] = [*fence]
        for name, table in self._puts:
            rows = made[name] if name in made else getattr(changes, name)
            if rows and table.kind.mode == "replace":
                assert table.key_of is not None
                rows = {table.key_of(row): row for row in rows}.values()
            arguments += zip(*map(_values, rows), strict=True) if rows else table.no_columns
        for name, table in self._removals:
            keys = keys_to_remove(changes, name)
            arguments += zip(*keys, strict=True) if keys else table.no_keys
        return arguments


class CommitStatements:
    """The statement for a commit. Each part costs both sides time even without rows, and each statement is prepared
    once: most commits have one of a few statements of a few parts."""

    def __init__(self) -> None:
        self._statements = [(frozenset(lists), CommitStatement(lists)) for lists in _LISTS]

    def choose(self, changes: Changes) -> CommitStatement:
        """The smallest one that has a part for each list with something in it."""
        used = {name for name in Changes.__struct_fields__ if getattr(changes, name)}
        return next(statement for lists, statement in self._statements if used <= lists)


def _arrays(name: str, table: Table[Any], columns: tuple[str, ...]) -> str:
    """The rows of a list as a table `given`."""
    arrays = ", ".join(f":{name}_{column}::{_ARRAYS[table.types[column]]}" for column in columns)
    return f"unnest({arrays}) AS given ({', '.join(columns)})"


def _is_given(table: Table[Any]) -> str:
    return " AND ".join(f"{table.name}.{column} = given.{column}" for column in table.key)


def _put_part(name: str, table: Table[Any]) -> str:
    given = _arrays(name, table, table.columns)
    if table.kind.mode == "change":
        changed = ", ".join(f"{column} = given.{column}" for column in table.others)
        return (
            f"put_{name} AS (UPDATE {table.name} SET {changed} FROM fence, {given} "  # noqa: S608
            f"WHERE {_is_given(table)} RETURNING true)"
        )
    columns = ", ".join(table.columns)
    values = ", ".join(f"given.{column}" for column in table.columns)
    return (
        f"put_{name} AS (INSERT INTO {table.name} ({columns}) "  # noqa: S608
        f"SELECT {values} FROM fence, {given}{conflict_text(table)})"
    )


def _removal_part(name: str, table: Table[Any]) -> str:
    given = _arrays(name, table, table.key)
    return f"{name} AS (DELETE FROM {table.name} USING fence, {given} WHERE {_is_given(table)})"  # noqa: S608
