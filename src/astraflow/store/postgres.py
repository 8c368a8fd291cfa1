"""The PostgreSQL store: one connection that writes, a few that read.

A commit is one statement, and so one transaction and one round trip: every table gets its rows as arrays, and all of
them hang on the row that carries the epoch. When a connection dies in a commit nobody knows what the server did. The
next connection makes itself the only writer first, which waits for what is still under way and shuts out what may come
later; only then does it read what was written (R16).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.cluster.parking import parking_of
from astraflow.core.errors import StoreError
from astraflow.store.content import check_changes, check_values, refused
from astraflow.store.postgres_commit import CommitStatements
from astraflow.store.postgres_connection import (
    SHARD_SETTINGS,
    connect,
    disconnect,
    make_pool,
    migrate,
    own_transaction,
    read_errors,
    write_errors,
)
from astraflow.store.run_rows import settled
from astraflow.store.statements import Statements, statements_of
from astraflow.store.store import HOME_SHARD, Claim, Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from astraflow.store.database import RawRow, Transaction
    from astraflow.store.postgres_connection import Connection
    from astraflow.store.rows import Changes, Row

TTL_S = 8.0
"""How long the claim of an owner that does not answer keeps others out; renew it several times within."""
GONE_S = 2.5
"""A claim whose owner has lost its connection is free so long after its last renewal. The owner, if it lives, renews
several times within, and comes back with another connection; so it does after a restart of the server."""
Answer = TypeVar("Answer")


class PostgresSite:
    """What all shards of one process share: the connections that read. It is open while one of its users is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.statements = statements_of("postgres")
        self.pool: Any = None
        self._users = 0
        self._opening = asyncio.Lock()
        self._changing = asyncio.Lock()
        self._connection: Connection = None

    async def open(self) -> None:
        async with self._opening:
            if self.pool is None:
                await migrate(self.url, self.statements)
                self.pool = await make_pool(self.url)
            self._users += 1

    async def close(self) -> None:
        async with self._opening:
            self._users -= 1
            if self._users == 0:
                pool, self.pool = self.pool, None
                async with self._changing:
                    connection, self._connection = self._connection, None
                    await disconnect(connection, pool)

    async def change(self, name: str, /, **values: object) -> list[RawRow]:
        """Change rows that belong to no claim, and return what the statement does. Raises: StoreError; the outcome may
        be unknown."""
        check_values(*values.values())
        statement = self.statements[name]
        async with self._changing:
            connection = await self._get_connection()
            async with write_errors(connection):
                arguments = statement.arguments(values)
                found: list[RawRow] = await connection.fetch(statement.text, *arguments)
        return found

    async def transact(self, script: Callable[[Transaction], Awaitable[Answer]]) -> Answer:
        """Change rows that belong to no claim in one transaction. Raises: StoreError; the outcome may be unknown."""
        async with self._changing:
            connection = await self._get_connection()
            async with write_errors(connection), own_transaction(connection):
                return await script(PostgresTransaction(connection, self.statements))

    async def _get_connection(self) -> Connection:
        if self.pool is None:
            raise _closed()
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self.url)
        return self._connection

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        check_values(*values.values())
        if self.pool is None:
            raise _closed()
        statement = self.statements[name]
        async with read_errors():
            found: list[RawRow] = await self.pool.fetch(
                statement.text, *statement.arguments(values)
            )
        return found


class PostgresDatabase:
    """A `Database` in the schema `astraflow`: the connections that read, and the shard that is written."""

    def __init__(self, site: PostgresSite, shard: int, ttl_s: float) -> None:
        self.site = site
        self.shard = shard
        self.shard_writer = PostgresShard(site.url, site.statements, shard, ttl_s)
        self.claim = self.shard_writer.claim
        self.renew = self.shard_writer.renew
        self.release = self.shard_writer.release
        self.commit = self.shard_writer.commit
        self.is_committed = self.shard_writer.is_committed
        self.write = self.shard_writer.write
        self._ttl_s = ttl_s
        self._is_open = False

    def of_shard(self, shard: int) -> PostgresDatabase:
        return PostgresDatabase(self.site, shard, self._ttl_s)

    async def open(self) -> None:
        assert not self._is_open, "the store is open"
        await self.site.open()
        self._is_open = True
        self.shard_writer.open()

    async def close(self) -> None:
        """Wait for what is being written, and let the connections go."""
        was_open, self._is_open = self._is_open, False
        await self.shard_writer.close()
        if was_open:
            await self.site.close()

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        if not self._is_open:
            raise _closed()
        return await self.site.rows(name, **values)

    async def rows_until(
        self, name: str, take: Callable[[Iterable[RawRow]], list[RawRow]], /, **values: object
    ) -> list[RawRow]:
        # The query has the same limit: what is not taken does not travel.
        return await self.rows(name, **values)


class PostgresShard:
    """What writes under the claim of one shard: one connection, which is the only one of its epoch that may."""

    def __init__(self, url: str, statements: Statements, shard: int, ttl_s: float) -> None:
        self._url = url
        self._statements = statements
        self._commits = CommitStatements()
        self._shard = shard
        self._ttl_s = ttl_s
        self._is_open = False
        self._lock = asyncio.Lock()
        self.connection: Connection = None
        self.writer = 0

    def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        async with self._lock:
            self._is_open = False
            connection, self.connection = self.connection, None
            await disconnect(connection, None)

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        async with self._lock:
            if self.connection is None or self.connection.is_closed():
                self.connection = await connect(self._url, SHARD_SETTINGS)
            async with write_errors(self.connection):
                row = await self._row("claim", owner=owner, ttl_s=self._ttl_s, gone_s=GONE_S)
            if row is None:
                return None
            epoch, self.writer, losses = row
            is_parked = parking_of(losses) != "open"
            return Claim(owner, epoch, self._ttl_s, self._shard, is_parked)

    async def renew(self, claim: Claim) -> bool:
        # Behind the commit that is under way: an owner whose commits hang must not keep others out.
        async with self._lock:
            connection = await self._find_connection(claim)
            if connection is None:
                return False
            async with write_errors(connection):
                found = await self._row("renew", epoch=claim.epoch, ttl_s=self._ttl_s)
        return found is not None

    async def release(self, claim: Claim) -> None:
        async with self._lock:
            connection = await self._find_connection(claim)
            if connection is not None:
                async with write_errors(connection):
                    await self._row("release", epoch=claim.epoch)

    async def _row(self, name: str, /, **values: object) -> RawRow:
        """The first row of what the shard's connection answers."""
        statement = self._statements[name]
        arguments = statement.arguments({"shard": self._shard, **values})
        return await self.connection.fetchrow(statement.text, *arguments)

    async def _find_connection(self, claim: Claim) -> Connection | None:
        """The connection that may write under this claim. A new one shuts the former out."""
        if not self._is_open:
            raise _closed()
        if self.connection is None or self.connection.is_closed():
            connection = await connect(self._url, SHARD_SETTINGS)
            take = self._statements["take_writer"]
            arguments = take.arguments({"shard": self._shard, "epoch": claim.epoch})
            async with read_errors(), AsyncExitStack() as undo:
                undo.callback(connection.terminate)
                writer = await connection.fetchval(take.text, *arguments)
                if writer is None:
                    return None
                undo.pop_all()
            self.connection, self.writer = connection, writer
        return self.connection

    async def _get_connection(self, claim: Claim) -> Connection:
        connection = await self._find_connection(claim)
        if connection is None:
            raise _fenced(claim)
        return connection

    # -- writing ----------------------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        async with self._lock:
            connection = await self._get_connection(claim)
            changes = settled(changes)
            statement = self._commits.choose(changes)
            arguments = statement.arguments(claim, self.writer, number, changes)
            async with write_errors(connection):
                is_written = await connection.fetchval(statement.text, *arguments)
            if not is_written:
                raise await self._stale(claim, number)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        async with self._lock:
            await self._get_connection(claim)
            async with read_errors():
                epoch, last = await self._row("shard")
        if epoch != claim.epoch:
            raise _fenced(claim)
        return bool(last >= number)

    async def _stale(self, claim: Claim, number: int) -> StoreError:
        async with read_errors():
            epoch, last = await self._row("shard")
        if epoch != claim.epoch or last < number:
            return _fenced(claim)  # by a higher epoch, or by a later connection of our own
        return refused(f"commit {number} does not follow the last one: {last}")

    async def write(
        self, claim: Claim, script: Callable[[Transaction], Awaitable[Answer]]
    ) -> Answer:
        async with self._lock:
            connection = await self._get_connection(claim)
            async with write_errors(connection), own_transaction(connection):
                if await self._row("fence", epoch=claim.epoch) is None:
                    raise _fenced(claim)
                return await script(PostgresTransaction(connection, self._statements))


class PostgresTransaction:
    """A `Transaction` on the connection that writes."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        statement = self._statements[name]
        return list(await self._connection.fetch(statement.text, *statement.arguments(values)))

    async def change(self, name: str, /, **values: object) -> int:
        statement = self._statements[name]
        return await self._execute(statement.text, statement.arguments(values))

    async def put(self, row: Row) -> int:
        return await self._execute(
            self._statements.put[type(row)].text, msgspec.structs.astuple(row)
        )

    async def _execute(self, text: str, arguments: Iterable[object]) -> int:
        said = await self._connection.execute(text, *arguments)
        return int(said.rpartition(" ")[2])  # `DELETE 3`, `INSERT 0 1`

    async def give_space_back(self) -> bool:
        return False  # autovacuum does it


class PostgresStore(Store):
    """A `Store` in the schema `astraflow` of a PostgreSQL database."""

    database: PostgresDatabase

    def __init__(self, url: str, *, ttl_s: float = TTL_S) -> None:
        super().__init__(PostgresDatabase(PostgresSite(url), HOME_SHARD, ttl_s))


def _closed() -> StoreError:
    return StoreError(errors.STORE_UNAVAILABLE, "the store is closed")


def _fenced(claim: Claim) -> StoreError:
    return StoreError(
        errors.STORE_FENCED, f"epoch {claim.epoch} has been followed by a later writer"
    )
