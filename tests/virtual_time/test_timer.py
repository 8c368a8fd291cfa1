"""The timer, in virtual time: nothing here waits."""

from __future__ import annotations

import asyncio

from astraflow.timer import WakeupTimer
from tests.sim.loop import LoopClock, VirtualLoop, run_virtual


def rung(*settings: float | None, cancels: bool = False) -> list[float]:
    """When a timer rings that is set to these times, one after the other."""

    async def main(loop: VirtualLoop) -> list[float]:
        clock = LoopClock(loop)
        start = clock.now()
        rang: list[float] = []
        timer = WakeupTimer(clock, lambda: rang.append(round(clock.now() - start, 6)))
        for when in settings:
            timer.set(None if when is None else start + when)
        if cancels:
            timer.cancel()
            assert timer.at is None
        await asyncio.sleep(60.0)
        assert timer.at is None
        return rang

    return run_virtual(main)


def test_it_rings_once_at_the_earliest_time_it_was_set_to() -> None:
    assert rung(5.0) == [5.0]
    assert rung(5.0, 9.0) == [5.0]
    assert rung(9.0, 5.0, 7.0) == [5.0]


def test_what_is_past_rings_at_once() -> None:
    assert rung(-3.0) == [0.0]


def test_no_deadline_sets_nothing() -> None:
    assert rung(None) == []
    assert rung(4.0, None) == [4.0]


def test_one_that_was_cancelled_does_not_ring() -> None:
    assert rung(5.0, cancels=True) == []
