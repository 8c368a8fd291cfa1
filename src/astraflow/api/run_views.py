"""What REST shows of runs beside `runs.projections`: rows of lists, bounded results, attempts, log lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from astraflow.core.engine.batch import NumberedFact
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    Problem,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.runs.projections import Event
from astraflow.core.runs.story import tell_fact
from astraflow.core.timestamps import iso
from astraflow.store.rows import RunRow

__all__ = ["bounded", "complete_node", "log_lines", "node_history", "summary"]

INLINE_RESULT_BYTES: Final = 16 * 1024
INLINE_TOTAL_BYTES: Final = 4 * 1024 * 1024
"""A page that shows a run of ten thousand nodes must not carry all that they made."""

DROPPED: Final = "dropped"
"""The channel of lines that say where output is missing."""

_problem: Final = msgspec.json.Decoder(Problem)


def summary(row: RunRow) -> dict[str, Any]:
    """A run in a list."""
    view: dict[str, Any] = {
        "runId": row.run_id,
        "workflowId": row.workflow_id,
        "workflowVersion": row.workflow_version,
        "name": row.name,
        "status": row.status,
        "cancelRequested": row.cancel_requested,
        "createdAt": iso(row.created_at),
        "startedAt": _moment(row.started_at),
        "finishedAt": _moment(row.finished_at),
    }
    if row.error is not None:
        error = _problem.decode(row.error)
        view["error"] = _error(error)
    if row.rerun_of is not None:
        view["rerunOf"] = row.rerun_of
    return view


def bounded(view: dict[str, Any]) -> dict[str, Any]:
    """A view of a run whose results are left out where they are too large; the rest of each node is filled in."""
    left = INLINE_TOTAL_BYTES
    for node in view.get("nodes", ()):
        complete_node(view["runId"], node)
        result = node["result"]
        if result is None:
            continue
        size = memoryview(result).nbytes
        if size > INLINE_RESULT_BYTES or size > left:
            node["result"] = None
            node["resultTruncated"] = True
        else:
            left -= size
    return view


def complete_node(run_id: str, node: dict[str, Any]) -> None:
    """What operators look for when a dispatch is not taken."""
    is_pending = node["status"] == "dispatched"
    node.setdefault("pendingAck", is_pending)
    name = f"{run_id}.{node['nodeId']}.{node['attempt']}" if is_pending else None
    node.setdefault("dispatchId", name)
    node.setdefault("ackDeadline", None)


def node_history(facts: Iterable[NumberedFact]) -> dict[str, Any]:
    """The attempts of a node and its story, from the facts about it."""
    attempts: dict[tuple[int, int], dict[str, Any]] = {}
    story: list[str] = []
    for numbered in facts:
        fact = numbered.fact
        story.append(f"{iso(fact.at)} {tell_fact(fact)}")
        if isinstance(fact, TaskFact):
            _note(attempts, fact)
    return {"attempts": list(attempts.values()), "story": story}


def _note(attempts: dict[tuple[int, int], dict[str, Any]], fact: TaskFact) -> None:
    key = (fact.task, getattr(fact, "attempt", 0))
    if isinstance(fact, TaskLeased):
        attempts[key] = {
            "attempt": fact.attempt,
            "workerId": fact.worker,
            "incarnation": fact.incarnation,
            "status": "dispatched",
            "dispatchedAt": iso(fact.at),
            "startedAt": None,
            "finishedAt": None,
        }
        return
    known = attempts.get(key)
    if known is None:
        return
    if isinstance(fact, AttemptStarted):
        known["status"] = "running"
        known["startedAt"] = iso(fact.at)
    elif (end := _end_of(fact)) is not None:
        known.update(end)
        known["finishedAt"] = iso(fact.at)


def _end_of(fact: TaskFact) -> dict[str, Any] | None:
    match fact:
        case TaskSucceeded():
            return {"status": "succeeded"}
        case TaskFailed(error=error) | AttemptFailed(error=error):
            return {"status": "failed", "error": _error(error)}
        case AttemptLost(cause=cause):
            return {"status": "lost", "error": {"code": cause}}
        case AttemptRefused(code=code):
            return {"status": "refused", "error": {"code": code}}
        case TaskCancelled():
            return {"status": "cancelled"}
        case TaskSkipped(code=code):
            return {"status": "skipped", "error": {"code": code}}
    return None


def log_lines(events: Iterable[Event], node_id: str | None) -> Iterator[dict[str, Any]]:
    """The pieces of output among events of a run: log lines, tokens, whatever an attempt said while it ran."""
    for event in events:
        body = event["data"]
        if node_id and body.get("nodeId") != node_id:
            continue
        if event["type"] == "node.result.delta":
            yield {"id": event["id"], "occurredAt": event["occurredAt"], **body}
        elif event["type"] == "node.state" and body.get("dropped"):
            yield {"id": event["id"], "occurredAt": event["occurredAt"], **_gap(body)}


def _gap(body: dict[str, Any]) -> dict[str, Any]:
    """A line of ours where output of an attempt is missing."""
    return {
        "nodeId": body["nodeId"],
        "attempt": body["attempt"],
        "channel": DROPPED,
        "index": 0,
        "mimeType": "text/plain",
        "text": f"{body['dropped']} pieces of output were dropped here",
    }


def _error(error: Problem) -> dict[str, Any]:
    body = {"code": error.code, "category": error.category, "message": error.message}
    return body if error.stack is None else {**body, "stack": error.stack}


def _moment(at: int | None) -> str | None:
    return None if at is None else iso(at)
