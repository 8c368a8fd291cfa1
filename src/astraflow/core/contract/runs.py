"""Runs: what a client submits, and what it sees of a run, its nodes, its attempts and its output."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from astraflow.core.categories import Category
from astraflow.core.contract.base import (
    MAX_ID_CHARS,
    OBJECT,
    Count,
    Id,
    JsonObject,
    Page,
    PageQuery,
    Positive,
    Query,
    RequestBody,
    RestObject,
    Timestamp,
    WidePageQuery,
    doc,
    no_items,
    no_text,
)
from astraflow.core.contract.log_levels import LogLevel
from astraflow.core.contract.node_results import NodeResults
from astraflow.core.contract.reused_results import ReusedFrom
from astraflow.core.contract.scope_paths import WithinScope
from astraflow.core.contract.words import (
    TERMINAL,
    AttemptStatus,
    CompensationKind,
    NodeStatus,
    RunStatus,
    WaitKind,
)

MAX_KEY_CHARS: Final = 255
"""Of an idempotency key."""


class TaskError(RestObject, frozen=True, kw_only=True):
    """Why a run, a node or an attempt did not succeed."""

    code: Annotated[str, doc("A code of the error catalogue, for programs.")]
    category: Annotated[
        Category | None, doc("What kind of error it is: it decides about retries.")
    ] = None
    message: Annotated[str, doc("What happened, for people.")] = msgspec.field(
        default_factory=no_text
    )
    stack: Annotated[str | None, doc("The stack trace, if the handler raised an exception.")] = None


class KeyHolder(RestObject, frozen=True, kw_only=True):
    """The node that holds a concurrency key."""

    run_id: Annotated[str, doc("The run of the node.")]
    node_id: Annotated[str, doc("The node.")]


class WaitingFor(RestObject, frozen=True, kw_only=True):
    """What a node that is ready to run is waiting for."""

    kind: Annotated[WaitKind, doc("What it waits for, for programs.")]
    detail: Annotated[str, doc("What it waits for, for people.")]
    until: Annotated[
        Timestamp | None, doc("When the wait ends at the latest, if a time is known.")
    ] = None
    retry_at: Annotated[
        Timestamp | None, doc("When the next attempt starts, if it waits for a retry.")
    ] = None
    held_by: Annotated[
        KeyHolder | None, doc("The node that holds the concurrency key, if it waits for one.")
    ] = None


class Artifact(RestObject, frozen=True, kw_only=True):
    """A resource that the result of a node refers to. Its bytes stay on the worker until somebody downloads them."""

    resource_id: Annotated[str, doc("The id of the resource: the path of its download.")]
    worker_id: Annotated[str, doc("The worker that keeps it.")]
    type: Annotated[str, doc("What it is, as the node named it: `file`, `image`, …")]
    size_bytes: Annotated[Count | None, doc("Its size; null if the worker did not report it.")]
    expires_at: Annotated[
        str | None, doc("When the worker may remove it, as it says; null if it is kept.")
    ]
    inline: Annotated[bool, doc("Whether the result holds its bytes.")]
    metadata: Annotated[Any, doc("What the node said about it.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "resourceId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN/report",
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "type": "file",
        "sizeBytes": 1_048_576,
        "expiresAt": None,
        "inline": False,
        "metadata": {"mime": "application/pdf"},
    }


class ItemCounts(RestObject, frozen=True, kw_only=True):
    """How far the items of a map are, or the tasks of a node inside of one."""

    total: Annotated[Count, doc("All of them.")]
    pending: Annotated[Count, doc("Those that have not begun.")]
    running: Annotated[Count, doc("Those that are queued, waiting or running.")]
    succeeded: Annotated[Count, doc("Those that succeeded.")]
    failed: Annotated[Count, doc("Those that failed.")]
    skipped: Annotated[Count, doc("Those that were skipped.")]
    cancelled: Annotated[Count, doc("Those that were cancelled.")]


class LastCall(RestObject, frozen=True, kw_only=True):
    """The last time that the chain around a node called the node itself."""

    call_id: Annotated[str, doc("The id of the call, which is that of its task.")]
    status: Annotated[NodeStatus, doc("Where the call stands, or how it ended.")]
    attempt: Annotated[Count, doc("The number of its last attempt; 0 before the first.")]
    failures: Annotated[Count, doc("How many of its attempts have failed.")]
    worker_id: Annotated[str | None, doc("The worker of its last attempt.")]
    waiting_for: Annotated[WaitingFor | None, doc("What it waits for, while it waits.")]
    error: Annotated[TaskError | None, doc("Why it failed.")]
    started_at: Annotated[Timestamp | None, doc("When an attempt of it first ran.")]
    finished_at: Annotated[Timestamp | None, doc("When it ended.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "callId": "0b3a2e6e-6a52-5d3c-9f39-3c1f1c4d6f10",
        "status": "succeeded",
        "attempt": 1,
        "failures": 0,
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "waitingFor": None,
        "error": None,
        "startedAt": "2026-01-15T10:00:00.004Z",
        "finishedAt": "2026-01-15T10:00:00.005Z",
    }


class Node(RestObject, frozen=True, kw_only=True):
    """One node of a run. A node with middlewares stands for its whole chain, which is what the nodes after it see;
    `lastCall` and `calls` are about the node itself."""

    node_id: Annotated[str, doc("The id of the node in the definition.")]
    type: Annotated[str, doc("The type of the node.")]
    label: Annotated[str | None, doc("The label of the node in the definition.")]
    status: Annotated[NodeStatus, doc("Where the node stands.")]
    attempt: Annotated[Count, doc("The number of the last attempt; 0 before the first.")]
    failures: Annotated[Count, doc("How many attempts have failed.")]
    worker_id: Annotated[str | None, doc("The worker of the last attempt.")]
    waiting_for: Annotated[WaitingFor | None, doc("What it waits for, while it waits.")]
    result: Annotated[
        Any, doc("What the node returned; null before that, and when `resultTruncated`.")
    ]
    result_truncated: Annotated[
        bool, doc("The result is too large for this response: the node itself has it.")
    ] = False
    error: Annotated[TaskError | None, doc("Why it failed or was skipped.")]
    progress: Annotated[float | None, doc("What the attempt reports: 0 to 1.")]
    message: Annotated[str | None, doc("What the attempt reports, for people.")]
    started_at: Annotated[Timestamp | None, doc("When an attempt first ran.")]
    finished_at: Annotated[Timestamp | None, doc("When the node ended.")]
    pending_ack: Annotated[
        bool, doc("Whether the last dispatch waits for the acknowledgement of its worker.")
    ]
    dispatch_id: Annotated[str | None, doc("The dispatch that waits for its acknowledgement.")]
    ack_deadline: Annotated[
        Timestamp | None, doc("When a dispatch that is not acknowledged is withdrawn.")
    ]
    artifacts: Annotated[list[Artifact], doc("What its result refers to.")]
    middlewares: Annotated[
        list[str] | None, doc("The nodes of the chain around this node, the outermost first.")
    ] = None
    host_node_id: Annotated[str | None, doc("The node that this middleware is around.")] = None
    chain_index: Annotated[Count | None, doc("The place of this middleware in the chain.")] = None
    calls: Annotated[Count | None, doc("How often the node was called through its chain.")] = None
    last_call: Annotated[
        LastCall | None, doc("Of a node with middlewares: the last call of the node itself.")
    ] = None
    parent: Annotated[str | None, doc("The container that the node is inside of.")] = None
    scope_path: Annotated[
        str | None,
        doc(
            "Where the node is, if it is inside of others: `NODE:ITEM`, with `/` between the levels."
        ),
    ] = None
    item: Annotated[Count | None, doc("Of an item of a map: its place in the list.")] = None
    items: Annotated[
        ItemCounts | None, doc("Of a map, and of a node inside of one: how far its items are.")
    ] = None
    pinned: Annotated[
        bool, doc("Its result is the pinned one of the workflow: the node did not run.")
    ] = False
    retry_at: Annotated[
        Timestamp | None, doc("When the next attempt starts, if it waits for one.")
    ] = None
    max_attempts: Annotated[Count, doc("How many attempts may fail, the first included.")] = 1
    metrics: Annotated[
        dict[str, float] | None, doc("What the last attempt reports: the last value of each name.")
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "nodeId": "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164",
        "type": "core.echo",
        "label": "",
        "status": "succeeded",
        "attempt": 1,
        "failures": 0,
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "waitingFor": None,
        "result": {"value": "hello"},
        "error": None,
        "progress": None,
        "message": None,
        "startedAt": "2026-01-15T10:00:00.004Z",
        "finishedAt": "2026-01-15T10:00:00.005Z",
        "pendingAck": False,
        "dispatchId": None,
        "ackDeadline": None,
        "artifacts": [],
    }


class Attempt(RestObject, frozen=True, kw_only=True):
    """One attempt of a node."""

    attempt: Annotated[Count, doc("Its number, from 1 on.")]
    worker_id: Annotated[str, doc("The worker that it was given to.")]
    incarnation: Annotated[Count, doc("Which start of that worker: it grows with every restart.")]
    status: Annotated[AttemptStatus, doc("Where the attempt stands, or how it ended.")]
    queued_at: Annotated[
        Timestamp | None,
        doc(
            "From when on it could be given to a worker: what is before the node had ended, or the delay after the "
            "last attempt was over. Missing where that is not known."
        ),
    ] = None
    dispatched_at: Annotated[Timestamp, doc("When it was given to the worker.")]
    started_at: Annotated[Timestamp | None, doc("When the worker acknowledged it.")]
    finished_at: Annotated[Timestamp | None, doc("When it ended.")]
    error: Annotated[TaskError | None, doc("Why it did not succeed.")] = None
    call_id: Annotated[
        str | None, doc("The call that it is an attempt of, if the node was called in a chain.")
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "attempt": 1,
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "incarnation": 1,
        "status": "succeeded",
        "queuedAt": "2026-01-15T10:00:00.000Z",
        "dispatchedAt": "2026-01-15T10:00:00.002Z",
        "startedAt": "2026-01-15T10:00:00.004Z",
        "finishedAt": "2026-01-15T10:00:00.005Z",
    }


class ExecutedPackage(RestObject, frozen=True, kw_only=True):
    """The package that a node of a run is executed with."""

    name: Annotated[str, doc("The name of the package.")]
    version: Annotated[str, doc("Its version: it was pinned when the run was accepted.")]

    EXAMPLE: ClassVar[JsonObject] = {"name": "core", "version": "1.0.0"}


class NodeDetail(Node, frozen=True, kw_only=True):
    """A node with what it was given, its whole result, its attempts, and its history in sentences."""

    package: Annotated[ExecutedPackage, doc("The package that executes it.")]
    parameters: Annotated[
        Any,
        doc(
            "The parameters that the last attempt was given: as authored, with what edges and expressions brought. "
            "A secret stays a reference. Null before the first attempt, and when `parametersTruncated`.",
            extra_json_schema=OBJECT,
        ),
    ]
    parameters_truncated: Annotated[
        bool, doc("The parameters are too large for this response.")
    ] = False
    ready_at: Annotated[
        Timestamp | None, doc("When all before it had ended, so that it could begin.")
    ] = None
    reused_from: Annotated[
        ReusedFrom | None,
        doc("Where its result was taken over from, if the run is a re-run that kept it."),
    ] = None
    attempts: Annotated[list[Attempt], doc("Its attempts, oldest first.")]
    story: Annotated[list[str], doc("What happened to it, one sentence each, oldest first.")]

    EXAMPLE: ClassVar[JsonObject] = {
        **Node.EXAMPLE,
        "package": ExecutedPackage.EXAMPLE,
        "parameters": {"value": "hello"},
        "attempts": [Attempt.EXAMPLE],
        "story": ["2026-01-15T10:00:00.005Z succeeded with attempt 1"],
    }


class RunHead(RestObject, frozen=True, kw_only=True):
    """A run without its nodes."""

    run_id: Annotated[str, doc("The id of the run.")]
    workflow_id: Annotated[str, doc("The id in its definition.")]
    status: Annotated[RunStatus, doc("Where the run stands.")]
    cancel_requested: Annotated[bool, doc("Whether somebody has cancelled it.")]
    created_at: Annotated[Timestamp, doc("When it was accepted.")]
    started_at: Annotated[Timestamp | None, doc("When its first node was dispatched.")]
    finished_at: Annotated[Timestamp | None, doc("When it ended.")]
    compensating: Annotated[
        CompensationKind | None, doc("Why what it has done is undone, or was.")
    ] = None
    error: Annotated[TaskError | None, doc("Why it failed.")] = None
    rerun_of: Annotated[str | None, doc("The run that it repeats.")] = None
    by: Annotated[str | None, doc("Who submitted it.")] = None
    trigger: Annotated[str | None, doc("The trigger that submitted it, if one did.")] = None

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL


class RunSummary(RunHead, frozen=True, kw_only=True):
    """A run in a list."""

    workflow_version: Annotated[
        Count | None, doc("The version of the saved workflow; null if it was not saved.")
    ]
    name: Annotated[str, doc("The name in its definition.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "workflowId": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
        "workflowVersion": None,
        "name": "Say hello",
        "status": "succeeded",
        "cancelRequested": False,
        "createdAt": "2026-01-15T10:00:00.000Z",
        "startedAt": "2026-01-15T10:00:00.002Z",
        "finishedAt": "2026-01-15T10:00:00.005Z",
    }


class RunWithoutNodes(RunHead, frozen=True, kw_only=True):
    """A run for who asked for no nodes. Clients read it as a `Run`."""

    last_event: Annotated[Count, doc("The number of its last event.")]
    name: Annotated[str | None, doc("The name in its definition.")] = None
    workflow_version: Annotated[Count | None, doc("The version of the saved workflow.")] = None
    counts: Annotated[
        dict[str, int],
        doc("How many of its nodes have each status; a status that none has is missing."),
    ] = msgspec.field(default_factory=dict)
    inputs: Annotated[
        Any,
        doc("What it was started with, defaults included.", extra_json_schema=OBJECT),
    ] = msgspec.field(default_factory=dict)
    outputs: Annotated[
        Any,
        doc(
            "Its declared outputs by name, once it has succeeded; null where a node did not.",
            extra_json_schema=OBJECT,
        ),
    ] = None
    outputs_truncated: Annotated[
        bool, doc("Outputs that are too large for this response are null: their nodes have them.")
    ] = False


class Run(RunWithoutNodes, frozen=True, kw_only=True):
    """A run. `nodes` and `artifacts` are missing if the request says `nodes=false`."""

    nodes: Annotated[list[Node], doc("Its nodes, in the order of the definition.")] = msgspec.field(
        default_factory=no_items
    )
    artifacts: Annotated[list[Artifact], doc("What the results of all nodes refer to.")] = (
        msgspec.field(default_factory=no_items)
    )

    def node(self, name: str) -> Node:
        """The node with this id or label.

        Raises:
            KeyError: there is none.
        """
        for one in self.nodes:
            if name in (one.node_id, one.label):
                return one
        raise KeyError(name)

    @property
    def results(self) -> NodeResults:
        """The results of the nodes that have one, by label or id; not those that are too large for this response."""
        return NodeResults(self.nodes)

    EXAMPLE: ClassVar[JsonObject] = {
        "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "workflowId": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
        "status": "succeeded",
        "cancelRequested": False,
        "createdAt": "2026-01-15T10:00:00.000Z",
        "startedAt": "2026-01-15T10:00:00.002Z",
        "finishedAt": "2026-01-15T10:00:00.005Z",
        "lastEvent": 6,
        "nodes": [Node.EXAMPLE],
        "artifacts": [],
    }


class LogLine(RestObject, frozen=True, kw_only=True):
    """A piece of output of a node: a log line, a token, a part of an image. It has `text` or `dataBase64`."""

    id: Annotated[Count, doc("The number of its event.")]
    occurred_at: Annotated[Timestamp, doc("When the scheduler stored it.")]
    node_id: Annotated[str, doc("The node that wrote it.")]
    host_node_id: Annotated[str | None, doc("The node whose chain called it, if one did.")] = None
    chain_index: Annotated[
        int | UnsetType | None, doc("The place in that chain; null is the node itself.")
    ] = UNSET
    call_id: Annotated[str | None, doc("The call that it belongs to.")] = None
    scope_path: Annotated[
        str | None,
        doc(
            "Where the node is, if it is inside of others: `NODE:ITEM`, with `/` between the levels."
        ),
    ] = None
    attempt: Annotated[Count, doc("The attempt that wrote it.")]
    channel: Annotated[
        str,
        doc(
            "`stdout`, `stderr`, `log`, or a name of the node's own. `dropped` says that output is missing."
        ),
    ]
    index: Annotated[Count, doc("Its place in the channel, from 0 on.")]
    mime_type: Annotated[str, doc("What the piece is.")]
    text: Annotated[str | None, doc("The piece, if it is text.")] = None
    data_base64: Annotated[str | None, doc("The piece, if it is not text.")] = None
    metadata: Annotated[
        Any,
        doc("What the node said about it, as the level of a log line.", extra_json_schema=OBJECT),
    ] = msgspec.field(default_factory=dict)


class Accepted(RestObject, frozen=True, kw_only=True):
    """The run that a submission has made, now or with the same idempotency key before."""

    run_id: Annotated[str, doc("The id of the run.")]
    status: Annotated[RunStatus, doc("Always `queued`, also if the run has gone on since.")]
    created_at: Annotated[Timestamp, doc("When the run was accepted.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "status": "queued",
        "createdAt": "2026-01-15T10:00:00.000Z",
    }


class RunPage(Page[RunSummary], frozen=True, kw_only=True):
    """A page of runs, newest first."""


class LogPage(Page[LogLine], frozen=True, kw_only=True):
    """A page of output, oldest first. `nextCursor` is null when nothing more is stored now."""


class ArtifactPage(Page[Artifact], frozen=True, kw_only=True):
    """The artifacts of a run."""


class ListRuns(PageQuery, frozen=True, kw_only=True):
    """Which runs."""

    status: Annotated[RunStatus | None, doc("Only runs with this status.")] = None
    workflow_id: Annotated[Id | None, doc("Only runs of this workflow.")] = None
    trigger: Annotated[Id | None, doc("Only runs that this trigger has submitted.")] = None
    by: Annotated[
        Id | None, doc("Only runs that this user has submitted: `by` of a run, whole and exact.")
    ] = None
    text: Annotated[
        str, doc("Only runs with this text in their name or their id.", max_length=MAX_ID_CHARS)
    ] = ""
    since: Annotated[
        str, doc("Only runs that were accepted at this time (RFC 3339) or later.", max_length=40)
    ] = ""
    until: Annotated[
        str, doc("Only runs that were accepted before this time (RFC 3339).", max_length=40)
    ] = ""


class ShowRun(Query, frozen=True, kw_only=True):
    """How much of a run."""

    nodes: Annotated[bool, doc("`false` leaves out nodes and artifacts.")] = True


class ListLogs(WidePageQuery, frozen=True, kw_only=True):
    """Which output."""

    node_id: Annotated[Id | None, doc("Only output of this node.")] = None
    scope: WithinScope = ""
    level: Annotated[
        LogLevel | None,
        doc("Only output of this level or a higher one; what names no level is `info`."),
    ] = None
    channel: Annotated[Id | None, doc("Only output of this channel, as `stderr`.")] = None
    attempt: Annotated[Positive | None, doc("Only output of this attempt.")] = None
    text: Annotated[
        str, doc("Only output with this text in it, in whatever case.", max_length=MAX_ID_CHARS)
    ] = ""
    newest: Annotated[bool, doc("`true` begins with the newest output and goes back.")] = False
    before: Annotated[Positive | None, doc("Only output of events before this number.")] = None


class ListArtifacts(Query, frozen=True, kw_only=True):
    """Which artifacts."""

    scope: WithinScope = ""


UsePinned = Annotated[
    bool, doc("Whether nodes with a pinned result have it in place of running, for development.")
]
RunInputs = Annotated[Raw, doc("The inputs of the run, by name.", extra_json_schema=OBJECT)]


def _no_inputs() -> Raw:
    return Raw(b"{}")


class RunOfDefinition(RequestBody, frozen=True, kw_only=True):
    """Run a definition that is not saved."""

    workflow: Annotated[
        Raw, doc("The definition.", extra_json_schema={"$ref": "#/components/schemas/Definition"})
    ]
    inputs: RunInputs = msgspec.field(default_factory=_no_inputs)
    use_pinned: UsePinned = False


class RunOfWorkflow(RequestBody, frozen=True, kw_only=True):
    """Run a saved workflow."""

    workflow_id: Annotated[Id, doc("The id of the saved workflow.")]
    version: Annotated[Positive | None, doc("One of its versions; the newest by default.")] = None
    inputs: RunInputs = msgspec.field(default_factory=_no_inputs)
    use_pinned: UsePinned = False


class RunRequest(RequestBody, frozen=True, kw_only=True):
    """A run of a definition, or of a saved workflow: both forms in one, as the server reads them."""

    workflow: Raw | UnsetType = UNSET
    workflow_id: Id | UnsetType = UNSET
    version: Annotated[int, msgspec.Meta(ge=1)] | None = None
    inputs: RunInputs = msgspec.field(default_factory=_no_inputs)
    use_pinned: UsePinned = False

    EXAMPLE: ClassVar[JsonObject] = {
        "workflow": {
            "id": "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11",
            "metadata": {"name": "Say hello"},
            "nodes": [
                {
                    "id": "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164",
                    "type": "core.echo",
                    "parameters": {"value": "hello"},
                }
            ],
            "edges": [],
        },
        "inputs": {},
    }
    ONE_OF: ClassVar[tuple[type, ...]] = (RunOfDefinition, RunOfWorkflow)


class RebindRequest(RequestBody, frozen=True, kw_only=True):
    """What happens to the attempts that run while a run is released from its workers."""

    running: Annotated[
        Literal["keep", "restart"], doc("`keep` lets them finish, `restart` withdraws them.")
    ] = "keep"

    EXAMPLE: ClassVar[JsonObject] = {"running": "keep"}


class Rebound(RestObject, frozen=True, kw_only=True):
    """The run is released from its workers."""

    run_id: Annotated[str, doc("The run.")]
    running: Annotated[Literal["keep", "restart"], doc("What happens to the attempts that run.")]

    EXAMPLE: ClassVar[JsonObject] = {"runId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN", "running": "keep"}
