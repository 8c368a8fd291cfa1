"""The resource database: one SQLite file in the worker's folder, with a row for each registration.

A row is one JSON document, written in one transaction: after a crash it is complete or missing. An unreadable row or a
corrupt file is dropped, and with it the resource: its folder has no row then and is swept.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.worker.resources.resource import LocalResource

_log: Final = logging.getLogger(__name__)

BROKEN_SUFFIX: Final = ".broken"
BUSY_TIMEOUT_S: Final = 5.0
"""Nobody else writes; a person may be looking at it with a tool."""

_CREATE: Final = "CREATE TABLE IF NOT EXISTS resources (token TEXT PRIMARY KEY, record BLOB) STRICT"
_LOAD: Final = "SELECT token, record FROM resources ORDER BY rowid"
_SAVE: Final = (
    "INSERT INTO resources (token, record) VALUES (?, ?) "
    "ON CONFLICT (token) DO UPDATE SET record = excluded.record"
)
_DELETE: Final = "DELETE FROM resources WHERE token = ?"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(LocalResource).decode


class ResourceDatabase:
    """Rows on disk. Used on one thread; `close` it."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError when there can be no such file."""
        self._path = path
        try:
            self._rows = self._open()
        except sqlite3.OperationalError as problem:
            raise errors.StoreError(
                errors.STORE_UNAVAILABLE, f"the database of resources cannot be opened: {problem}"
            ) from problem
        except sqlite3.DatabaseError as problem:
            _log.warning("resource database is corrupt and was renamed: %s", problem)
            self._set_aside()
            self._rows = self._open()

    def load(self) -> list[LocalResource]:
        """All that can be read, oldest first; what cannot is deleted."""
        found: list[LocalResource] = []
        for token, record in self._rows.execute(_LOAD).fetchall():
            try:
                resource = _decode(record)
            except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
                resource = None
            if resource is not None and resource.token == token:
                found.append(resource)
            else:
                _log.warning("unreadable row of the resource database dropped")
                self._rows.execute(_DELETE, (token,))
        return found

    def save(self, *resources: LocalResource) -> None:
        """Raises StoreError when nothing can be written."""
        self._write(_SAVE, [(one.token, _encode(one)) for one in resources])

    def delete(self, *tokens: str) -> None:
        """Raises StoreError when nothing can be written."""
        self._write(_DELETE, [(token,) for token in tokens])

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            self._rows.execute("BEGIN IMMEDIATE")
            self._rows.executemany(statement, rows)
            self._rows.execute("COMMIT")
        except sqlite3.Error as problem:
            if self._rows.in_transaction:
                self._rows.execute("ROLLBACK")
            raise errors.StoreError(
                errors.STORE_UNAVAILABLE, f"the database of resources cannot be written: {problem}"
            ) from problem

    def close(self) -> None:
        self._rows.close()

    def _open(self) -> sqlite3.Connection:
        rows = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            # NORMAL: a crash of the process loses nothing. A loss of power may lose the last rows, and their files are
            # swept with them; a flush for each registration would stop the worker's loop instead.
            rows.execute("PRAGMA journal_mode = WAL")
            rows.execute("PRAGMA synchronous = NORMAL")
            rows.execute(_CREATE)
            rows.execute(_LOAD).fetchone()
        except sqlite3.DatabaseError:
            rows.close()
            raise
        return rows

    def _set_aside(self) -> None:
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self._path.replace(self._path.with_name(self._path.name + BROKEN_SUFFIX))
