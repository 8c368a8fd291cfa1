"""The PostgreSQL store: one connection that writes, a few that read.

A commit is one statement, and so one transaction and one round trip: every table gets its rows as arrays, and all of
them hang on the row that carries the epoch. When a connection dies in a commit nobody knows what the server did. The
next connection makes itself the only writer first, which waits for what is still under way and shuts out what may come
later; only then does it read what was written (R16).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core import errors
from astraflow.core.errors import Conflict, StoreError
from astraflow.store import retention as pieces
from astraflow.store.content import MAX_INTEGER, check_changes, check_row, check_values, refused
from astraflow.store.postgres_holdings import PostgresHoldings
from astraflow.store.postgres_link import connect, make_pool, migrate, part, reading, writing
from astraflow.store.postgres_rows import commit_arguments
from astraflow.store.queries import load_queries
from astraflow.store.reading import LAST, run_row, worker_row, workflow_row
from astraflow.store.retention import (
    PIECE_BYTES,
    PIECE_ROWS,
    PIECE_RUNS,
    Finished,
    Span,
    beyond,
    cutoff_ms,
    pick,
)
from astraflow.store.rows import AuditRow, FactPage, PlanRow, Submission, TenantEvent
from astraflow.store.store import Claim, Swept, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from astraflow.core.runs.facts import RunStatus
    from astraflow.store.postgres_link import Connection
    from astraflow.store.rows import Changes, RunRow, WorkerRow, WorkflowRow
    from astraflow.store.store import Retention

__all__ = ["PostgresStore"]

TTL_S = 8.0
"""How long the claim of an owner that does not answer keeps others out; renew it several times within."""
GONE_S = 2.5
"""A claim whose owner has lost its connection is free so long after its last renewal. The owner, if it lives, renews
several times within, and comes back with another connection; so it does after a restart of the server."""
MAX_PAGES = 10_000
"""Pages that one read looks at."""


class PostgresStore(PostgresHoldings):
    """A `Store` in the schema `astraflow` of a PostgreSQL database."""

    def __init__(self, url: str, *, ttl_s: float = TTL_S) -> None:
        self._url = url
        self._ttl_s = ttl_s
        self._queries = load_queries("postgres")
        self._pool: Any = None
        self._connection: Connection = None
        self._writer = 0
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        assert self._pool is None, "the store is open"
        await migrate(self._url, self._queries)
        self._pool = await make_pool(self._url)

    async def close(self) -> None:
        """Wait for what is being written, and let the connections go."""
        async with self._lock:
            connection, self._connection = self._connection, None
            pool, self._pool = self._pool, None
            await part(connection, pool)

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        async with self._lock:
            if self._connection is None or self._connection.is_closed():
                self._connection = await connect(self._url)
            async with writing(self._connection):
                row = await self._connection.fetchrow(
                    self._queries["claim"], owner, self._ttl_s, GONE_S
                )
            if row is None:
                return None
            epoch, self._writer = row
            return Claim(owner, epoch, self._ttl_s)

    async def owner(self) -> str:
        (owner,) = await self._one("owner")
        return str(owner)

    async def renew(self, claim: Claim) -> bool:
        # Behind the commit that is under way: an owner whose commits hang must not keep others out.
        async with self._lock:
            connection = await self._find_connection(claim)
            if connection is None:
                return False
            async with writing(connection):
                found = await connection.fetchval(self._queries["renew"], claim.epoch, self._ttl_s)
        return found is not None

    async def release(self, claim: Claim) -> None:
        async with self._lock:
            connection = await self._find_connection(claim)
            if connection is not None:
                async with writing(connection):
                    await connection.execute(self._queries["release"], claim.epoch)

    async def _find_connection(self, claim: Claim) -> Connection | None:
        """The connection that may write under this claim. A new one shuts the former out."""
        self._get_pool()
        if self._connection is None or self._connection.is_closed():
            connection = await connect(self._url)
            async with reading(), AsyncExitStack() as undo:
                undo.callback(connection.terminate)
                writer = await connection.fetchval(self._queries["take_writer"], claim.epoch)
                if writer is None:
                    return None
                undo.pop_all()
            self._connection, self._writer = connection, writer
        return self._connection

    async def _get_connection(self, claim: Claim) -> Connection:
        connection = await self._find_connection(claim)
        if connection is None:
            raise _fenced(claim)
        return connection

    # -- writing ----------------------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        arguments = commit_arguments(changes)
        async with self._lock:
            connection = await self._get_connection(claim)
            async with writing(connection):
                is_written = await connection.fetchval(
                    self._queries["commit"], claim.epoch, number, self._writer, *arguments
                )
            if not is_written:
                raise await self._stale(connection, claim, number)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        async with self._lock:
            connection = await self._get_connection(claim)
            async with reading():
                epoch, last = await connection.fetchrow(self._queries["shard"])
        if epoch != claim.epoch:
            raise _fenced(claim)
        return bool(last >= number)

    async def _stale(self, connection: Connection, claim: Claim, number: int) -> StoreError:
        async with reading():
            epoch, last = await connection.fetchrow(self._queries["shard"])
        if epoch != claim.epoch or last < number:
            return _fenced(claim)  # by a higher epoch, or by a later connection of our own
        return refused(f"commit {number} does not follow the last one: {last}")

    @asynccontextmanager
    async def _transaction(self, claim: Claim) -> AsyncIterator[Connection]:
        async with self._lock:
            connection = await self._get_connection(claim)
            async with writing(connection), connection.transaction():
                if await connection.fetchval(self._queries["fence"], claim.epoch) is None:
                    raise _fenced(claim)
                yield connection

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, keep: int | None = None
    ) -> None:
        check_row(row)
        async with self._transaction(claim) as connection:
            key = (row.tenant, row.workflow_id)
            if row.version == 1:
                found = await connection.fetchval(
                    self._queries["create_workflow"], *key, row.updated_at
                )
            else:
                found = await connection.fetchval(
                    self._queries["follow_workflow"], *key, row.version, row.updated_at
                )
            if found is None:
                raise Conflict(
                    errors.WORKFLOW_CONFLICT,
                    f"the stored version is not the one before {row.version}: {row.workflow_id}",
                )
            await connection.execute(
                self._queries["insert_workflow_version"], *msgspec.structs.astuple(row)
            )
            if keep is not None:
                await connection.execute(
                    self._queries["delete_workflow_versions"], *key, row.version - keep
                )

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool:
        check_values(tenant, workflow_id)
        async with self._transaction(claim) as connection:
            found = await connection.fetchval(self._queries["delete_workflow"], tenant, workflow_id)
        return found is not None

    async def sweep(self, claim: Claim, retention: Retention, now_ms: int) -> Swept:
        oldest = [
            Finished(run_id, plan_id, at, int(size))
            for run_id, plan_id, at, size in await self._all("oldest_finished", PIECE_RUNS + 1)
        ]
        (finished,) = await self._one("count_finished_runs")
        (held,) = await self._one("held_bytes")
        picked, has_more = pick(oldest, retention, now_ms, finished, held)
        events_cutoff = cutoff_ms(now_ms, retention.tenant_events_s)
        audit_cutoff = cutoff_ms(now_ms, retention.audit_s)
        async with self._transaction(claim) as connection:
            value, queries = connection.fetchval, self._queries
            runs = await value(queries["delete_runs"], [run.run_id for run in picked])
            plans = list({run.plan_id for run in picked})
            await connection.execute(queries["delete_unused_plans"], plans)
            has_pages = await value(queries["delete_doomed_pages"], PIECE_BYTES)
            await connection.execute(queries["forget_doomed"])
            events = audits = 0
            if events_cutoff is not None:
                events = await value(queries["delete_events"], events_cutoff, PIECE_ROWS)
            if audit_cutoff is not None:
                audits = await value(queries["delete_audits"], audit_cutoff, PIECE_ROWS)
            trimmed, cut = await self._trim(connection, retention)
            events, audits = events + trimmed, audits + cut
            keys = await value(queries["delete_submissions"], now_ms - pieces.KEY_MS, PIECE_ROWS)
            holdings = await self._remove_holdings(connection, now_ms)
        is_piece = max(events, audits, keys, holdings) >= PIECE_ROWS
        return Swept(runs, events, audits, more=has_more or has_pages or is_piece)

    async def _trim(self, connection: Connection, retention: Retention) -> tuple[int, int]:
        """Remove a piece of the events and audits that are too many; how many of each."""
        queries = self._queries
        spans = [Span(*row) for row in await connection.fetch(queries["event_spans"])]
        events = audits = 0
        for tenant, up_to in beyond(spans, retention.tenant_events):
            events += await connection.fetchval(queries["trim_events"], tenant, up_to)
        if retention.audits is not None:
            piece = (retention.audits, PIECE_ROWS)
            audits = await connection.fetchval(queries["trim_audits"], *piece)
        return events, audits

    # -- reading ----------------------------------------------------------------------------

    async def _all(self, name: str, *arguments: object) -> list[Any]:
        check_values(*arguments)
        async with reading():
            return list(await self._get_pool().fetch(self._queries[name], *arguments))

    async def _one(self, name: str, *arguments: object) -> Any:
        check_values(*arguments)
        async with reading():
            return await self._get_pool().fetchrow(self._queries[name], *arguments)

    def _get_pool(self) -> Any:
        if self._pool is None:
            raise StoreError(errors.STORE_UNAVAILABLE, "the store is closed")
        return self._pool

    async def active_runs(self) -> list[RunRow]:
        return [run_row(row) for row in await self._all("active_runs")]

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None:
        row = await self._one("find_run", run_id, tenant)
        return None if row is None else run_row(row)

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        at, run_id = LAST if before is None else before
        place = (tenant, at, run_id, limit)
        if status is not None and workflow_id is not None:
            rows = await self._all("list_runs_by_both", *place, status, workflow_id)
        elif status is not None:
            rows = await self._all("list_runs_by_status", *place, status)
        elif workflow_id is not None:
            rows = await self._all("list_runs_by_workflow", *place, workflow_id)
        else:
            rows = await self._all("list_runs", *place)
        return [run_row(row) for row in rows]

    async def find_plan(self, plan_id: str) -> PlanRow | None:
        row = await self._one("find_plan", plan_id)
        return None if row is None else PlanRow(*row)

    async def read_pages(
        self, run_id: str, after: int = 0, max_bytes: int = 4 * 1024**2
    ) -> list[FactPage]:
        rows = await self._all("read_pages", run_id, after, max_bytes, MAX_PAGES)
        return [FactPage(*row) for row in rows]

    async def submissions(self, since_ms: int) -> list[Submission]:
        return [Submission(*row) for row in await self._all("submissions", since_ms)]

    async def find_submission(self, tenant: str, key: str) -> Submission | None:
        row = await self._one("find_submission", tenant, key)
        return None if row is None else Submission(*row)

    async def workers(self) -> list[WorkerRow]:
        return [worker_row(row) for row in await self._all("workers")]

    async def find_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow | None:
        if version is None:
            row = await self._one("find_workflow", tenant, workflow_id)
        else:
            row = await self._one("find_workflow_version", tenant, workflow_id, version)
        return None if row is None else workflow_row(row)

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        at, workflow_id = LAST if before is None else before
        rows = await self._all("list_workflows", tenant, at, workflow_id, limit)
        return [workflow_row(row) for row in rows]

    async def event_heads(self) -> dict[str, int]:
        return {tenant: number for tenant, number in await self._all("event_heads")}

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]:
        return [TenantEvent(*row) for row in await self._all("tenant_events", tenant, after, limit)]

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        last = MAX_INTEGER if before is None else before
        rows = await self._all("audit", tenant, last, limit)
        return [(number, AuditRow(*row)) for number, *row in rows]

    async def usage(self) -> Usage:
        runs, active, version = await self._one("usage")
        (held,) = await self._one("held_bytes")
        return Usage(held, runs, active, version)


def _fenced(claim: Claim) -> StoreError:
    return StoreError(
        errors.STORE_FENCED, f"epoch {claim.epoch} has been followed by a later writer"
    )
