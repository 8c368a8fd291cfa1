"""A snapshot of a PostgreSQL store: one transaction that only reads, at the level REPEATABLE READ.

It takes no lock that a commit waits for. Rows that are removed meanwhile stay on the server's disk until it is over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.backup import LEFT_OUT
from astraflow.store.backup_file import PIECE_BYTES, StoreSnapshot
from astraflow.store.postgres_connection import (
    SETTINGS,
    Connection,
    check_session,
    connect,
    disconnect,
    read_errors,
)
from astraflow.store.statements import Statements, statements_of

MAX_ROWS = 512
"""Rows that are asked for at once, at most; fewer where they are large."""
BACKUP_SETTINGS = {
    **SETTINGS,
    "enable_seqscan": "on",  # every row is read, once
    "idle_in_transaction_session_timeout": "0",
}


class PostgresSource:
    """A `Source` on one connection."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements
        self.tables: dict[str, list[str]] = {}

    async def look(self) -> None:
        """Read what stands in the manifest. The first statement takes the snapshot."""
        fetch, texts = self._connection.fetch, self._statements
        ((version, software),) = await fetch(texts["schema_writer"].text)
        epochs = {shard: epoch for shard, epoch in await fetch(texts["all_epochs"].text)}
        sequences = {table: last for table, _, last in await fetch(texts["numbered_tables"].text)}
        self.snapshot = StoreSnapshot("postgres", version, software, epochs, sequences)
        for (name,) in await fetch(texts["all_tables"].text):
            if name not in LEFT_OUT:
                found = await fetch(texts["columns_of_table"].text, name)
                self.tables[name] = [column for (column,) in found]

    async def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[list[Any]]:
        # The names are those of the catalog.
        text = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
        async with read_errors():
            cursor = await self._connection.cursor(text)
            count = 8
            while rows := await cursor.fetch(count):
                yield [tuple(row) for row in rows]
                largest = max(sum(map(_size, row)) for row in rows)
                count = max(1, min(MAX_ROWS, 2 * count, PIECE_BYTES // largest))


def _size(value: object) -> int:
    return len(value) if isinstance(value, bytes | str) else 8


@asynccontextmanager
async def postgres_source(url: str) -> AsyncIterator[PostgresSource]:
    """
    Raises:
        StoreError: the server cannot be reached or does not let us in, or there is no store.
    """
    statements = statements_of("postgres")
    connection = await connect(url, BACKUP_SETTINGS)
    try:
        async with (
            read_errors(),
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await check_session(connection, statements)
            if not await connection.fetchval(statements["has_migrations"].text):
                raise StoreError(errors.STORE_READ_ONLY, "there is no store yet in the database")
            source = PostgresSource(connection, statements)
            await source.look()
            yield source
    finally:
        await disconnect(connection, None)
