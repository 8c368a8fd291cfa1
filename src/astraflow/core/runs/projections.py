"""What readers see of a run: numbered events, and the REST view. camelCase, as on those surfaces.

Both are made from the same facts: `events_of` shows one fact as `facts.width(fact)` events, and
`view_run` shows the fold of all. Folding the `node.state` and `run.status` events of a run gives the
statuses of its view (P17), but for `ready`: it follows from the ends of the tasks upstream, and has no
event of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from astraflow.core.runs.facts import (
    ArtifactRef,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    CallOpened,
    CancelRequested,
    Chunk,
    Fact,
    Problem,
    RunAccepted,
    RunFinished,
    RunStarted,
    StopRequested,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitingFor,
    width,
)
from astraflow.core.runs.run import Run, Task
from astraflow.core.runs.states import (
    Backoff,
    Cancelled,
    Failed,
    Leased,
    Lost,
    Pending,
    Ready,
    Running,
    Skipped,
    State,
    Stopping,
    Subsumed,
    Succeeded,
)
from astraflow.core.timestamps import iso
from astraflow.core.workflow.plan import Plan

__all__ = ["Event", "events_of", "node_status", "shown_task", "view_node", "view_run"]

Event = dict[str, Any]

_STATUS: Final[dict[type[State], str]] = {
    Pending: "pending",
    Ready: "ready",
    Leased: "dispatched",
    Running: "running",
    Stopping: "running",  # as far as anybody knows, also if it was never said to have started
    Lost: "retrying",
    Backoff: "retrying",
    Succeeded: "succeeded",
    Failed: "failed",
    Skipped: "skipped",
    Cancelled: "cancelled",
}


def node_status(task: Task) -> str:
    """The status word of a task."""
    state = task.state
    if task.waiting_for is not None and task.is_waiting:
        return "waiting"
    return _STATUS[type(state)]


def events_of(
    fact: Fact, first: int, plan: Plan, calls: Mapping[int, CallOpened] | None = None
) -> list[Event]:
    """The events of one fact, numbered from `first` without a gap. `calls`: those opened so far, by task."""
    bodies = (
        _task_bodies(fact, plan, calls or {}) if isinstance(fact, TaskFact) else [_run_body(fact)]
    )
    assert len(bodies) == width(fact), f"the width of {fact!r} is not what is shown of it"
    return [
        {
            "id": first + offset,
            "type": kind,
            "occurredAt": iso(fact.at),
            "scope": {"nodeId": body["nodeId"]} if "nodeId" in body else {},
            "data": body,
        }
        for offset, (kind, body) in enumerate(bodies)
    ]


_Body = tuple[str, dict[str, Any]]


def _run_body(fact: Fact) -> _Body:
    if isinstance(fact, RunAccepted):
        return "run.status", {"status": "queued"}
    if isinstance(fact, RunStarted):
        return "run.status", {"status": "running"}
    if isinstance(fact, CancelRequested):
        return "run.status", {
            "status": "running",
            "cancelRequested": True,
            "reason": fact.reason,
        }
    assert isinstance(fact, RunFinished), f"not a fact of a run: {fact!r}"
    body: dict[str, Any] = {"status": fact.status}
    if fact.error is not None:
        body["error"] = _problem(fact.error)
    return "run.status", body


def _of_node(fact: TaskFact, plan: Plan, calls: Mapping[int, CallOpened]) -> dict[str, Any]:
    """What an event is about: a node, or a call within the chain of one."""
    call = fact if isinstance(fact, CallOpened) else calls.get(fact.task)
    if call is None:
        return {"nodeId": plan.nodes[fact.task].node_id}
    parent: CallOpened | None = call
    home = call.parent
    while (parent := calls.get(home)) is not None:
        home = parent.parent
    host = plan.nodes[home]
    node = host if call.chain_index is None else plan.nodes[host.middlewares[call.chain_index]]
    return {
        "nodeId": node.node_id,
        "hostNodeId": host.node_id,
        "chainIndex": call.chain_index,
        "callId": call.call_id,
    }


def _task_bodies(fact: TaskFact, plan: Plan, calls: Mapping[int, CallOpened]) -> list[_Body]:
    node = _of_node(fact, plan, calls)
    if isinstance(fact, TaskSucceeded | TaskReused):
        return _result_bodies(fact, node)
    if isinstance(fact, AttemptProgressed):
        return _progress_bodies(fact, node)
    if isinstance(fact, TaskRebuilt):
        return _rebuilt_bodies(fact, node, plan)
    if isinstance(fact, TaskFailed | AttemptFailed):
        error = _problem(fact.error)
        status = "failed" if isinstance(fact, TaskFailed) else "retrying"
        body = {**node, "status": status, "attempt": fact.attempt, "error": error}
        if isinstance(fact, TaskFailed) and not fact.confirmed:
            body["confirmed"] = False
        return [
            ("node.error", {**node, "attempt": fact.attempt, "error": error}),
            ("node.state", body),
        ]
    return [("node.state", {**node, **_state_body(fact)})]


def _state_body(fact: TaskFact) -> dict[str, Any]:
    if isinstance(fact, CallOpened):
        return {"status": "ready", "attempt": 0}
    if isinstance(fact, TaskLeased):
        return {"status": "dispatched", "attempt": fact.attempt, "workerId": fact.worker}
    if isinstance(fact, AttemptStarted):
        return {"status": "running", "attempt": fact.attempt}
    if isinstance(fact, TaskWaiting):
        return {"status": "waiting", "waitingFor": _waiting(fact.waiting_for)}
    if isinstance(fact, StopRequested):
        message = f"stopping: {fact.why}"
        return {"status": "running", "attempt": fact.attempt, "message": message}
    if isinstance(fact, AttemptRefused):
        message = f"refused: {fact.code}"
        return {"status": "retrying", "attempt": fact.attempt, "message": message}
    if isinstance(fact, AttemptLost):
        return {"status": "retrying", "attempt": fact.attempt, "message": f"lost: {fact.cause}"}
    if isinstance(fact, TaskSkipped):
        return {"status": "skipped", "attempt": fact.attempt, "error": {"code": fact.code}}
    assert isinstance(fact, TaskCancelled), f"not a fact of a task: {fact!r}"
    return {"status": "cancelled", "attempt": fact.attempt, "confirmed": fact.confirmed}


def _rebuilt_bodies(fact: TaskRebuilt, node: dict[str, Any], plan: Plan) -> list[_Body]:
    lost = f"{fact.resource_id} is gone ({fact.cause})"
    waits = {**node, "status": "pending", "message": f"{lost}: waits until it is made again"}
    return [
        ("node.state", waits),
        *(
            (
                "node.state",
                {
                    "nodeId": plan.nodes[one].node_id,
                    "status": "pending",
                    "message": f"{lost}: runs again to make it",
                },
            )
            for one in fact.again
        ),
    ]


def _result_bodies(fact: TaskSucceeded | TaskReused, node: dict[str, Any]) -> list[_Body]:
    attempt = fact.attempt if isinstance(fact, TaskSucceeded) else 0
    artifacts = [_artifact(one) for one in fact.artifacts]
    snapshot = {**node, "attempt": attempt, "result": fact.result, "artifacts": artifacts}
    state: dict[str, Any] = {**node, "status": "succeeded", "attempt": attempt}
    if isinstance(fact, TaskReused):
        state["reusedFrom"] = fact.from_run
    return [
        ("node.result.snapshot", snapshot),
        *(("artifact.ready", {**node, "artifact": one}) for one in artifacts),
        ("node.state", state),
    ]


def _progress_bodies(fact: AttemptProgressed, node: dict[str, Any]) -> list[_Body]:
    bodies = [("node.result.delta", {**node, **_delta(fact, chunk)}) for chunk in fact.chunks]
    state: dict[str, Any] = {**node, "status": "running", "attempt": fact.attempt}
    said = {"progress": fact.progress, "message": fact.message, "stage": fact.stage}
    state.update({name: value for name, value in said.items() if value is not None})
    if fact.dropped:
        state["dropped"] = fact.dropped
    if len(state) > len(node) + 2 or not bodies:
        bodies.append(("node.state", state))
    return bodies


def _delta(fact: AttemptProgressed, chunk: Chunk) -> dict[str, Any]:
    body: dict[str, Any] = {
        "attempt": fact.attempt,
        "channel": chunk.channel,
        "index": chunk.index,
        "mimeType": chunk.mime_type,
    }
    if chunk.text is not None:
        body["text"] = chunk.text
    else:
        body["dataBase64"] = chunk.data_base64 or ""
    if bytes(chunk.metadata) != b"{}":
        body["metadata"] = chunk.metadata
    return body


def _problem(error: Problem) -> dict[str, Any]:
    body = {"code": error.code, "category": error.category, "message": error.message}
    return body if error.stack is None else {**body, "stack": error.stack}


def _waiting(waiting_for: WaitingFor) -> dict[str, Any]:
    return {"kind": waiting_for.kind, "detail": waiting_for.detail}


def _artifact(artifact: ArtifactRef) -> dict[str, Any]:
    return {
        "resourceId": artifact.resource_id,
        "workerId": artifact.worker_id,
        "type": artifact.type,
        "sizeBytes": artifact.size_bytes,
        "expiresAt": artifact.expires_at,
        "inline": artifact.inline,
        "metadata": artifact.metadata,
    }


def view_node(run: Run, index: int) -> dict[str, Any]:
    """One node of the run as REST shows it, without what only the session layer knows.

    A middleware is shown with its last call; a host with its own task, and how often it was called.
    """
    node = run.plan.nodes[index]
    calls = _calls_of(run, index) if node.middlewares or node.host is not None else []
    task = run.tasks[calls[-1] if node.host is not None and calls else index]
    view: dict[str, Any] = {
        "nodeId": node.node_id,
        "type": node.type,
        "label": node.label,
        "status": _middleware_status(run, task) if node.host is not None else node_status(task),
        "attempt": task.attempt,
        "failures": task.failures,
        "workerId": task.worker,
        "waitingFor": _waiting(task.waiting_for) if task.waiting_for else None,
        "result": task.result,
        "error": None,
        "progress": task.progress,
        "message": task.message,
        "startedAt": iso(task.started_at) if task.started_at is not None else None,
        "finishedAt": iso(task.finished_at) if task.finished_at is not None else None,
        "artifacts": [_artifact(one) for one in task.artifacts],
    }
    if isinstance(task.state, Failed):
        view["error"] = _problem(task.state.error)
    elif isinstance(task.state, Skipped):
        view["error"] = {"code": task.state.code}
    if node.middlewares:
        view["middlewares"] = [run.plan.nodes[one].node_id for one in node.middlewares]
        view["calls"] = len(calls)
    if node.host is not None:
        host = run.plan.nodes[node.host]
        view["hostNodeId"] = host.node_id
        view["chainIndex"] = host.middlewares.index(index)
        view["calls"] = len(calls)
    return view


def shown_task(run: Run, index: int) -> int:
    """The task that a node is shown with: its own, or, of a middleware, its last call."""
    calls = _calls_of(run, index) if run.plan.nodes[index].host is not None else []
    return calls[-1] if calls else index


def _calls_of(run: Run, index: int) -> list[int]:
    """The calls that executed a node, or for a host all calls of its chain, oldest first."""
    is_host = bool(run.plan.nodes[index].middlewares)
    return [
        task
        for task in run.calls.values()
        if (run.host_of(task) == index if is_host else run.tasks[task].node == index)
    ]


def _middleware_status(run: Run, task: Task) -> str:
    if not isinstance(task.state, Subsumed):
        return node_status(task)
    # The outermost runs as its host's own task, the others only when they are called.
    outer = run.plan.nodes[run.plan.nodes[task.node].host or 0]
    if outer.middlewares and outer.middlewares[0] == task.node:
        return node_status(run.tasks[run.plan.index[outer.node_id]])
    return "skipped" if run.is_terminal else "pending"


def view_run(run: Run, *, nodes: bool = True) -> dict[str, Any]:
    """The run as REST shows it."""
    view: dict[str, Any] = {
        "runId": run.run_id,
        "workflowId": run.plan.workflow_id,
        "status": run.status,
        "createdAt": iso(run.accepted.at),
        "startedAt": iso(run.started_at) if run.started_at is not None else None,
        "finishedAt": iso(run.finished_at) if run.finished_at is not None else None,
        "cancelRequested": run.cancel is not None,
        "lastEvent": run.last_event,
    }
    if run.error is not None:
        view["error"] = _problem(run.error)
    if nodes:
        view["nodes"] = [view_node(run, index) for index in range(len(run.plan.nodes))]
        view["artifacts"] = [
            _artifact(artifact) for task in run.tasks for artifact in task.artifacts
        ]
    return view
