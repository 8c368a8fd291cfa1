"""A store with a schema beyond ours is opened if that schema says that it can be, and left alone otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import asyncpg
import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.postgres_inspection import inspect_database
from astraflow.store.sqlite_inspection import inspect_file
from astraflow.store.statements import migration_of
from tests.conformance.store.backends import Backend, PostgresBackend, SqliteBackend
from tests.conformance.store.samples import NEWEST, PLAN, run


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Backend:
    backend = request.getfixturevalue(request.param)
    assert isinstance(backend, Backend)
    return backend


async def lift(place: Backend, *readable_by: int | None) -> None:
    """Make it a store of newer versions: a table and a column more for each step."""
    async with place.opened():
        pass
    orders = []
    for version, oldest in enumerate(readable_by, NEWEST + 1):
        said = "NULL" if oldest is None else str(oldest)
        orders += [
            f"CREATE TABLE later_{version} (one integer)",
            f"ALTER TABLE runs ADD COLUMN later_{version} integer NOT NULL DEFAULT 7",
            f"INSERT INTO migrations VALUES ({version}, 'later', '99.0', {said})",
        ]
    if isinstance(place, SqliteBackend):
        with closing(sqlite3.connect(place.path)) as connection:
            for order in (*orders, f"PRAGMA user_version = {NEWEST + len(readable_by)}"):
                connection.execute(order)
            connection.commit()
    else:
        assert isinstance(place, PostgresBackend)
        connected = await asyncpg.connect(place.url, server_settings={"search_path": "astraflow"})
        await connected.execute(";".join(orders))
        await connected.close()


@pytest.mark.parametrize("readable_by", [(NEWEST,), (NEWEST, NEWEST - 1), (1,)])
async def test_a_newer_store_that_we_can_read_is_opened_and_written(
    place: Backend, readable_by: tuple[int, ...]
) -> None:
    await lift(place, *readable_by)
    async with place.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        assert await desk.find(run(1)) == run(1)
        assert (await desk.store.usage()).schema_version == NEWEST + len(readable_by)
    if isinstance(place, SqliteBackend):
        found = inspect_file(place.path)
    else:
        assert isinstance(place, PostgresBackend)
        found = await inspect_database(place.url)
    assert found.schema_version == NEWEST + len(readable_by)
    assert found.usage is not None and found.usage.runs == 1


@pytest.mark.parametrize(
    "readable_by", [(NEWEST + 1,), (None,), (NEWEST + 1, NEWEST), (NEWEST, None)]
)
async def test_a_newer_store_that_we_cannot_read_is_left_alone(
    place: Backend, readable_by: tuple[int | None, ...]
) -> None:
    await lift(place, *readable_by)
    with pytest.raises(StoreError) as caught:
        async with place.opened():
            pass
    assert caught.value.code is errors.STORE_NEWER
    assert f"schema {NEWEST + len(readable_by)}" in caught.value.message


def test_a_migration_says_who_can_work_with_it() -> None:
    assert (
        migration_of(18, "later", "-- Why.\n-- readable by schema: 17\nSELECT 1;").readable_by == 17
    )
    assert migration_of(18, "later", "-- Why.\nSELECT 1;").readable_by is None
    both = "-- readable by schema: 16\nSELECT 1;\n-- readable by schema: 17\nSELECT 2;"
    assert migration_of(18, "later", both).readable_by == 17
