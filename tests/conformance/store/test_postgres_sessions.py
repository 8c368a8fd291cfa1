"""What stands between us and the server: several hosts, a pooler, the readers of the pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.postgres import PostgresStore
from tests.conformance.store.backends import PostgresBackend
from tests.conformance.store.samples import PLAN, run
from tests.conformance.store.test_postgres import operator


@pytest.mark.parametrize("attrs", ["read-write", "primary", "any"])
async def test_a_url_may_say_which_server_is_meant(postgres: PostgresBackend, attrs: str) -> None:
    postgres.url += f"&target_session_attrs={attrs}"
    async with postgres.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        assert await desk.find(run(1)) == run(1)


async def test_a_read_is_one_round_trip_and_can_only_read(postgres: PostgresBackend) -> None:
    async with postgres.opened() as store, operator(postgres) as other:
        assert isinstance(store, PostgresStore)
        pool = store.database.site.pool
        async with pool.acquire() as connection:
            reader = connection.get_server_pid()
        await store.workers()
        last = await other.fetchval("SELECT query FROM pg_stat_activity WHERE pid = $1", reader)
        assert last == store.database.site.statements["workers"].text
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await pool.execute("DELETE FROM workers")


@asynccontextmanager
async def pooler(answer: bytes) -> AsyncIterator[str]:
    """What answers a start-up message as PgBouncer does; its URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size - 4)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"postgresql://somebody@127.0.0.1:{port}/site?sslmode=disable"


def refusal(said: bytes) -> bytes:
    fields = b"SFATAL\0VFATAL\0C08P01\0M" + said + b"\0\0"
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields


async def test_a_pooler_that_refuses_our_settings_is_named() -> None:
    async with pooler(refusal(b"unsupported startup parameter: search_path")) as url:
        with pytest.raises(StoreError) as caught:
            await PostgresStore(url).open()
    assert caught.value.code is errors.STORE_POOLER
    assert "PgBouncer" in caught.value.message
    assert "database_url" in caught.value.code.do


async def test_a_pooler_that_ignores_our_settings_is_found_before_anything_is_made(
    postgres: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `ignore_startup_parameters` the tables would be made in `public`."""
    connect = asyncpg.connect

    async def ignoring(url: str, *, server_settings: dict[str, str], **rest: object) -> object:
        return await connect(url, server_settings={"application_name": "pooled"}, **rest)

    monkeypatch.setattr(asyncpg, "connect", ignoring)
    with pytest.raises(StoreError) as caught:
        await postgres.store().open()
    assert caught.value.code is errors.STORE_POOLER
    monkeypatch.undo()
    async with operator(postgres) as other:
        count = "SELECT count(*) FROM pg_namespace WHERE nspname = 'astraflow'"
        assert await other.fetchval(count) == 0
        assert await other.fetchval("SELECT to_regclass('public.shards')") is None
