"""Runs some of whose tasks have a pinned result."""

from __future__ import annotations

from random import Random

import msgspec

from astraflow.core.runs.accept import accept
from astraflow.core.runs.commands import LeaseTask, Report
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import PINNED, TaskReused
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of, view_node
from astraflow.core.runs.timeline import describe_fact
from tests.unit.plans import AT, accepted, make_plan

RESULT = msgspec.Raw(b'{"v":5}')


def pinned(task: int, edges: list[tuple[int, int]]) -> Decision:
    """A run of three tasks one of which is pinned."""
    plan = make_plan(3, edges, reads=True)
    return accept(plan, accepted(pinned=(task,)), Random(1), {task: (RESULT, ())})


def test_a_pinned_task_has_its_result_from_the_start() -> None:
    run = pinned(0, [(0, 1), (1, 2)]).run
    assert [view_node(run, task).pinned for task in range(3)] == [True, False, False]
    assert view_node(run, 0).result == RESULT
    assert run.tasks[1].is_waiting
    run.check()


def test_a_pinned_task_in_the_middle_does_not_wait_for_what_is_before_it() -> None:
    run = pinned(1, [(0, 1), (1, 2)]).run
    assert run.tasks[0].is_waiting
    assert run.tasks[2].is_waiting
    run.check()
    decide(run, LeaseTask(2, "w1", 1, 30_000), AT, Random(1))
    decide(run, Report(2, 1, "w1", "SUCCEEDED", msgspec.Raw(b"{}")), AT, Random(1))
    decide(run, LeaseTask(0, "w1", 1, 30_000), AT, Random(1))
    decide(run, Report(0, 1, "w1", "SUCCEEDED", msgspec.Raw(b'{"v":1}')), AT, Random(1))
    run.check()
    assert run.status == "succeeded"
    assert run.tasks[1].result == RESULT


def test_what_happened_says_that_it_was_pinned() -> None:
    decision = pinned(0, [])
    (fact,) = [one for one in decision.facts if isinstance(one, TaskReused)]
    assert fact.from_run == PINNED
    assert describe_fact(fact).endswith("took its pinned result")
    assert describe_fact(TaskReused(AT, 0, "run0")).endswith("took over its result from run run0")
    states = [one.body for one in events_of(fact, 1, TaskPlaces(decision.run.plan))]
    assert [getattr(one, "pinned", None) for one in states] == [None, True]
