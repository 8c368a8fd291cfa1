"""The SQLite store: one thread that writes, two that read, one that copies the log, each with its own connection.

WAL, and a flush at every commit: only `synchronous=FULL` survives the loss of power. Readers see the last commit and
never wait for the writer. In memory there is one connection, and one thread does everything.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from astraflow.core.errors import StoreError
from astraflow.store import sqlite_reads as reads
from astraflow.store.content import check_changes, check_row, check_values
from astraflow.store.queries import load_queries
from astraflow.store.retention import pick
from astraflow.store.sqlite_file import (
    MEMORY,
    FileLock,
    connect_copier,
    connect_reader,
    connect_writer,
    speaking,
)
from astraflow.store.sqlite_holdings import SqliteHoldings
from astraflow.store.sqlite_writer import SqliteWriter
from astraflow.store.store import Claim, Swept
from astraflow.store.threads import CallQueue, CallThread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astraflow.core.runs.facts import RunStatus
    from astraflow.store.rows import (
        AuditRow,
        Changes,
        FactPage,
        PlanRow,
        RunRow,
        Submission,
        TenantEvent,
        WorkerRow,
        WorkflowRow,
    )
    from astraflow.store.store import Retention, Usage

__all__ = ["SqliteStore"]

READERS = 2
"""A long read (a history) beside short ones; more only compete for the interpreter."""

Answer = TypeVar("Answer")


class SqliteStore(SqliteHoldings):
    """A `Store` in one file, or in memory for `:memory:`."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._queries = load_queries("sqlite")
        self._lock: FileLock | None = None
        self._writes: CallQueue[SqliteWriter] = CallQueue()
        self._reads: CallQueue[sqlite3.Connection] = CallQueue()
        self._writer: CallThread[SqliteWriter] | None = None
        self._readers: list[CallThread[sqlite3.Connection]] = []
        # Nobody serves them before `open`.
        self._writes.end()
        self._reads.end()

    async def open(self) -> None:
        assert self._writer is None, "the store is open"
        if self.path != MEMORY:
            with speaking(self.path):
                self._lock = FileLock(self.path)
        self._writes, self._reads = CallQueue(), CallQueue()
        try:
            await self._start_writer()
            if self.path != MEMORY:
                for number in range(READERS):
                    await self._start_reader(number)
        except StoreError:
            await self.close()
            raise

    async def close(self) -> None:
        """Wait for what is being written, and let the file go."""
        try:
            await self._end_threads()
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    async def _end_threads(self) -> None:
        # Readers first: the last connection to close copies the log into the file and removes it.
        readers, self._readers = self._readers, []
        for _ in range(max(1, len(readers))):
            self._reads.end()
        for reader in readers:
            await reader.ended()
        writer, self._writer = self._writer, None
        self._writes.end()
        if writer is not None:
            await writer.ended()

    async def _start_writer(self) -> None:
        writes = self._writes

        def enter() -> SqliteWriter:
            writer = SqliteWriter(connect_writer(self.path, self._queries), self._queries)
            if self.path != MEMORY:
                writer.copy_log_with(connect_copier(self.path, self._queries), writes.post)
            return writer

        thread = CallThread("store-writer", writes, enter, SqliteWriter.close)
        await thread.start()
        self._writer = thread

    async def _start_reader(self, number: int) -> None:
        thread = CallThread(
            f"store-reader-{number}",
            self._reads,
            partial(connect_reader, self.path, self._queries),
            sqlite3.Connection.close,
        )
        await thread.start()
        self._readers.append(thread)

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        epoch = await self._writes.call(lambda writer: writer.claim(owner))
        return Claim(owner, epoch, None)

    async def owner(self) -> str:
        return await self._read(reads.owner)

    async def renew(self, claim: Claim) -> bool:
        epoch, _ = await self._writes.call(SqliteWriter.shard)
        return epoch == claim.epoch

    async def release(self, claim: Claim) -> None:
        await self._writes.call(lambda writer: writer.release(claim.epoch))

    # -- writing ----------------------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        await self._writes.call(lambda writer: writer.commit(claim.epoch, number, changes))

    async def is_committed(self, claim: Claim, number: int) -> bool:
        return await self._writes.call(lambda writer: writer.is_committed(claim.epoch, number))

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, keep: int | None = None
    ) -> None:
        check_row(row)
        await self._writes.call(lambda writer: writer.put_workflow(claim.epoch, row, keep))

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool:
        check_values(tenant, workflow_id)
        return await self._writes.call(
            lambda writer: writer.delete_workflow(claim.epoch, tenant, workflow_id)
        )

    async def sweep(self, claim: Claim, retention: Retention, now_ms: int) -> Swept:
        # What to remove is found beside the writer; what is over stays over, so nothing changes in between.
        oldest, finished, held = await self._read(reads.finished)
        has_excess = await self._read(reads.has_excess, retention)
        # Before any run goes for the size of the file, what is too many of the rest must have gone.
        limits = msgspec.structs.replace(retention, max_bytes=None) if has_excess else retention
        runs, has_more = pick(oldest, limits, now_ms, finished, held)
        swept = await self._writes.call(
            lambda writer: writer.sweep(claim.epoch, runs, retention, now_ms)
        )
        return Swept(swept.runs, swept.events, swept.audits, more=swept.more or has_more)

    # -- reading ----------------------------------------------------------------------------

    async def active_runs(self) -> list[RunRow]:
        return await self._read(reads.active_runs)

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None:
        return await self._read(reads.find_run, tenant, run_id)

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        return await self._read(reads.list_runs, tenant, limit, before, status, workflow_id)

    async def find_plan(self, plan_id: str) -> PlanRow | None:
        return await self._read(reads.find_plan, plan_id)

    async def read_pages(
        self, run_id: str, after: int = 0, max_bytes: int = 4 * 1024**2
    ) -> list[FactPage]:
        return await self._read(reads.read_pages, run_id, after, max_bytes)

    async def submissions(self, since_ms: int) -> list[Submission]:
        return await self._read(reads.submissions, since_ms)

    async def find_submission(self, tenant: str, key: str) -> Submission | None:
        return await self._read(reads.find_submission, tenant, key)

    async def workers(self) -> list[WorkerRow]:
        return await self._read(reads.workers)

    async def find_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow | None:
        return await self._read(reads.find_workflow, tenant, workflow_id, version)

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        return await self._read(reads.list_workflows, tenant, limit, before)

    async def event_heads(self) -> dict[str, int]:
        return await self._read(reads.event_heads)

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]:
        return await self._read(reads.tenant_events, tenant, after, limit)

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        return await self._read(reads.audit, tenant, limit, before)

    async def usage(self) -> Usage:
        return await self._read(reads.usage)

    async def _read(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        check_values(*arguments)

        def ask(connection: sqlite3.Connection) -> Answer:
            return reads.ask(connection, self._queries, function, arguments)

        if self.path == MEMORY:
            return await self._writes.call(lambda writer: ask(writer.connection))
        return await self._reads.call(ask)
