"""A result with stored values is told when they are uploaded, or as a failure."""

from __future__ import annotations

import asyncio
from typing import Any

from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.resources import stored_results
from astraflow.worker.resources.stored_results import StoredResults, UploadOutcomes


class Told:
    """What the agent is told."""

    def __init__(self) -> None:
        self.results: list[business.Result] = []
        self.ended: list[tuple[str, int]] = []
        self.heard = asyncio.Event()

    def finished(self, result: business.Result) -> None:
        self.results.append(result)
        self.heard.set()

    def gone(self, task_id: TaskId, attempt: int) -> None:
        self.ended.append((task_id, attempt))

    def feedback(self, feedback: business.Feedback) -> None:
        raise AssertionError

    def call(self, request: business.NextRequest) -> None:
        raise AssertionError


def gated(within_s: float = 60.0) -> tuple[Told, StoredResults, UploadOutcomes]:
    told, uploads = Told(), UploadOutcomes()
    return told, StoredResults(told, uploads, within_s), uploads


def result(*values: str, status: Any = "SUCCEEDED", kind: str = VALUE_TYPE) -> business.Result:
    artifacts = tuple(business.ResultArtifact(one, "w", kind, 7) for one in values)
    return business.Result(RunId("run"), TaskId("run.0"), 1, status, artifacts=artifacts)


async def test_a_result_without_values_is_told_at_once() -> None:
    told, gate, _ = gated()
    given = [result(), result("a", kind="file"), result("a", status="FAILED")]
    for one in given:
        gate.finished(one)
    assert told.results == given


async def test_a_result_waits_for_all_its_values() -> None:
    told, gate, uploads = gated()
    uploads.ended("a")
    gate.finished(result("a", "b", "c"))
    uploads.ended("b")
    uploads.ended("other")
    assert told.results == []
    uploads.ended("c")
    assert told.results == [result("a", "b", "c")]
    uploads.ended("c")
    assert len(told.results) == 1


async def test_a_failed_upload_is_a_failure_that_may_be_retried() -> None:
    told, gate, uploads = gated()
    gate.finished(result("a", "b"))
    uploads.ended("a", "the store is away")
    uploads.ended("b")
    [failed] = told.results
    assert failed.status == "FAILED"
    assert failed.error is not None
    assert (failed.error.code, failed.error.category) == (
        "E.RESULT.NOT_STORED",
        "INFRASTRUCTURE",
    )
    assert failed.error.message.endswith("the store is away")
    assert failed.error.retryable is None


async def test_an_upload_that_failed_before_the_result_counts() -> None:
    told, gate, uploads = gated()
    uploads.ended("a", "no")
    gate.finished(result("a", "b"))
    assert [one.status for one in told.results] == ["FAILED"]


async def test_nobody_waits_for_ever() -> None:
    told, gate, uploads = gated(within_s=0.01)
    gate.finished(result("a"))
    async with asyncio.timeout(10):
        await told.heard.wait()
    assert [one.status for one in told.results] == ["FAILED"]
    uploads.ended("a")
    assert len(told.results) == 1


async def test_an_attempt_that_was_killed_is_told_as_gone_alone() -> None:
    told, gate, uploads = gated()
    gate.finished(result("a"))
    gate.gone(TaskId("run.0"), 1)
    gate.gone(TaskId("run.1"), 1)
    uploads.ended("a")
    assert told.results == []
    assert told.ended == [("run.0", 1), ("run.1", 1)]


async def test_only_so_many_uploads_are_remembered(monkeypatch: Any) -> None:
    monkeypatch.setattr(stored_results, "REMEMBERED", 2)
    told, gate, uploads = gated()
    for name in "abc":
        uploads.ended(name)
    gate.finished(result("b", "c"))
    assert len(told.results) == 1
    gate.finished(result("a"))
    assert len(told.results) == 1
