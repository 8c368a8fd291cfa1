"""Timers come out when they are due, in order."""

from __future__ import annotations

from astraflow.engine.timers import DeadlineDue, StopDue, Timers


def test_what_is_due_comes_out_once_and_in_order() -> None:
    timers = Timers()
    timers.set(5.0, StopDue("run1.0", 1))
    timers.set(3.0, DeadlineDue("run1"))
    timers.set(9.0, StopDue("run1.0", 1))
    assert (len(timers), timers.deadline()) == (3, 3.0)
    assert timers.due(2.9) == []
    assert timers.due(5.0) == [DeadlineDue("run1"), StopDue("run1.0", 1)]
    assert timers.due(5.0) == []
    assert (len(timers), timers.deadline()) == (1, 9.0)


def test_equal_times_keep_the_order_in_which_they_were_set() -> None:
    timers = Timers()
    for number in (3, 1, 2):
        timers.set(1.0, StopDue("run1.0", number))
    assert timers.due(1.0) == [StopDue("run1.0", 3), StopDue("run1.0", 1), StopDue("run1.0", 2)]
    assert timers.deadline() is None
