"""A snapshot of a SQLite store: one read transaction on its log, beside the scheduler that writes.

The writer never waits for it. The log cannot begin anew before the snapshot is over: it grows by what is written
meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from astraflow.store.backup import LEFT_OUT
from astraflow.store.backup_file import StoreSnapshot
from astraflow.store.sqlite_file import file_errors
from astraflow.store.sqlite_inspection import reading_file
from astraflow.store.statements import Statements, statements_of

ROWS_AT_ONCE = 256


class SqliteSource:
    """A `Source`. Its rows are read one by one, in the thread of the caller."""

    def __init__(self, connection: sqlite3.Connection, statements: Statements, path: Path) -> None:
        self._connection = connection
        self._path = path
        (version,) = connection.execute(statements["schema_version"].text).fetchone()
        _, software = connection.execute(statements["schema_writer"].text).fetchone() or (0, "")
        epochs = dict(connection.execute(statements["all_epochs"].text).fetchall())
        sequences = dict(connection.execute(statements["all_sequences"].text).fetchall())
        self.snapshot = StoreSnapshot("sqlite", version, software, epochs, sequences)
        self.tables = {
            name: columns_of(connection, statements, name)
            for (name,) in connection.execute(statements["all_tables"].text).fetchall()
            if name not in LEFT_OUT
        }

    async def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[list[Any]]:
        # The names are those of the catalog.
        text = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
        with file_errors(str(self._path)):
            cursor = self._connection.execute(text)
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                yield rows


def columns_of(connection: sqlite3.Connection, statements: Statements, table: str) -> list[str]:
    statement = statements["columns_of_table"]
    found = connection.execute(statement.text, statement.arguments({"table": table}))
    return [name for (name,) in found]


@asynccontextmanager
async def sqlite_source(path: Path) -> AsyncIterator[SqliteSource]:
    """
    Raises:
        StoreError: there is no such file, it is not ours, or it cannot be read.
    """
    statements = statements_of("sqlite")
    with reading_file(path) as connection:
        connection.execute(statements["begin_reading"].text)  # the first read takes the snapshot
        yield SqliteSource(connection, statements, path)
