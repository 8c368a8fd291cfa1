"""A clock that is wrong for a while removes nothing."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from astraflow.core import errors
from astraflow.scheduler.confirmed_time import CONFIRM_S, ConfirmedTime
from astraflow.store.store import Retention
from tests.virtual_time.rig import TENANT, Rig, with_rig

HOUR_S, DAY_S = 3_600.0, 86_400.0
START_MS = 1_760_000_000_000


class Clock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.at = 1_000.0
        self.step_s = 0.0

    def now(self) -> float:
        return self.at

    def wall_ms(self) -> int:
        return START_MS + int((self.at + self.step_s) * 1000)


def right(clock: Clock) -> int:
    """What a clock that was never set would say."""
    return START_MS + int(clock.at * 1000)


def ask_for(time: ConfirmedTime, clock: Clock, seconds: float) -> list[int]:
    """Ask every minute, as a sweep does."""
    asked = []
    for _ in range(int(seconds / 60)):
        clock.at += 60
        asked.append(time.wall_ms())
    return asked


def test_a_clock_is_believed_when_it_has_kept_step_for_an_hour() -> None:
    clock = Clock()
    time = ConfirmedTime(clock)
    assert time.wall_ms() == 0
    assert set(ask_for(time, clock, CONFIRM_S - 60)) == {0}
    ask_for(time, clock, 60)
    assert time.wall_ms() == right(clock)


def test_forty_days_ahead_for_a_minute_change_nothing() -> None:
    clock = Clock()
    time = ConfirmedTime(clock)
    ask_for(time, clock, 2 * HOUR_S)
    clock.step_s = 40 * DAY_S
    assert time.wall_ms() == right(clock)
    ask_for(time, clock, 60)
    clock.step_s = 0.0
    for at in (60.0, HOUR_S, DAY_S):
        ask_for(time, clock, at)
        assert time.wall_ms() == right(clock)


def test_a_scheduler_that_starts_while_its_clock_is_wrong_removes_nothing_either() -> None:
    clock = Clock()
    clock.step_s = 40 * DAY_S
    time = ConfirmedTime(clock)
    assert set(ask_for(time, clock, 120)) == {0}
    clock.step_s = 0.0
    assert set(ask_for(time, clock, CONFIRM_S)) == {0}
    ask_for(time, clock, 60)
    assert time.wall_ms() == right(clock)


def test_a_clock_that_was_set_right_is_believed_in_the_end() -> None:
    clock = Clock()
    time = ConfirmedTime(clock)
    ask_for(time, clock, 2 * HOUR_S)
    for step_s in (-3 * DAY_S, 5 * DAY_S):
        clock.step_s = step_s
        before = time.wall_ms()
        assert abs(before - clock.wall_ms()) > DAY_S * 1000
        ask_for(time, clock, CONFIRM_S + 60)
        assert time.wall_ms() == clock.wall_ms()


def test_a_clock_that_is_slewed_is_no_clock_that_steps() -> None:
    clock = Clock()
    time = ConfirmedTime(clock)
    ask_for(time, clock, 2 * HOUR_S)
    for _ in range(100):
        clock.step_s += 10
        ask_for(time, clock, 600)
        assert abs(time.wall_ms() - clock.wall_ms()) < 2 * 300_000


def test_a_sweep_goes_by_the_time_that_is_confirmed() -> None:
    async def test(rig: Rig) -> None:
        run_id = await rig.submit("ok")
        await rig.until(lambda: rig.site.mirror.runs[run_id].is_finished)
        serving = rig.scheduler.serving
        clock = Clock()
        clock.wall_ms = lambda: rig.site.clock.wall_ms() + int(clock.step_s * 1000)  # type: ignore[method-assign]
        clock.now = rig.site.clock.now  # type: ignore[method-assign]
        serving._time = ConfirmedTime(clock)
        clock.step_s = 40 * DAY_S
        await serving.sweep()
        assert await rig.status(run_id) == "succeeded"
        clock.step_s = 0.0
        await serving.sweep()
        assert await rig.status(run_id) == "succeeded"

    with_rig(test)


def test_what_is_too_many_goes_whatever_the_time_is() -> None:
    """And the key of a run that is gone is still used: it answers that, and runs nothing again (P3)."""

    async def test(rig: Rig) -> None:
        made = await rig.scheduler.runs.submit(rig.submission("ok", key="once"))
        await rig.until(lambda: rig.site.mirror.runs[made.run_id].is_finished)
        await asyncio.sleep(1.0)
        serving = rig.scheduler.serving
        few = Retention(finished_runs=0)
        serving._parts = msgspec.structs.replace(serving._parts, retention=few)
        await serving.sweep()
        with pytest.raises(errors.NotFound):
            await rig.scheduler.reader.view_run(TENANT, made.run_id)
        with pytest.raises(errors.Conflict) as caught:
            await rig.scheduler.runs.submit(rig.submission("ok", key="once"))
        assert caught.value.code is errors.RUN_REMOVED
        assert caught.value.detail == {"runId": made.run_id}

    with_rig(test)
