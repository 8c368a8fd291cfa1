"""Looking at a PostgreSQL store without opening it as one: nothing is migrated, claimed or changed."""

from __future__ import annotations

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store.inspection import Condition
from astraflow.store.postgres_connection import (
    check_session,
    connect,
    disconnect,
    facts_values,
    is_readable,
    read_errors,
)
from astraflow.store.retention import Usage
from astraflow.store.statements import load_migrations, statements_of
from astraflow.store.written_facts import stated_facts


async def inspect_database(url: str) -> Condition:
    """What is there; version 0 when a scheduler has yet to make it.

    Raises:
        StoreError: the server cannot be reached or does not let us in, or the schema belongs to another program.
    """
    statements = statements_of("postgres")
    newest = len(load_migrations("postgres"))
    connection = await connect(url)
    try:
        async with read_errors(), connection.transaction(readonly=True):
            await check_session(connection, statements)
            if not await connection.fetchval(statements["has_migrations"].text):
                if await connection.fetchval(statements["count_tables"].text):
                    raise StoreError(
                        errors.STORE_FOREIGN, "the schema astraflow belongs to another program"
                    )
                return Condition(0, newest, "", None)
            version, software = await connection.fetchrow(statements["schema_writer"].text)
            if version < newest or not await is_readable(connection, statements, newest):
                return Condition(version, newest, software, None)
            facts = stated_facts(await facts_values(connection, statements))
            usage = Usage(*await connection.fetchrow(statements["usage"].text))
            owner = await connection.fetchval(statements["held_by"].text, 0)
            shown = usage if facts <= FACTS_VERSION else None
            return Condition(version, newest, software, shown, owner, facts)
    finally:
        await disconnect(connection, None)
