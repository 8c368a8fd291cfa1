"""The spans of a run: one for the run, one for each of its attempts.

Their ids follow from the trace that was stored with the run, so that every scheduler gives the same ones.
"""

from __future__ import annotations

from astraflow.core.runs.run import RunRecord
from astraflow.core.trace_context import TraceContext, parse_traceparent


def run_span(run: RunRecord) -> TraceContext | None:
    """The span of a run, if spans of it are recorded."""
    trace = run.accepted.trace
    return parse_traceparent(trace.traceparent) if trace is not None and trace.is_recorded else None


def attempt_span(run: RunRecord, task: int, attempt: int) -> TraceContext | None:
    """The span of an attempt, if spans of its run are recorded."""
    of_run = run_span(run)
    return None if of_run is None else of_run.child(task, attempt)


def parent_span(run: RunRecord, task: int) -> TraceContext | None:
    """What the span of an attempt is below: the span of the run, or, for a call, that of the attempt that made it."""
    call = run.tasks[task].call
    if call is None:
        return run_span(run)
    return attempt_span(run, call.parent, call.parent_attempt)


def traceparent_of(run: RunRecord, task: int, attempt: int) -> str | None:
    """What a worker gets with an attempt. A trace that is not recorded here passes through."""
    trace = run.accepted.trace
    if trace is None:
        return None
    span = attempt_span(run, task, attempt)
    return trace.traceparent if span is None else span.header()
