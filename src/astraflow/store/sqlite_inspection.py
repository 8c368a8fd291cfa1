"""Looking at a SQLite store without opening it as one: nothing is migrated, locked or changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.core.facts_version import FACTS_VERSION
from astraflow.store.inspection import Condition
from astraflow.store.retention import Usage
from astraflow.store.sqlite_file import (
    APPLICATION_ID,
    connect_reader,
    facts_values,
    file_errors,
    is_readable,
)
from astraflow.store.statements import load_migrations, statements_of
from astraflow.store.written_facts import stated_facts

MAX_PROBLEMS: Final = 100
"""A file that is damaged in more places is damaged."""


def inspect_file(path: Path) -> Condition:
    """
    Raises:
        StoreError: there is no such file, it is not ours, or it cannot be read.
    """
    statements = statements_of("sqlite")
    newest = len(load_migrations("sqlite"))
    with reading_file(path) as connection:
        (version,) = connection.execute(statements["schema_version"].text).fetchone()
        _, software = connection.execute(statements["schema_writer"].text).fetchone() or (0, "")
        usage = facts = None
        if version == newest or (version > newest and is_readable(connection, statements, newest)):
            facts = stated_facts(facts_values(connection, statements))
            if facts <= FACTS_VERSION:
                usage = Usage(*connection.execute(statements["usage"].text).fetchone())
    return Condition(version, newest, software, usage, facts_version=facts)


def check_file(path: Path) -> list[str]:
    """All that SQLite finds wrong with the file; it reads every page.

    Raises:
        StoreError: as `inspect_file`.
    """
    statements = statements_of("sqlite")
    with reading_file(path) as connection:
        damage = [
            said for (said,) in connection.execute(statements["check_pages"].text) if said != "ok"
        ]
        broken = [
            f"row {row} of {table} refers to a row of {parent} that is not there"
            for table, row, parent, _ in islice(
                connection.execute(statements["check_references"].text), MAX_PROBLEMS
            )
        ]
    return damage + broken


@contextmanager
def reading_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads a file of ours. Raises: StoreError."""
    if not path.is_file():
        raise StoreError(errors.STORE_READ_ONLY, f"there is no store yet: {path}")
    statements = statements_of("sqlite")
    with file_errors(str(path)), closing(connect_reader(str(path), statements)) as connection:
        (application,) = connection.execute(statements["application_id"].text).fetchone()
        if application != APPLICATION_ID:
            raise StoreError(errors.STORE_FOREIGN, f"the database of another program: {path}")
        yield connection
