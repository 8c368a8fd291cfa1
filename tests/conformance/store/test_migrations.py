"""A store that an older version wrote is brought forward when it is opened, with every row that it holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import msgspec
import pytest

from astraflow.store.rows import ActiveRow, AffinityRow, RolloutRow
from astraflow.store.sqlite_file import APPLICATION_ID
from astraflow.store.statements import Dialect, load_migrations
from astraflow.store.store import Retention, Store
from tests.conformance.store.backends import Backend, PostgresBackend, SqliteBackend
from tests.conformance.store.samples import (
    NEWEST,
    NOW_MS,
    PLAN,
    audit,
    event,
    finished,
    intent,
    package,
    resource,
    run,
    segment,
    worker,
    workflow,
)

SCHEMA_3 = Path(__file__).parent / "schema_3"
"""A store with a row in each table, as the version with schema 3 wrote it."""
RUN = run(
    1, idempotency_key="k", fingerprint="f", name="Nightly", workflow_version=2, rerun_of="run-0"
)


def make_file(path: Path, version: int, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.executescript(script)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()


async def make_database(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(script)
    await connection.close()


@pytest.fixture(params=["sqlite", "postgres"])
def older(request: pytest.FixtureRequest) -> Backend:
    backend = request.getfixturevalue(request.param)
    assert isinstance(backend, Backend)
    return backend


async def bring(older: Backend) -> None:
    """Put the store of schema 3 in its place."""
    script = (SCHEMA_3 / f"{older.name}.sql").read_text()
    if isinstance(older, SqliteBackend):
        make_file(older.path, 3, script)
    else:
        assert isinstance(older, PostgresBackend)
        await make_database(older.url, script)


async def test_every_row_of_an_older_store_is_read(older: Backend) -> None:
    await bring(older)
    async with older.opened() as store:
        assert (await store.usage()).schema_version == NEWEST
        await check_runs(store)
        assert await store.workers() == [worker("w-1", labels=b'{"zone":"a"}', drain=b"{}")]
        assert await store.intents() == [
            intent("w-1", state="failed", tries=2, error=b'{"code":"E"}', why="demand"),
            intent("w-2", intent="removed"),
        ]
        kept = resource(1, is_artifact=True, size_bytes=3, blob="artifacts/x")
        assert await store.resources() == [kept]
        affinity = AffinityRow("default", "session:7", "w-1", NOW_MS, NOW_MS + 5)
        assert await store.affinities() == [affinity]
        assert await store.packages() == [package("1.0.0", signature=b"{}", signed_by="acme")]
        active = ActiveRow("default", "acme.texts", "1.0.0", None, 1, "ann")
        assert await store.active_versions() == [active]
        rollout = RolloutRow("default", "rollout-1", "acme.texts", "running", b"{}", NOW_MS)
        assert await store.rollouts() == [rollout]
        assert await store.find_workflow("default", "a") == workflow("a", 2)
        assert await store.find_workflow("default", "a", 1) == workflow("a", 1)
        assert await store.find_site("blobs_id") == "b"


async def check_runs(store: Store) -> None:
    ended = finished(2, NOW_MS, error=b'{"code":"E"}')
    assert await store.list_runs("default", limit=9) == [ended, RUN]
    assert await store.list_runs("default", limit=9, status="succeeded") == [ended]
    assert await store.active_runs() == [RUN]
    assert (await store.usage()).active_runs == 1
    assert await store.find_plan(PLAN.plan_id) == PLAN
    facts = b'{"a":1}\n{"b":2}\n'
    assert await store.read_segments(RUN.run_id) == [segment(RUN, 1, 2, facts), segment(RUN, 3, 3)]
    (submission,) = await store.submissions(0)
    assert (submission.key, submission.fingerprint, submission.run_id) == ("k", "f", RUN.run_id)
    assert await store.tenant_events("default", 0, 9) == [event(1), event(2)]
    assert [row for _, row in await store.audit("default", limit=9)] == [audit(1)]


async def test_an_older_store_is_written_and_swept(older: Backend) -> None:
    await bring(older)
    async with older.desk() as desk:
        settled = intent("w-1", state="installed", updated_at=1)
        await desk.write(
            segments=[segment(RUN, 4, 4)],
            intents=[settled],
            intents_gone=[("default", "w-2", "acme.texts", "1.0.0")],
            workers_gone=[("default", "w-1")],
        )
        assert await desk.store.intents() == [settled]
        assert (await desk.store.sweep(desk.claim, Retention(finished_runs=0), NOW_MS)).runs == 1
        assert await desk.store.intents() == []
        assert len(await desk.store.read_segments(RUN.run_id)) == 3


def sqlite_schema(script: str) -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {name: " ".join(sql.split()) for name, sql in found}


async def postgres_schema(url: str, script: str) -> list[str]:
    columns = """
        SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, collation_name, column_default,
            identity_generation) FROM information_schema.columns WHERE table_schema = 'astraflow'
    """
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'astraflow'"
    references = """
        SELECT concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
        WHERE connamespace = 'astraflow'::regnamespace
    """
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(script)
            found = [await connection.fetch(ask) for ask in (columns, indexes, references)]
            await connection.execute("DROP SCHEMA astraflow CASCADE")
    finally:
        await connection.close()
    return sorted(text for rows in found for (text,) in rows)


async def test_new_stores_have_the_schema_of_older_ones(postgres: PostgresBackend) -> None:
    """What the first migrations make is what an older version made with them."""
    steps = {
        dialect: "\n".join(one.text for one in load_migrations(dialect)[:3])
        for dialect in ("sqlite", "postgres")
    }
    older = {dialect: (SCHEMA_3 / f"{dialect}.sql").read_text() for dialect in steps}
    assert sqlite_schema(steps["sqlite"]) == sqlite_schema(older["sqlite"])
    schema = "CREATE SCHEMA astraflow; SET search_path = astraflow;"
    assert await postgres_schema(postgres.url, schema + steps["postgres"]) == await postgres_schema(
        postgres.url, older["postgres"]
    )


async def test_a_store_of_the_first_schema_is_brought_forward(older: Backend) -> None:
    dialect: Dialect = "sqlite" if isinstance(older, SqliteBackend) else "postgres"
    first = load_migrations(dialect)[0].text
    plan = "INSERT INTO plans VALUES ('plan-1', {0}, {1});"
    plan += "INSERT INTO migrations VALUES (1, 'first', '0.1.0');"
    values = msgspec.structs.astuple(PLAN)[1:]
    if isinstance(older, SqliteBackend):
        rows = plan.format(*(f"X'{value.hex()}'" for value in values))
        make_file(older.path, 1, first + rows)
    else:
        assert isinstance(older, PostgresBackend)
        rows = plan.format(*(f"'\\x{value.hex()}'" for value in values))
        schema = "CREATE SCHEMA astraflow; SET search_path = astraflow;"
        await make_database(older.url, schema + first + rows)
    async with older.desk() as desk:
        assert (await desk.store.usage()).schema_version == NEWEST
        assert await desk.store.find_plan(PLAN.plan_id) == PLAN
        await desk.write(resources=[resource(1)])
        assert await desk.store.resources() == [resource(1)]
