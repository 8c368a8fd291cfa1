"""What only memory can do: claims that run out on a clock of the test's own."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import Changes


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return int(self.seconds * 1000)


async def test_a_claim_runs_out_on_the_given_clock() -> None:
    clock = Hand()
    store = MemoryStore(clock=clock, ttl_s=6.0)
    first = await store.claim("one")
    assert first is not None
    clock.seconds += 5.9
    assert await store.claim("two") is None
    assert await store.renew(first)
    clock.seconds += 5.9
    assert await store.claim("two") is None
    clock.seconds += 0.2
    second = await store.claim("two")
    assert second is not None
    assert not await store.renew(first)
    with pytest.raises(StoreError) as caught:
        await store.commit(first, 1, Changes())
    assert caught.value.code is errors.STORE_FENCED


async def test_a_released_claim_may_be_had_at_once_and_only_by_its_holder() -> None:
    store = MemoryStore(clock=Hand(), ttl_s=6.0)
    first = await store.claim("one")
    assert first is not None
    await store.release(first)
    second = await store.claim("two")
    assert second is not None
    await store.release(first)
    assert await store.claim("three") is None
    assert await store.claim("two") is not None
