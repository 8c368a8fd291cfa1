"""What a node notes against a shard before it ends, and whom the store tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.cluster.parking import ENDS_S, KEPT_LOSSES, PARKED_FROM, WITHIN_S
from astraflow.core.cluster.shards import ShardSeen
from astraflow.core.errors import StoreError
from astraflow.store.cluster import StoredCluster
from astraflow.store.postgres import PostgresSite, PostgresStore
from astraflow.store.store import HOME_SHARD, Claim, Store
from tests.conformance.store.backends import PostgresBackend
from tests.conformance.store.test_postgres import operator


class Losses:
    """A claim on the home shard, and the cluster that notes what becomes of it."""

    def __init__(self, store: Store, other: Any) -> None:
        assert isinstance(store, PostgresStore)
        self.store = store
        self.cluster = StoredCluster(store.database.site)
        self.other = other

    async def claim(self) -> Claim:
        claim = await self.store.claim("one")
        assert claim is not None
        return claim

    async def lose(self, times: int = 1) -> None:
        for _ in range(times):
            await self.cluster.note_loss(await self.claim())

    async def age(self, seconds: float) -> None:
        """Let all that was noted have been so much earlier."""
        await self.other.execute(
            "UPDATE shards SET lost_at = ARRAY(SELECT m - make_interval(secs => $1) FROM unnest(lost_at) AS m)",
            seconds,
        )

    async def seen(self, shard: int = HOME_SHARD) -> ShardSeen:
        return next(one for one in await self.cluster.shards() if one.shard == shard)


@asynccontextmanager
async def _losses(postgres: PostgresBackend) -> AsyncIterator[Losses]:
    async with postgres.opened() as store, operator(postgres) as other:
        yield Losses(store, other)


async def test_a_shard_is_claimed_as_parked_after_three_losses(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        for _ in range(PARKED_FROM):
            assert not (await losses.claim()).is_parked
            await losses.lose()
        assert (await losses.claim()).is_parked
        seen = await losses.seen()
        assert seen.parking == "parked"
        assert all(0.0 <= age < WITHIN_S for age in seen.losses)
        await losses.lose()
        assert (await losses.seen()).parking == "withheld"
        assert (await losses.claim()).is_parked, "who claims it none the less places nothing"


async def test_losses_that_are_old_or_far_apart_park_nothing(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        await losses.lose(PARKED_FROM)
        await losses.age(ENDS_S)
        assert not (await losses.claim()).is_parked
        await losses.lose(PARKED_FROM - 1)
        await losses.age(WITHIN_S + 1.0)
        await losses.lose()
        assert not (await losses.claim()).is_parked
        assert (await losses.seen()).parking == "open"


async def test_what_is_not_noted_is_no_loss(postgres: PostgresBackend) -> None:
    """Owners that are killed, replaced, or give the shard back."""
    async with _losses(postgres) as losses:
        for _ in range(2 * PARKED_FROM):
            claim = await losses.claim()
            await losses.store.renew(claim)
        await losses.store.release(claim)
        assert not (await losses.claim()).is_parked
        assert (await losses.seen()).losses == ()


async def test_only_the_present_owner_has_lost_a_shard(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        former = await losses.claim()
        await losses.claim()
        await losses.cluster.note_loss(former)
        await losses.cluster.note_loss(Claim("nobody", 1, 8.0, 99))
        assert (await losses.seen()).losses == ()


async def test_one_that_gave_up_the_shard_a_moment_ago_may_still_note_it(
    postgres: PostgresBackend,
) -> None:
    async with _losses(postgres) as losses:
        claim = await losses.claim()
        await losses.store.release(claim)
        await losses.cluster.note_loss(claim)
        assert len((await losses.seen()).losses) == 1


async def test_only_the_newest_losses_are_kept(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        await losses.lose(KEPT_LOSSES)
        await losses.age(3600.0)
        await losses.lose(2)
        kept = sorted((await losses.seen()).losses)
        assert len(kept) == KEPT_LOSSES
        assert [age < 3600.0 for age in kept] == [True] * 2 + [False] * (KEPT_LOSSES - 2)


async def test_a_loss_is_of_its_shard_alone(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        await losses.cluster.assign_lane("acme")
        (lane,) = await losses.cluster.lanes_of("acme")
        own = losses.store.of_shard(lane.shard)
        await own.open()
        try:
            claim = await own.claim("one")
            assert claim is not None and claim.shard != HOME_SHARD
            await losses.cluster.note_loss(claim)
        finally:
            await own.close()
        assert len((await losses.seen(lane.shard)).losses) == 1
        assert (await losses.seen()).losses == ()


async def test_losses_are_cleared_once(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        await losses.lose(PARKED_FROM + 1)
        assert await losses.cluster.clear_losses(HOME_SHARD)
        assert not await losses.cluster.clear_losses(HOME_SHARD)
        assert not await losses.cluster.clear_losses(99)
        assert not (await losses.claim()).is_parked
        await losses.lose()
        assert not (await losses.claim()).is_parked, "three must come anew"


async def test_a_loss_is_noted_from_another_thread(postgres: PostgresBackend) -> None:
    """The loop of the process is blocked when it is."""
    async with _losses(postgres) as losses:
        claim = await losses.claim()
        await asyncio.to_thread(asyncio.run, losses.cluster.note_loss(claim))
        assert len((await losses.seen()).losses) == 1


async def test_a_row_that_is_locked_is_not_waited_for_long(postgres: PostgresBackend) -> None:
    async with _losses(postgres) as losses:
        claim = await losses.claim()
        async with losses.other.transaction():
            await losses.other.execute("SELECT 1 FROM shards FOR UPDATE")
            with pytest.raises(StoreError) as caught:
                await losses.cluster.note_loss(claim)
        assert caught.value.code is errors.STORE_UNAVAILABLE


async def test_a_server_that_is_away_is_an_error_of_the_store() -> None:
    cluster = StoredCluster(PostgresSite("postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(StoreError):
        await cluster.note_loss(Claim("one", 1, 8.0))
