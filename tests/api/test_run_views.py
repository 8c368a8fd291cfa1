from __future__ import annotations

import asyncio

import pytest

from astraflow.api import requests
from astraflow.api.run_views import log_lines, node_history, summary
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    CancelRequested,
    Fact,
    Problem,
    TaskCancelled,
    TaskFailed,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitingFor,
)
from astraflow.store.rows import RunRow
from tests.api.rig import WAIT_S, Rig, serve

ERROR = Problem("E.RUNNER.FAILURE", "USER_CODE", "it broke", stack="line 1")


def history(*facts: Fact) -> dict[str, object]:
    return node_history(NumberedFact("r", place, fact) for place, fact in enumerate(facts, 1))


def leased(attempt: int) -> TaskLeased:
    return TaskLeased(1, 0, attempt, "w1", 1, 30_000)


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
    ids=lambda value: type(value).__name__,
)
def test_an_attempt_tells_how_it_ended(end: Fact, status: str, code: str | None) -> None:
    told = history(leased(1), AttemptStarted(2, 0, 1), end)
    (attempt,) = told["attempts"]  # type: ignore[misc]
    assert attempt["status"] == status
    assert attempt["finishedAt"] == "1970-01-01T00:00:00.003Z"
    assert attempt.get("error", {}).get("code") == code
    assert len(told["story"]) == 3  # type: ignore[arg-type]


def test_attempts_are_told_in_order_and_what_is_about_none_only_in_the_story() -> None:
    told = history(
        TaskWaiting(1, 0, WaitingFor("worker", "none is here")),
        leased(1),
        AttemptFailed(2, 0, 1, ERROR, 1.0),
        leased(2),
        CancelRequested(3, "me"),
        TaskCancelled(4, 0, 2),
    )
    attempts = told["attempts"]
    assert [one["attempt"] for one in attempts] == [1, 2]  # type: ignore[attr-defined]
    assert [one["status"] for one in attempts] == ["failed", "cancelled"]  # type: ignore[attr-defined]
    assert len(told["story"]) == 6  # type: ignore[arg-type]


def test_a_failed_run_in_a_list_says_why_and_a_rerun_of_what() -> None:
    row = RunRow(
        run_id="r2",
        tenant="t",
        workflow_id="w",
        plan_id="p",
        status="failed",
        created_at=0,
        error=b'{"code":"E.RUNNER.FAILURE","category":"USER_CODE","message":"it broke","stack":"s"}',
        rerun_of="r1",
    )
    view = summary(row)
    assert view["error"]["code"] == "E.RUNNER.FAILURE"
    assert view["error"]["stack"] == "s"
    assert view["rerunOf"] == "r1"
    assert view["startedAt"] is None


def test_only_what_was_said_is_a_line() -> None:
    said = {"nodeId": "n", "attempt": 1, "channel": "llm", "index": 0, "dataBase64": "AA=="}
    events = [
        {"id": 1, "type": "run.status", "occurredAt": "x", "data": {"status": "queued"}},
        {"id": 2, "type": "node.result.delta", "occurredAt": "x", "data": said},
    ]
    assert list(log_lines(events, None)) == [{"id": 2, "occurredAt": "x", **said}]
    assert list(log_lines(events, "other")) == []


def test_a_body_that_does_not_arrive_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "BODY_WAIT_S", 0.05)

    async def test(rig: Rig) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(
            b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer token-of-default-admin\r\ncontent-length: 100\r\n\r\n{"
        )
        head = await asyncio.wait_for(reader.readuntil(b"\r\n"), WAIT_S)
        assert head.startswith(b"HTTP/1.1 400 ")
        writer.close()

    serve(test)
