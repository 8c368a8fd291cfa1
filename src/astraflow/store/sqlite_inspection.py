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
from astraflow.store import sqlite_reads as reads
from astraflow.store.inspection import Condition
from astraflow.store.queries import load_migrations, load_queries
from astraflow.store.sqlite_file import APPLICATION_ID, connect_reader, speaking

__all__ = ["check_file", "inspect_file"]

MAX_PROBLEMS: Final = 100
"""A file that is damaged in more places is damaged."""


def inspect_file(path: Path) -> Condition:
    """
    Raises:
        StoreError: there is no such file, it is not ours, or it cannot be read.
    """
    queries = load_queries("sqlite")
    newest = len(load_migrations("sqlite"))
    with _reading(path) as connection:
        (version,) = connection.execute(queries["schema_version"]).fetchone()
        (software,) = connection.execute(queries["schema_writer"]).fetchone() or ("",)
        usage = reads.ask(connection, queries, reads.usage, ()) if version == newest else None
    return Condition(version, newest, software, usage)


def check_file(path: Path) -> list[str]:
    """All that SQLite finds wrong with the file; it reads every page.

    Raises:
        StoreError: as `inspect_file`.
    """
    queries = load_queries("sqlite")
    with _reading(path) as connection:
        damage = [said for (said,) in connection.execute(queries["check_pages"]) if said != "ok"]
        broken = [
            f"row {row} of {table} refers to a row of {parent} that is not there"
            for table, row, parent, _ in islice(
                connection.execute(queries["check_references"]), MAX_PROBLEMS
            )
        ]
    return damage + broken


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise StoreError(errors.STORE_READ_ONLY, f"there is no store yet: {path}")
    queries = load_queries("sqlite")
    with speaking(str(path)), closing(connect_reader(str(path), queries)) as connection:
        (application,) = connection.execute(queries["application_id"]).fetchone()
        if application != APPLICATION_ID:
            raise StoreError(errors.STORE_FOREIGN, f"the database of another program: {path}")
        yield connection
