"""Up to which version facts are written: it never falls, and nobody who reads less overlooks it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import asyncpg
import pytest

import astraflow
from astraflow.core import errors
from astraflow.core.cluster.upgrades import KNOWN_S
from astraflow.core.errors import StoreError
from astraflow.core.facts_version import FACTS_VERSION, FIRST_FACTS
from astraflow.store import cluster as clusters
from astraflow.store.cluster import StoredCluster
from astraflow.store.memory import MemoryStore
from astraflow.store.postgres import PostgresStore
from astraflow.store.postgres_inspection import inspect_database
from astraflow.store.sqlite_inspection import inspect_file
from astraflow.store.store import Store
from astraflow.store.written_facts import RAISED_BY, WRITTEN_FACTS
from tests.conformance.store.backends import Backend, MemoryBackend, PostgresBackend, SqliteBackend
from tests.processes.waiting import LOOK_S

NEXT = FACTS_VERSION + 1
PUT = (
    "INSERT INTO {site} (name, value) VALUES ('{name}', '{value}')"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Backend:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Backend)
    return found


async def put(place: Backend, name: str, value: str) -> None:
    """Write a value of the site behind the back of everybody."""
    if isinstance(place, SqliteBackend):
        with closing(sqlite3.connect(place.path)) as connection:
            connection.execute(PUT.format(site="site", name=name, value=value))
            connection.commit()
    elif isinstance(place, PostgresBackend):
        connected = await asyncpg.connect(place.url)
        await connected.execute(PUT.format(site="astraflow.site", name=name, value=value))
        await connected.close()
    else:
        store = place.store()
        assert isinstance(store, MemoryStore)
        order = PUT.format(site="site", name=name, value=value)
        store.database.writer.connection.execute(order)


async def refusal(place: Backend) -> StoreError:
    with pytest.raises(StoreError) as caught:
        async with place.opened():
            pass
    return caught.value


def cluster_of(store: Store) -> StoredCluster:
    assert isinstance(store, PostgresStore)
    return StoredCluster(store.database.site)


async def test_a_new_store_writes_what_its_release_reads(backend: Backend) -> None:
    async with backend.desk() as desk:
        if isinstance(backend, PostgresBackend):
            assert await desk.store.find_site(WRITTEN_FACTS) == str(FACTS_VERSION)
        await desk.store.raise_written_facts(desk.claim, FACTS_VERSION)
        assert await desk.store.written_facts() == FACTS_VERSION


async def test_the_version_is_raised_and_never_falls(backend: Backend) -> None:
    async with backend.desk() as desk:
        for wanted, written in ((0, FACTS_VERSION), (NEXT + 5, NEXT + 5), (NEXT, NEXT + 5)):
            await desk.store.raise_written_facts(desk.claim, wanted)
            assert await desk.store.find_site(WRITTEN_FACTS) == str(written)
        assert await desk.store.find_site(RAISED_BY) == astraflow.__version__
        with pytest.raises(StoreError) as caught:
            await desk.store.written_facts()
        assert caught.value.code is errors.STORE_NEWER


async def test_a_store_with_newer_facts_is_left_alone(place: Backend) -> None:
    async with place.opened():
        pass
    await put(place, WRITTEN_FACTS, str(NEXT))
    await put(place, RAISED_BY, "9.8.7")
    before = place.path.read_bytes() if isinstance(place, SqliteBackend) else b""
    error = await refusal(place)
    assert error.code is errors.STORE_NEWER
    assert f"astraflow 9.8.7 wrote the store with facts of version {NEXT}" in error.message
    assert f"this is {astraflow.__version__}" in error.message
    if isinstance(place, SqliteBackend):
        assert str(place.path) in error.message
        assert place.path.read_bytes() == before
        found = inspect_file(place.path)
    else:
        assert isinstance(place, PostgresBackend)
        found = await inspect_database(place.url)
    assert (found.facts_version, found.usage, found.is_newer) == (NEXT, None, True)


@pytest.mark.parametrize("value", ["", "x", "-1", "1.0", " 1", "\u0661", "9" * 40])
async def test_a_value_that_is_no_number_is_damage(value: str) -> None:
    backend = MemoryBackend()
    await put(backend, WRITTEN_FACTS, value)
    async with backend.opened() as store:
        with pytest.raises(StoreError) as caught:
            await store.written_facts()
    assert caught.value.code is errors.STORE_CORRUPT
    assert WRITTEN_FACTS in caught.value.message


async def test_a_store_that_says_nothing_has_the_first_facts(place: Backend) -> None:
    async with place.desk() as desk:
        await put(place, WRITTEN_FACTS, str(FIRST_FACTS))
        assert await desk.store.written_facts() == FIRST_FACTS


async def test_a_node_says_which_facts_it_reads(postgres: Backend) -> None:
    async with postgres.opened() as store:
        cluster = cluster_of(store)
        await cluster.join_node("n1", "http://one")
        await cluster.renew_node("n1", "http://one", loads="{}")
        (node,) = await cluster.nodes()
        assert (node.node_id, node.version, node.facts_version, node.loads) == (
            "n1", astraflow.__version__, FACTS_VERSION, "{}",
        )  # fmt: skip


async def test_a_node_that_reads_less_does_not_join(postgres: Backend) -> None:
    async with postgres.opened() as store:
        cluster = cluster_of(store)
        await put(postgres, WRITTEN_FACTS, str(NEXT))
        with pytest.raises(StoreError) as caught:
            await cluster.join_node("n1", "http://one")
        assert caught.value.code is errors.STORE_NEWER
        assert await cluster.nodes() == []


async def test_the_version_is_not_raised_while_a_node_reads_less(postgres: Backend) -> None:
    assert isinstance(postgres, PostgresBackend)
    async with postgres.opened() as store:
        cluster = cluster_of(store)
        await cluster.join_node("n1", "http://one")
        await cluster.join_node("n2", "http://two")
        older = await cluster.raise_facts(NEXT)
        assert [(one.node_id, one.facts_version) for one in older] == [
            ("n1", FACTS_VERSION),
            ("n2", FACTS_VERSION),
        ]
        await cluster.remove_node("n1")  # it has said goodbye
        asking = await asyncpg.connect(postgres.url)
        try:
            for away_s, is_waited_for in ((KNOWN_S - 5, True), (KNOWN_S + 5, False)):
                order = "UPDATE astraflow.nodes SET seen_at = clock_timestamp() - make_interval(secs => $1)"
                await asking.execute(order, float(away_s))
                found = await cluster.raise_facts(NEXT)
                assert bool(found) == is_waited_for
        finally:
            await asking.close()
        values = await cluster.changes()
        assert (values[WRITTEN_FACTS], values[RAISED_BY]) == (str(NEXT), astraflow.__version__)
        assert await cluster.raise_facts(FACTS_VERSION) == []
        assert (await cluster.changes())[WRITTEN_FACTS] == str(NEXT), "it never falls"


async def _until_one_waits(asking: asyncpg.Connection) -> None:
    async with asyncio.timeout(30):
        while not await asking.fetchval(WAITING):  # noqa: ASYNC110  (nothing would set an event)
            await asyncio.sleep(LOOK_S)


async def test_a_node_that_joins_at_the_moment_of_a_raise_is_refused(postgres: Backend) -> None:
    """Its row waits for the transaction that raises the version, and sees what that has written."""
    assert isinstance(postgres, PostgresBackend)
    async with postgres.opened() as store:
        cluster = cluster_of(store)
        raising, asking = await asyncpg.connect(postgres.url), await asyncpg.connect(postgres.url)
        try:
            locked = raising.transaction()
            await locked.start()
            where = "astraflow.site WHERE name = 'facts_version'"
            await raising.fetch(f"SELECT value FROM {where} FOR UPDATE")
            joining = asyncio.create_task(cluster.join_node("n1", "http://one"))
            await _until_one_waits(asking)
            await raising.execute(
                f"UPDATE astraflow.site SET value = '{NEXT}' WHERE name = 'facts_version'"
            )
            await locked.commit()
            with pytest.raises(StoreError) as caught:
                await joining
        finally:
            await raising.close()
            await asking.close()
        assert caught.value.code is errors.STORE_NEWER
        assert await cluster.nodes() == []


async def test_a_raise_waits_for_a_node_that_is_about_to_join(postgres: Backend) -> None:
    """And then finds it, though it was not there when the raise began."""
    assert isinstance(postgres, PostgresBackend)
    async with postgres.opened() as store:
        cluster = cluster_of(store)
        settings = {"search_path": "astraflow"}
        joining = await asyncpg.connect(postgres.url, server_settings=settings)
        asking = await asyncpg.connect(postgres.url)
        try:
            open_one = joining.transaction()
            await open_one.start()
            assert isinstance(store, PostgresStore)
            join = store.database.site.statements["join_node"]
            values = {**clusters._row_of("n1", "http://one")}
            assert await joining.fetch(join.text, *join.arguments(values))
            raising = asyncio.create_task(cluster.raise_facts(NEXT))
            await _until_one_waits(asking)
            await open_one.commit()
            assert [one.node_id for one in await raising] == ["n1"]
        finally:
            await joining.close()
            await asking.close()
        assert (await cluster.changes())[WRITTEN_FACTS] == str(FACTS_VERSION)


async def test_a_site_without_the_value_takes_no_node(postgres: Backend) -> None:
    assert isinstance(postgres, PostgresBackend)
    async with postgres.opened() as store:
        asking = await asyncpg.connect(postgres.url)
        await asking.execute("DELETE FROM astraflow.site WHERE name = 'facts_version'")
        await asking.close()
        with pytest.raises(StoreError) as caught:
            await cluster_of(store).join_node("n1", "http://one")
        assert caught.value.code is errors.STORE_CORRUPT
