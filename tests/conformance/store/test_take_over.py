"""Who may claim when: an owner that is gone need not be waited for, one that is there must be."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.postgres import GONE_S, PostgresStore
from astraflow.store.store import Store
from tests.conformance.store.backends import Backend, PostgresBackend
from tests.conformance.store.samples import PLAN
from tests.conformance.store.test_postgres import operator


async def renewed_ago(connection: Any, seconds: float) -> None:
    await connection.execute(
        "UPDATE shards SET renewed_at = clock_timestamp() - make_interval(secs => $1)", seconds
    )


async def lose_connection(store: Store, other: Any) -> None:
    """End the owner's connection, as the server sees it when the owner is killed."""
    assert isinstance(store, PostgresStore)
    pid = store.database.shard_writer.connection.get_server_pid()
    store.database.shard_writer.connection.terminate()
    while await other.fetchval("SELECT true FROM pg_stat_activity WHERE pid = $1", pid):
        pass


async def test_the_claim_of_an_owner_that_is_gone_is_free_before_it_has_run_out(
    postgres: PostgresBackend,
) -> None:
    async with (
        postgres.desk("one") as desk,
        postgres.opened() as second,
        operator(postgres) as other,
    ):
        await lose_connection(desk.store, other)
        await renewed_ago(other, -60)
        assert await second.claim("two") is None, "it has just renewed, and may come back"
        await renewed_ago(other, GONE_S)
        taken = await second.claim("two")
        assert taken is not None
        assert taken.epoch == desk.claim.epoch + 1
        assert not await desk.store.renew(desk.claim)
        with pytest.raises(StoreError) as caught:
            await desk.write(plans=[PLAN])
        assert caught.value.code is errors.STORE_FENCED


async def test_an_owner_whose_connection_is_there_keeps_its_claim_until_it_runs_out(
    postgres: PostgresBackend,
) -> None:
    async with (
        postgres.desk("one") as desk,
        postgres.opened() as second,
        operator(postgres) as other,
    ):
        await renewed_ago(other, 3600)
        assert await second.claim("two") is None
        assert await desk.store.renew(desk.claim)


async def test_an_owner_that_came_back_with_another_connection_keeps_its_claim(
    postgres: PostgresBackend,
) -> None:
    async with (
        postgres.desk("one") as desk,
        postgres.opened() as second,
        operator(postgres) as other,
    ):
        await lose_connection(desk.store, other)
        await desk.write(plans=[PLAN])
        await renewed_ago(other, 3600)
        assert await second.claim("two") is None


async def test_an_owner_of_an_older_version_is_waited_for(postgres: PostgresBackend) -> None:
    """It claims without saying which connection is its own; that of the owner before is gone."""
    async with (
        postgres.desk("one") as desk,
        postgres.opened() as second,
        operator(postgres) as other,
    ):
        await lose_connection(desk.store, other)
        await other.execute("UPDATE shards SET owner = 'old', epoch = epoch + 1")
        await renewed_ago(other, 3600)
        assert await second.claim("two") is None


async def test_an_owner_whose_connections_we_may_not_see_is_waited_for(
    postgres: PostgresBackend,
) -> None:
    """Of a connection of another role the server tells the pid, not since when it is there."""
    async with postgres.desk("one"), operator(postgres) as other:
        pid, started = await other.fetchrow(
            "SELECT backend_pid, backend_start FROM shards WHERE shard = 0"
        )
        role = f"other_{pid}"
        await other.execute(f"CREATE ROLE {role}")
        try:
            await other.execute(f"GRANT USAGE ON SCHEMA astraflow TO {role}")
            await other.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA astraflow TO {role}")
            await renewed_ago(other, 3600)
            store = PostgresStore(postgres.url)
            await other.execute(f"SET ROLE {role}")
            seen = await other.fetchval(
                "SELECT backend_start FROM pg_stat_activity WHERE pid = $1", pid
            )
            assert started is not None
            assert seen is None
            claim = store.database.site.statements["claim"]
            values = {"shard": 0, "owner": "two", "ttl_s": 8.0, "gone_s": GONE_S}
            assert await other.fetchrow(claim.text, *claim.arguments(values)) is None
        finally:
            await other.execute("RESET ROLE")
            await other.execute(f"DROP OWNED BY {role}")
            await other.execute(f"DROP ROLE {role}")


async def test_who_claimed_last_is_told(backend: Backend) -> None:
    async with backend.opened() as store:
        assert await store.owner() == ""
        await store.claim("one")
        assert await store.owner() == "one"


async def test_what_is_true_of_the_site_is_kept(backend: Backend) -> None:
    async with backend.desk() as desk:
        assert await desk.store.find_site("blobs_id") is None
        await desk.store.put_site(desk.claim, "blobs_id", "a")
        await desk.store.put_site(desk.claim, "blobs_id", "b")
        assert await desk.store.find_site("blobs_id") == "b"
        await desk.store.claim("one")
        with pytest.raises(StoreError) as caught:
            await desk.store.put_site(desk.claim, "blobs_id", "c")
        assert caught.value.code is errors.STORE_FENCED
