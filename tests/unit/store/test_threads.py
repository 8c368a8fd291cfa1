from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.threads import CallQueue, CallThread


@asynccontextmanager
async def calls_of_a_thread() -> AsyncIterator[CallQueue[list[str]]]:
    """A queue that one thread serves; what it owns is a list."""
    calls: CallQueue[list[str]] = CallQueue()
    left: list[str] = []
    thread = CallThread("test", calls, list, left.extend)
    await thread.start()
    try:
        yield calls
    finally:
        calls.end()
        await thread.ended()


async def test_calls_are_answered_in_the_thread_and_in_their_order() -> None:
    async with calls_of_a_thread() as calls:
        first = calls.call(lambda owned: owned.append("a"))
        second = calls.call(lambda owned: (list(owned), threading.current_thread().name))
        assert await second == (["a"], "test")
        assert first.done()


async def test_what_a_call_raises_goes_to_the_one_who_waits_and_the_thread_goes_on() -> None:
    async with calls_of_a_thread() as calls:
        with pytest.raises(IndexError):
            await calls.call(lambda owned: owned[7])
        assert await calls.call(len) == 0


async def test_a_posted_call_that_raises_is_told_to_everyone_after_it() -> None:
    async with calls_of_a_thread() as calls:
        calls.post(lambda owned: owned.clear())
        assert await calls.call(len) == 0
        calls.post(lambda owned: owned.remove("nothing"))
        for _ in range(2):
            with pytest.raises(ValueError, match="not in list"):
                await calls.call(len)


async def test_one_who_was_cancelled_gets_no_answer_and_nothing_breaks() -> None:
    async with calls_of_a_thread() as calls:
        gate = threading.Event()

        def late(owned: list[str]) -> None:
            assert gate.wait(30)
            owned.append("done")

        waiting = calls.call(late)
        waiting.cancel()
        gate.set()
        assert await calls.call(list) == ["done"]
        assert waiting.cancelled()


async def test_an_ended_queue_refuses() -> None:
    async with calls_of_a_thread() as calls:
        ended: CallQueue[list[str]] = CallQueue()
        ended.end()
        with pytest.raises(StoreError) as caught:
            await ended.call(len)
        assert caught.value.code is errors.STORE_UNAVAILABLE
        assert await calls.call(len) == 0


async def test_a_thread_that_cannot_begin_says_why_and_is_gone() -> None:
    def enter() -> list[str]:
        raise StoreError(errors.STORE_FOREIGN, "no")

    before = threading.active_count()
    thread = CallThread("test", CallQueue[list[str]](), enter, list.clear)
    with pytest.raises(StoreError):
        await thread.start()
    assert threading.active_count() == before


async def test_what_goes_wrong_at_the_end_is_told() -> None:
    def leave(owned: list[str]) -> None:
        raise StoreError(errors.STORE_BROKEN, "no")

    calls: CallQueue[list[str]] = CallQueue()
    thread = CallThread("test", calls, list, leave)
    await thread.start()
    calls.end()
    with pytest.raises(StoreError):
        await thread.ended()
