"""Copying the log of a SQLite file into the file itself, beside the writer.

Left alone, SQLite does this inside the commit that fills the log, which then takes ten times as long as the others,
and it keeps quiet when it fails. Here a thread copies what has been committed while the writer goes on; when it is
done, the writer copies the little that was written meanwhile, and the log begins anew. So the log stays bounded, a
commit waits at most for that rest, and a flush that failed is noticed: to try it again and go on could succeed without
having written anything.
"""

from __future__ import annotations

import sqlite3
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.store.statements import Statements

LOG_PAGES = 2_000
"""Pages in the log, by estimate, before they are copied: 8 MiB, so that a page written often is copied once."""
PAGE_BYTES = 4_096


class Checkpointer:
    """Belongs to the writer's thread, which calls everything but the thread's own function."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        statements: Statements,
        on_copied: Callable[[sqlite3.Error | None], None],
    ) -> None:
        self._connection = connection
        self._query = statements["checkpoint"].text
        self._on_copied = on_copied
        self._written = 0
        self._is_copying = False
        self._orders: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-checkpointer", daemon=True)
        self._thread.start()

    def count(self, rows: int, size: int) -> None:
        """A transaction has changed so many rows, and written so many bytes of large values."""
        # A row changes a page of its table or of an index; the counter of commits and the roots are always among them.
        self._written += 3 + rows + size // PAGE_BYTES
        if self._written >= LOG_PAGES and not self._is_copying:
            self._is_copying = True
            self._orders.put(True)

    def finish(self, writer: sqlite3.Connection) -> None:
        """Copy what was written since the thread began; nothing is being written now, so this is all."""
        self._is_copying = False
        self._written = 0
        writer.execute(self._query).fetchall()

    def close(self) -> None:
        self._orders.put(False)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while self._orders.get():
            try:
                self._connection.execute(self._query).fetchall()
            except sqlite3.Error as error:
                self._on_copied(error)
            else:
                self._on_copied(None)
