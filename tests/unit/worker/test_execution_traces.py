"""The span of an execution: below the attempt's, above the handler's."""

from __future__ import annotations

from typing import Any

import msgspec

from astraflow.clock import SystemClock
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.core.trace_context import parse_traceparent
from astraflow.worker.execution_traces import ExecutionTraces, TracedEvents, TracedHosts
from tests.unit.scheduler.test_run_traces import CALLER, Kept

NAMES = (RunId("r1"), TaskId("r1.0"), 1)
DISPATCH = business.Dispatch(
    *NAMES, 0, "n1", "core.noop", business.PackageId("core", "1.0.0"), msgspec.Raw(b"{}"),
    business.LeaseGrant(30_000, "since"), traceparent=CALLER,
)  # fmt: skip


class Around:
    """Hosts and the receiver of their events, as one: it keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        self.told.append(dispatch)

    def finished(self, result: business.Result) -> None:
        self.told.append(result)

    def gone(self, task_id: TaskId, attempt: int) -> None:
        self.told.append((task_id, attempt))

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.told.append((name, *given))


def traced() -> tuple[Around, Kept, TracedHosts, TracedEvents]:
    around, export = Around(), Kept()
    traces = ExecutionTraces(export, SystemClock(), "w1")
    return around, export, TracedHosts(around, traces), TracedEvents(around, traces)


def test_a_handler_gets_the_span_of_its_execution() -> None:
    around, export, hosts, events = traced()
    hosts.start(DISPATCH, 1.0)
    (started,) = around.told
    error = business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "no")
    events.finished(business.Result(*NAMES, "FAILED", error=error))
    (span,) = export.spans
    assert parse_traceparent(started.traceparent) == span.context
    assert span.parent_id == CALLER.split("-")[2]
    assert span.context.trace_id == CALLER.split("-")[1]
    assert (span.is_error, span.message, span.kind) == (True, "no", "consumer")
    assert span.attributes["error.type"] == "E.RUNNER.FAILURE"


def test_an_execution_that_was_killed_has_a_span() -> None:
    around, export, hosts, events = traced()
    hosts.start(DISPATCH, 1.0)
    events.gone(TaskId("r1.0"), 1)
    (span,) = export.spans
    assert span.attributes["astraflow.status"] == "killed"
    events.gone(TaskId("r1.0"), 1)
    assert len(export.spans) == 1
    assert around.told[1:] == [("r1.0", 1)] * 2


def test_an_attempt_without_a_trace_has_no_span() -> None:
    around, export, hosts, events = traced()
    plain = msgspec.structs.replace(DISPATCH, traceparent=None)
    hosts.start(plain, 1.0)
    events.finished(business.Result(*NAMES, "SUCCEEDED"))
    assert around.told[0] == plain
    assert export.spans == []


def test_everything_else_goes_through() -> None:
    around, _, hosts, _ = traced()
    hosts.cancel(TaskId("r1.0"), 1, 1.0, "why")
    hosts.kill(TaskId("r1.0"), 1)
    hosts.refence({})
    assert around.told == [("cancel", "r1.0", 1, 1.0, "why"), ("kill", "r1.0", 1), ("refence", {})]
