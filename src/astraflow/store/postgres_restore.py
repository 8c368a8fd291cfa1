"""Restoring a PostgreSQL store: one transaction, in which the schema is made anew and filled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from graphlib import TopologicalSorter
from typing import Any

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.backup import LEFT_OUT, RESTORED
from astraflow.store.postgres_connection import (
    MIGRATION_TIMEOUT_S,
    WRITE_SETTINGS,
    Connection,
    check_session,
    connect,
    disconnect,
    step_forward,
    write_errors,
)
from astraflow.store.rows import SiteRow
from astraflow.store.statements import Statements, load_migrations, statements_of
from astraflow.store.written_facts import FACTS_VALUES

LOCK_TIMEOUT_S = 10
"""How long another program may hold a table of ours."""


class PostgresTarget:
    """A `Target` in an open transaction."""

    def __init__(self, connection: Connection, statements: Statements, first_epoch: int) -> None:
        self._connection = connection
        self._statements = statements
        self._version = 0
        self._booleans: dict[str, set[str]] = {}
        self.first_epoch = first_epoch

    async def prepare(self, schema_version: int, epochs: dict[int, int]) -> list[str]:
        await self._step(schema_version)
        order: TopologicalSorter[str] = TopologicalSorter()
        for (name,) in await self._ask("all_tables"):
            if name not in LEFT_OUT:
                order.add(name)
        for child, parent in await self._ask("all_references"):
            if child not in LEFT_OUT and parent not in LEFT_OUT:
                order.add(child, parent)
        tables = list(order.static_order())
        for table in reversed(tables):  # a migration may have put something into it
            await self._connection.execute(f"DELETE FROM {table}")  # noqa: S608
        for table in tables:
            self._booleans[table] = {
                name for (name,) in await self._ask("boolean_columns", table=table)
            }
        for shard in epochs:
            await self._ask("add_shard", shard=shard)
        return tables

    async def columns(self, table: str) -> list[str]:
        return [name for (name,) in await self._ask("columns_of_table", table=table)]

    async def add(self, table: str, columns: Sequence[str], rows: list[list[Any]]) -> None:
        places = [place for place, name in enumerate(columns) if name in self._booleans[table]]
        for row in rows if places else ():  # SQLite has integers for them
            for place in places:
                row[place] = None if row[place] is None else bool(row[place])
        await self._connection.copy_records_to_table(
            table, records=rows, columns=list(columns), timeout=MIGRATION_TIMEOUT_S
        )

    async def site_values(self) -> dict[str, str]:
        return dict(await self._ask("site_values", names=FACTS_VALUES))

    async def finish(self, sequences: dict[str, int], epoch: int, note: str) -> None:
        for table, column, _ in await self._ask("numbered_tables"):
            number = sequences.get(table, 0)
            await self._ask("restart_sequence", table=table, column=column, number=number)
        await self._step(len(load_migrations("postgres")))
        await self._ask("restart_shards", epoch=epoch)
        await self._ask("raise_attempt_floors", floor=epoch)
        for shard, _ in await self._ask("all_epochs"):
            await self._connection.execute(
                self._statements.put[SiteRow].text, f"{RESTORED}{shard}", note
            )

    async def _step(self, version: int) -> None:
        for migration in load_migrations("postgres")[self._version : version]:
            await step_forward(self._connection, self._statements, migration)
        self._version = version

    async def _ask(self, name: str, /, **values: object) -> list[Any]:
        statement = self._statements[name]
        arguments = statement.arguments(values)
        found: list[Any] = await self._connection.fetch(
            statement.text, *arguments, timeout=MIGRATION_TIMEOUT_S
        )
        return found


@asynccontextmanager
async def postgres_target(url: str, *, replace: bool) -> AsyncIterator[PostgresTarget]:
    """
    Raises:
        StoreError: a scheduler holds a claim, the store is not empty, or it cannot be written.
        OutcomeUnknown: the connection was lost at the very end.
    """
    statements = statements_of("postgres")
    settings = {
        **WRITE_SETTINGS,
        "statement_timeout": str(int(MIGRATION_TIMEOUT_S * 1000)),
        "lock_timeout": f"{LOCK_TIMEOUT_S}s",
    }
    connection = await connect(url, settings)
    try:
        async with write_errors(connection), connection.transaction():
            await check_session(connection, statements)
            await connection.execute(statements["lock_schema"].text)
            epoch = await _clear(connection, statements, replace=replace)
            await connection.execute(statements["create_schema"].text)
            yield PostgresTarget(connection, statements, epoch)
    finally:
        await disconnect(connection, None)


async def _clear(connection: Connection, statements: Statements, *, replace: bool) -> int:
    """Remove what is there; the newest epoch of it. A scheduler that is about to claim waits for our lock, and finds
    the restored store."""
    if not await connection.fetchval(statements["has_migrations"].text):
        if await connection.fetchval(statements["count_tables"].text):
            raise StoreError(
                errors.STORE_FOREIGN, "the schema astraflow belongs to another program"
            )
        return 0
    shards = await connection.fetch(statements["lock_shards"].text)
    for owner, is_held, _ in shards:
        if is_held:
            raise StoreError(errors.STORE_LOCKED, f"The scheduler {owner} uses the store")
    for (name,) in await connection.fetch(statements["all_tables"].text):
        has_row = await connection.fetchval(f"SELECT 1 FROM {name} LIMIT 1")  # noqa: S608
        if has_row and name not in LEFT_OUT and not replace:
            raise StoreError(
                errors.STORE_NOT_EMPTY, f"There is a store already: schema astraflow, table {name}"
            )
    await connection.execute(statements["drop_schema"].text, timeout=MIGRATION_TIMEOUT_S)
    return max((epoch for _, _, epoch in shards), default=0)
