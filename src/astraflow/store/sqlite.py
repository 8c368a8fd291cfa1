"""The SQLite store: one thread that writes, two that read, one that copies the log, each with its own connection.

WAL, and a flush at every commit: only `synchronous=FULL` survives the loss of power. Readers see the last commit and
never wait for the writer.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from astraflow.core.errors import StoreError
from astraflow.store.content import check_changes, check_values, refused
from astraflow.store.sqlite_file import (
    FileLock,
    connect_copier,
    connect_reader,
    connect_writer,
    file_errors,
    lengthen_log,
    read_rows,
)
from astraflow.store.sqlite_writer import SHARD, SqliteWriter
from astraflow.store.statements import statements_of
from astraflow.store.store import Claim, Store
from astraflow.store.threads import CallQueue, CallThread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from astraflow.store.database import RawRow, Transaction
    from astraflow.store.rows import Changes

READERS = 2
"""A long read (a history) beside short ones; more only compete for the interpreter."""

Answer = TypeVar("Answer")


class SqliteDatabase:
    """A `Database` in one file."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.shard = SHARD
        self.statements = statements_of("sqlite")
        self.writes: CallQueue[SqliteWriter] = CallQueue()
        self._lock: FileLock | None = None
        self._reads: CallQueue[sqlite3.Connection] = CallQueue()
        self._writer: CallThread[SqliteWriter] | None = None
        self._readers: list[CallThread[sqlite3.Connection]] = []
        # Nobody serves them before `open`.
        self.writes.end()
        self._reads.end()

    def of_shard(self, shard: int) -> SqliteDatabase:
        raise refused("a file has one owner: several schedulers need PostgreSQL", "/database_url")

    async def open(self) -> None:
        assert self._writer is None, "the store is open"
        with file_errors(self.path):
            self._lock = FileLock(self.path)
        self.writes, self._reads = CallQueue(), CallQueue()
        try:
            await self._start_writer()
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
        self.writes.end()
        if writer is not None:
            await writer.ended()

    async def _start_writer(self) -> None:
        writes = self.writes

        def enter() -> SqliteWriter:
            writer = SqliteWriter(connect_writer(self.path, self.statements), self.statements)
            with file_errors(self.path):
                lengthen_log(writer.connection, self.path, self.statements)
            writer.copy_log_with(connect_copier(self.path, self.statements), writes.post)
            return writer

        thread = CallThread("store-writer", writes, enter, SqliteWriter.close)
        await thread.start()
        self._writer = thread

    async def _start_reader(self, number: int) -> None:
        thread = CallThread(
            f"store-reader-{number}",
            self._reads,
            partial(connect_reader, self.path, self.statements),
            sqlite3.Connection.close,
        )
        await thread.start()
        self._readers.append(thread)

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        epoch = await self.writes.call(lambda writer: writer.claim(self.shard, owner))
        return Claim(owner, epoch, None, self.shard)

    async def renew(self, claim: Claim) -> bool:
        epoch, _ = await self.writes.call(lambda writer: writer.shard(claim.shard))
        return epoch == claim.epoch

    async def release(self, claim: Claim) -> None:
        await self.writes.call(lambda writer: writer.release(claim))

    # -- reading and writing ----------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        await self.writes.call(lambda writer: writer.commit(claim, number, changes))

    async def is_committed(self, claim: Claim, number: int) -> bool:
        return await self.writes.call(lambda writer: writer.is_committed(claim, number))

    async def write(
        self, claim: Claim, script: Callable[[Transaction], Awaitable[Answer]]
    ) -> Answer:
        return await self.writes.call(lambda writer: writer.run(claim, script))

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        return await self.rows_until(name, sqlite3.Cursor.fetchall, **values)

    async def rows_until(
        self, name: str, take: Callable[[sqlite3.Cursor], list[RawRow]], /, **values: object
    ) -> list[RawRow]:
        check_values(*values.values())
        statement = self.statements[name]
        return await self._reads.call(
            lambda connection: read_rows(connection, statement, values, take)
        )


class SqliteStore(Store):
    """A `Store` in one file."""

    database: SqliteDatabase

    def __init__(self, path: str | Path) -> None:
        super().__init__(SqliteDatabase(path))
