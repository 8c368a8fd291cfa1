from __future__ import annotations

import pytest

from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    Fact,
    RunStarted,
    TaskCancelled,
    TaskDecided,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskParked,
    TaskPassed,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitReason,
)
from astraflow.core.runs.timeline_entries import TimelineEntries
from tests.unit.core.runs.examples import FULL_FACTS, RESULT, places

ERROR = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "it broke")
LEASED = TaskLeased(1, 0, 1, "w1", 1, 30_000)


def told(*facts: Fact, node_id: str | None = None) -> TimelineEntries:
    entries = TimelineEntries(places(), node_id)
    entries.take(facts)
    return entries


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        (TaskSucceeded(3, 0, 1), "succeeded", None),
        (TaskFailed(3, 0, 1, ERROR), "failed", "E.RUNNER.FAILURE"),
        (AttemptFailed(3, 0, 1, ERROR, 1.0), "failed", "E.RUNNER.FAILURE"),
        (AttemptLost(3, 0, 1, "lease ended", 1.0), "lost", "lease ended"),
        (AttemptRefused(3, 0, 1, "E.DISPATCH.DRAINING", 1.0), "refused", "E.DISPATCH.DRAINING"),
        (TaskCancelled(3, 0, 1), "cancelled", None),
        (TaskSkipped(3, 0, "E.TASK.SKIPPED", None, 1), "skipped", "E.TASK.SKIPPED"),
    ],
)
def test_an_attempt_is_one_entry_from_its_dispatch_to_its_end(
    end: Fact, status: str, code: str | None
) -> None:
    (entry,) = told(LEASED, AttemptStarted(2, 0, 1), end).entries
    assert (entry.kind, entry.attempt, entry.worker_id, entry.status) == (
        "attempt",
        1,
        "w1",
        status,
    )
    assert entry.dispatched_at == "1970-01-01T00:00:00.001Z"
    assert entry.started_at == "1970-01-01T00:00:00.002Z"
    assert entry.finished_at == "1970-01-01T00:00:00.003Z"
    assert (entry.error and entry.error.code) == code
    again = "1970-01-01T00:00:01.003Z" if hasattr(end, "delay_s") else None
    assert entry.retry_at == again


def test_the_parts_of_an_attempt_on_two_pages_are_one() -> None:
    facts = [LEASED, AttemptStarted(2, 0, 1), TaskSucceeded(3, 0, 1)]
    (whole,) = told(*facts).entries
    for cut in (1, 2):
        (first,), (second,) = told(*facts[:cut]).entries, told(*facts[cut:]).entries
        assert first.key == second.key
        assert first.joined(second) == whole


def test_waits_and_ends_without_an_attempt_are_entries_of_their_own() -> None:
    entries = told(
        TaskWaiting(1, 0, WaitReason("worker", "none is here")),
        TaskParked(2, 0, WaitReason("approval", "of somebody", until=5)),
        TaskDecided(3, 0, RESULT),
        TaskReused(4, 1, "run", RESULT),
        TaskPassed(5, 1, RESULT),
        TaskSkipped(6, 1, "E.TASK.UPSTREAM_FAILED"),
        RunStarted(7),
        AttemptProgressed(8, 0, 1),
    ).entries
    assert [(one.kind, one.status) for one in entries] == [
        ("wait", None),
        ("wait", None),
        ("end", "succeeded"),
        ("end", "succeeded"),
        ("end", "skipped"),
        ("end", "skipped"),
    ]
    assert entries[0].since == "1970-01-01T00:00:00.001Z"
    assert entries[0].waiting_for is not None
    assert entries[0].waiting_for.detail == "none is here"
    assert len({one.key for one in entries}) == 4


def test_one_node_is_told_alone() -> None:
    node_ids = [node.node_id for node in places()._plan.nodes]
    second = TaskLeased(1, 1, 1, "w2", 1, 30_000)
    (entry,) = told(LEASED, second, node_id=node_ids[1]).entries
    assert (entry.node_id, entry.worker_id) == (node_ids[1], "w2")


def test_every_fact_can_be_taken() -> None:
    assert told(*FULL_FACTS).entries
