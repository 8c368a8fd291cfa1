"""A SQLite file as a store: the lock of its owner, connections, migrations, and the meaning of errors."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import astraflow
from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.statements import load_migrations
from astraflow.store.written_facts import FACTS_VALUES, written_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from astraflow.store.database import RawRow
    from astraflow.store.statements import Migration, Statement, Statements

MEMORY = ":memory:"
APPLICATION_ID = int.from_bytes(b"AstF")
LOG_BYTES = 2_000 * 4_120
"""What the log of a store takes from the start: about what it grows to before it begins anew (`LOG_PAGES`, each a page
with a head). To flush a commit that lengthens a file takes a third longer than to flush one that does not."""
BUSY_TIMEOUT_S = 5.0
"""How long a foreign program (a backup, a shell) may hold the file before a write is given up."""
_CODES = {
    sqlite3.SQLITE_FULL: errors.STORE_FULL,
    sqlite3.SQLITE_BUSY: errors.STORE_UNAVAILABLE,
    sqlite3.SQLITE_LOCKED: errors.STORE_UNAVAILABLE,
    sqlite3.SQLITE_CORRUPT: errors.STORE_CORRUPT,
    sqlite3.SQLITE_NOTADB: errors.STORE_FOREIGN,
    sqlite3.SQLITE_READONLY: errors.STORE_READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: errors.STORE_READ_ONLY,
    sqlite3.SQLITE_PERM: errors.STORE_READ_ONLY,
    sqlite3.SQLITE_CONSTRAINT: errors.STORE_REFUSED,
    sqlite3.SQLITE_TOOBIG: errors.STORE_REFUSED,
}


def store_error(error: sqlite3.Error) -> StoreError:
    """The error of the store for an error of SQLite. An unknown one counts as broken."""
    number = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return StoreError(_CODES.get(number, errors.STORE_BROKEN), f"sqlite: {error}")


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn the errors of opening a file into those of the store, with the name of the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(store_error(error).code, f"{error}: {path}") from error
    except OSError as error:
        raise StoreError(errors.STORE_READ_ONLY, f"{error.strerror}: {path}") from error


class FileLock:
    """One scheduler owns a file: a lock of the operating system, which dies with its process."""

    def __init__(self, path: str) -> None:
        name = f"{path}.lock"
        self._fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise StoreError(
                errors.STORE_LOCKED, f"process {holder} has the store open: {path}"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        # The file stays: removing it would let two owners lock two files of the same name.
        os.close(self._fd)


def connect_writer(path: str, statements: Statements) -> sqlite3.Connection:
    """Open the file for writing, make it if it is new, and bring its schema forward."""
    with file_errors(path), ExitStack() as undo:
        if path != MEMORY:
            # SQLite gives its side files the mode of this one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=True
        )
        undo.callback(connection.close)
        _prepare(connection, path, statements)
        undo.pop_all()
    return connection


def lengthen_log(connection: sqlite3.Connection, path: str, statements: Statements) -> None:
    """Fill the log with zeros up to `LOG_BYTES`. SQLite reads a log up to the first frame that is not valid, and
    writes over what is behind. Nobody else writes meanwhile. Without room on the disk the log grows as it is used.

    Raises: sqlite3.Error, OSError.
    """
    connection.execute(statements["begin"].text)
    log = os.open(f"{path}-wal", os.O_WRONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(log).st_size
        if size < LOG_BYTES and not _is_appended(log, bytes(LOG_BYTES - size), size):
            os.ftruncate(log, size)
    finally:
        os.close(log)
        connection.execute(statements["rollback"].text)


def _is_appended(log: int, zeros: bytes, size: int) -> bool:
    try:
        is_whole = os.pwrite(log, zeros, size) == len(zeros)
        os.fdatasync(log)
    except OSError:
        return False
    return is_whole


def connect_copier(path: str, statements: Statements) -> sqlite3.Connection:
    """A connection that only copies the log into the file; it may be used in another thread than it was made in."""
    with file_errors(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute(statements["flush_every_commit"].text)
    return connection


def connect_reader(path: str, statements: Statements) -> sqlite3.Connection:
    with file_errors(path):
        connection = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
        )
        connection.execute(statements["only_read"].text)
    return connection


def read_rows(
    connection: sqlite3.Connection,
    statement: Statement,
    values: Mapping[str, object],
    take: Callable[[sqlite3.Cursor], list[RawRow]],
) -> list[RawRow]:
    """The rows that `take` takes of what the statement finds; no others are read."""
    try:
        cursor = connection.execute(statement.text, statement.arguments(values))
        found = take(cursor)
        cursor.close()
    except sqlite3.Error as error:
        raise store_error(error) from error
    return found


def _prepare(connection: sqlite3.Connection, path: str, statements: Statements) -> None:
    def value(name: str) -> int:
        (found,) = connection.execute(statements[name].text).fetchone()
        assert isinstance(found, int)
        return found

    if value("count_tables") == 0 and value("application_id") == 0:
        connection.execute(statements["use_auto_vacuum"].text)  # only before the first table
        connection.execute(statements["mark_as_ours"].text)
    elif value("application_id") != APPLICATION_ID:
        raise StoreError(errors.STORE_FOREIGN, f"the database of another program: {path}")
    version = value("schema_version")
    migrations = load_migrations("sqlite")
    if version > len(migrations) and not is_readable(connection, statements, len(migrations)):
        _, software = connection.execute(statements["schema_writer"].text).fetchone()
        raise StoreError(
            errors.STORE_NEWER,
            f"astraflow {software} wrote it with schema {version}, "
            f"this is {astraflow.__version__} with schema {len(migrations)}: {path}",
        )
    if version >= len(migrations):  # an older schema holds no newer facts
        written_facts(facts_values(connection, statements), f": {path}")
    connection.execute(statements["use_wal"].text)
    connection.execute(statements["flush_every_commit"].text)
    connection.execute(statements["checkpoint_by_hand"].text)
    connection.execute(statements["enforce_references"].text)
    for migration in migrations[version:]:
        connection.execute(statements["begin"].text)
        step_forward(connection, statements, migration)
        connection.execute(statements["commit"].text)


def is_readable(connection: sqlite3.Connection, statements: Statements, version: int) -> bool:
    """Whether software of this schema can work with a newer one, as the newer one says."""
    count = statements["count_unreadable"]
    try:
        (found,) = connection.execute(count.text, count.arguments({"version": version})).fetchone()
    except sqlite3.OperationalError:
        return False  # it says nothing: the column is not there
    return bool(found == 0)


def facts_values(connection: sqlite3.Connection, statements: Statements) -> dict[str, str]:
    """What the site says of the facts that are written."""
    find = statements["site_values"]
    names = find.arguments({"names": FACTS_VALUES})
    return dict(connection.execute(find.text, names).fetchall())


def step_forward(
    connection: sqlite3.Connection, statements: Statements, migration: Migration
) -> None:
    """Carry out one migration, in the transaction that is open."""
    for text in _statements(migration.text):
        connection.execute(text)
    names = ["record_migration"] + ["record_readable"] * (migration.readable_by is not None)
    for record in map(statements.__getitem__, names):
        connection.execute(record.text, record.arguments(migration.record))
    # A pragma takes no parameter. Older versions of the program look at this number.
    connection.execute(f"PRAGMA user_version = {migration.version:d}")


def _statements(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if line.rstrip().endswith(";") and sqlite3.complete_statement("\n".join(lines)):
            yield "\n".join(lines)
            lines.clear()
