from __future__ import annotations

import asyncio
import threading

import pytest

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.threads import CallQueue, CallThread


def scene(steps: object) -> None:
    """Run a coroutine function with a queue that one thread serves; what it owns is a list."""

    async def play() -> None:
        calls: CallQueue[list[str]] = CallQueue()
        left: list[str] = []
        thread = CallThread("test", calls, list, left.extend)
        await thread.start()
        try:
            await steps(calls)  # type: ignore[operator]
        finally:
            calls.end()
            await thread.ended()

    asyncio.run(play())


def test_calls_are_answered_in_the_thread_and_in_their_order() -> None:
    async def steps(calls: CallQueue[list[str]]) -> None:
        first = calls.call(lambda owned: owned.append("a"))
        second = calls.call(lambda owned: (list(owned), threading.current_thread().name))
        assert await second == (["a"], "test")
        assert first.done()

    scene(steps)


def test_what_a_call_raises_goes_to_the_one_who_waits_and_the_thread_goes_on() -> None:
    async def steps(calls: CallQueue[list[str]]) -> None:
        with pytest.raises(IndexError):
            await calls.call(lambda owned: owned[7])
        assert await calls.call(len) == 0

    scene(steps)


def test_a_posted_call_that_raises_is_told_to_everyone_after_it() -> None:
    async def steps(calls: CallQueue[list[str]]) -> None:
        calls.post(lambda owned: owned.clear())
        assert await calls.call(len) == 0
        calls.post(lambda owned: owned.remove("nothing"))
        for _ in range(2):
            with pytest.raises(ValueError, match="not in list"):
                await calls.call(len)

    scene(steps)


def test_one_who_was_cancelled_gets_no_answer_and_nothing_breaks() -> None:
    async def steps(calls: CallQueue[list[str]]) -> None:
        gate = threading.Event()

        def late(owned: list[str]) -> None:
            assert gate.wait(30)
            owned.append("done")

        waiting = calls.call(late)
        waiting.cancel()
        gate.set()
        assert await calls.call(list) == ["done"]
        assert waiting.cancelled()

    scene(steps)


def test_an_ended_queue_refuses() -> None:
    async def steps(calls: CallQueue[list[str]]) -> None:
        ended: CallQueue[list[str]] = CallQueue()
        ended.end()
        with pytest.raises(StoreError) as caught:
            await ended.call(len)
        assert caught.value.code is errors.STORE_UNAVAILABLE
        assert await calls.call(len) == 0

    scene(steps)


def test_a_thread_that_cannot_begin_says_why_and_is_gone() -> None:
    def enter() -> list[str]:
        raise StoreError(errors.STORE_FOREIGN, "no")

    async def play() -> None:
        thread = CallThread("test", CallQueue[list[str]](), enter, list.clear)
        with pytest.raises(StoreError):
            await thread.start()

    before = threading.active_count()
    asyncio.run(play())
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
