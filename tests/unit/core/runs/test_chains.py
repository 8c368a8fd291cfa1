"""Which tasks stand for which node of a chain."""

from __future__ import annotations

from random import Random

from astraflow.core.runs.chains import (
    calls_by_task,
    executing_tasks,
    is_outermost,
    related_tasks,
    shown_task,
)
from astraflow.core.runs.commands import Call, LeaseTask
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.run import RunRecord
from tests.unit.plans import AT, make_plan, start, wrapped


def called() -> RunRecord:
    """n1 (task 0) has called n2 (task 3), which has called n0 twice (tasks 4 and 5)."""
    run = start(wrapped(2)).run
    for command in (
        LeaseTask(0, "w1", 1, 1),
        Call(0, 1, "w1", "a", 0),
        LeaseTask(3, "w1", 1, 1),
        Call(3, 1, "w1", "b", 1),
        Call(3, 1, "w1", "c", 1),
    ):
        decide(run, command, AT, Random(7))
    return run


def test_a_node_without_a_chain_stands_for_itself() -> None:
    run = start(make_plan(2)).run
    assert [shown_task(run, index) for index in (0, 1)] == [0, 1]
    assert executing_tasks(run, 1) == {1}
    assert related_tasks(run, 1) == {1: ""}
    assert not is_outermost(run, 1)


def test_the_outermost_is_shown_with_the_task_of_its_host_and_others_with_their_last_call() -> None:
    run = called()
    assert [shown_task(run, index) for index in (0, 1, 2)] == [0, 0, 3]
    assert [is_outermost(run, index) for index in (0, 1, 2)] == [False, True, False]
    assert calls_by_task(run) == {2: [3], 0: [4, 5]}


def test_a_middleware_that_was_not_called_is_shown_with_its_own_task() -> None:
    run = start(wrapped(2)).run
    assert [shown_task(run, index) for index in (0, 1, 2)] == [0, 0, 2]
    assert executing_tasks(run, 2) == set()


def test_the_attempts_of_a_node_are_those_that_executed_it() -> None:
    run = called()
    assert [executing_tasks(run, index) for index in (0, 1, 2)] == [{4, 5}, {0}, {3}]


def test_the_timeline_of_a_host_is_that_of_its_chain() -> None:
    run = called()
    assert related_tasks(run, 0) == {
        0: "node 1: ",
        3: "node 2, call 1: ",
        4: "node 0, call 1: ",
        5: "node 0, call 2: ",
    }
    assert related_tasks(run, 1) == {0: "node 1: "}
    assert related_tasks(run, 2) == {3: "node 2, call 1: "}
