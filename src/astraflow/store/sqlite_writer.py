"""The writing half of the SQLite store. Everything here runs in the writer's thread.

A transaction that fails is rolled back. After an error that leaves the disk in doubt nothing more is written: a second
flush may succeed without having written what the first one lost.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.errors import Conflict, StoreError
from astraflow.store import retention
from astraflow.store.content import refused
from astraflow.store.rows import Submission
from astraflow.store.sqlite_checkpoint import Checkpointer
from astraflow.store.sqlite_file import store_error
from astraflow.store.sqlite_holdings import remove_holdings, write_holdings
from astraflow.store.store import Swept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from astraflow.store.retention import Finished
    from astraflow.store.rows import Changes, WorkflowRow
    from astraflow.store.store import Retention

__all__ = ["SqliteWriter"]

_row = msgspec.structs.astuple
SPARE_PAGES = 4_096
"""Free pages that are always kept: 16 MiB. To give them back and take them again would be twice the work."""
VACUUM_PAGES = 1_024
"""Pages that are given back at once (`give_pages_back`)."""
_FINAL = frozenset({errors.STORE_BROKEN, errors.STORE_CORRUPT})


class SqliteWriter:
    """Owns the connection that writes."""

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str]) -> None:
        self.connection = connection
        self.queries = queries
        self._broken: StoreError | None = None
        self._checkpointer: Checkpointer | None = None

    def copy_log_with(
        self, copying: sqlite3.Connection, post: Callable[[Callable[[SqliteWriter], None]], None]
    ) -> None:
        """Let a thread with this connection copy the log; `post` brings a call into the writer's thread."""

        def on_copied(error: sqlite3.Error | None) -> None:
            post(lambda writer: writer.finish_checkpoint(error))

        self._checkpointer = Checkpointer(copying, self.queries, on_copied)

    def finish_checkpoint(self, error: sqlite3.Error | None) -> None:
        assert self._checkpointer is not None
        try:
            if error is not None:
                raise error
            self._checkpointer.finish(self.connection)
        except sqlite3.Error as caught:
            self._judge(caught)

    def close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
        self.connection.close()

    # -- ownership --------------------------------------------------------------------------

    def claim(self, owner: str) -> int:
        with self.transaction() as cursor:
            (epoch,) = cursor.execute(self.queries["claim"], (owner,)).fetchone()
        assert isinstance(epoch, int)
        return epoch

    def release(self, epoch: int) -> None:
        with self.transaction() as cursor:
            cursor.execute(self.queries["release"], (epoch,))

    def shard(self) -> tuple[int, int]:
        """The epoch of the newest claim, and the number of its last commit."""
        if self._broken is not None:
            raise self._broken
        try:
            epoch, number = self.connection.execute(self.queries["shard"]).fetchone()
        except sqlite3.Error as error:
            raise self._judge(error) from error
        return epoch, number

    def is_committed(self, epoch: int, number: int) -> bool:
        newest, last = self.shard()
        if newest != epoch:
            raise self._stale(epoch, number)
        return last >= number

    # -- writing ----------------------------------------------------------------------------

    def commit(self, epoch: int, number: int, changes: Changes) -> None:
        queries = self.queries
        with self.transaction(_size(changes)) as cursor:
            cursor.execute(queries["fence_commit"], (number, epoch))
            if cursor.rowcount == 0:
                raise self._stale(epoch, number)
            # In the order of their references: a run needs its plan, a change its run.
            if changes.plans:
                cursor.executemany(queries["insert_plan"], map(_row, changes.plans))
            if changes.runs:
                cursor.executemany(queries["insert_run"], map(_row, changes.runs))
                cursor.executemany(queries["put_submission"], _submissions(changes))
            if changes.run_changes:
                cursor.executemany(queries["change_run"], map(_row, changes.run_changes))
                if cursor.rowcount != len(changes.run_changes):
                    raise refused("a run that is changed does not exist", "/run_changes")
            if changes.pages:
                cursor.executemany(queries["insert_page"], map(_row, changes.pages))
            if changes.workers_gone:
                cursor.executemany(queries["delete_worker"], changes.workers_gone)
            if changes.workers:
                cursor.executemany(queries["put_worker"], map(_row, changes.workers))
            if changes.events:
                cursor.executemany(queries["insert_event"], map(_row, changes.events))
            write_holdings(cursor, queries, changes)
            if changes.audits:
                cursor.executemany(queries["insert_audit"], map(_row, changes.audits))

    def put_workflow(self, epoch: int, row: WorkflowRow, keep: int | None) -> None:
        queries = self.queries
        with self.transaction(len(row.definition)) as cursor:
            self.fence(epoch)
            if row.version == 1:
                key = (row.tenant, row.workflow_id, row.updated_at)
                cursor.execute(queries["create_workflow"], key)
            else:
                head = (row.tenant, row.workflow_id, row.version, row.updated_at)
                cursor.execute(queries["follow_workflow"], head)
            if cursor.rowcount == 0:
                raise Conflict(
                    errors.WORKFLOW_CONFLICT,
                    f"the stored version is not the one before {row.version}: {row.workflow_id}",
                )
            cursor.execute(queries["insert_workflow_version"], _row(row))
            if keep is not None:
                oldest = (row.tenant, row.workflow_id, row.version - keep)
                cursor.execute(queries["delete_workflow_versions"], oldest)

    def delete_workflow(self, epoch: int, tenant: str, workflow_id: str) -> bool:
        with self.transaction() as cursor:
            self.fence(epoch)
            cursor.execute(self.queries["delete_workflow"], (tenant, workflow_id))
            return cursor.rowcount > 0

    # -- retention --------------------------------------------------------------------------

    def sweep(self, epoch: int, runs: list[Finished], limits: Retention, now_ms: int) -> Swept:
        """Remove these runs and a piece of everything else that is past its retention."""
        with self.transaction() as cursor:
            self.fence(epoch)
            removed = self._remove_runs(cursor, runs)
            has_pages = self._remove_doomed_pages(cursor)
            events = self._remove_events(cursor, limits, now_ms)
            audits = self._remove_audits(cursor, limits, now_ms)
            oldest_key = now_ms - retention.KEY_MS
            cursor.execute(self.queries["delete_submissions"], (oldest_key, retention.PIECE_ROWS))
            keys = cursor.rowcount
            holdings = remove_holdings(cursor, self.queries, now_ms)
            is_shrinking = self._give_back(cursor)
        if is_shrinking:
            self._count(VACUUM_PAGES)
        is_piece = max(events, audits, keys, holdings) >= retention.PIECE_ROWS
        return Swept(removed, events, audits, more=has_pages or is_piece or is_shrinking)

    def _remove_runs(self, cursor: sqlite3.Cursor, runs: list[Finished]) -> int:
        removed = 0
        for run in runs:
            cursor.execute(self.queries["delete_run"], (run.run_id,))
            if cursor.rowcount:
                removed += 1
                cursor.execute(self.queries["doom_run"], (run.run_id,))
        plans = {run.plan_id for run in runs}
        cursor.executemany(self.queries["delete_unused_plan"], ((plan,) for plan in plans))
        return removed

    def _remove_doomed_pages(self, cursor: sqlite3.Cursor) -> bool:
        """Whether pages of removed runs are left."""
        taken: list[tuple[int]] = []
        size = 0
        is_left = False
        for rowid, length in cursor.execute(self.queries["doomed_pages"]):
            if size >= retention.PIECE_BYTES:
                is_left = True
                break
            taken.append((rowid,))
            size += length
        cursor.executemany(self.queries["delete_page"], taken)
        cursor.execute(self.queries["forget_doomed"])
        return is_left

    def _remove_events(self, cursor: sqlite3.Cursor, limits: Retention, now_ms: int) -> int:
        removed = 0
        cutoff = retention.cutoff_ms(now_ms, limits.tenant_events_s)
        if cutoff is not None:
            cursor.execute(self.queries["old_events"], (cutoff, retention.PIECE_ROWS))
            removed += self._cut_events(cursor, cursor.fetchall())
        spans = [retention.Span(*row) for row in cursor.execute(self.queries["event_spans"])]
        return removed + self._cut_events(cursor, retention.beyond(spans, limits.tenant_events))

    def _cut_events(self, cursor: sqlite3.Cursor, up_to: list[tuple[str, int]]) -> int:
        """From the front of each stream, so that what is left has no gap (P17)."""
        removed = 0
        for place in up_to:
            cursor.execute(self.queries["delete_events"], place)
            removed += cursor.rowcount
        return removed

    def _remove_audits(self, cursor: sqlite3.Cursor, limits: Retention, now_ms: int) -> int:
        removed = 0
        cutoff = retention.cutoff_ms(now_ms, limits.audit_s)
        if cutoff is not None:
            cursor.execute(self.queries["delete_audits"], (retention.PIECE_ROWS, cutoff))
            removed += cursor.rowcount
        if limits.audits is not None:
            cursor.execute(self.queries["trim_audits"], (limits.audits, retention.PIECE_ROWS))
            removed += cursor.rowcount
        return removed

    def _give_back(self, cursor: sqlite3.Cursor) -> bool:
        """Shrink the file by a piece while much of it is free; what is free beyond that is used again."""
        (free,) = cursor.execute(self.queries["free_pages"]).fetchone()
        (total,) = cursor.execute(self.queries["page_count"]).fetchone()
        if free <= max(SPARE_PAGES, total // 4):
            return False
        cursor.execute(self.queries["give_pages_back"]).fetchall()
        return True

    # -- one transaction --------------------------------------------------------------------

    @contextmanager
    def transaction(self, size: int = 0) -> Iterator[sqlite3.Cursor]:
        """Everything in the block, or nothing of it. `size`: the bytes of large values in it, for the log's length."""
        if self._broken is not None:
            raise self._broken
        cursor = self.connection.cursor()
        changed = self.connection.total_changes
        try:
            cursor.execute(self.queries["begin"])
            yield cursor
            cursor.execute(self.queries["commit"])
        except sqlite3.Error as error:
            raise self._judge(error) from error
        finally:
            cursor.close()
            if self.connection.in_transaction:
                self._roll_back()
        self._count(self.connection.total_changes - changed, size)

    def _count(self, rows: int, size: int = 0) -> None:
        if self._checkpointer is not None:
            self._checkpointer.count(rows, size)

    def _roll_back(self) -> None:
        try:
            self.connection.execute(self.queries["rollback"])
        except sqlite3.Error as error:
            self._broken = store_error(error)

    def _judge(self, error: sqlite3.Error) -> StoreError:
        failure = store_error(error)
        if failure.code in _FINAL:
            self._broken = failure
        return failure

    def fence(self, epoch: int) -> None:
        """
        Raises:
            StoreError: a higher epoch has been claimed.
        """
        newest, _ = self.shard()
        if newest != epoch:
            raise self._stale(epoch, 0)

    def _stale(self, epoch: int, number: int) -> StoreError:
        newest, last = self.shard()
        if newest != epoch:
            return StoreError(
                errors.STORE_FENCED, f"epoch {epoch} has been followed by epoch {newest}"
            )
        return refused(f"commit {number} does not follow the last one: {last}")


def _size(changes: Changes) -> int:
    """The bytes of what may be large."""
    size = sum(len(page.body) for page in changes.pages)
    size += sum(len(plan.definition) + len(plan.plan) for plan in changes.plans)
    size += sum(len(event.body) for event in changes.events)
    return size + sum(len(resource.metadata) for resource in changes.resources)


def _submissions(changes: Changes) -> Iterator[tuple[object, ...]]:
    for run in changes.runs:
        if run.idempotency_key is not None:
            yield _row(
                Submission(
                    run.tenant, run.idempotency_key, run.fingerprint, run.run_id, run.created_at
                )
            )
