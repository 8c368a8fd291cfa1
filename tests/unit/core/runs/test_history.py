from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.contract.events import Event, NodeOutput, NodeState, RunStatusChange
from astraflow.core.ids import TaskId
from astraflow.core.runs.facts import (
    PINNED,
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    CallOpened,
    CancelRequested,
    Fact,
    TaskCancelled,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitReason,
)
from astraflow.core.runs.history import LogFilter, attempts_of, log_lines, reused_run, timeline_of
from tests.tables import each_row

ERROR = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "it broke", stack="line 1")


def leased(attempt: int) -> TaskLeased:
    return TaskLeased(1, 0, attempt, "w1", 1, 30_000)


@each_row(
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
def test_an_attempt_tells_how_it_ended(end: Fact, status: str, code: str | None) -> None:
    facts = [leased(1), AttemptStarted(2, 0, 1), end]
    (attempt,) = attempts_of(facts)
    assert attempt.status == status
    assert attempt.started_at == "1970-01-01T00:00:00.002Z"
    assert attempt.finished_at == "1970-01-01T00:00:00.003Z"
    assert (attempt.error and attempt.error.code) == code
    assert len(timeline_of(facts)) == 3


def test_attempts_are_told_in_order_and_what_is_about_none_only_in_the_timeline() -> None:
    facts: list[Fact] = [
        TaskWaiting(1, 0, WaitReason("worker", "none is here")),
        leased(1),
        AttemptFailed(2, 0, 1, ERROR, 1.0),
        leased(2),
        CancelRequested(3, "me"),
        TaskCancelled(4, 0, 2),
    ]
    attempts = attempts_of(facts)
    assert [one.attempt for one in attempts] == [1, 2]
    assert [one.status for one in attempts] == ["failed", "cancelled"]
    assert len(timeline_of(facts)) == 6


def test_a_fact_that_changes_no_attempt_leaves_it_as_it_was() -> None:
    waiting = TaskWaiting(2, 0, WaitReason("worker", "none is here"))
    first = TaskLeased(1, 0, 0, "w1", 1, 30_000)
    assert attempts_of([first, waiting]) == attempts_of([first])


def test_an_attempt_is_queued_when_the_node_is_ready_and_after_the_delay_before_a_retry() -> None:
    facts: list[Fact] = [
        TaskLeased(5, 0, 1, "w1", 1, 30_000),
        AttemptFailed(7, 0, 1, ERROR, 1.5),
        TaskLeased(2_000, 0, 2, "w1", 1, 30_000),
        AttemptLost(3_000, 0, 2, "lease ended", 0.0),
        TaskLeased(3_001, 0, 3, "w1", 1, 30_000),
        TaskSucceeded(3_002, 0, 3),
    ]
    queued = [one.queued_at for one in attempts_of(facts, {0}, {0: 4})]
    seconds = ("00.004", "01.507", "03.000")
    assert queued == [f"1970-01-01T00:00:{one}Z" for one in seconds]
    assert attempts_of(facts)[0].queued_at is None


def test_an_attempt_from_before_the_node_was_ready_again_does_not_say_when_it_was_queued() -> None:
    (attempt,) = attempts_of([TaskLeased(5, 0, 1, "w1", 1, 30_000)], {0}, {0: 6})
    assert attempt.queued_at is None


def test_an_attempt_of_a_call_is_queued_when_it_is_called() -> None:
    called = CallOpened(2, 1, TaskId("call-1"), 0, 1, "a", None)
    (attempt,) = attempts_of([called, TaskLeased(3, 1, 1, "w2", 1, 30_000)])
    assert attempt.queued_at == "1970-01-01T00:00:00.002Z"


def test_a_result_is_from_another_run_until_the_node_runs_itself() -> None:
    kept, pinned = TaskReused(1, 0, "run-1"), TaskReused(1, 0, PINNED)
    rebuilt = TaskRebuilt(2, 1, "file-1", "evicted", (0,))
    assert reused_run([kept], 0) == "run-1"
    assert reused_run([kept], 1) is None
    assert reused_run([pinned], 0) is None
    assert reused_run([kept, rebuilt], 0) is None
    assert reused_run([leased(1)], 0) is None


def test_only_output_is_a_line_and_what_was_dropped_is_named() -> None:
    output = NodeOutput(
        node_id="n", attempt=1, channel="llm", index=0, mime_type="x/y", data_base64="AA=="
    )
    dropped = NodeState(node_id="n", status="running", attempt=1, dropped=3)
    bodies = [
        ("run.status", RunStatusChange(status="queued")),
        ("node.result.delta", output),
        ("node.state", NodeState(node_id="n", status="running", attempt=1)),
        ("node.state", dropped),
    ]
    events = [
        Event(id=number, type=kind, occurred_at="x", body=body)
        for number, (kind, body) in enumerate(bodies, 1)
    ]
    line, gap = log_lines(events, LogFilter())
    assert (line.id, line.channel, line.data_base64, line.metadata) == (2, "llm", "AA==", {})
    assert (gap.id, gap.channel) == (4, "dropped")
    assert gap.text == "3 pieces of output were dropped here"
    assert list(log_lines(events, LogFilter("other"))) == []
    assert len(list(log_lines(events, LogFilter("n")))) == 2


@pytest.mark.parametrize(
    ("scope", "lines"),
    [("", ["", "m:1", "m:1", "m:1/b:0", "m:11"]), ("m:1", ["m:1", "m:1", "m:1/b:0"]), ("m", [])],
)
def test_output_of_a_scope_is_what_was_written_in_it_and_in_what_it_holds(
    scope: str, lines: list[str]
) -> None:
    events = [
        Event(id=number, type="node.result.delta", occurred_at="x", body=_output(path))
        for number, path in enumerate((None, "m:1", "m:1/b:0", "m:11"), 1)
    ]
    gap = NodeState(node_id="n", status="running", attempt=1, dropped=3, scope_path="m:1")
    events.insert(2, Event(id=9, type="node.state", occurred_at="x", body=gap))
    found = log_lines(events, LogFilter(scope=scope))
    assert [line.scope_path or "" for line in found] == lines


def _output(path: str | None) -> NodeOutput:
    return NodeOutput(
        node_id="n",
        attempt=1,
        channel="log",
        index=0,
        mime_type="text/plain",
        text="x",
        scope_path=path,
    )


def test_the_attempts_of_a_call_name_it_and_those_of_other_tasks_are_left_out() -> None:
    facts: list[Fact] = [
        leased(1),
        CallOpened(2, 1, TaskId("call-1"), 0, 1, "a", None),
        TaskLeased(3, 1, 1, "w2", 1, 30_000),
        TaskSucceeded(4, 1, 1),
    ]
    (attempt,) = attempts_of(facts, {1})
    assert (attempt.call_id, attempt.worker_id, attempt.status) == ("call-1", "w2", "succeeded")
    assert [one.call_id for one in attempts_of(facts)] == [None, "call-1"]
    told = timeline_of(facts, {0: "retry: ", 1: "host, call 1: "})
    assert told[0].endswith(" retry: attempt 1 was leased to w1 (boot 1)")
    assert told[-1].endswith(" host, call 1: succeeded with attempt 1")


def test_the_output_of_an_outermost_middleware_is_found_under_its_own_id() -> None:
    place: dict[str, Any] = {"node_id": "host", "host_node_id": "host", "chain_index": 0}
    body = NodeOutput(
        **place, middleware_node_id="retry", attempt=1, channel="log", index=0,
        mime_type="text/plain", text="again",
    )  # fmt: skip
    dropped = NodeState(**place, middleware_node_id="retry", status="running", attempt=1, dropped=2)
    events = [
        Event(id=at, type="x", occurred_at="x", body=one) for at, one in enumerate((body, dropped))
    ]
    assert list(log_lines(events, LogFilter("host"))) == []
    assert [one.node_id for one in log_lines(events, LogFilter("retry"))] == ["retry", "retry"]
    assert next(log_lines(events, LogFilter())).chain_index == 0
