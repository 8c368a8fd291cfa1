"""What clients see of a run: numbered events, and the REST view, as structs of `core.contract`.

Both are made from the same facts: `events_of` shows one fact as `facts.width(fact)` events, and
`view_run` shows the fold of all. Folding the `node.state` and `run.status` events of a run gives the
statuses of its view (P17), but for `ready`: it follows from the ends of the tasks upstream, and has no
event of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Raw

from astraflow.core.contract.events import (
    ArtifactReady,
    EdgeState,
    Event,
    EventScope,
    NodeBody,
    NodeFailure,
    NodeMetrics,
    NodeOutput,
    NodeResult,
    NodeState,
    RunSignal,
    RunStatusChange,
)
from astraflow.core.contract.runs import (
    Artifact,
    KeyHolder,
    LastCall,
    Node,
    Run,
    RunWithoutNodes,
    TaskError,
    WaitingFor,
)
from astraflow.core.contract.words import NodeStatus, WaitKind
from astraflow.core.errors import TASK_DISABLED
from astraflow.core.runs.callbacks import dispatch_id
from astraflow.core.runs.chains import Calls, calls_by_task, shown_task
from astraflow.core.runs.facts import (
    NO_VALUE,
    PINNED,
    ArtifactRef,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    CallOpened,
    CancelRequested,
    Chunk,
    CompensationBegan,
    EdgesDecided,
    Fact,
    RunAccepted,
    RunFinished,
    RunStarted,
    ScopeClosing,
    ScopeOpened,
    SignalReceived,
    StopRequested,
    TaskCancelled,
    TaskDecided,
    TaskFact,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskParked,
    TaskPassed,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitReason,
    width,
)
from astraflow.core.runs.outputs import outputs_of
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.retry import retry_detail
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.states import (
    Backoff,
    Cancelled,
    Failed,
    Leased,
    Lost,
    Opened,
    Parked,
    Passed,
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

_Bodies = list[tuple[str, Any]]
_Place = dict[str, Any]
"""What an event is about: the fields of `NodeBody`."""
_NO_SCOPE: Final = EventScope()

_STATUS: Final[dict[type[State], NodeStatus]] = {
    Pending: "pending",
    Ready: "ready",
    Parked: "waiting",
    Opened: "running",
    Leased: "dispatched",
    Running: "running",
    Stopping: "running",  # as far as anybody knows, also if it was never said to have started
    Lost: "retrying",
    Backoff: "retrying",
    Succeeded: "succeeded",
    Passed: "skipped",
    Failed: "failed",
    Skipped: "skipped",
    Cancelled: "cancelled",
}


def node_status(task: Task) -> NodeStatus:
    """The status word of a task."""
    state = task.state
    if task.waiting_for is not None and task.is_waiting:
        return "waiting"
    return _STATUS[type(state)]


def events_of(fact: Fact, first: int, places: TaskPlaces) -> list[Event]:
    """The events of one fact, numbered from `first` without a gap. `places` has taken the facts before it."""
    places.note(fact)
    if isinstance(fact, TaskFact):
        place = places.fields_of(fact)
        bodies = _task_bodies(fact, place, places)
        scope = EventScope(node_id=place["node_id"])
    elif isinstance(fact, SignalReceived):
        signal = RunSignal(name=fact.name, payload=fact.payload, by=fact.by)
        bodies, scope = [("run.signal", signal)], _NO_SCOPE
    else:
        bodies, scope = [("run.status", _run_body(fact))], _NO_SCOPE
    assert len(bodies) == width(fact), f"the width of {fact!r} is not what is shown of it"
    at = iso(fact.at)
    return [
        Event(
            id=first + offset,
            type=kind,
            occurred_at=at,
            scope=scope if offset == 0 or not isinstance(fact, TaskRebuilt) else _scope(body),
            body=body,
        )
        for offset, (kind, body) in enumerate(bodies)
    ]


def _scope(body: NodeBody) -> EventScope:
    """Of an event about another node than that of the fact."""
    return EventScope(node_id=body.node_id)


def _run_body(fact: Fact) -> RunStatusChange:
    if isinstance(fact, RunAccepted):
        return RunStatusChange(status="queued")
    if isinstance(fact, RunStarted):
        return RunStatusChange(status="running")
    if isinstance(fact, CancelRequested):
        return RunStatusChange(status="running", cancel_requested=True, reason=fact.reason)
    if isinstance(fact, CompensationBegan):
        return RunStatusChange(status="running", compensating=fact.kind)
    assert isinstance(fact, RunFinished), f"not a fact of a run: {fact!r}"
    return RunStatusChange(
        status=fact.status, error=None if fact.error is None else error_view(fact.error)
    )


def _task_bodies(fact: TaskFact, place: _Place, places: TaskPlaces) -> _Bodies:
    if isinstance(fact, TaskSucceeded | TaskReused | TaskPassed | TaskDecided):
        return _result_bodies(fact, place)
    if isinstance(fact, EdgesDecided):
        return [("edge.state", _edge_body(fact, place, places))]
    if isinstance(fact, AttemptProgressed):
        return _progress_bodies(fact, place)
    if isinstance(fact, TaskRebuilt):
        return _rebuilt_bodies(fact, place, places)
    if isinstance(fact, TaskFailed | AttemptFailed):
        return _failure_bodies(fact, place)
    return [("node.state", _state_body(fact, place))]


def _state_body(fact: TaskFact, place: _Place) -> NodeState:
    if isinstance(fact, CallOpened):
        return NodeState(**place, status="ready", attempt=0)
    if isinstance(fact, TaskLeased):
        return NodeState(**place, status="dispatched", attempt=fact.attempt, worker_id=fact.worker)
    if isinstance(fact, AttemptStarted):
        return NodeState(**place, status="running", attempt=fact.attempt)
    if isinstance(fact, TaskWaiting | TaskParked):
        return NodeState(**place, status="waiting", waiting_for=waiting_view(fact.waiting_for))
    if isinstance(fact, StopRequested):
        message = f"stopping: {fact.why}"
        return NodeState(**place, status="running", attempt=fact.attempt, message=message)
    if isinstance(fact, AttemptRefused):
        waits = _next_try("dispatch", fact, f"attempt {fact.attempt} did not start: {fact.code}")
        message = f"refused: {fact.code}"
        return NodeState(
            **place, status="retrying", attempt=fact.attempt, waiting_for=waits, message=message
        )
    if isinstance(fact, AttemptLost):
        waits = _next_try("dispatch", fact, f"attempt {fact.attempt} was lost: {fact.cause}")
        message = f"lost: {fact.cause}"
        return NodeState(
            **place, status="retrying", attempt=fact.attempt, waiting_for=waits, message=message
        )
    if isinstance(fact, ScopeOpened):
        return NodeState(**place, status="running", items=fact.count)
    if isinstance(fact, ScopeClosing):
        error = None if fact.error is None else error_view(fact.error)
        return NodeState(**place, status="running", message="closing", error=error)
    if isinstance(fact, TaskSkipped):
        error = TaskError(code=fact.code)
        return NodeState(**place, status="skipped", attempt=fact.attempt, error=error)
    assert isinstance(fact, TaskCancelled), f"not a fact of a task: {fact!r}"
    return NodeState(
        **place,
        status="cancelled",
        attempt=fact.attempt,
        confirmed=fact.confirmed,
        cancelled_during_phase=fact.phase,
        partial_progress=_given(fact.partial),
    )


def _given(value: Raw) -> Raw | None:
    return None if bytes(value) == bytes(NO_VALUE) else value


def _failure_bodies(fact: TaskFailed | AttemptFailed, place: _Place) -> _Bodies:
    error = error_view(fact.error)
    is_over = isinstance(fact, TaskFailed)
    waits = None if isinstance(fact, TaskFailed) else _retry_wait(fact)
    state = NodeState(
        **place,
        status="failed" if is_over else "retrying",
        attempt=fact.attempt,
        waiting_for=waits,
        error=error,
        confirmed=False if isinstance(fact, TaskFailed) and not fact.confirmed else None,
    )
    return [
        (
            "node.error",
            NodeFailure(**place, attempt=fact.attempt, error=error, output=_given(fact.output)),
        ),
        ("node.state", state),
    ]


def _retry_wait(fact: AttemptFailed) -> WaitingFor:
    return _next_try("retry", fact, retry_detail(fact.attempt, fact.failure, fact.allowed))


def _rebuilt_bodies(fact: TaskRebuilt, place: _Place, places: TaskPlaces) -> _Bodies:
    lost = f"{fact.resource_id} is gone ({fact.cause})"
    waits = f"{lost}: waits until it is made again"
    again = f"{lost}: runs again to make it"
    return [
        ("node.state", NodeState(**place, status="pending", message=waits)),
        *(
            (
                "node.state",
                NodeState(**places.fields_at(one), status="pending", message=again),
            )
            for one in fact.again
        ),
    ]


def _edge_body(fact: EdgesDecided, place: _Place, places: TaskPlaces) -> EdgeState:
    source = places.node_of(fact.source).node_id
    return EdgeState(**place, source_node_id=source, taken=fact.is_taken)


def _result_bodies(
    fact: TaskSucceeded | TaskReused | TaskPassed | TaskDecided, place: _Place
) -> _Bodies:
    if isinstance(fact, TaskPassed):
        error = TaskError(code=TASK_DISABLED.code)
        return [
            (
                "node.result.snapshot",
                NodeResult(**place, attempt=0, result=fact.result, artifacts=[]),
            ),
            ("node.state", NodeState(**place, status="skipped", attempt=0, error=error)),
        ]
    attempt = fact.attempt if isinstance(fact, TaskSucceeded) else 0
    given = () if isinstance(fact, TaskDecided) else fact.artifacts
    artifacts = [artifact_view(one) for one in given]
    snapshot = NodeResult(**place, attempt=attempt, result=fact.result, artifacts=artifacts)
    source = fact.from_run if isinstance(fact, TaskReused) else None
    is_pinned = source == PINNED
    state = NodeState(
        **place,
        status="succeeded",
        attempt=attempt,
        reused_from=None if is_pinned else source,
        pinned=is_pinned or None,
    )
    return [
        ("node.result.snapshot", snapshot),
        *(("artifact.ready", ArtifactReady(**place, artifact=one)) for one in artifacts),
        ("node.state", state),
    ]


def _progress_bodies(fact: AttemptProgressed, place: _Place) -> _Bodies:
    bodies: _Bodies = [("node.result.delta", _output(fact, chunk, place)) for chunk in fact.chunks]
    if fact.metrics:
        told = NodeMetrics(**place, attempt=fact.attempt, metrics=dict(fact.metrics))
        bodies.append(("run.metrics", told))
    reports = (fact.progress, fact.message, fact.stage)
    if not bodies or fact.dropped or any(one is not None for one in reports):
        state = NodeState(
            **place,
            status="running",
            attempt=fact.attempt,
            progress=fact.progress,
            message=fact.message,
            stage=fact.stage,
            dropped=fact.dropped,
        )
        bodies.append(("node.state", state))
    return bodies


def _output(fact: AttemptProgressed, chunk: Chunk, place: _Place) -> NodeOutput:
    return NodeOutput(
        **place,
        attempt=fact.attempt,
        channel=chunk.channel,
        index=chunk.index,
        mime_type=chunk.mime_type,
        text=chunk.text,
        data_base64=None if chunk.text is not None else chunk.data_base64 or "",
        metadata=None if bytes(chunk.metadata) == b"{}" else chunk.metadata,
    )


def error_view(error: TaskFailure) -> TaskError:
    """Why something failed, as clients see it."""
    return TaskError(
        code=error.code, category=error.category, message=error.message, stack=error.stack
    )


def waiting_view(waiting_for: WaitReason) -> WaitingFor:
    """What a task waits for, as clients see it."""
    holder = waiting_for.held_by
    return WaitingFor(
        kind=waiting_for.kind,
        detail=waiting_for.detail,
        until=_timestamp(waiting_for.until),
        held_by=None if holder is None else KeyHolder(run_id=holder[0], node_id=holder[1]),
    )


def _next_try(
    kind: WaitKind, fact: AttemptFailed | AttemptRefused | AttemptLost, detail: str
) -> WaitingFor:
    """What a task waits for after an attempt that is followed by another."""
    at = iso(fact.at + int(fact.delay_s * 1000))
    return WaitingFor(kind=kind, detail=detail, until=at, retry_at=at)


def artifact_view(artifact: ArtifactRef) -> Artifact:
    return Artifact(
        resource_id=artifact.resource_id,
        worker_id=artifact.worker_id,
        type=artifact.type,
        size_bytes=artifact.size_bytes,
        expires_at=artifact.expires_at,
        inline=artifact.inline,
        metadata=artifact.metadata,
    )


def view_node(
    run: RunRecord,
    index: int,
    *,
    ack_deadline: str | None = None,
    waiting_for: WaitingFor | None = None,
    calls: Calls | None = None,
) -> Node:
    """One node of the run as REST shows it.

    A middleware is shown with its last call, the outermost with the task of its host. A host stands for its chain, with
    its last call and how often it was called. What a worker has not acknowledged yet, and what the node waits for at
    this moment, only the scheduler knows.
    """
    node, level = run.node_at(index), run.plan_of(index).nodes
    is_in_chain = node.host is not None
    own_calls: Sequence[int] = ()
    if node.middlewares or is_in_chain:
        calls = calls_by_task(run) if calls is None else calls
        own_calls = calls.get(index, ())
    shown = shown_task(run, index, calls) if is_in_chain else index
    task = run.tasks[shown]
    status = shown_status(run, task)
    if waiting_for is None and task.waiting_for:
        waiting_for = waiting_view(task.waiting_for)
    host = level[node.host] if node.host is not None else None
    is_dispatched = status == "dispatched"
    return Node(
        node_id=node.node_id,
        type=node.type,
        label=node.label,
        status=status,
        attempt=task.attempt,
        failures=task.failures,
        worker_id=task.worker,
        waiting_for=waiting_for,
        result=task.result,
        error=_node_error(task.state),
        progress=task.progress,
        message=task.message,
        metrics=dict(task.metrics) or None,
        started_at=_timestamp(task.started_at),
        finished_at=_timestamp(task.finished_at),
        pending_ack=is_dispatched or ack_deadline is not None,
        dispatch_id=dispatch_id(run.run_id, run.task_id(shown), task.attempt)
        if is_dispatched
        else None,
        ack_deadline=ack_deadline,
        artifacts=[artifact_view(one) for one in task.artifacts],
        middlewares=[level[one].node_id for one in node.middlewares] or None,
        host_node_id=None if host is None else host.node_id,
        chain_index=host.middlewares.index(index - run.base_of(index))
        if host is not None and index - run.base_of(index) in host.middlewares
        else None,
        calls=len(own_calls) if node.middlewares or is_in_chain else None,
        last_call=_last_call(run, own_calls[-1]) if own_calls and node.middlewares else None,
        pinned=index in run.accepted.pinned,
        retry_at=None if waiting_for is None else waiting_for.retry_at,
        max_attempts=task.node.retry.max_attempts,
    )


def ready_at(run: RunRecord, index: int) -> int | None:
    """When all before a node had ended; None: that has not happened, or it is not known."""
    if index < len(run.plan.nodes):
        base, plan = 0, run.plan
        if not plan.parents[index]:
            return run.accepted.at if plan.nodes[index].branch is None else None
    else:
        base, plan = run.base_of(index), run.plan_of(index)
    latest = None
    for parent in plan.parents[index - base]:
        ended = run.tasks[base + parent].finished_at
        if ended is None:
            return None
        latest = ended if latest is None or ended > latest else latest
    return latest


def count_nodes(run: RunRecord) -> dict[str, int]:
    """How many nodes of the plan have each status."""
    return dict(Counter(shown_status(run, run.tasks[one]) for one in range(len(run.plan.nodes))))


def _last_call(run: RunRecord, call: int) -> LastCall:
    task = run.tasks[call]
    return LastCall(
        call_id=run.task_id(call),
        status=node_status(task),
        attempt=task.attempt,
        failures=task.failures,
        worker_id=task.worker,
        waiting_for=None if task.waiting_for is None else waiting_view(task.waiting_for),
        error=_node_error(task.state),
        started_at=_timestamp(task.started_at),
        finished_at=_timestamp(task.finished_at),
    )


def _node_error(state: State) -> TaskError | None:
    if isinstance(state, Failed):
        return error_view(state.error)
    if isinstance(state, Skipped):
        return TaskError(code=state.code)
    if isinstance(state, Passed):
        return TaskError(code=TASK_DISABLED.code)
    return None


def _timestamp(at: int | None) -> str | None:
    return None if at is None else iso(at)


def shown_status(run: RunRecord, task: Task) -> NodeStatus:
    """The status word of a task, also of a middleware that nobody has called."""
    if not isinstance(task.state, Subsumed):
        return node_status(task)
    return "skipped" if run.is_terminal else "pending"


def view_head(run: RunRecord) -> RunWithoutNodes:
    """The run as REST shows it to clients that asked for no nodes."""
    return RunWithoutNodes(**_head(run), counts=count_nodes(run))


def view_run(
    run: RunRecord,
    *,
    ack_deadlines: Mapping[int, str] = MappingProxyType({}),
    waits: Mapping[int, WaitingFor] = MappingProxyType({}),
) -> Run:
    """The run as REST shows it."""
    calls = calls_by_task(run)
    nodes = [
        view_node(
            run,
            index,
            ack_deadline=ack_deadlines.get(index),
            waiting_for=waits.get(index),
            calls=calls,
        )
        for index in range(len(run.plan.nodes))
    ]
    artifacts = [artifact_view(artifact) for task in run.tasks for artifact in task.artifacts]
    counts: dict[str, int] = dict(Counter(node.status for node in nodes))
    return Run(**_head(run), counts=counts, nodes=nodes, artifacts=artifacts)


def _head(run: RunRecord) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "workflow_id": run.plan.workflow_id,
        "name": run.accepted.name or None,
        "workflow_version": run.accepted.version,
        "by": run.accepted.by or None,
        "trigger": run.accepted.trigger or None,
        "status": run.status,
        "cancel_requested": run.cancel is not None,
        "compensating": None if run.compensation is None else run.compensation.kind,
        "created_at": iso(run.accepted.at),
        "started_at": _timestamp(run.started_at),
        "finished_at": _timestamp(run.finished_at),
        "error": None if run.error is None else error_view(run.error),
        "rerun_of": run.accepted.rerun_of,
        "last_event": run.last_event,
        "inputs": {} if bytes(run.accepted.inputs) == b"{}" else run.accepted.inputs,
        **_outputs(run),
    }


def _outputs(run: RunRecord) -> dict[str, Any]:
    outputs = outputs_of(run)
    if outputs is None:
        return {}
    return {"outputs": outputs.values, "outputs_truncated": outputs.is_truncated}
