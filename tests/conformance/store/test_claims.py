from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.rows import Changes
from astraflow.store.store import Retention
from tests.conformance.store.backends import Backend
from tests.conformance.store.samples import NOW_MS, PLAN, run, workflow


async def test_each_claim_has_a_higher_epoch(backend: Backend) -> None:
    async with backend.opened() as store:
        epochs = [claim.epoch for _ in range(3) if (claim := await store.claim("one"))]
    assert epochs == [1, 2, 3]


async def test_a_claim_after_a_restart_is_higher_too(backend: Backend) -> None:
    async with backend.desk() as desk:
        first = desk.claim.epoch
        await desk.store.release(desk.claim)
    async with backend.desk("two") as desk:
        assert desk.claim.epoch == first + 1


async def test_a_good_claim_can_be_renewed_and_an_old_one_cannot(backend: Backend) -> None:
    async with backend.desk() as desk:
        assert await desk.store.renew(desk.claim)
        newer = await desk.store.claim("one")
        assert newer is not None
        assert not await desk.store.renew(desk.claim)
        assert await desk.store.renew(newer)


async def test_a_replaced_owner_can_write_nothing(backend: Backend) -> None:
    async with backend.desk() as desk:
        store = desk.store
        await desk.write(plans=[PLAN], runs=[run(1)])
        newer = await store.claim("one")
        assert newer is not None
        await store.put_workflow(newer, workflow("kept", 1))
        writes = [
            desk.write(runs=[run(2)]),
            store.put_workflow(desk.claim, workflow("other", 1)),
            store.delete_workflow(desk.claim, "default", "kept"),
            store.sweep(desk.claim, Retention(finished_runs=0), NOW_MS),
            store.is_committed(desk.claim, 1),
        ]
        for write in writes:
            with pytest.raises(StoreError) as caught:
                await write
            assert caught.value.code is errors.STORE_FENCED
        assert await desk.find(run(2)) is None
        assert await desk.find(run(1)) == run(1)
        assert await store.find_workflow("default", "kept") is not None


async def test_an_empty_commit_is_a_commit(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write()
        assert await desk.store.is_committed(desk.claim, 1)


async def test_a_commit_is_known_by_its_number(backend: Backend) -> None:
    async with backend.desk() as desk:
        assert not await desk.store.is_committed(desk.claim, 1)
        await desk.write(plans=[PLAN], runs=[run(1)])
        assert await desk.store.is_committed(desk.claim, 1)
        assert not await desk.store.is_committed(desk.claim, 2)


async def test_numbers_begin_anew_with_each_claim(backend: Backend) -> None:
    async with backend.desk() as desk:
        for _ in range(3):
            await desk.write()
        newer = await desk.store.claim("one")
        assert newer is not None
        assert not await desk.store.is_committed(newer, 1)
        await desk.store.commit(newer, 1, Changes())
        assert await desk.store.is_committed(newer, 1)


async def test_a_number_is_written_once(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(plans=[PLAN], runs=[run(1)])
        again = Changes()
        again.runs.append(run(2))
        with pytest.raises(StoreError) as caught:
            await desk.store.commit(desk.claim, 1, again)
        assert caught.value.code is errors.STORE_REFUSED
        assert await desk.find(run(2)) is None
