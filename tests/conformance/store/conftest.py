"""One suite, three back ends: the same tests on SQLite, on PostgreSQL and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.store.backends import (
    Backend,
    MemoryBackend,
    PostgresBackend,
    SqliteBackend,
)
from tests.processes.postgres import database, postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server of its own; gone when the tests are over."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[PostgresBackend]:
    """An empty database."""
    name = f"store_{abs(hash(request.node.nodeid)):x}"
    with database(postgres_url, name) as url:
        yield PostgresBackend(url)


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteBackend:
    return SqliteBackend(tmp_path / "store.db")


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "memory":
        return MemoryBackend()
    made = request.getfixturevalue(request.param)
    assert isinstance(made, Backend)
    return made
