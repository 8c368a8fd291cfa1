"""A transaction of the store that is left half-way: what comes later must not become part of it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store import postgres_connection
from astraflow.store.database import Transaction
from astraflow.store.postgres import TTL_S, PostgresShard, PostgresStore
from tests.conformance.store.backends import Desk, PostgresBackend
from tests.conformance.store.samples import PLAN, run
from tests.conformance.store.test_postgres import operator

OPEN = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
WAIT_S = 0.2
"""So that a message is sent before something else happens."""


def shard_of(desk: Desk) -> PostgresShard:
    assert isinstance(desk.store, PostgresStore)
    return desk.store.database.shard_writer


@contextmanager
def silent(desk: Desk) -> Iterator[None]:
    """The server does not answer the connection that writes."""
    pid = shard_of(desk).connection.get_server_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def cancelled_in_begin(desk: Desk) -> None:
    async def script(transaction: Transaction) -> None:
        raise AssertionError("it has not begun")

    with silent(desk):
        writing = asyncio.create_task(shard_of(desk).write(desk.claim, script))
        await asyncio.sleep(WAIT_S)
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing


async def cancelled_in_the_script(desk: Desk) -> None:
    begun = asyncio.Event()

    async def script(transaction: Transaction) -> None:
        begun.set()
        await asyncio.Event().wait()

    writing = asyncio.create_task(shard_of(desk).write(desk.claim, script))
    await begun.wait()
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def cancelled_in_rollback(desk: Desk) -> None:
    begun, silenced = asyncio.Event(), asyncio.Event()

    async def script(transaction: Transaction) -> None:
        begun.set()
        await silenced.wait()
        raise ValueError("the script fails")

    writing = asyncio.create_task(shard_of(desk).write(desk.claim, script))
    await begun.wait()
    with silent(desk):
        silenced.set()
        await asyncio.sleep(WAIT_S)
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing


async def failed_in_the_script(desk: Desk) -> None:
    async def script(transaction: Transaction) -> None:
        raise ValueError("the script fails")

    with pytest.raises(ValueError, match="the script fails"):
        await shard_of(desk).write(desk.claim, script)


@pytest.mark.parametrize(
    "leave",
    [
        cancelled_in_begin,
        cancelled_in_the_script,
        cancelled_in_rollback,
        failed_in_the_script,
    ],
)
async def test_what_is_committed_after_a_script_that_was_left_is_committed(
    postgres: PostgresBackend, leave: Any
) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        await leave(desk)
        assert await desk.store.renew(desk.claim)
        await desk.write(plans=[PLAN], runs=[run(1)])
        assert await other.fetchval(OPEN) == 0
        assert await other.fetchval("SELECT count(*) FROM runs") == 1


async def test_a_claim_is_no_part_of_a_script_that_was_left(postgres: PostgresBackend) -> None:
    async with postgres.desk() as desk, operator(postgres) as other:
        await cancelled_in_begin(desk)
        await desk.store.release(desk.claim)
        claim = await desk.store.claim("one")
        assert claim is not None
        assert await other.fetchval("SELECT epoch FROM shards WHERE shard = 0") == claim.epoch
        assert await other.fetchval(OPEN) == 0


async def test_an_owner_that_stops_in_a_script_does_not_keep_its_shard(
    postgres: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that is frozen between two statements."""
    monkeypatch.setitem(
        postgres_connection.SHARD_SETTINGS, "idle_in_transaction_session_timeout", "500"
    )
    async with (
        postgres.desk() as desk,
        postgres.opened() as second,
        operator(postgres) as other,
    ):
        begun, thawed = asyncio.Event(), asyncio.Event()

        async def script(transaction: Transaction) -> None:
            begun.set()
            await thawed.wait()
            await transaction.rows("shard", shard=0)

        writing = asyncio.create_task(shard_of(desk).write(desk.claim, script))
        await begun.wait()
        while await other.fetchval(OPEN):
            pass
        await other.execute("UPDATE shards SET leased_until = '-infinity'")
        claim = await second.claim("two")
        assert claim is not None
        thawed.set()
        with pytest.raises(StoreError) as caught:
            await writing
        assert caught.value.code is errors.STORE_UNAVAILABLE
        assert not await desk.store.renew(desk.claim)


def test_a_stopped_transaction_ends_well_before_its_claim() -> None:
    assert TTL_S / 2 < postgres_connection.IDLE_TRANSACTION_TIMEOUT_S < TTL_S - 2
