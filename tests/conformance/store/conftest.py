"""One suite, three back ends: the same tests on SQLite, on PostgreSQL and in memory."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.chaos.postgres import postgres_server
from tests.conformance.store.backends import (
    Backend,
    MemoryBackend,
    PostgresBackend,
    SqliteBackend,
)

WITHIN_S = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine function gets a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def bounded() -> None:
        async with asyncio.timeout(WITHIN_S):
            await pyfuncitem.obj(**arguments)

    asyncio.run(bounded())
    return True


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server of its own; gone when the tests are over."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[PostgresBackend]:
    """An empty database."""
    name = f"store_{abs(hash(request.node.nodeid)):x}"

    async def tell(order: str) -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute(order)
        await connection.close()

    asyncio.run(tell(f"CREATE DATABASE {name}"))
    yield PostgresBackend(postgres_url.replace("/postgres?", f"/{name}?"))
    asyncio.run(tell(f"DROP DATABASE {name} WITH (FORCE)"))


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
