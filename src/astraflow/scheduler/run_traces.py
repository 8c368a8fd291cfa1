"""Spans of runs and attempts, made from committed facts: what did not happen is not traced.

Rule 1: a run that comes with a trace continues it, whether spans are exported here or not.
Rule 2: a span is made when what it is about has ended, from facts alone. A scheduler that takes over in between makes
        the same span, but for the start of an attempt that it did not see: then it begins with the first attempt of
        its task.
"""

from __future__ import annotations

import os
from typing import Final

from astraflow.core.engine.batch import Batch, NumberedFact
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    Fact,
    RunFinished,
    RunTrace,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_views import path_of
from astraflow.core.runs.traces import attempt_span, parent_span, run_span
from astraflow.core.trace_context import TraceContext, parse_traceparent
from astraflow.observe.spans import FinishedSpan, SpanExport

_ENDS: Final[dict[type[Fact], str]] = {
    TaskSucceeded: "succeeded",
    TaskSkipped: "skipped",
    TaskCancelled: "cancelled",
    TaskFailed: "failed",
    AttemptFailed: "failed",
    AttemptLost: "lost",
    AttemptRefused: "refused",
}
_ERRORS: Final = frozenset({"failed", "lost", "refused"})


class RunTraces:
    """The traces of one scheduler. Without an export, traces of callers only pass through."""

    def __init__(self, export: SpanExport | None = None) -> None:
        self._export = export
        # Only of what is out: an entry goes when its attempt ends.
        self._leased: dict[tuple[str, int], int] = {}

    @property
    def is_on(self) -> bool:
        return self._export is not None

    def begin(self, traceparent: str | None) -> RunTrace | None:
        """The trace of a run that is submitted with this header."""
        caller = parse_traceparent(traceparent)
        if self._export is None:
            return None if caller is None else RunTrace(caller.header())
        if caller is None:
            trace_id = os.urandom(16).hex()
            is_sampled = self._export.samples(trace_id)
        else:
            trace_id, is_sampled = caller.trace_id, caller.is_sampled
        span = TraceContext(trace_id, os.urandom(8).hex(), is_sampled)
        return RunTrace(span.header(), None if caller is None else caller.span_id, is_recorded=True)

    def forget(self) -> None:
        """The engine is another one now."""
        self._leased.clear()

    def committed(self, batch: Batch) -> None:
        """Export the spans that have ended with these facts."""
        for numbered in batch.facts:
            run = numbered.run
            if run is None or run.accepted.trace is None or not run.accepted.trace.is_recorded:
                continue
            fact = numbered.fact
            if isinstance(fact, TaskLeased):
                self._leased[run.run_id, fact.task] = fact.at
            elif type(fact) in _ENDS:
                self._end_attempt(run, numbered)
            elif isinstance(fact, RunFinished):
                self._end_run(run, fact)

    def _end_attempt(self, run: RunRecord, numbered: NumberedFact) -> None:
        fact = numbered.fact
        assert isinstance(fact, TaskFact)
        attempt = getattr(fact, "attempt", 0)
        span, parent = attempt_span(run, fact.task, attempt), parent_span(run, fact.task)
        leased_at = self._leased.pop((run.run_id, fact.task), None)
        if not attempt or span is None or parent is None:
            return  # it ended without an attempt
        task = run.tasks[fact.task]
        node, status = task.node, _ENDS[type(fact)]
        error = getattr(fact, "error", None)
        code = getattr(fact, "code", None) if error is None else error.code
        path = path_of(run, fact.task)
        self._put(
            FinishedSpan(
                name=f"attempt {node.type}",
                context=span,
                parent_id=parent.span_id,
                began_ms=leased_at or task.started_at or fact.at,
                ended_ms=fact.at,
                is_error=status in _ERRORS,
                message=getattr(fact, "cause", "") or (error.message if error is not None else ""),
                attributes={
                    "astraflow.tenant": run.tenant,
                    "astraflow.run.id": run.run_id,
                    "astraflow.task.id": run.task_id(fact.task),
                    "astraflow.node.id": node.node_id,
                    "astraflow.node.type": node.type,
                    **({} if path is None else {"astraflow.scope.path": path}),
                    "astraflow.package": f"{node.package_name} {node.package_version}",
                    "astraflow.attempt": attempt,
                    "astraflow.worker.id": task.worker or "",
                    "astraflow.status": status,
                    **({} if code is None else {"error.type": code}),
                },
            )
        )

    def _end_run(self, run: RunRecord, fact: RunFinished) -> None:
        span, trace = run_span(run), run.accepted.trace
        assert span is not None and trace is not None
        code = None if fact.error is None else fact.error.code
        self._put(
            FinishedSpan(
                name=f"run {run.plan.workflow_id}",
                context=span,
                parent_id=trace.parent_id,
                began_ms=run.accepted.at,
                ended_ms=fact.at,
                is_error=fact.status == "failed",
                message="" if fact.error is None else fact.error.message,
                attributes={
                    "astraflow.tenant": run.tenant,
                    "astraflow.run.id": run.run_id,
                    "astraflow.workflow.id": run.plan.workflow_id,
                    "astraflow.status": fact.status,
                    **({} if code is None else {"error.type": code}),
                },
            )
        )

    def _put(self, span: FinishedSpan) -> None:
        assert self._export is not None
        self._export.put(span)
