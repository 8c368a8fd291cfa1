"""Spans of executions: from the start of an attempt in a package host to its end.

The handler gets the span of its execution as `ctx.traceparent`, so that spans that it makes itself are below it. The
host exports nothing: it has no library but the standard one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from astraflow.clock import Clock
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.core.trace_context import TraceContext, parse_traceparent
from astraflow.observe.spans import FinishedSpan, SpanExport
from astraflow.worker.hosts import HostEvents
from astraflow.worker.lane_hosts import PoolOfHosts

_Key = tuple[str, int]


class _Execution(msgspec.Struct, frozen=True):
    dispatch: business.Dispatch
    parent: TraceContext
    span: TraceContext
    began_ms: int


class ExecutionTraces:
    """The executions that are under way, of attempts that belong to a trace."""

    def __init__(self, export: SpanExport, clock: Clock, worker_id: str) -> None:
        self._export = export
        self._clock = clock
        self._worker_id = worker_id
        self._open: dict[_Key, _Execution] = {}

    def begin(self, dispatch: business.Dispatch) -> business.Dispatch:
        """An attempt begins: it gets the span of its execution."""
        parent = parse_traceparent(dispatch.traceparent)
        if parent is None:
            return dispatch
        span = TraceContext(parent.trace_id, os.urandom(8).hex(), parent.is_sampled)
        key = (dispatch.task_id, dispatch.attempt)
        self._open[key] = _Execution(dispatch, parent, span, self._clock.wall_ms())
        return msgspec.structs.replace(dispatch, traceparent=span.header())

    def end(self, key: _Key, result: business.Result | None) -> None:
        """An attempt has ended; without a result it was killed."""
        execution = self._open.pop(key, None)
        if execution is None:
            return
        dispatch = execution.dispatch
        error = None if result is None else result.error
        attributes: dict[str, str | int] = {
            "astraflow.run.id": dispatch.run_id,
            "astraflow.task.id": dispatch.task_id,
            "astraflow.node.id": dispatch.node_id,
            "astraflow.node.type": dispatch.node_type,
            "astraflow.package": f"{dispatch.package.name} {dispatch.package.version}",
            "astraflow.attempt": dispatch.attempt,
            "astraflow.worker.id": self._worker_id,
            "astraflow.status": "killed" if result is None else result.status.lower(),
        }
        if error is not None:
            attributes["error.type"] = error.code
        self._export.put(
            FinishedSpan(
                name=f"execute {dispatch.node_type}",
                context=execution.span,
                parent_id=execution.parent.span_id,
                began_ms=execution.began_ms,
                ended_ms=self._clock.wall_ms(),
                kind="consumer",
                is_error=result is None or error is not None,
                message="" if error is None else error.message,
                attributes=attributes,
            )
        )


class TracedHosts:
    """Wraps the hosts: an attempt that is started begins an execution."""

    def __init__(self, hosts: PoolOfHosts, traces: ExecutionTraces) -> None:
        self._hosts = hosts
        self._traces = traces
        self.cancel = hosts.cancel
        self.kill = hosts.kill
        self.answer = hosts.answer

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        self._hosts.start(self._traces.begin(dispatch), fence_at, lane)

    def refence(self, fences: Mapping[tuple[str, int], float]) -> None:
        self._hosts.refence(fences)


class TracedEvents:
    """Wraps the receiver of the hosts' events: an attempt that has ended ends its execution."""

    def __init__(self, events: HostEvents, traces: ExecutionTraces) -> None:
        self._events = events
        self._traces = traces
        self.feedback = events.feedback
        self.call = events.call

    def finished(self, result: business.Result) -> None:
        self._traces.end((result.task_id, result.attempt), result)
        self._events.finished(result)

    def gone(self, task_id: TaskId, attempt: int) -> None:
        self._traces.end((task_id, attempt), None)
        self._events.gone(task_id, attempt)
