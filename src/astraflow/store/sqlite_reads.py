"""The reading half of the SQLite store: functions of a connection, run in a reader's thread."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, TypeVar

from astraflow.store.content import MAX_INTEGER
from astraflow.store.reading import LAST, run_row, worker_row, workflow_row
from astraflow.store.retention import PIECE_RUNS, Finished, Span, beyond
from astraflow.store.rows import (
    AuditRow,
    FactPage,
    PlanRow,
    RunRow,
    Submission,
    TenantEvent,
    WorkerRow,
    WorkflowRow,
)
from astraflow.store.sqlite_file import store_error
from astraflow.store.store import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from astraflow.store.store import Retention

__all__ = [
    "active_runs",
    "ask",
    "audit",
    "event_heads",
    "find_plan",
    "find_run",
    "find_submission",
    "find_workflow",
    "finished",
    "has_excess",
    "list_runs",
    "list_workflows",
    "owner",
    "read_pages",
    "submissions",
    "tenant_events",
    "usage",
    "workers",
]

Answer = TypeVar("Answer")
"""What a read answers with."""


class Reader:
    """A connection and the queries it can be asked."""

    __slots__ = ("_connection", "_queries")

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str]) -> None:
        self._connection = connection
        self._queries = queries

    def rows(self, name: str, *arguments: object) -> sqlite3.Cursor:
        return self._connection.execute(self._queries[name], arguments)

    def all(self, name: str, *arguments: object) -> list[Any]:
        return self.rows(name, *arguments).fetchall()

    def one(self, name: str, *arguments: object) -> Any:
        return self.rows(name, *arguments).fetchone()

    def number(self, name: str) -> int:
        (found,) = self.one(name)
        assert isinstance(found, int)
        return found


def ask(
    connection: sqlite3.Connection,
    queries: Mapping[str, str],
    function: Callable[..., Answer],
    arguments: Sequence[object],
) -> Answer:
    """Answer one read; its errors are the store's."""
    try:
        return function(Reader(connection, queries), *arguments)
    except sqlite3.Error as error:
        raise store_error(error) from error


def active_runs(reader: Reader) -> list[RunRow]:
    return [run_row(row) for row in reader.rows("active_runs")]


def find_run(reader: Reader, tenant: str, run_id: str) -> RunRow | None:
    row = reader.one("find_run", run_id, tenant)
    return None if row is None else run_row(row)


def list_runs(
    reader: Reader,
    tenant: str,
    limit: int,
    before: tuple[int, str] | None,
    status: str | None,
    workflow_id: str | None,
) -> list[RunRow]:
    at, run_id = LAST if before is None else before
    place = (tenant, at, run_id, limit)
    if status is not None and workflow_id is not None:
        rows = reader.rows("list_runs_by_both", *place, status, workflow_id)
    elif status is not None:
        rows = reader.rows("list_runs_by_status", *place, status)
    elif workflow_id is not None:
        rows = reader.rows("list_runs_by_workflow", *place, workflow_id)
    else:
        rows = reader.rows("list_runs", *place)
    return [run_row(row) for row in rows]


def find_plan(reader: Reader, plan_id: str) -> PlanRow | None:
    row = reader.one("find_plan", plan_id)
    return None if row is None else PlanRow(*row)


def read_pages(reader: Reader, run_id: str, after: int, max_bytes: int) -> list[FactPage]:
    pages: list[FactPage] = []
    size = 0
    rows = reader.rows("read_pages", run_id, after)
    for row in rows:
        page = FactPage(*row)
        size += len(page.body)
        if pages and size > max_bytes:
            break
        pages.append(page)
    rows.close()
    return pages


def find_submission(reader: Reader, tenant: str, key: str) -> Submission | None:
    row = reader.one("find_submission", tenant, key)
    return None if row is None else Submission(*row)


def submissions(reader: Reader, since_ms: int) -> list[Submission]:
    return [Submission(*row) for row in reader.rows("submissions", since_ms)]


def workers(reader: Reader) -> list[WorkerRow]:
    return [worker_row(row) for row in reader.rows("workers")]


def find_workflow(
    reader: Reader, tenant: str, workflow_id: str, version: int | None
) -> WorkflowRow | None:
    if version is None:
        row = reader.one("find_workflow", tenant, workflow_id)
    else:
        row = reader.one("find_workflow_version", tenant, workflow_id, version)
    return None if row is None else workflow_row(row)


def list_workflows(
    reader: Reader, tenant: str, limit: int, before: tuple[int, str] | None
) -> list[WorkflowRow]:
    at, workflow_id = LAST if before is None else before
    rows = reader.rows("list_workflows", tenant, at, workflow_id, limit)
    return [workflow_row(row) for row in rows]


def owner(reader: Reader) -> str:
    (name,) = reader.one("owner")
    return str(name)


def event_heads(reader: Reader) -> dict[str, int]:
    return dict(reader.all("event_heads"))


def tenant_events(reader: Reader, tenant: str, after: int, limit: int) -> list[TenantEvent]:
    return [TenantEvent(*row) for row in reader.rows("tenant_events", tenant, after, limit)]


def audit(
    reader: Reader, tenant: str, limit: int, before: int | None
) -> list[tuple[int, AuditRow]]:
    rows = reader.rows("audit", tenant, MAX_INTEGER if before is None else before, limit)
    return [(number, AuditRow(*row)) for number, *row in rows]


def usage(reader: Reader) -> Usage:
    return Usage(
        bytes=_held_bytes(reader),
        runs=reader.number("count_runs"),
        active_runs=reader.number("count_active_runs"),
        schema_version=reader.number("schema_version"),
    )


def has_excess(reader: Reader, limits: Retention) -> bool:
    """Whether there are more events or audits than may be. They are in the same file, but not in the room of runs."""
    spans = [Span(*row) for row in reader.rows("event_spans")]
    if beyond(spans, limits.tenant_events):
        return True
    return limits.audits is not None and reader.number("count_audits") > limits.audits


def finished(reader: Reader) -> tuple[list[Finished], int, int]:
    """The oldest finished runs, how many there are in all, and the bytes of the store."""
    oldest = [Finished(*row) for row in reader.rows("oldest_finished", PIECE_RUNS + 1)]
    return oldest, reader.number("count_finished_runs"), _held_bytes(reader)


def _held_bytes(reader: Reader) -> int:
    """What is in use of the file; its free pages are filled before it grows."""
    used = reader.number("page_count") - reader.number("free_pages")
    return used * reader.number("page_size")
