"""Connections to PostgreSQL: settings, timeouts, the meaning of errors, and migrations."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

import astraflow
from astraflow.core import errors
from astraflow.core.errors import OutcomeUnknown, StoreError
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store.statements import load_migrations
from astraflow.store.written_facts import FACTS_VALUES, written_facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from astraflow.store.statements import Migration, Statements

CONNECT_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 10.0
"""The server cancels a statement after this timeout and says so: nothing was written."""
ANSWER_TIMEOUT_S = 12.0
"""The client gives up a little later: then the outcome is unknown."""
CLOSE_TIMEOUT_S = 3.0
IDLE_TRANSACTION_TIMEOUT_S = 5.0
"""The server ends a session that has stopped in a transaction, as a frozen process does. It holds the row of its shard
locked, which must not keep others from claiming it: well below the time to live of a claim."""
MIGRATION_TIMEOUT_S = 600.0
"""A migration may rewrite every row."""
READERS = 4

SETTINGS = {
    "application_name": "astraflow",
    "search_path": "astraflow",
    "synchronous_commit": "on",
    "statement_timeout": str(int(STATEMENT_TIMEOUT_S * 1000)),
    "jit": "off",
    # Every query has its index. A plan made while a table was empty must not be kept when it is full.
    "enable_seqscan": "off",
}
WRITE_SETTINGS = {
    **SETTINGS,
    # What writes goes by keys: one plan is good for all values. What reads is planned for those it is asked for,
    # because the best index for a status depends on how many runs have it.
    "plan_cache_mode": "force_generic_plan",
}
SHARD_SETTINGS = {
    **WRITE_SETTINGS,
    "idle_in_transaction_session_timeout": str(int(IDLE_TRANSACTION_TIMEOUT_S * 1000)),
}

_CODES: tuple[tuple[type[Exception], errors.Code], ...] = (
    (asyncpg.DiskFullError, errors.STORE_FULL),
    (asyncpg.IntegrityConstraintViolationError, errors.STORE_REFUSED),
    (asyncpg.exceptions.DataError, errors.STORE_REFUSED),
    (asyncpg.ProgramLimitExceededError, errors.STORE_REFUSED),
    (asyncpg.InsufficientPrivilegeError, errors.STORE_READ_ONLY),
    (asyncpg.ReadOnlySQLTransactionError, errors.STORE_READ_ONLY),
    (asyncpg.SyntaxOrAccessError, errors.STORE_BROKEN),  # somebody changed our tables
    (asyncpg.DataCorruptedError, errors.STORE_CORRUPT),
    (asyncpg.IndexCorruptedError, errors.STORE_CORRUPT),
    (asyncpg.PostgresIOError, errors.STORE_BROKEN),
)
Connection = Any
"""An `asyncpg.Connection`; asyncpg has no types."""
# The server closed the connection, or a timeout expired.
_LOST = (
    OSError,
    TimeoutError,
    asyncio.IncompleteReadError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InterfaceError,
    # What asyncpg says when the server ends a connection between two messages of one statement.
    asyncpg.InternalClientError,
)


async def connect(url: str, settings: Mapping[str, str] = WRITE_SETTINGS) -> Connection:
    """
    Raises:
        StoreError: the server cannot be reached, or does not let us in.
    """
    async with read_errors():
        try:
            return await asyncpg.connect(
                url,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=ANSWER_TIMEOUT_S,
                server_settings=dict(settings),
            )
        except asyncpg.ProtocolViolationError as error:
            if "startup parameter" in str(error):
                raise _pooler(str(error)) from error
            raise


def _pooler(said: str) -> StoreError:
    return StoreError(
        errors.STORE_POOLER, f"database_url names a connection pooler, such as PgBouncer: {said}"
    )


async def check_session(connection: Connection, statements: Statements) -> None:
    """
    Raises:
        StoreError: the settings of the session did not reach the server: a pooler that ignores them is in between.
    """
    path = await connection.fetchval(statements["search_path"].text)
    if path != SETTINGS["search_path"]:
        raise _pooler(f"the search_path is not ours: {path}")


async def make_pool(url: str) -> Any:
    async with read_errors():
        return await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=READERS,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=ANSWER_TIMEOUT_S,
            server_settings=SETTINGS,
            init=_only_read,
            reset=_keep_as_it_is,
        )


async def _only_read(connection: Connection) -> None:
    """Set after the connection is made: as a start-up setting it would make the server look like a standby to
    `target_session_attrs=read-write`."""
    await connection.execute("SET default_transaction_read_only = on")


async def _keep_as_it_is(connection: Connection) -> None:
    """Reads do not change the session, and a reset costs one more round trip for each read."""


@asynccontextmanager
async def read_errors() -> AsyncIterator[None]:
    """Turn the errors of a read into those of the store."""
    try:
        yield
    except (asyncpg.PostgresError, *_LOST) as error:
        raise StoreError(_code(error), f"postgresql: {_words(error)}") from error


@asynccontextmanager
async def write_errors(connection: Connection) -> AsyncIterator[None]:
    """Turn the errors of a write into those of the store. If the connection is lost, the outcome is unknown."""
    try:
        yield
    except asyncpg.QueryCanceledError as error:
        raise StoreError(errors.STORE_UNAVAILABLE, f"postgresql: {_words(error)}") from error
    except asyncpg.ReadOnlySQLTransactionError as error:
        connection.terminate()  # it is a standby now: the next connection finds the new primary
        raise StoreError(errors.STORE_UNAVAILABLE, f"postgresql: {_words(error)}") from error
    except _LOST as error:
        connection.terminate()
        raise OutcomeUnknown(errors.STORE_UNAVAILABLE, f"postgresql: {_words(error)}") from error
    except asyncpg.PostgresError as error:
        raise StoreError(_code(error), f"postgresql: {_words(error)}") from error


@asynccontextmanager
async def own_transaction(connection: Connection) -> AsyncIterator[None]:
    """A transaction that is over when this is, whatever happens: if it is not known to be, the connection is closed.

    Who is cancelled while BEGIN or ROLLBACK is under way leaves a transaction open. All that came later on the
    connection would be part of it: answered as committed, and gone with the connection.
    """
    try:
        async with connection.transaction():
            yield
    except asyncio.CancelledError:
        connection.terminate()  # what the server was told is not known
        raise
    finally:
        if not connection.is_closed() and connection.is_in_transaction():
            connection.terminate()


async def disconnect(connection: Connection, pool: Any) -> None:
    """Close the connection and the pool; terminate them after a timeout."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            if connection is not None:
                await connection.close()
            if pool is not None:
                await pool.close()
    except (asyncpg.PostgresError, *_LOST):
        if connection is not None:
            connection.terminate()
        if pool is not None:
            pool.terminate()


async def migrate(url: str, statements: Statements) -> None:
    """Bring the schema forward. Others who start at the same time wait until it is done."""
    settings = {**WRITE_SETTINGS, "statement_timeout": str(int(MIGRATION_TIMEOUT_S * 1000))}
    connection = await connect(url, settings)
    try:
        async with read_errors(), connection.transaction():
            await check_session(connection, statements)
            await connection.execute(statements["lock_schema"].text)
            await connection.execute(statements["create_schema"].text)
            await _step(connection, statements)
    finally:
        await disconnect(connection, None)


async def _step(connection: Connection, statements: Statements) -> None:
    version = 0
    migrations = load_migrations("postgres")
    if await connection.fetchval(statements["has_migrations"].text):
        version, software = await connection.fetchrow(statements["schema_writer"].text)
        if version > len(migrations) and not await is_readable(
            connection, statements, len(migrations)
        ):
            raise StoreError(
                errors.STORE_NEWER,
                f"astraflow {software} wrote the database with schema {version}, "
                f"this is {astraflow.__version__} with schema {len(migrations)}",
            )
    elif await connection.fetchval(statements["count_tables"].text):
        raise StoreError(errors.STORE_FOREIGN, "the schema astraflow belongs to another program")
    for migration in migrations[version:]:
        await step_forward(connection, statements, migration)
    if version == 0:  # nobody of a former release has seen it
        raised = statements["raise_written_facts"]
        await connection.execute(raised.text, *raised.arguments({"facts_version": FACTS_VERSION}))
    written_facts(await facts_values(connection, statements))


async def is_readable(connection: Connection, statements: Statements, version: int) -> bool:
    """Whether software of this schema can work with a newer one, as the newer one says."""
    count = statements["count_unreadable"]
    found = await connection.fetchval(count.text, *count.arguments({"version": version}))
    return bool(found == 0)


async def facts_values(connection: Connection, statements: Statements) -> dict[str, str]:
    """What the site says of the facts that are written."""
    find = statements["site_values"]
    names = find.arguments({"names": FACTS_VALUES})
    return {name: value for name, value in await connection.fetch(find.text, *names)}


async def step_forward(
    connection: Connection, statements: Statements, migration: Migration
) -> None:
    """Carry out one migration, in the transaction that is open."""
    await connection.execute(migration.text, timeout=MIGRATION_TIMEOUT_S)
    names = ["record_migration"] + ["record_readable"] * (migration.readable_by is not None)
    for record in map(statements.__getitem__, names):
        await connection.execute(record.text, *record.arguments(migration.record))


def _code(error: Exception) -> errors.Code:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return errors.STORE_UNAVAILABLE


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
