"""The store that fails on purpose does so as it says."""

from __future__ import annotations

import asyncio

import pytest

from astraflow.core import errors
from astraflow.core.errors import OutcomeUnknown, StoreError
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import Changes, PlanRow
from tests.faulty_store import Fault, FaultyStore

WRITTEN = {Fault.NONE, Fault.UNKNOWN_WRITTEN}


def plan() -> Changes:
    changes = Changes()
    changes.plans.append(PlanRow("p", b"", b""))
    return changes


async def commit_with(fault: Fault) -> tuple[StoreError | None, bool]:
    """What the caller was told, and whether the rows are there."""
    store = FaultyStore(MemoryStore(), [fault])
    claim = await store.claim("one")
    told = None
    try:
        await store.commit(claim, 1, plan())
    except StoreError as error:
        told = error
    return told, await store.find_plan("p") is not None


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.SLOW])
async def test_a_fault_writes_and_says_what_it_says(fault: Fault) -> None:
    told, is_there = await commit_with(fault)
    assert is_there == (fault in WRITTEN)
    assert (told is None) == (fault is Fault.NONE)
    assert isinstance(told, OutcomeUnknown) == (
        fault in {Fault.UNKNOWN_WRITTEN, Fault.UNKNOWN_LOST}
    )


async def test_a_slow_commit_waits_until_it_is_let_go() -> None:
    store = FaultyStore(MemoryStore(), [Fault.SLOW])
    claim = await store.claim("one")
    async with asyncio.TaskGroup() as group:
        commit = group.create_task(store.commit(claim, 1, plan()))
        await asyncio.sleep(0)
        assert not commit.done()
        store.let_go()
    assert await store.is_committed(claim, 1)


async def test_a_store_that_is_broken_once_stays_so() -> None:
    store = FaultyStore(MemoryStore(), [Fault.BROKEN])
    claim = await store.claim("one")
    for number in (1, 2):
        with pytest.raises(StoreError) as caught:
            await store.commit(claim, number, plan())
        assert caught.value.code is errors.STORE_BROKEN
    with pytest.raises(StoreError):
        await store.is_committed(claim, 1)


async def test_a_store_may_be_silent_before_it_answers() -> None:
    store = FaultyStore(MemoryStore(), [Fault.UNKNOWN_WRITTEN], silent=1)
    claim = await store.claim("one")
    with pytest.raises(OutcomeUnknown):
        await store.commit(claim, 1, plan())
    with pytest.raises(StoreError):
        await store.is_committed(claim, 1)
    assert await store.is_committed(claim, 1)
    assert store.commits == [(1, Fault.UNKNOWN_WRITTEN)]
