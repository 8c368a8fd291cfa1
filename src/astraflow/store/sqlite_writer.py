"""The writing half of the SQLite store. Everything here runs in the writer's thread.

A transaction that fails is rolled back. After an error that leaves the disk in doubt nothing more is written: a second
flush may succeed without having written what the first one lost.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.content import refused
from astraflow.store.rows import PlanRow, SubmissionRow
from astraflow.store.run_rows import settled, submissions_of
from astraflow.store.sqlite_checkpoint import Checkpointer
from astraflow.store.sqlite_file import store_error
from astraflow.store.tables import REMOVED, WRITTEN, keys_to_remove

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from astraflow.store.database import RawRow, Transaction
    from astraflow.store.rows import Changes, Row
    from astraflow.store.statements import Statements
    from astraflow.store.store import Claim

Answer = TypeVar("Answer")
_values = msgspec.structs.astuple
SHARD = 0
"""A file has one owner, and so one shard."""
SPARE_PAGES = 4_096
"""Free pages that are always kept: 16 MiB. To give them back and take them again would be twice the work."""
VACUUM_PAGES = 1_024
"""Pages that are given back at once (`give_pages_back`)."""
KEPT_BYTES = 1024**2
"""What a statement may keep of the plan that was written last."""
_FINAL = frozenset({errors.STORE_BROKEN, errors.STORE_CORRUPT})


class SqliteWriter:
    """Owns the connection that writes."""

    def __init__(self, connection: sqlite3.Connection, statements: Statements) -> None:
        self.connection = connection
        self.statements = statements
        self._begin = statements["begin"].text
        self._commit = statements["commit"].text
        self._puts = [(name, statements.put[kind].text) for name, kind in WRITTEN.items()]
        self._deletes = [(name, statements.delete[kind].text) for name, kind in REMOVED.items()]
        self._put_plan = statements.put[PlanRow].text
        self._put_submission = statements.put[SubmissionRow].text
        self._broken: StoreError | None = None
        self._checkpointer: Checkpointer | None = None

    def copy_log_with(
        self, copying: sqlite3.Connection, post: Callable[[Callable[[SqliteWriter], None]], None]
    ) -> None:
        """Let a thread with this connection copy the log; `post` brings a call into the writer's thread."""

        def on_copied(error: sqlite3.Error | None) -> None:
            post(lambda writer: writer.finish_checkpoint(error))

        self._checkpointer = Checkpointer(copying, self.statements, on_copied)

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

    def claim(self, shard: int, owner: str) -> int:
        with self._transaction() as transaction:
            ((epoch,),) = transaction.ask("claim", {"shard": shard, "owner": owner})
        assert isinstance(epoch, int)
        return epoch

    def release(self, claim: Claim) -> None:
        with self._transaction() as transaction:
            transaction.ask("release", {"shard": claim.shard, "epoch": claim.epoch})

    def shard(self, shard: int) -> tuple[int, int]:
        """The epoch of the newest claim, and the number of its last commit."""
        if self._broken is not None:
            raise self._broken
        statement = self.statements["shard"]
        arguments = statement.arguments({"shard": shard})
        try:
            epoch, number = self.connection.execute(statement.text, arguments).fetchone()
        except sqlite3.Error as error:
            raise self._judge(error) from error
        return epoch, number

    def is_committed(self, claim: Claim, number: int) -> bool:
        newest, last = self.shard(claim.shard)
        if newest != claim.epoch:
            raise self._stale(claim, number)
        return last >= number

    # -- writing ----------------------------------------------------------------------------

    def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        changes = settled(changes)
        fence = {"shard": claim.shard, "epoch": claim.epoch, "number": number}
        with self._transaction() as transaction:
            transaction.size = _size(changes)
            cursor = transaction.cursor
            transaction.ask("fence_commit", fence)
            if cursor.rowcount == 0:
                raise self._stale(claim, number)
            # What is gone goes first, because what is put stays; rows follow in the order of their references.
            for name, text in self._deletes:
                if getattr(changes, name):
                    cursor.executemany(text, keys_to_remove(changes, name))
            for name, text in self._puts:
                rows = getattr(changes, name)
                if rows:
                    cursor.executemany(text, map(_values, rows))
                    if name == "run_changes" and cursor.rowcount != len(rows):
                        raise refused("a run that is changed does not exist", "/run_changes")
            self._unbind_plans(cursor, changes.plans)
            if changes.runs:
                cursor.executemany(self._put_submission, map(_values, submissions_of(changes.runs)))

    def _unbind_plans(self, cursor: sqlite3.Cursor, plans: list[PlanRow]) -> None:
        """A statement keeps a copy of what was bound to it last: 28 MB of a plan of 50,000 nodes. A row that is stored
        is ignored, so that putting it again without its content only binds less."""
        if plans and len(plans[-1].definition) + len(plans[-1].plan) > KEPT_BYTES:
            cursor.execute(self._put_plan, (plans[-1].plan_id, b"", b""))

    def run(self, claim: Claim, script: Callable[[Transaction], Awaitable[Answer]]) -> Answer:
        """Run the script in one transaction under this claim."""
        with self._transaction() as transaction:
            if self.shard(claim.shard)[0] != claim.epoch:
                raise self._stale(claim, 0)
            return _finished(script(transaction))

    # -- one transaction --------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[SqliteTransaction]:
        """Everything in the block, or nothing of it."""
        if self._broken is not None:
            raise self._broken
        cursor = self.connection.cursor()
        transaction = SqliteTransaction(cursor, self.statements)
        changed = self.connection.total_changes
        try:
            cursor.execute(self._begin)
            yield transaction
            cursor.execute(self._commit)
        except sqlite3.Error as error:
            raise self._judge(error) from error
        finally:
            cursor.close()
            if self.connection.in_transaction:
                self._roll_back()
        if self._checkpointer is not None:
            rows = self.connection.total_changes - changed
            self._checkpointer.count(rows + transaction.freed_pages, transaction.size)

    def _roll_back(self) -> None:
        try:
            self.connection.execute(self.statements["rollback"].text)
        except sqlite3.Error as error:
            self._broken = store_error(error)

    def _judge(self, error: sqlite3.Error) -> StoreError:
        failure = store_error(error)
        if failure.code in _FINAL:
            self._broken = failure
        return failure

    def _stale(self, claim: Claim, number: int) -> StoreError:
        newest, last = self.shard(claim.shard)
        if newest != claim.epoch:
            return StoreError(
                errors.STORE_FENCED, f"epoch {claim.epoch} has been followed by epoch {newest}"
            )
        return refused(f"commit {number} does not follow the last one: {last}")


class SqliteTransaction:
    """A `Transaction`. Its coroutines never wait: they run in the writer's thread."""

    def __init__(self, cursor: sqlite3.Cursor, statements: Statements) -> None:
        self.cursor = cursor
        self.size = 0
        """The bytes of large values in it, for the length of the log."""
        self.freed_pages = 0
        self._statements = statements

    def ask(self, name: str, values: Mapping[str, object]) -> list[RawRow]:
        statement = self._statements[name]
        return self.cursor.execute(statement.text, statement.arguments(values)).fetchall()

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        return self.ask(name, values)

    async def change(self, name: str, /, **values: object) -> int:
        self.ask(name, values)
        assert self.cursor.rowcount >= 0, f"the text begins with no word of change: {name}"
        return self.cursor.rowcount

    async def put(self, row: Row) -> int:
        values = _values(row)
        self.size += sum(len(value) for value in values if isinstance(value, bytes))
        self.cursor.execute(self._statements.put[type(row)].text, values)
        return self.cursor.rowcount

    async def give_space_back(self) -> bool:
        """Shrink the file by a piece while much of it is free; what is free beyond that is used again."""
        ((free, total),) = self.ask("free_pages", {})
        if free <= max(SPARE_PAGES, total // 4):
            return False
        self.ask("give_pages_back", {})
        self.freed_pages += VACUUM_PAGES
        return True


def _finished(script: Awaitable[Answer]) -> Answer:
    """The answer of a coroutine that does not wait."""
    steps = script.__await__()
    try:
        next(steps)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    raise AssertionError("a script waits for something else than its transaction")


def _size(changes: Changes) -> int:
    """The bytes of what may be large."""
    size = sum(len(segment.body) for segment in changes.segments)
    size += sum(len(plan.definition) + len(plan.plan) for plan in changes.plans)
    size += sum(len(event.body) for event in changes.events)
    return size + sum(len(resource.metadata) for resource in changes.resources)
