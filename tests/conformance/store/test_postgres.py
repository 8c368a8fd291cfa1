"""What only a server can do: die in a commit, be shared, be taken over, be slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from astraflow.core import errors
from astraflow.core.errors import OutcomeUnknown, StoreError
from astraflow.store.postgres import PostgresStore
from astraflow.store.rows import Changes
from astraflow.store.store import Claim
from tests.conformance.store.backends import Desk, PostgresBackend
from tests.conformance.store.samples import NEWEST, PLAN, change, run, segment


@asynccontextmanager
async def operator(postgres: PostgresBackend) -> AsyncIterator[Any]:
    """A connection beside the store's own."""
    connection = await asyncpg.connect(
        postgres.url, server_settings={"search_path": "astraflow"}, command_timeout=30
    )
    try:
        yield connection
    finally:
        await connection.close()


async def writers_waiting(connection: Any) -> list[int]:
    """The backends that wait for a lock; asked until there is one."""
    ask = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    found: list[Any] = []
    while not found:
        found = await connection.fetch(ask)
    return [pid for (pid,) in found]


async def end_writer(connection: Any) -> None:
    for pid in await writers_waiting(connection):
        await connection.fetchval("SELECT pg_terminate_backend($1, 10000)", pid)


def one_run() -> Changes:
    changes = Changes()
    changes.plans.append(PLAN)
    changes.runs.append(run(1))
    return changes


async def test_a_commit_whose_connection_dies_is_unknown_and_read_back_as_not_written(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        holding = other.transaction()
        await holding.start()
        await other.execute("SELECT * FROM shards FOR UPDATE")
        async with operator(postgres) as killer, asyncio.TaskGroup() as group:
            commit = group.create_task(outcome(desk, 1, one_run()))
            group.create_task(end_writer(killer))
        assert isinstance(commit.result(), OutcomeUnknown)
        await holding.rollback()
        assert not await desk.store.is_committed(desk.claim, 1)
        await desk.store.commit(desk.claim, 1, one_run())
        assert await desk.store.is_committed(desk.claim, 1)
        assert await desk.find(run(1)) == run(1)


async def outcome(desk: Desk, number: int, changes: Changes) -> StoreError | None:
    try:
        await desk.store.commit(desk.claim, number, changes)
    except StoreError as error:
        return error
    return None


async def test_a_commit_that_was_written_without_an_answer_is_read_back_as_written(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk() as desk:
        store = desk.store
        assert isinstance(store, PostgresStore)
        await store.commit(desk.claim, 1, one_run())
        store.database.shard_writer.connection.terminate()
        assert await store.is_committed(desk.claim, 1)
        assert not await store.is_committed(desk.claim, 2)


async def test_a_commit_left_behind_on_a_lost_connection_cannot_be_written_later(
    postgres: PostgresBackend,
) -> None:
    """
    store      commit 1 ──────────▶ waits in the network
    store      the connection is given up, is_committed(1) on a new one: no
    network                         commit 1 arrives: refused
    """
    async with postgres.desk() as desk:
        store = desk.store
        assert isinstance(store, PostgresStore)
        left_behind, writer = (
            store.database.shard_writer.connection,
            store.database.shard_writer.writer,
        )
        store.database.shard_writer.connection = None
        assert not await store.is_committed(desk.claim, 1)
        late = PostgresStore(postgres.url)
        await late.open()
        late.database.shard_writer.connection, late.database.shard_writer.writer = (
            left_behind,
            writer,
        )
        error = await outcome(Desk(late, desk.claim), 1, one_run())
        assert error is not None
        assert error.code is errors.STORE_FENCED
        assert not await store.is_committed(desk.claim, 1)
        assert await desk.find(run(1)) is None
        await late.close()


async def test_reading_back_waits_for_a_commit_that_is_still_under_way(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        store = desk.store
        assert isinstance(store, PostgresStore)
        under_way = other.transaction()
        await under_way.start()
        await other.execute("UPDATE shards SET commit_number = 1")
        store.database.shard_writer.connection.terminate()
        async with operator(postgres) as watch, asyncio.TaskGroup() as group:
            answer = group.create_task(store.is_committed(desk.claim, 1))
            await writers_waiting(watch)
            assert not answer.done()
            await under_way.commit()
        assert answer.result()


async def test_a_statement_that_takes_too_long_wrote_nothing(postgres: PostgresBackend) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        store = desk.store
        assert isinstance(store, PostgresStore)
        await store.database.shard_writer.connection.execute("SET statement_timeout = 50")
        holding = other.transaction()
        await holding.start()
        await other.execute("SELECT * FROM shards FOR UPDATE")
        error = await outcome(desk, 1, one_run())
        await holding.rollback()
        assert error is not None
        assert not isinstance(error, OutcomeUnknown)
        assert error.code is errors.STORE_UNAVAILABLE
        assert error.retryable
        await store.commit(desk.claim, 1, one_run())


async def test_one_who_stops_waiting_for_a_commit_can_ask_what_became_of_it(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        holding = other.transaction()
        await holding.start()
        await other.execute("SELECT * FROM shards FOR UPDATE")
        async with operator(postgres) as watch:
            waiting = asyncio.ensure_future(desk.store.commit(desk.claim, 1, one_run()))
            await writers_waiting(watch)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await holding.rollback()
        is_written = await desk.store.is_committed(desk.claim, 1)
        assert is_written == (await desk.find(run(1)) is not None)
        await desk.store.commit(desk.claim, 2, Changes())


async def test_reads_go_on_after_every_connection_was_ended(postgres: PostgresBackend) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        await desk.write(plans=[PLAN], runs=[run(1)])
        await other.fetch(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        try:
            found = await desk.find(run(1))
        except StoreError as error:
            assert error.code is errors.STORE_UNAVAILABLE
            found = await desk.find(run(1))
        assert found == run(1)
        assert await desk.store.renew(desk.claim)


async def test_a_claim_keeps_others_out_until_it_runs_out(postgres: PostgresBackend) -> None:
    async with postgres.desk("one") as desk, postgres.opened() as other:
        assert desk.claim.ttl_s == 8.0
        assert await other.claim("two") is None
        async with operator(postgres) as clock:
            await clock.execute(
                "UPDATE shards SET leased_until = clock_timestamp() WHERE shard = 0"
            )
        taken = await other.claim("two")
        assert taken is not None
        assert taken.epoch == desk.claim.epoch + 1
        assert not await desk.store.renew(desk.claim)
        with pytest.raises(StoreError) as caught:
            await desk.write(plans=[PLAN])
        assert caught.value.code is errors.STORE_FENCED


async def test_one_that_lost_its_connection_and_its_claim_is_told_so(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk("one") as desk, postgres.opened() as other:
        store = desk.store
        assert isinstance(store, PostgresStore)
        store.database.shard_writer.connection.terminate()
        await other.claim("one")
        assert not await store.renew(desk.claim)
        await store.release(desk.claim)
        error = await outcome(desk, 1, one_run())
        assert error is not None
        assert error.code is errors.STORE_FENCED
        async with postgres.opened() as third:
            assert await third.claim("three") is None


async def test_a_server_that_became_a_standby_is_left_for_the_next_connection(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk() as desk:
        store = desk.store
        assert isinstance(store, PostgresStore)
        await store.database.shard_writer.connection.execute(
            "SET default_transaction_read_only = on"
        )
        error = await outcome(desk, 1, one_run())
        assert error is not None
        assert error.code is errors.STORE_UNAVAILABLE
        assert not isinstance(error, OutcomeUnknown)
        await store.commit(desk.claim, 1, one_run())


async def test_a_renewed_claim_lasts_for_its_time_from_then(postgres: PostgresBackend) -> None:
    async with postgres.desk("one") as desk, operator(postgres) as clock:
        await clock.execute("UPDATE shards SET leased_until = clock_timestamp() WHERE shard = 0")
        assert await desk.store.renew(desk.claim)
        left = await clock.fetchval(
            "SELECT extract(epoch FROM leased_until - clock_timestamp()) FROM shards WHERE shard = 0"
        )
        assert 0 < left <= 15


async def test_a_released_claim_may_be_had_at_once(postgres: PostgresBackend) -> None:
    async with postgres.desk("one") as desk, postgres.opened() as other:
        await desk.store.release(desk.claim)
        assert await other.claim("two") is not None


async def test_a_release_that_comes_late_does_not_free_anothers_claim(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk("one") as desk, postgres.opened() as other:
        await desk.store.release(desk.claim)
        assert await other.claim("two") is not None
        await desk.store.release(desk.claim)
        async with postgres.opened() as third:
            assert await third.claim("three") is None


async def test_of_two_that_claim_at_once_one_wins(postgres: PostgresBackend) -> None:
    async with postgres.opened() as one, postgres.opened() as two, asyncio.TaskGroup() as group:
        first = group.create_task(one.claim("one"))
        second = group.create_task(two.claim("two"))
    claims = [claim for claim in (first.result(), second.result()) if claim is not None]
    assert [claim.epoch for claim in claims] == [1]


async def test_an_owner_that_starts_again_need_not_wait_for_itself(
    postgres: PostgresBackend,
) -> None:
    async with postgres.desk("one") as desk, postgres.opened() as again:
        claim = await again.claim("one")
        assert claim == Claim("one", desk.claim.epoch + 1, 8.0)
        assert not await desk.store.renew(desk.claim)


async def test_stores_that_are_opened_at_once_migrate_once(postgres: PostgresBackend) -> None:
    stores = [postgres.store() for _ in range(4)]
    async with asyncio.TaskGroup() as group:
        for store in stores:
            group.create_task(store.open())
    async with operator(postgres) as other:
        assert await other.fetchval("SELECT count(*) FROM migrations") == NEWEST
    for store in stores:
        await store.close()


async def test_a_newer_schema_is_left_alone(postgres: PostgresBackend) -> None:
    async with postgres.opened():
        pass
    async with operator(postgres) as other:
        await other.execute("INSERT INTO migrations VALUES (1000, 'later', '9.8.7')")
    with pytest.raises(StoreError) as caught:
        await postgres.store().open()
    assert caught.value.code is errors.STORE_NEWER
    assert "9.8.7" in caught.value.message


async def test_the_schema_of_another_program_is_left_alone(postgres: PostgresBackend) -> None:
    async with operator(postgres) as other:
        await other.execute("CREATE SCHEMA astraflow; CREATE TABLE astraflow.bookmarks (url text)")
        with pytest.raises(StoreError) as caught:
            await postgres.store().open()
        assert caught.value.code is errors.STORE_FOREIGN
        assert await other.fetchval("SELECT count(*) FROM astraflow.bookmarks") == 0


async def test_a_server_that_is_not_there_is_unavailable(postgres: PostgresBackend) -> None:
    async with operator(postgres) as other:
        name = await other.fetchval("SELECT current_database()")
    for url in (postgres.url.replace(name, "nowhere"), "postgresql://u:secret@127.0.0.1:1/x"):
        with pytest.raises(StoreError) as caught:
            await PostgresStore(url).open()
        assert caught.value.code is errors.STORE_UNAVAILABLE
        assert "secret" not in str(caught.value)


async def test_a_user_that_may_only_read_is_refused(postgres: PostgresBackend) -> None:
    async with operator(postgres) as other:
        name = await other.fetchval("SELECT current_database()")
        await other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreError) as caught:
        await postgres.store().open()
    assert caught.value.code is errors.STORE_READ_ONLY


async def test_the_size_counts_what_is_held_not_what_was_written(postgres: PostgresBackend) -> None:
    async with postgres.desk() as desk:
        await desk.write(
            plans=[PLAN], runs=[run(1)], segments=[segment(run(1), 1, 1, bytes(1_000))]
        )
        before = (await desk.store.usage()).bytes
        for _ in range(3):
            with pytest.raises(StoreError):
                await desk.write(
                    segments=[segment(run(1), 2, 2, bytes(1_000))],
                    run_changes=[change(run(9), status="running")],
                )
        assert (await desk.store.usage()).bytes == before
