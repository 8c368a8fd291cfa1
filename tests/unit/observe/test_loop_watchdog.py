"""When the watchdog of an event loop ends the process."""

from __future__ import annotations

import asyncio
from types import FrameType

from astraflow.observe.loop_watchdog import LOOKS, USELESS_LOOKS, MissedBeats, watched_loop


def _nobody(frame: FrameType) -> None:
    raise AssertionError("it is not blocked")


def test_a_loop_that_beats_between_two_looks_is_never_blocked() -> None:
    missed = MissedBeats()
    assert not any(missed.is_blocked(beats) for beats in range(1, 100))


def test_so_many_looks_in_a_row_without_a_beat_mean_blocked() -> None:
    missed = MissedBeats()
    assert not missed.is_blocked(1)
    assert [missed.is_blocked(1) for _ in range(LOOKS)] == [False] * (LOOKS - 1) + [True]


def test_one_beat_begins_the_count_anew() -> None:
    missed = MissedBeats()
    for beats in range(1, 20):
        assert not any(missed.is_blocked(beats) for _ in range(LOOKS))


def test_a_process_that_was_stopped_as_a_whole_has_missed_one_look() -> None:
    """However long it was: the thread has not looked meanwhile, and the loop beats before it has looked too often."""
    missed = MissedBeats()
    assert not missed.is_blocked(7)
    assert not missed.is_blocked(7)  # the look that was due when the process went on
    assert not missed.is_blocked(8)


def test_a_loop_that_is_blocked_for_long_ends_also_a_process_that_serves_nothing() -> None:
    missed = MissedBeats()
    missed.is_blocked(1)
    seen = [(missed.is_blocked(1), missed.is_useless) for _ in range(USELESS_LOOKS)]
    assert seen[LOOKS - 1] == (True, False)
    assert seen[-2:] == [(True, False), (True, True)]
    assert not missed.is_blocked(2)
    assert not missed.is_useless


async def test_a_loop_that_goes_on_is_left_alone_and_the_thread_ends_with_it() -> None:
    async with watched_loop(0.01, lambda: True, _nobody):
        for _ in range(200):
            await asyncio.sleep(0)
    async with watched_loop(0, lambda: True, _nobody):
        await asyncio.sleep(0)
