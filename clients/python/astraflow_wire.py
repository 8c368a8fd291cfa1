"""Models of the session protocol (version 2) and of the HTTP worker contract: typed JSON objects.

Written by `make wire` from `schemas/`; do not edit. A frame is `json.dumps` of a model, and
`json.loads` of a frame is one. `frame["type"]` tells which of `Frame` it is.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AttemptRef(TypedDict):
    """One attempt of one task."""

    task_id: str
    attempt: int


ControlAck = TypedDict(
    "ControlAck",
    {
        "for": NotRequired[str | None],
        "ack_seq": NotRequired[int | None],
        "ack_bitmap": NotRequired[str],
        "recv_window": NotRequired[int | None],
        "stop": NotRequired[list[AttemptRef]],
    },
)
"""Answers ack.request (`for`), acknowledges a window (`recv_window` is there), or both."""


class ControlDrain(TypedDict):
    """Scheduler to worker: take nothing new, finish what runs."""

    reason: NotRequired[str]
    deadline_ms: NotRequired[int | None]


class EnvelopeSender(TypedDict):
    """Who sent the frame."""

    role: str
    id: str
    """Of a worker: its instance id."""


class EnvelopeAck(TypedDict):
    """`request` asks for control.ack; the rest is a window ack that rides along, there if
    `window` is.
    """

    request: NotRequired[bool]
    seq: NotRequired[int | None]
    bitmap: NotRequired[str]
    window: NotRequired[int | None]


class AnyFrame(TypedDict):
    """What every frame of a session has in common. No other key is allowed here; in payloads
    unknown keys are ignored.
    """

    id: str
    """Unique for all time: a ULID or a UUID. A frame that is sent again keeps it."""
    ts: str
    """RFC 3339 with zone, from 1970-01-01 to 9999-12-30 UTC. For people and logs; no rule
    depends on it.
    """
    tenant: str
    sender: EnvelopeSender
    """Who sent the frame."""
    corr: NotRequired[str | None]
    """What the frame is about: the task id, for everything about a task."""
    seq: NotRequired[int | None]
    """On every sequenced frame (biz.*, ext.*, control.drain) and on no other."""
    ack: NotRequired[EnvelopeAck | None]
    flags: NotRequired[list[str]]
    """Reserved."""


ControlError = TypedDict(
    "ControlError",
    {
        "for": str,
        "code": str,
        "message": NotRequired[str],
        "pointer": NotRequired[str | None],
    },
)
"""Both directions: a frame could not be used. Unsequenced, never answered."""


class ControlHandshakeAuth(TypedDict):
    mode: str
    """token or mtls."""
    token: NotRequired[str | None]
    fingerprint: NotRequired[str | None]
    """Must equal the certificate's; proves nothing by itself."""


class ControlHandshakeWorker(TypedDict):
    worker_instance_id: str
    """Kept in the worker's data folder, the same after every boot."""
    incarnation: int
    """Counts boots."""
    worker_name: str
    """For display."""
    version: str
    hostname: str


class ControlHandshake(TypedDict):
    """Worker to scheduler: opens a new session; in a live one it presents a new bearer token."""

    protocol: int
    """2 is spoken; another number is answered with those that are."""
    auth: ControlHandshakeAuth
    worker: ControlHandshakeWorker
    lane: NotRequired[int]
    """The lane of the tenant that the session is for; 0 if it is left out."""


class ControlHeartbeatMetricsResource(TypedDict):
    disk_bytes_in_use: NotRequired[int]
    mem_bytes_in_use: NotRequired[int]
    sessions_active: NotRequired[int]
    eviction_candidates: NotRequired[int]
    last_gc_seconds: NotRequired[float]


class ControlHeartbeatMetrics(TypedDict):
    cpu_pct: NotRequired[float]
    mem_pct: NotRequired[float]
    disk_pct: NotRequired[float]
    inflight: NotRequired[int]
    latency_ms: NotRequired[float]
    resource: NotRequired[ControlHeartbeatMetricsResource]


class ControlHeartbeatPackages(TypedDict):
    digest: NotRequired[str]


class ControlHeartbeat(TypedDict):
    """Worker to scheduler: alive; renews the lease of every attempt it names."""

    healthy: NotRequired[bool]
    draining: NotRequired[bool]
    attempts: NotRequired[list[AttemptRef]]
    """Every attempt taken and not yet under ack_seq."""
    metrics: NotRequired[ControlHeartbeatMetrics]
    packages: NotRequired[ControlHeartbeatPackages]


class ControlHunger(TypedDict):
    """Scheduler to worker: how much waits for a slot in this lane. The newest one counts."""

    tasks: NotRequired[int]
    """Tasks that wait for a slot."""
    runs: NotRequired[int]
    """The runs that they are of."""


class ControlLanesLanesItem(TypedDict):
    lane: int
    location: NotRequired[str | None]
    """Where to connect for it; null: where this session is."""


class ControlLanes(TypedDict):
    """Scheduler to worker: all lanes of the tenant beside lane 0. A worker keeps a session with
    each.
    """

    lanes: NotRequired[list[ControlLanesLanesItem]]


class ControlRegisterCapabilitiesConcurrency(TypedDict):
    max_parallel: int
    per_node_limits: NotRequired[dict[str, int]]


class ControlRegisterCapabilitiesResources(TypedDict):
    cpu: NotRequired[float]
    memory_bytes: NotRequired[int]
    gpu: NotRequired[int]


class ControlRegisterCapabilities(TypedDict):
    concurrency: ControlRegisterCapabilitiesConcurrency
    runtimes: NotRequired[list[str]]
    features: NotRequired[list[str]]
    resources: NotRequired[ControlRegisterCapabilitiesResources | None]
    """What the machine has for nodes that ask for a part of it."""


class ControlRegisterPackagesItem(TypedDict):
    name: str
    version: str
    status: str
    manifest_sha256: NotRequired[str | None]


class ControlRegister(TypedDict):
    """Worker to scheduler: what it can do and what it holds. Only the first of a session
    reconciles.
    """

    capabilities: ControlRegisterCapabilities
    payload_types: NotRequired[list[str]]
    packages: NotRequired[list[ControlRegisterPackagesItem]]
    labels: NotRequired[dict[str, str]]
    inflight: NotRequired[list[AttemptRef]]
    """Attempts that run or are queued."""
    held_results: NotRequired[list[AttemptRef]]
    """Attempts that ended and are not acknowledged."""
    slots: NotRequired[int | None]
    """Of max_parallel, the slots that are for this lane; all of them if it is left out."""


class ControlReset(TypedDict):
    """Scheduler to worker: the session, or the attempt to open one, is over."""

    code: str
    reason: NotRequired[str]
    retry_after_ms: NotRequired[int | None]
    location: NotRequired[str | None]
    """Where to connect instead."""


class ControlResume(TypedDict):
    """Worker to scheduler: go on with a session over a new connection."""

    session_id: str
    session_token: str
    last_seen_seq: NotRequired[int | None]
    """The sender's ack_seq: committed, and nothing else."""
    lane: NotRequired[int]
    """As in the handshake of the session; 0 if it is left out."""


class ControlSessionAcceptLimits(TypedDict):
    heartbeat_gap_ms: int
    """Heartbeats may come at most this close on average."""
    refusals: int
    """So many refused frames within refusals_ms end the session."""
    refusals_ms: int
    takeovers_per_minute: int
    """Of one instance id, by connections while another is open."""
    inline_bytes: int
    """Of a result, and of one inline artifact."""
    inventory: int
    """Attempts in a register or a heartbeat."""
    packages: int
    labels: int
    artifacts: int
    """Of one result."""
    chunks: int
    """Of one feedback."""


class ControlSessionAccept(TypedDict):
    """Scheduler to worker: the session is open, resumed, or has a new token."""

    session_id: str
    session_token: str
    expires_at: str
    resumed: bool
    worker_instance_id: str
    window: int
    max_frame_bytes: int
    heartbeat_interval_ms: int
    lease_ttl_ms: int
    last_seen_seq: NotRequired[int | None]
    """The sender's ack_seq."""
    limits: NotRequired[ControlSessionAcceptLimits | None]
    """What a worker must keep to."""
    features: NotRequired[list[str]]
    """Of the features that the register named, those of this session."""


class ControlSlots(TypedDict):
    """Worker to scheduler: so many of its slots are for this lane from now on. The answer says
    that the scheduler counts so.
    """

    slots: int


class BizExecCancel(TypedDict):
    """Scheduler to worker: stop this attempt."""

    run_id: str
    task_id: str
    attempt: int
    reason: NotRequired[str]
    grace_ms: NotRequired[int]


class BizExecDispatchPackage(TypedDict):
    name: str
    version: str


class BizExecDispatchLease(TypedDict):
    """The right to run this attempt."""

    ttl_ms: int
    since: str
    """The id of the newest heartbeat or register that had been received."""


class BizExecDispatchConstraintsResources(TypedDict):
    cpu: NotRequired[float]
    memory_bytes: NotRequired[int]
    gpu: NotRequired[int]


class BizExecDispatchConstraints(TypedDict):
    timeout_ms: NotRequired[int | None]
    resources: NotRequired[BizExecDispatchConstraintsResources | None]
    """What the node asks for of the machine."""


class BizExecDispatchResourceRefsItem(TypedDict):
    resource_id: str
    worker_id: str
    type: str
    scope: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    metadata: NotRequired[Any]
    """About the resource."""


class BizExecDispatchAffinity(TypedDict):
    key: str
    mode: NotRequired[Literal["sticky", "preferred"]]
    expires_at: NotRequired[str | None]


class BizExecDispatchHostPackage(TypedDict):
    name: str
    version: str


class BizExecDispatchHost(TypedDict):
    node_type: str
    package: BizExecDispatchHostPackage
    parameters: NotRequired[Any]
    """What the host would be given now; null if it cannot be known, or is large."""
    input_sha256: NotRequired[str | None]
    """The SHA-256 of the type, the package and the input of the host."""


class BizExecDispatch(TypedDict):
    """Scheduler to worker: run this attempt."""

    run_id: str
    task_id: str
    attempt: int
    failures: int
    """How often the task has failed: the retry budget's number."""
    node_id: str
    node_type: str
    package: BizExecDispatchPackage
    parameters: Any
    """The node's parameters, bound."""
    lease: BizExecDispatchLease
    """The right to run this attempt."""
    constraints: NotRequired[BizExecDispatchConstraints]
    concurrency_key: NotRequired[str | None]
    resource_refs: NotRequired[list[BizExecDispatchResourceRefsItem]]
    affinity: NotRequired[BizExecDispatchAffinity | None]
    host_node_id: NotRequired[str | None]
    middleware_chain: NotRequired[list[str]]
    chain_index: NotRequired[int | None]
    traceparent: NotRequired[str | None]
    secrets: NotRequired[dict[str, str] | None]
    host: NotRequired[BizExecDispatchHost | None]
    """For a middleware: the node that its chain ends in."""


class BizExecError(TypedDict):
    """Worker to scheduler: the dispatch was refused, nothing started."""

    run_id: str
    task_id: str
    attempt: int
    code: str
    message: NotRequired[str]
    context: NotRequired[Any]
    """Anything that helps to understand it."""


class BizExecFeedbackChunksItem(TypedDict):
    channel: str
    index: int
    text: NotRequired[str | None]
    data_base64: NotRequired[str | None]
    mime_type: NotRequired[str | None]
    metadata: NotRequired[Any]
    """About the chunk."""


class BizExecFeedback(TypedDict):
    """Worker to scheduler: what a running attempt says. Shed first under load."""

    run_id: str
    task_id: str
    attempt: int
    stage: NotRequired[str | None]
    progress: NotRequired[float | None]
    message: NotRequired[str | None]
    chunks: NotRequired[list[BizExecFeedbackChunksItem]]
    metrics: NotRequired[dict[str, float]]
    dropped: NotRequired[int]
    """Chunks that were shed before this one."""


class BizExecNextRequest(TypedDict):
    """Worker to scheduler: a middleware calls the rest of its chain."""

    run_id: str
    task_id: str
    attempt: int
    request_id: str
    chain_index: int
    payload: NotRequired[Any]
    """What the rest of the chain is given."""
    timeout_ms: NotRequired[int | None]


class AttemptError(TypedDict):
    """Why an attempt failed. The category decides whether it is tried again."""

    code: str
    category: Literal[
        "USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"
    ]
    message: NotRequired[str]
    retryable: NotRequired[bool | None]
    """Overrides what the category says."""
    stack: NotRequired[str | None]
    context: NotRequired[Any]
    """Anything that helps to understand it."""


class BizExecNextResponse(TypedDict):
    """Scheduler to worker: what the rest of the chain returned."""

    run_id: str
    task_id: str
    attempt: int
    request_id: str
    result: NotRequired[Any]
    """What it returned."""
    error: NotRequired[AttemptError | None]
    """There if and only if the call failed."""


class BizExecResultArtifactsItem(TypedDict):
    resource_id: str
    worker_id: str
    type: str
    size_bytes: NotRequired[int | None]
    expires_at: NotRequired[str | None]
    inline: NotRequired[bool]
    metadata: NotRequired[Any]
    """mime, sha256 and what else is known."""


class BizExecResult(TypedDict):
    """Worker to scheduler: the outcome of an attempt."""

    run_id: str
    task_id: str
    attempt: int
    status: Literal["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]
    result: NotRequired[Any]
    """What the node returns."""
    artifacts: NotRequired[list[BizExecResultArtifactsItem]]
    duration_ms: NotRequired[int]
    metrics: NotRequired[dict[str, float]]
    error: NotRequired[AttemptError | None]


class BizPkgCatalog(TypedDict):
    """Worker to scheduler: one manifest that the scheduler lacks."""

    name: str
    version: str
    manifest_sha256: str
    manifest: Any
    """The manifest, verbatim."""


class BizPkgEvent(TypedDict):
    """Worker to scheduler: how far a package operation is."""

    name: str
    version: str
    status: Literal["downloading", "installing", "installed", "failed", "removed"]
    progress: NotRequired[float | None]
    details: NotRequired[Any]
    """What there is to say."""


class BizPkgInstall(TypedDict):
    """Scheduler to worker: install a package."""

    name: str
    version: str
    url: str
    sha256: str
    signature: NotRequired[str | None]


class BizPkgUninstall(TypedDict):
    """Scheduler to worker: remove a package."""

    name: str
    version: str


class BizResourceCleanup(TypedDict):
    """Scheduler to worker: let go of a scope or of one resource."""

    scope: NotRequired[str | None]
    resource_id: NotRequired[str | None]
    reason: NotRequired[str]


class Package(TypedDict):
    """Whose host holds it in memory."""

    name: str
    version: str


class BizResourceEvent(TypedDict):
    """Worker to scheduler: what became of a resource."""

    resource_id: str
    state: Literal["ready", "touched", "evicting", "evicted", "released"]
    size_bytes: NotRequired[int | None]
    expires_at: NotRequired[str | None]
    type: NotRequired[str | None]
    scope: NotRequired[str | None]
    run_id: NotRequired[str | None]
    node_id: NotRequired[str | None]
    package: NotRequired[Package | None]
    created_at: NotRequired[str | None]
    metadata: NotRequired[Any]
    """What the author says of it."""
    error: NotRequired[str | None]


class BizResourceExport(TypedDict):
    """Scheduler to worker: put the bytes on the data plane, never on this wire."""

    resource_id: str
    upload_url: str


class BizResourceTouch(TypedDict):
    """Scheduler to worker: let a resource live until then."""

    resource_id: str
    expires_at: str


class HttpAccepted(TypedDict):
    """Scheduler to worker, 200: `started` is stored."""

    acknowledged: bool
    """Always true."""
    serverTime: str
    """The clock of the scheduler."""


class HttpCompletedAccepted(TypedDict):
    """Scheduler to worker, 200: the outcome is stored."""

    acknowledged: bool
    """Always true."""
    serverTime: str
    """The clock of the scheduler."""
    finalState: str
    """The state of the attempt."""


class HttpCompletedError(TypedDict):
    """Why it failed."""

    category: Literal[
        "USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"
    ]
    message: NotRequired[str]
    """At most 4 KiB of UTF-8."""
    code: NotRequired[str | None]
    """A code of the worker's own."""
    stackTrace: NotRequired[str | None]
    """Cut at 64 KiB."""
    retryable: NotRequired[bool | None]
    """Overrides what the category says."""


class HttpCompleted(TypedDict):
    """Worker to scheduler: the attempt has ended. `POST …/tasks/{taskId}/completed`."""

    attempt: int
    workerId: str
    """Who runs the attempt, unique for this invocation."""
    attemptId: NotRequired[str | None]
    """`attemptId` of the envelope; checked when sent."""
    outcome: Literal["SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"]
    """How it ended."""
    completedAt: NotRequired[str | None]
    """By the clock of the worker."""
    output: NotRequired[dict[str, Any] | None]
    """The result, at most 256 KiB."""
    result: NotRequired[dict[str, Any] | None]
    """Read as `output` when that is absent."""
    error: NotRequired[HttpCompletedError | None]
    """Of a FAILED attempt, and only of one."""
    metrics: NotRequired[dict[str, float] | None]
    """Numbers about the attempt."""
    cancelledDuringPhase: NotRequired[str | None]
    """Where it was when it stopped."""
    partialProgress: NotRequired[dict[str, Any] | None]
    """How far it had come, at most 256 KiB."""


class HttpEnvelopePackage(TypedDict):
    """Where the handler comes from."""

    name: str
    version: str


class HttpEnvelope(TypedDict):
    """Scheduler to a worker pool: one attempt of a task. The body of the push."""

    taskId: str
    """The task; the callbacks name it in their path."""
    runId: str
    """The run."""
    assetId: str
    """The id of the node."""
    taskKey: str
    """`workflowId/nodeId`."""
    tenantId: str
    """The tenant."""
    workspaceId: str
    """The workspace of the pool, `default` unless set."""
    attempt: int
    """The number of the attempt, which every callback carries."""
    attemptId: str
    """The attempt in one word."""
    dispatchId: str
    """The same for every delivery of this attempt: a second one must not run."""
    failures: int
    """How often the task has failed before."""
    nodeType: str
    """Which handler runs it."""
    package: HttpEnvelopePackage
    """Where the handler comes from."""
    parameters: dict[str, Any]
    """The input of the handler."""
    resources: dict[str, Any]
    """What the node asks for of a machine: `cpu`, `memoryBytes` and `gpu`, those that it asks
    for.
    """
    enqueuedAt: str
    """When the attempt was issued."""
    deadline: str | None
    """When it must have ended, if its node has a timeout."""
    timeoutMs: NotRequired[int | None]
    """The timeout of the node, from the start."""
    callbackBaseUrl: str
    """What `/v1/tasks/…` is appended to."""
    taskToken: str
    """The bearer token of the callbacks. Never logged."""
    tokenExpiresAt: str
    """Heartbeats renew it before."""
    heartbeatIntervalMs: int
    """How often to send a heartbeat."""
    heartbeatTimeoutMs: int
    """After so long without one the attempt has failed."""
    cancelGracePeriodMs: int
    """How long a cancelled attempt may take to stop."""
    traceparent: NotRequired[str | None]
    """The trace that it belongs to (W3C)."""
    secrets: NotRequired[dict[str, str] | None]
    """The secrets that the node declares, by name. Never logged."""


class HttpHeartbeatAccepted(TypedDict):
    """Scheduler to worker, 200: the heartbeat counts."""

    acknowledged: bool
    """Always true."""
    serverTime: str
    """The clock of the scheduler."""
    shouldCancel: bool
    """The worker is to stop and to report CANCELLED."""
    cancelReason: NotRequired[str | None]
    """Why."""
    taskToken: NotRequired[str | None]
    """A token to use from now on. Never logged."""
    tokenExpiresAt: NotRequired[str | None]
    """When that token expires."""


class HttpHeartbeat(TypedDict):
    """Worker to scheduler: it is alive. `POST …/tasks/{taskId}/heartbeat`."""

    attempt: int
    workerId: str
    """Who runs the attempt, unique for this invocation."""
    attemptId: NotRequired[str | None]
    """`attemptId` of the envelope; checked when sent."""
    heartbeatAt: NotRequired[str | None]
    """For people: liveness is when it was received."""
    progressPct: NotRequired[int | None]
    """How far it is, in percent."""
    message: NotRequired[str | None]
    """At most 4 KiB of UTF-8."""


class HttpRefused(TypedDict):
    """Scheduler to worker, 4xx and 5xx: why a callback was refused."""

    error: str
    """The code."""
    message: str
    """What happened."""
    field: NotRequired[str | None]
    """The member of the body that is wrong."""
    state: NotRequired[str | None]
    """The state of the attempt."""
    expectedAttempt: NotRequired[int | None]
    """The newest attempt."""
    receivedAttempt: NotRequired[int | None]
    """The attempt of the callback or of its token."""


class HttpStarted(TypedDict):
    """Worker to scheduler: it began. `POST …/tasks/{taskId}/started`."""

    attempt: int
    workerId: str
    """Who runs the attempt, unique for this invocation."""
    attemptId: NotRequired[str | None]
    """`attemptId` of the envelope; checked when sent."""
    startedAt: NotRequired[str | None]
    """By the clock of the worker."""


class ControlAckFrame(AnyFrame):
    type: Literal["control.ack"]
    payload: ControlAck


class ControlDrainFrame(AnyFrame):
    type: Literal["control.drain"]
    payload: ControlDrain


class ControlErrorFrame(AnyFrame):
    type: Literal["control.error"]
    payload: ControlError


class ControlHandshakeFrame(AnyFrame):
    type: Literal["control.handshake"]
    payload: ControlHandshake


class ControlHeartbeatFrame(AnyFrame):
    type: Literal["control.heartbeat"]
    payload: ControlHeartbeat


class ControlHungerFrame(AnyFrame):
    type: Literal["control.hunger"]
    payload: ControlHunger


class ControlLanesFrame(AnyFrame):
    type: Literal["control.lanes"]
    payload: ControlLanes


class ControlRegisterFrame(AnyFrame):
    type: Literal["control.register"]
    payload: ControlRegister


class ControlResetFrame(AnyFrame):
    type: Literal["control.reset"]
    payload: ControlReset


class ControlResumeFrame(AnyFrame):
    type: Literal["control.resume"]
    payload: ControlResume


class ControlSessionAcceptFrame(AnyFrame):
    type: Literal["control.session.accept"]
    payload: ControlSessionAccept


class ControlSlotsFrame(AnyFrame):
    type: Literal["control.slots"]
    payload: ControlSlots


class BizExecCancelFrame(AnyFrame):
    type: Literal["biz.exec.cancel"]
    payload: BizExecCancel


class BizExecDispatchFrame(AnyFrame):
    type: Literal["biz.exec.dispatch"]
    payload: BizExecDispatch


class BizExecErrorFrame(AnyFrame):
    type: Literal["biz.exec.error"]
    payload: BizExecError


class BizExecFeedbackFrame(AnyFrame):
    type: Literal["biz.exec.feedback"]
    payload: BizExecFeedback


class BizExecNextRequestFrame(AnyFrame):
    type: Literal["biz.exec.next.request"]
    payload: BizExecNextRequest


class BizExecNextResponseFrame(AnyFrame):
    type: Literal["biz.exec.next.response"]
    payload: BizExecNextResponse


class BizExecResultFrame(AnyFrame):
    type: Literal["biz.exec.result"]
    payload: BizExecResult


class BizPkgCatalogFrame(AnyFrame):
    type: Literal["biz.pkg.catalog"]
    payload: BizPkgCatalog


class BizPkgEventFrame(AnyFrame):
    type: Literal["biz.pkg.event"]
    payload: BizPkgEvent


class BizPkgInstallFrame(AnyFrame):
    type: Literal["biz.pkg.install"]
    payload: BizPkgInstall


class BizPkgUninstallFrame(AnyFrame):
    type: Literal["biz.pkg.uninstall"]
    payload: BizPkgUninstall


class BizResourceCleanupFrame(AnyFrame):
    type: Literal["biz.resource.cleanup"]
    payload: BizResourceCleanup


class BizResourceEventFrame(AnyFrame):
    type: Literal["biz.resource.event"]
    payload: BizResourceEvent


class BizResourceExportFrame(AnyFrame):
    type: Literal["biz.resource.export"]
    payload: BizResourceExport


class BizResourceTouchFrame(AnyFrame):
    type: Literal["biz.resource.touch"]
    payload: BizResourceTouch


Frame = (
    ControlAckFrame
    | ControlDrainFrame
    | ControlErrorFrame
    | ControlHandshakeFrame
    | ControlHeartbeatFrame
    | ControlHungerFrame
    | ControlLanesFrame
    | ControlRegisterFrame
    | ControlResetFrame
    | ControlResumeFrame
    | ControlSessionAcceptFrame
    | ControlSlotsFrame
    | BizExecCancelFrame
    | BizExecDispatchFrame
    | BizExecErrorFrame
    | BizExecFeedbackFrame
    | BizExecNextRequestFrame
    | BizExecNextResponseFrame
    | BizExecResultFrame
    | BizPkgCatalogFrame
    | BizPkgEventFrame
    | BizPkgInstallFrame
    | BizPkgUninstallFrame
    | BizResourceCleanupFrame
    | BizResourceEventFrame
    | BizResourceExportFrame
    | BizResourceTouchFrame
)


FrameType = Literal[
    "control.ack",
    "control.drain",
    "control.error",
    "control.handshake",
    "control.heartbeat",
    "control.hunger",
    "control.lanes",
    "control.register",
    "control.reset",
    "control.resume",
    "control.session.accept",
    "control.slots",
    "biz.exec.cancel",
    "biz.exec.dispatch",
    "biz.exec.error",
    "biz.exec.feedback",
    "biz.exec.next.request",
    "biz.exec.next.response",
    "biz.exec.result",
    "biz.pkg.catalog",
    "biz.pkg.event",
    "biz.pkg.install",
    "biz.pkg.uninstall",
    "biz.resource.cleanup",
    "biz.resource.event",
    "biz.resource.export",
    "biz.resource.touch",
]
