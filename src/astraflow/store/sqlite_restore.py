"""Restoring a SQLite store: a new file beside the place of the store, which takes that place when it is whole.

The lock of the store is held from the first check on, so that no scheduler opens it meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.backup import LEFT_OUT, RESTORED
from astraflow.store.backup_file import flush_folder
from astraflow.store.rows import SiteRow
from astraflow.store.sqlite_backup import columns_of
from astraflow.store.sqlite_file import FileLock, file_errors, step_forward
from astraflow.store.sqlite_inspection import reading_file
from astraflow.store.statements import Statements, load_migrations, statements_of
from astraflow.store.written_facts import FACTS_VALUES


class SqliteTarget:
    """A `Target` in a file of its own. Nothing is flushed before the end: a file that is not whole is thrown away."""

    def __init__(
        self, connection: sqlite3.Connection, statements: Statements, first_epoch: int
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._version = 0
        self.first_epoch = first_epoch

    async def prepare(self, schema_version: int, epochs: dict[int, int]) -> list[str]:
        for name in ("use_auto_vacuum", "mark_as_ours", "write_unprotected", "begin"):
            self._ask(name)
        self._step(schema_version)
        tables = [name for (name,) in self._ask("all_tables") if name not in LEFT_OUT]
        for table in tables:  # a migration may have put something into it
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608
        for shard in epochs:
            self._ask("add_shard", shard=shard)
        return tables  # in any order: references are checked at the end

    async def columns(self, table: str) -> list[str]:
        return columns_of(self._connection, self._statements, table)

    async def add(self, table: str, columns: Sequence[str], rows: list[list[Any]]) -> None:
        marks = ", ".join("?" * len(columns))
        text = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        self._connection.executemany(text, rows)

    async def site_values(self) -> dict[str, str]:
        return dict(self._ask("site_values", names=FACTS_VALUES))

    async def finish(self, sequences: dict[str, int], epoch: int, note: str) -> None:
        self._step(len(load_migrations("sqlite")))
        self._gather_lanes()
        self._ask("restart_shards", epoch=epoch)
        self._ask("raise_attempt_floors", floor=epoch)
        for shard, _ in self._ask("all_epochs"):
            self._connection.execute(
                self._statements.put[SiteRow].text, (f"{RESTORED}{shard}", note)
            )
        for table, number in sequences.items():
            self._ask("forget_sequence", table=table)
            self._ask("restart_sequence", table=table, number=number)
        broken = self._ask("check_references")
        if broken:
            raise StoreError(
                errors.STORE_REFUSED,
                f"a row of {broken[0][0]} refers to a row of {broken[0][2]} that is not there",
            )
        self._ask("commit")

    def _gather_lanes(self) -> None:
        """One scheduler writes the store, and serves one shard."""
        for tenant, count in self._ask("divided_tenant"):
            raise errors.Refused(errors.BACKUP_LANES, f"Tenant {tenant} has {count} lanes")
        self._ask("gather_lanes")

    def _step(self, version: int) -> None:
        for migration in load_migrations("sqlite")[self._version : version]:
            step_forward(self._connection, self._statements, migration)
        self._version = version

    def _ask(self, name: str, /, **values: object) -> list[Any]:
        statement = self._statements[name]
        return self._connection.execute(statement.text, statement.arguments(values)).fetchall()


@asynccontextmanager
async def sqlite_target(path: Path, *, replace: bool) -> AsyncIterator[SqliteTarget]:
    """
    Raises:
        StoreError: a scheduler has the store open, it is not empty, or it cannot be written.
    """
    statements = statements_of("sqlite")
    made = path.with_name(f"{path.name}.restoring")
    with file_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(str(path))
    try:
        epoch = _check_place(path, statements, replace=replace)
        with file_errors(str(made)):
            made.unlink(missing_ok=True)
            os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(made, isolation_level=None)) as connection:
                yield SqliteTarget(connection, statements, epoch)
            _take_place(made, path, statements)
    finally:
        made.unlink(missing_ok=True)
        lock.release()


def _check_place(path: Path, statements: Statements, *, replace: bool) -> int:
    """The newest epoch of the store that is there."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with reading_file(path) as connection:
        tables = [name for (name,) in connection.execute(statements["all_tables"].text).fetchall()]
        for table in tables:
            has_row = connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608
            if has_row and table not in LEFT_OUT and not replace:
                raise StoreError(errors.STORE_NOT_EMPTY, f"There is a store already: {path}")
        if "shards" not in tables:
            return 0
        epochs = dict(connection.execute(statements["all_epochs"].text).fetchall())
    return max(epochs.values(), default=0)


def _take_place(made: Path, path: Path, statements: Statements) -> None:
    """The new file takes the place of the old one. The log of the old one goes first, into its own file: it would be
    read as the log of the new one."""
    handle = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    if path.exists():
        with closing(sqlite3.connect(path, isolation_level=None)) as old:
            old.execute(statements["leave_wal"].text)
    for side in ("-wal", "-shm"):
        if Path(f"{path}{side}").exists():
            raise StoreError(
                errors.STORE_CORRUPT, f"The log of the old store cannot be closed: {path}{side}"
            )
    os.replace(made, path)
    flush_folder(path.parent)
