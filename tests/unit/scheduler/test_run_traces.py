"""Which spans are made of committed facts."""

from __future__ import annotations

from random import Random

import msgspec

from astraflow.core.engine.batch import Batch, NumberedFact
from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.accept import accept
from astraflow.core.runs.commands import LeaseTask, Lose, Report, RunCommand, Start
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import CallOpened, RunAccepted, RunTrace
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.traces import attempt_span, parent_span, run_span, traceparent_of
from astraflow.observe.spans import FinishedSpan
from astraflow.scheduler.run_traces import RunTraces
from tests.unit.plans import make_plan

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Kept:
    """An export that keeps what it gets."""

    def __init__(self, *, samples: bool = True) -> None:
        self.spans: list[FinishedSpan] = []
        self._samples = samples

    def samples(self, trace_id: str) -> bool:
        return self._samples

    def put(self, span: FinishedSpan) -> None:
        self.spans.append(span)

    def close(self) -> None:
        raise AssertionError("nobody closes it here")


class Story:
    """One run of one node, and what is traced of it."""

    def __init__(self, trace: RunTrace | None) -> None:
        self.export = Kept()
        self.traces = RunTraces(self.export)
        accepted = RunAccepted(1_000, RunId("r1"), "acme", "wf", trace=trace)
        decision = accept(make_plan(1), accepted, Random(1))
        self.run: RunRecord = decision.run
        self._commit(decision)

    def give(self, command: RunCommand, at: int) -> None:
        self._commit(decide(self.run, command, at, Random(1)))

    def _commit(self, decision: Decision) -> None:
        batch = Batch()
        batch.facts = [
            NumberedFact(self.run.run_id, 1, 1, fact, None, self.run) for fact in decision.facts
        ]
        self.traces.committed(batch)


def test_a_run_and_its_attempts_have_spans() -> None:
    story = Story(RunTraces(Kept()).begin(CALLER))
    story.give(LeaseTask(0, "w1", 1, 30_000), 2_000)
    story.give(Lose(0, 1, "gone"), 3_000)
    story.give(LeaseTask(0, "w2", 1, 30_000), 4_000)
    story.give(Start(0, 2, "w2"), 4_100)
    assert traceparent_of(story.run, 0, 2) == attempt_span(story.run, 0, 2).header()  # type: ignore[union-attr]
    story.give(Report(0, 2, "w2", "SUCCEEDED", msgspec.Raw(b"{}")), 5_000)
    lost, succeeded, run = story.export.spans
    assert [(one.began_ms, one.ended_ms, one.is_error) for one in (lost, succeeded, run)] == [
        (2_000, 3_000, True), (4_000, 5_000, False), (1_000, 5_000, False),
    ]  # fmt: skip
    assert run.parent_id == CALLER.split("-")[2]
    assert lost.parent_id == succeeded.parent_id == run.context.span_id
    assert {one.context.trace_id for one in (lost, succeeded, run)} == {CALLER.split("-")[1]}
    assert len({lost.context.span_id, succeeded.context.span_id, run.context.span_id}) == 3
    assert (lost.message, lost.attributes["astraflow.status"]) == ("gone", "lost")
    assert succeeded.attributes["astraflow.worker.id"] == "w2"


def test_a_scheduler_that_took_over_makes_the_same_span() -> None:
    story = Story(RunTraces(Kept()).begin(None))
    story.give(LeaseTask(0, "w1", 1, 30_000), 2_000)
    story.give(Start(0, 1, "w1"), 2_500)
    expected = attempt_span(story.run, 0, 1)
    story.traces.forget()
    story.give(Report(0, 1, "w1", "SUCCEEDED", msgspec.Raw(b"{}")), 5_000)
    attempt, run = story.export.spans
    assert attempt.context == expected
    assert attempt.began_ms == 2_500
    assert run.parent_id is None


def test_what_is_not_recorded_has_no_span_and_passes_through() -> None:
    for trace, told in ((None, None), (RunTrace(CALLER), CALLER)):
        story = Story(trace)
        assert run_span(story.run) is attempt_span(story.run, 0, 1) is None
        assert parent_span(story.run, 0) is None
        assert traceparent_of(story.run, 0, 1) == told
        story.give(LeaseTask(0, "w1", 1, 30_000), 2_000)
        story.give(Report(0, 1, "w1", "SUCCEEDED", msgspec.Raw(b"{}")), 5_000)
        assert story.export.spans == []


def test_the_span_of_a_call_is_below_the_attempt_that_made_it() -> None:
    story = Story(RunTraces(Kept()).begin(CALLER))
    assert parent_span(story.run, 0) == run_span(story.run)
    story.run.tasks[0].call = CallOpened(1, 1, TaskId("call"), 0, 3, "request", None)
    assert parent_span(story.run, 0) == attempt_span(story.run, 0, 3)


def test_a_trace_begins_with_the_caller_or_anew() -> None:
    off = RunTraces()
    assert not off.is_on
    assert off.begin(CALLER) == RunTrace(CALLER)
    assert off.begin(None) is None
    assert off.begin("no header") is None
    on = RunTraces(Kept(samples=False))
    mine = on.begin(None)
    assert mine is not None and mine.is_recorded and mine.parent_id is None
    assert mine.traceparent.endswith("-00")
    theirs = on.begin(CALLER)
    assert theirs is not None and theirs.traceparent.endswith("-01")
    assert theirs.traceparent.split("-")[1] == CALLER.split("-")[1]
    assert theirs.parent_id == CALLER.split("-")[2] != theirs.traceparent.split("-")[2]
