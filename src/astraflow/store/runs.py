"""Runs: their rows, plans, facts and idempotency keys. Commits write them."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, NamedTuple

from astraflow.core.ids import RunId
from astraflow.store.content import MAX_INTEGER
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import FactSegment, PlanRow, RunRow, SubmissionRow
from astraflow.store.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from astraflow.core.contract.words import RunStatus
    from astraflow.store.database import Database, RawRow

FIRST_PAGE = (MAX_INTEGER, "")
"""Beyond every (time, id): the place before the first row of a list that begins with the newest."""
MAX_SEGMENTS = 10_000
"""Segments that one read looks at."""
_LISTS = {
    (False, False): "list_runs",
    (True, False): "list_runs_by_status",
    (False, True): "list_runs_by_workflow",
    (True, True): "list_runs_by_both",
}
_BODY = FactSegment.__struct_fields__.index("body")


_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


class RunFilter(NamedTuple):
    """Which runs; what is empty leaves out nothing. Times are wall-clock milliseconds, `until` is not in it."""

    status: str = ""
    workflow_id: str = ""
    trigger: str = ""
    submitted_by: str = ""
    text: str = ""
    """A part of the name or of the id; A to Z in whatever case."""
    since: int = 0
    until: int = MAX_INTEGER


def pattern_of(text: str) -> str:
    """What `LIKE` finds a text anywhere with. Only A to Z become small, as `lower` of both databases makes them:
    with `str.lower` a name with another capital letter would not be found as it is written."""
    plain = text.translate(_SMALL).replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{plain}%"


class StoredRuns:
    """Reads of what commits have written about runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def active_runs(self) -> list[RunRow]:
        return await all_rows(self._database, RunRow, "active_runs", shard=self._database.shard)

    async def find_run(self, tenant: str, run_id: RunId) -> RunRow | None:
        return await first_row(self._database, RunRow, "find_run", tenant=tenant, run_id=run_id)

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        """Newest first, by (created_at, run_id); `before` is the last one of the page before."""
        before_at, before_id = before or FIRST_PAGE
        return await all_rows(
            self._database,
            RunRow,
            _LISTS[status is not None, workflow_id is not None],
            tenant=tenant,
            limit=limit,
            before_at=before_at,
            before_id=before_id,
            status=status,
            workflow_id=workflow_id,
        )

    async def search_runs(
        self,
        tenant: str,
        wanted: RunFilter,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
    ) -> list[RunRow]:
        """As `list_runs`, of those that fit."""
        before_at, before_id = before or FIRST_PAGE
        return await all_rows(
            self._database,
            RunRow,
            "list_runs_by_filter",
            tenant=tenant,
            limit=limit,
            before_at=before_at,
            before_id=before_id,
            since=wanted.since,
            until=wanted.until,
            status=wanted.status,
            workflow_id=wanted.workflow_id,
            trigger=wanted.trigger,
            submitted_by=wanted.submitted_by,
            pattern=pattern_of(wanted.text),
        )

    async def find_plan(self, plan_id: str) -> PlanRow | None:
        return await first_row(self._database, PlanRow, "find_plan", plan_id=plan_id)

    async def read_segments(
        self, run_id: RunId, after: int = 0, max_bytes: int = 4 * 1024**2
    ) -> list[FactSegment]:
        """Segments whose last event is beyond `after`, in order, at least one if there is any.

        Read on from the last one until none comes.
        """
        found = await self._database.rows_until(
            "read_segments",
            _within(max_bytes),
            run_id=run_id,
            after=after,
            max_bytes=max_bytes,
            limit=MAX_SEGMENTS,
        )
        return list(map(table_of(FactSegment).decode, found))

    async def read_segments_back(
        self, run_id: RunId, before: int, max_bytes: int = 1024**2
    ) -> list[FactSegment]:
        """Segments whose first event is before event `before`, the last one first, at least one if there is any."""
        found = await self._database.rows_until(
            "read_segments_back",
            _within(max_bytes),
            run_id=run_id,
            before=before,
            max_bytes=max_bytes,
            limit=MAX_SEGMENTS,
        )
        return list(map(table_of(FactSegment).decode, found))

    async def submissions(self, since_ms: int) -> list[SubmissionRow]:
        """Idempotency keys used since then, oldest first, by (created_at, tenant, key).

        A key is kept for a day even if its run has been removed before.
        """
        shard = self._database.shard
        return await all_rows(
            self._database, SubmissionRow, "submissions", since=since_ms, shard=shard
        )

    async def find_submission(self, tenant: str, key: str) -> SubmissionRow | None:
        """The last use of an idempotency key, for as long as it is kept."""
        return await first_row(
            self._database, SubmissionRow, "find_submission", tenant=tenant, key=key
        )


def _within(max_bytes: int) -> Callable[[Iterable[RawRow]], list[RawRow]]:
    """Takes segments of so many bytes, and at least one."""

    def take(rows: Iterable[RawRow]) -> list[RawRow]:
        taken: list[RawRow] = []
        size = 0
        for row in rows:
            size += len(row[_BODY])
            if taken and size > max_bytes:
                break
            taken.append(row)
        return taken

    return take
