"""The bodies of events: of a run, of a tenant, and of the stream itself.

`RUN_EVENTS`, `TENANT_EVENTS` and `STREAM_EVENTS` say which body an event type has. An event is numbered and durable,
but for those of `STREAM_EVENTS`, which are about one connection.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import UNSET, UnsetType

from astraflow.core.contract.base import (
    Count,
    JsonObject,
    Query,
    RestObject,
    Timestamp,
    doc,
    no_items,
)
from astraflow.core.contract.runs import Artifact, Run, TaskError, WaitingFor
from astraflow.core.contract.words import (
    CompensationKind,
    NodeStatus,
    ResourceState,
    RolloutState,
    RunStatus,
    WorkerStatus,
)

MAX_LANE_POSITION_CHARS: Final = 512
"""Of the id of an event of a tenant: a number for each of its lanes."""


class EventScope(RestObject, frozen=True, kw_only=True):
    """What an event is about, for filters."""

    node_id: Annotated[str | None, doc("The node, if the event is about one.")] = None


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One numbered event of a stream. `id` is 0 for those without a number, which are about the connection."""

    id: int = 0
    lane: int | UnsetType = UNSET
    """Of the stream of a tenant with several lanes: which one has numbered it; unset: the first."""
    type: str
    occurred_at: str = ""
    scope: Any = {}
    body: Any = msgspec.field(default_factory=dict, name="data")

    def read(self) -> Any:
        """The body as its struct; as it is if this version does not know the type."""
        # Both streams have a `run.status`; only that of a tenant has to name the run.
        is_of_run = self.type in RUN_EVENTS and "runId" not in self.body
        kind = RUN_EVENTS[self.type] if is_of_run else _OTHERS.get(self.type)
        return self.body if kind is None else msgspec.convert(self.body, kind)


class StreamMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An event without a number."""

    type: str
    scope: EventScope = EventScope()
    body: Any = msgspec.field(name="data")


class FollowEvents(Query, frozen=True, kw_only=True):
    """Which stream, and from where on."""

    NOT_BLANK: ClassVar[frozenset[str]] = frozenset({"lastEventId"})

    run_id: Annotated[
        str, doc("The run to follow. Without it the stream is that of the tenant.", max_length=256)
    ] = ""
    last_event_id: Annotated[
        Annotated[str, msgspec.Meta(max_length=MAX_LANE_POSITION_CHARS)] | None,
        doc(
            "The last id that was seen: the stream goes on after it. A whole number; of a tenant with several lanes, "
            "the text that came as the id."
        ),
    ] = None
    snapshot: Annotated[
        bool, doc("`true` begins with `run.snapshot`, which has no id, and goes on from there.")
    ] = False


# -- of a run -------------------------------------------------------------------------------


class RunStatusChange(RestObject, frozen=True, kw_only=True):
    """The status of the run has changed, or somebody has cancelled it. A terminal status is the last event of a run."""

    status: Annotated[RunStatus, doc("The status from here on.")]
    cancel_requested: Annotated[bool, doc("Somebody has cancelled the run.")] = False
    reason: Annotated[str | None, doc("Why it was cancelled.")] = None
    compensating: Annotated[
        CompensationKind | None, doc("What was done is undone from here on, because of this.")
    ] = None
    error: Annotated[TaskError | None, doc("Why it failed.")] = None

    EXAMPLE: ClassVar[JsonObject] = {"status": "queued"}


class NodeBody(RestObject, frozen=True, kw_only=True):
    """What an event is about: a node, or a call within the chain around one."""

    node_id: Annotated[str, doc("The node.")]
    host_node_id: Annotated[str | None, doc("The node whose chain called it, if one did.")] = None
    chain_index: Annotated[
        int | UnsetType | None, doc("The place in that chain; null is the node itself.")
    ] = UNSET
    call_id: Annotated[str | None, doc("The call.")] = None
    middleware_node_id: Annotated[
        str | None,
        doc(
            "The outermost middleware of the node, which this is about too: it runs as the node's task."
        ),
    ] = None
    scope_path: Annotated[
        str | None,
        doc(
            "Where the node is, if it is inside of others: `NODE:ITEM`, with `/` between the levels."
        ),
    ] = None


class NodeState(NodeBody, frozen=True, kw_only=True):
    """A node has changed its status, or its attempt has reported something."""

    status: Annotated[NodeStatus, doc("The status from here on.")]
    attempt: Annotated[Count | None, doc("The attempt that it is about; 0 before the first.")] = (
        None
    )
    worker_id: Annotated[str | None, doc("The worker that the attempt was given to.")] = None
    waiting_for: Annotated[WaitingFor | None, doc("What the node waits for.")] = None
    progress: Annotated[float | None, doc("What the attempt reports: 0 to 1.")] = None
    stage: Annotated[str | None, doc("What the attempt reports: the part of its work.")] = None
    message: Annotated[
        str | None, doc("What the attempt reports, or why the status has changed.")
    ] = None
    error: Annotated[TaskError | None, doc("Why it failed, is retried, or was skipped.")] = None
    confirmed: Annotated[
        bool | None, doc("Whether the worker has confirmed the end of the attempt.")
    ] = None
    cancelled_during_phase: Annotated[
        str | None, doc("Where a cancelled attempt was when it stopped, as its worker says.")
    ] = None
    partial_progress: Annotated[Any, doc("How far a cancelled attempt had come.")] = None
    reused_from: Annotated[str | None, doc("The run whose result was reused.")] = None
    pinned: Annotated[bool | None, doc("Whether its result is a pinned one.")] = None
    items: Annotated[
        Count | None, doc("How many items a map has begun with; 1 for a container and a call.")
    ] = None
    dropped: Annotated[Count, doc("How many pieces of output were dropped before this event.")] = 0


class NodeFailure(NodeBody, frozen=True, kw_only=True):
    """An attempt has failed. `node.state` follows, and says whether the node is retried."""

    attempt: Annotated[Count, doc("The attempt that failed.")]
    error: Annotated[TaskError, doc("Why it failed.")]
    output: Annotated[
        Any, doc("What the failed attempt returned: evidence, which no other node gets.")
    ] = None


class NodeOutput(NodeBody, frozen=True, kw_only=True):
    """A piece of output: a log line, a token, a part of an image. It has `text` or `dataBase64`."""

    attempt: Annotated[Count, doc("The attempt that wrote it.")]
    channel: Annotated[str, doc("`stdout`, `stderr`, `log`, or a name of the node's own.")]
    index: Annotated[Count, doc("Its place in the channel, from 0 on.")]
    mime_type: Annotated[str, doc("What the piece is.")]
    text: Annotated[str | None, doc("The piece, if it is text.")] = None
    data_base64: Annotated[str | None, doc("The piece, if it is not text.")] = None
    metadata: Annotated[Any, doc("What the node said about it, as the level of a log line.")] = None


class JoinedOutput(NodeOutput, frozen=True, kw_only=True):
    """Consecutive pieces of output in one: `index` is that of the first, and their texts follow one another."""

    pieces: Annotated[Count, doc("How many pieces it is.")] = 1


class RunSnapshot(Run, frozen=True, kw_only=True):
    """A run as it is, with what its nodes have written so far."""

    output: Annotated[
        list[JoinedOutput],
        doc("The output of its nodes, oldest first; pieces of one channel are joined."),
    ] = msgspec.field(default_factory=no_items)
    output_truncated: Annotated[
        bool, doc("There is older output, which is not in here: the logs have it.")
    ] = False


class NodeMetrics(NodeBody, frozen=True, kw_only=True):
    """Numbers that an attempt reports about its work, as a loss or a rate."""

    attempt: Annotated[Count, doc("The attempt that reports them.")]
    metrics: Annotated[dict[str, float], doc("The last value of each, by name.")]


class NodeResult(NodeBody, frozen=True, kw_only=True):
    """The result of a node."""

    attempt: Annotated[Count, doc("The attempt that returned it; 0 if it was reused.")]
    result: Annotated[Any, doc("What the node returned.")]
    artifacts: Annotated[list[Artifact], doc("What the result refers to.")]


class ArtifactReady(NodeBody, frozen=True, kw_only=True):
    """A result refers to an artifact."""

    artifact: Annotated[Artifact, doc("The artifact.")]


class RunSignal(RestObject, frozen=True, kw_only=True):
    """A message came from outside."""

    name: Annotated[str, doc("The name that nodes wait for.")]
    payload: Annotated[msgspec.Raw, doc("What it carries.", extra_json_schema={})]
    by: Annotated[str, doc("Who sent it.")]


class EdgeState(NodeBody, frozen=True, kw_only=True):
    """The conditions of the edges between two nodes have been evaluated; the event is about the node they lead to."""

    source_node_id: Annotated[str, doc("The node that the edges come from.")]
    taken: Annotated[bool, doc("Whether the condition of one of them holds.")]


# -- of a tenant ----------------------------------------------------------------------------


class RunReport(RestObject, frozen=True, kw_only=True):
    """The status of a run has changed, or somebody has cancelled it."""

    run_id: Annotated[str, doc("The run.")]
    status: Annotated[RunStatus, doc("Its status from here on.")]
    cancel_requested: Annotated[bool, doc("Somebody has cancelled it.")] = False
    error: Annotated[TaskError | None, doc("Why it failed: code and message.")] = None


class WorkerReport(RestObject, frozen=True, kw_only=True):
    """A worker has come, gone, or changed its status."""

    worker_id: Annotated[str, doc("The worker.")]
    name: Annotated[str, doc("Its name.")]
    status: Annotated[WorkerStatus, doc("Its status from here on.")]


class PackageReport(RestObject, frozen=True, kw_only=True):
    """A worker reports about the installation or the removal of a package."""

    worker_id: Annotated[str, doc("The worker.")]
    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("Its version.")]
    status: Annotated[str, doc("What the worker reports.")]
    details: Annotated[Any, doc("What the worker says about it.")]
    progress: Annotated[float | None, doc("How far it is: 0 to 1.")] = None


class WorkflowReport(RestObject, frozen=True, kw_only=True):
    """A workflow was saved, published or deleted, or its draft was saved or discarded."""

    workflow_id: Annotated[str, doc("The workflow.")]
    name: Annotated[str | None, doc("Its name.")] = None
    version: Annotated[Count | None, doc("The version that was made.")] = None
    revision: Annotated[Count | None, doc("The revision of the draft that was saved.")] = None
    by: Annotated[str, doc("Who did it.")]


class PackageChange(RestObject, frozen=True, kw_only=True):
    """A version of a package was published, yanked or taken back, or is the active one from here on."""

    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("Its version.")]
    by: Annotated[str, doc("Who did it.")]


class RolloutReport(RestObject, frozen=True, kw_only=True):
    """A rollout has begun, come to its next wave, or ended."""

    rollout_id: Annotated[str, doc("The rollout.")]
    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("The version on its way.")]
    state: Annotated[RolloutState, doc("Its state from here on.")]
    wave: Annotated[Count, doc("The wave that it is in, from 0 on.")]
    waves: Annotated[list[int], doc("The shares of the workers in percent, one for each wave.")]
    error: Annotated[str | None, doc("Why it failed.")] = None


class ResourceReport(RestObject, frozen=True, kw_only=True):
    """A resource was made, is being removed, or is gone."""

    resource_id: Annotated[str, doc("The resource.")]
    worker_id: Annotated[str, doc("The worker that keeps it.")]
    type: Annotated[str, doc("What it is.")]
    state: Annotated[ResourceState, doc("Its state from here on.")]
    run_id: Annotated[str | None, doc("The run that made it.")]
    node_id: Annotated[str | None, doc("The node that made it.")]
    size_bytes: Annotated[Count | None, doc("Its size.")]
    expires_at: Annotated[Timestamp | None, doc("When the worker may remove it.")]


class RemovedArtifact(RestObject, frozen=True, kw_only=True):
    """An artifact that is gone."""

    resource_id: Annotated[str, doc("The resource.")]
    worker_id: Annotated[str, doc("The worker that kept it.")]
    type: Annotated[str, doc("What it was.")]
    size_bytes: Annotated[Count | None, doc("Its size.")]


class ArtifactRemoved(RestObject, frozen=True, kw_only=True):
    """An artifact of a run is gone."""

    run_id: Annotated[str | None, doc("The run that made it.")]
    node_id: Annotated[str | None, doc("The node that made it.")]
    artifact: Annotated[RemovedArtifact, doc("The artifact.")]


# -- of one connection ----------------------------------------------------------------------


class StreamReset(RestObject, frozen=True, kw_only=True):
    """Events between the last id that was seen and the next event were removed by retention."""

    first: Annotated[Count, doc("The first that is missing.")] = msgspec.field(name="from")
    last: Annotated[Count, doc("The last that is missing.")] = msgspec.field(name="to")
    lane: Annotated[
        Count,
        doc("The lane of the tenant that they are of, if it has several. Missing: the first."),
    ] = 0
    reason: Annotated[str, doc("`retention`.")]


class RunMissing(RestObject, frozen=True, kw_only=True):
    """There is no such run in the tenant, or not any more. A mixed stream goes on with the others."""

    run_id: Annotated[str, doc("The run.")]


class WorkerLoad(RestObject, frozen=True, kw_only=True):
    """What one worker does."""

    worker_id: Annotated[str, doc("The worker.")]
    inflight: Annotated[Count, doc("The attempts that it has.")]
    max_parallel: Annotated[Count, doc("The attempts that it takes at once.")]
    cpu_pct: Annotated[float | None, doc("The load of its processors, as it says.")] = None
    mem_pct: Annotated[float | None, doc("The memory in use, as it says.")] = None


class WorkerLoads(RestObject, frozen=True, kw_only=True):
    """What the workers of the tenant do; only those that it has changed for since the last time."""

    workers: Annotated[list[WorkerLoad], doc("One for each worker.")]


class StreamEnd(RestObject, frozen=True, kw_only=True):
    """The server ends the stream early. The client may reconnect with the last id that it saw."""

    code: Annotated[str, doc("A code of the error catalogue.")]
    message: Annotated[str, doc("Why, for people.")]


RUN_EVENTS: Final[dict[str, type[RestObject]]] = {
    "run.status": RunStatusChange,
    "node.state": NodeState,
    "node.error": NodeFailure,
    "node.result.delta": NodeOutput,
    "run.metrics": NodeMetrics,
    "node.result.snapshot": NodeResult,
    "artifact.ready": ArtifactReady,
    "edge.state": EdgeState,
    "run.signal": RunSignal,
}
TENANT_EVENTS: Final[dict[str, type[RestObject]]] = {
    "run.status": RunReport,
    **{
        f"worker.{one}": WorkerReport
        for one in ("online", "degraded", "draining", "lost", "offline")
    },
    **{
        f"package.{one}": PackageReport
        for one in ("downloading", "installing", "installed", "failed", "removed")
    },
    **{
        f"workflow.{one}": WorkflowReport
        for one in ("saved", "published", "deleted", "draft_saved", "draft_discarded")
    },
    **{f"package.{one}": PackageChange for one in ("published", "yanked", "unyanked", "activated")},
    **{
        f"rollout.{one}": RolloutReport for one in ("running", "succeeded", "failed", "rolled_back")
    },
    **{f"resource.{one}": ResourceReport for one in ("ready", "evicting", "evicted", "released")},
    "artifact.removed": ArtifactRemoved,
}
STREAM_EVENTS: Final[dict[str, type[RestObject]]] = {
    "run.snapshot": RunSnapshot,
    "run.missing": RunMissing,
    "worker.load": WorkerLoads,
    "stream.reset": StreamReset,
    "overflow": StreamEnd,
    "error": StreamEnd,
}
_OTHERS: Final = {**STREAM_EVENTS, **TENANT_EVENTS}
