"""Looking at a PostgreSQL store without opening it as one: nothing is migrated, claimed or changed."""

from __future__ import annotations

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.inspection import Condition
from astraflow.store.postgres_link import check_session, connect, part, reading
from astraflow.store.queries import load_migrations, load_queries
from astraflow.store.store import Usage

__all__ = ["inspect_database"]


async def inspect_database(url: str) -> Condition:
    """What is there; version 0 when a scheduler has yet to make it.

    Raises:
        StoreError: the server cannot be reached or does not let us in, or the schema belongs to another program.
    """
    queries = load_queries("postgres")
    newest = len(load_migrations("postgres"))
    connection = await connect(url)
    try:
        async with reading(), connection.transaction(readonly=True):
            await check_session(connection, queries)
            if not await connection.fetchval(queries["has_migrations"]):
                if await connection.fetchval(queries["count_tables"]):
                    raise StoreError(
                        errors.STORE_FOREIGN, "the schema astraflow belongs to another program"
                    )
                return Condition(0, newest, "", None)
            version, software = await connection.fetchrow(queries["schema_version"])
            if version != newest:
                return Condition(version, newest, software, None)
            runs, active, _ = await connection.fetchrow(queries["usage"])
            held = await connection.fetchval(queries["held_bytes"])
            owner = await connection.fetchval(queries["held_by"])
            return Condition(version, newest, software, Usage(held, runs, active, version), owner)
    finally:
        await part(connection, None)
