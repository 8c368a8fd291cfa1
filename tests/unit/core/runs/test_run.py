"""A run in memory: its own check finds what does not fit together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.states import PENDING, READY, SUCCEEDED
from tests.tables import each_row
from tests.unit.plans import JOINING, make_plan, start


def accepted_run() -> RunRecord:
    run = start(make_plan(2, [(0, 1)])).run
    run.check()
    return run


def open_task_of_ended_run(run: RunRecord) -> None:
    run.status = "succeeded"


def wrong_count(run: RunRecord) -> None:
    run.open_tasks -= 1


def changed_behind_its_back(run: RunRecord) -> None:
    run.tasks[0].state = SUCCEEDED


def ready_too_early(run: RunRecord) -> None:
    run.tasks[1].state = READY


def pending_on_nothing(run: RunRecord) -> None:
    run.tasks[0].state = PENDING


def failed_untried(run: RunRecord) -> None:
    run.tasks[0].failures = 1


def lost_untried(run: RunRecord) -> None:
    run.tasks[0].losses = 1


def ready_left(run: RunRecord) -> None:
    run.ready.append(0)


def doomed_left(run: RunRecord) -> None:
    run.doomed.append((1, 0))


def answers_left(run: RunRecord) -> None:
    run.answered.append(0)


def call_that_nobody_made(run: RunRecord) -> None:
    run.tasks[0].open_calls = 1


@each_row(
    ("plant", "told"),
    [
        (open_task_of_ended_run, "a finished run has open tasks"),
        (wrong_count, "the count of open tasks"),
        (changed_behind_its_back, "the count of open tasks"),
        (ready_too_early, "task 1 is ready before its upstream is settled"),
        (pending_on_nothing, "task 0 is pending on nothing"),
        (failed_untried, "task 0 failed more often than it was tried"),
        (lost_untried, "task 0 was lost more often than it was tried"),
        (ready_left, "ready tasks were not advanced"),
        (doomed_left, "doomed tasks were not skipped"),
        (answers_left, "ended calls were not answered"),
        (call_that_nobody_made, "task 0 waits for other calls"),
    ],
)
def test_a_planted_inconsistency_is_noticed(plant: Callable[[RunRecord], None], told: str) -> None:
    run = accepted_run()
    plant(run)
    with pytest.raises(AssertionError, match=told):
        run.check()


def test_a_task_that_joins_any_may_be_ready_before_its_upstream_is_settled() -> None:
    run = start(make_plan(2, [(0, 1)], nodes={1: {"join": "any"}}, features=JOINING)).run
    run.tasks[1].state = READY
    run.check()


def test_a_task_without_an_upstream_begins_ready() -> None:
    node = make_plan(1).nodes[0]
    assert Task(0, node).state is READY
    assert Task(2, node).state is PENDING


@each_row(
    ("status", "is_terminal"),
    [
        ("queued", False),
        ("running", False),
        ("succeeded", True),
        ("failed", True),
        ("cancelled", True),
    ],
)
def test_a_run_has_ended_or_not(status: str, is_terminal: bool) -> None:
    run = accepted_run()
    run.status = status  # type: ignore[assignment]
    assert run.is_terminal is is_terminal
