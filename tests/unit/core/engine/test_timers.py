"""Timers come out when they are due, in order."""

from __future__ import annotations

from astraflow.core.engine.timers import DeadlineDue, StopDue, TimeoutDue, Timers
from astraflow.core.ids import RunId, TaskId
from tests.unit.core.engine.rig import Rig
from tests.unit.plans import make_plan


def test_what_is_due_comes_out_once_and_in_order() -> None:
    timers = Timers()
    timers.set(5.0, StopDue(TaskId("run1.0"), 1))
    timers.set(3.0, DeadlineDue(RunId("run1")))
    timers.set(9.0, StopDue(TaskId("run1.0"), 1))
    assert (len(timers), timers.deadline()) == (3, 3.0)
    assert timers.due(2.9) == []
    assert timers.due(5.0) == [DeadlineDue(RunId("run1")), StopDue(TaskId("run1.0"), 1)]
    assert timers.due(5.0) == []
    assert (len(timers), timers.deadline()) == (1, 9.0)


def test_equal_times_keep_the_order_in_which_they_were_set() -> None:
    timers = Timers()
    for number in (3, 1, 2):
        timers.set(1.0, StopDue(TaskId("run1.0"), number))
    assert timers.due(1.0) == [
        StopDue(TaskId("run1.0"), 3),
        StopDue(TaskId("run1.0"), 1),
        StopDue(TaskId("run1.0"), 2),
    ]
    assert timers.deadline() is None


class TestOwners:
    def test_the_timers_of_what_has_ended_do_not_come_out(self) -> None:
        timers = Timers()
        timers.set(1.0, TimeoutDue(TaskId("run1.0"), 1))
        timers.set(2.0, StopDue(TaskId("run1.0"), 1))
        timers.set(3.0, DeadlineDue(RunId("run1")))
        for number in range(5):
            timers.set(4.0 + number, StopDue(TaskId("run2.0"), number))
        timers.end("run1.0", 1)
        assert timers.due(2.5) == []
        timers.end("run1")
        timers.end("run1", 7)
        assert timers.due(4.0) == [StopDue(TaskId("run2.0"), 0)]

    def test_they_leave_when_they_are_the_larger_part(self) -> None:
        """A thousand attempts with a timeout of a day, one after the other: few are kept at any time."""
        timers = Timers()
        timers.set(50.0, DeadlineDue(RunId("run1")))
        most = 0
        for number in range(1000):
            timers.set(86_400.0 + number, TimeoutDue(TaskId("run1.0"), number))
            timers.end("run1.0", number)
            most = max(most, len(timers))
        assert most <= 4
        assert timers.due(60.0) == [DeadlineDue(RunId("run1"))]
        timers.end("run1")

    def test_a_timer_that_came_out_is_not_counted_as_left(self) -> None:
        timers = Timers()
        timers.set(1.0, TimeoutDue(TaskId("run1.0"), 1))
        timers.set(9.0, StopDue(TaskId("run1.0"), 1))
        timers.set(8.0, DeadlineDue(RunId("run1")))
        assert timers.due(1.0) == [TimeoutDue(TaskId("run1.0"), 1)]
        timers.end("run1.0", 1)
        assert timers.due(10.0) == [DeadlineDue(RunId("run1"))]
        assert len(timers) == 0


def test_an_engine_keeps_no_timer_of_an_attempt_or_a_run_that_has_ended(rig: Rig) -> None:
    worker = rig.worker()
    for number in range(20):
        run_id = f"run{number}"
        rig.submit(make_plan(1, nodes={0: {"timeout_s": 86_400.0}}), run_id, deadline_s=90_000.0)
        worker.finish()
    assert rig.active() == []
    assert len(rig.engine.view.timers) <= 2
