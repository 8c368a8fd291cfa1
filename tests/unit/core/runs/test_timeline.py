"""The timeline of a task in sentences."""

from __future__ import annotations

from astraflow.core.runs.facts import (
    AttemptProgressed,
    CancelRequested,
    Chunk,
    Fact,
    RunStarted,
    TaskCancelled,
    TaskLeased,
)
from astraflow.core.runs.timeline import describe_fact, task_timeline
from tests.tables import each_row
from tests.unit.core.runs.examples import FULL_FACTS
from tests.unit.plans import AT

SENTENCES = {
    "RunAccepted": "RunAccepted",
    "RunStarted": "RunStarted",
    "CancelRequested": "cancel of the run was requested by ann (deadline)",
    "RunFinished": "RunFinished",
    "CallOpened": "was called by attempt 1 of task 0",
    "TaskWaiting": "waits for package: pkg 1.0",
    "TaskLeased": "attempt 1 was leased to w1 (boot 3)",
    "AttemptStarted": "attempt 1 was taken by its worker",
    "AttemptProgressed": "attempt 1 gave feedback with 1 chunks",
    "StopRequested": "attempt 1 was asked to stop (timeout)",
    "AttemptRefused": "attempt 1 did not start (E.DISPATCH.STALE); next try in 0.2 s, "
    "at 2023-11-14T22:13:20.200Z",
    "AttemptLost": "attempt 1 was lost (lease ended); next try in 0.3 s, at 2023-11-14T22:13:20.300Z",
    "AttemptFailed": "attempt 1 failed with E.RUNNER.FAILURE, failure 1 of 3; next try in 2.0 s, "
    "at 2023-11-14T22:13:22.000Z",
    "TaskSucceeded": "succeeded with attempt 1",
    "TaskReused": "took over its result from run run0",
    "TaskRebuilt": "run1/session is gone (its worker did not come back): it is made again by 1 nodes, "
    "then the one that needs it goes on",
    "TaskFailed": "failed at attempt 1 with E.RUNNER.FAILURE: boom",
    "CompensationBegan": "what was done is undone by 1 branches, after a cancel",
    "ScopeOpened": "began its body",
    "ScopeClosing": "begins nothing more (E.RUNNER.FAILURE: boom)",
    "EdgesDecided": "the conditions of the edges from task 0 do not hold for 1 of them",
    "SignalReceived": "signal paid came from shop",
    "TaskParked": "waits for approval: Ship it?",
    "TaskDecided": "was decided by ann",
    "TaskPassed": "is disabled: passed on what it was given",
    "TaskSkipped": "was skipped (E.TASK.UPSTREAM_FAILED)",
    "TaskCancelled": "was cancelled at attempt 1 (not confirmed by its worker)",
}


@each_row("fact", FULL_FACTS)
def test_a_fact_is_told_as_a_sentence(fact: Fact) -> None:
    assert describe_fact(fact) == SENTENCES[type(fact).__name__]


def test_a_cancel_by_nobody_is_the_schedulers() -> None:
    told = describe_fact(CancelRequested(AT, reason="deadline"))
    assert told == "cancel of the run was requested by the scheduler (deadline)"


def test_a_confirmed_cancel_says_so() -> None:
    assert describe_fact(TaskCancelled(AT, 0, 1)) == "was cancelled at attempt 1 (confirmed)"


def test_a_story_is_of_one_task_and_of_what_touched_its_run() -> None:
    facts: list[Fact] = [
        RunStarted(AT),
        TaskLeased(AT, 0, 1, "w1", 1, 1),
        TaskLeased(AT + 1, 1, 1, "w2", 1, 1),
        AttemptProgressed(AT + 2, 1, 1, chunks=(Chunk("log", 0, "a"), Chunk("log", 1, "b"))),
        CancelRequested(AT + 3, "ann"),
        TaskCancelled(AT + 4, 0, 1),
        TaskCancelled(AT + 1005, 1, 1),
    ]
    assert task_timeline(facts, 1) == [
        "2023-11-14T22:13:20.001Z attempt 1 was leased to w2 (boot 1)",
        "2023-11-14T22:13:20.002Z attempt 1 gave feedback with 2 chunks",
        "2023-11-14T22:13:20.003Z cancel of the run was requested by ann (user_requested)",
        "2023-11-14T22:13:21.005Z was cancelled at attempt 1 (confirmed)",
    ]
