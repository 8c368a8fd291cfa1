"""The payloads of `biz.*`: what a session carries (PROTOCOL §4).

User data that is only carried (parameters, results, metadata, contexts) stays raw JSON, checked as
a part of its frame and decoded by whoever looks into it. What the scheduler or the worker itself
looks at is typed. `corr` of every frame about a task is its `task_id`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Raw

from astraflow.core.categories import Category
from astraflow.core.protocol import limits
from astraflow.core.protocol.wire import (
    EMPTY_OBJECT,
    NULL,
    Count,
    FrameType,
    MachineAmounts,
    Name,
    RunName,
    TaskName,
    Text,
    Time,
    Wire,
    check_resource_id,
    check_time,
)

DISPATCH: Final = "biz.exec.dispatch"
CANCEL: Final = "biz.exec.cancel"
FEEDBACK: Final = "biz.exec.feedback"
RESULT: Final = "biz.exec.result"
EXEC_ERROR: Final = "biz.exec.error"
NEXT_REQUEST: Final = "biz.exec.next.request"
NEXT_RESPONSE: Final = "biz.exec.next.response"
PKG_INSTALL: Final = "biz.pkg.install"
PKG_UNINSTALL: Final = "biz.pkg.uninstall"
PKG_EVENT: Final = "biz.pkg.event"
PKG_CATALOG: Final = "biz.pkg.catalog"
RESOURCE_CLEANUP: Final = "biz.resource.cleanup"
RESOURCE_EXPORT: Final = "biz.resource.export"
RESOURCE_TOUCH: Final = "biz.resource.touch"
RESOURCE_EVENT: Final = "biz.resource.event"

Attempt = Annotated[int, Meta(ge=1, le=limits.INT_MAX)]
Url = Annotated[str, Meta(min_length=1, max_length=8192)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
MAX_GAUGES: Final = 256
Gauges = Annotated[dict[Name, float], Meta(max_length=MAX_GAUGES)]
# Base64 of the largest frame; the frame's own size is the true bound.
Body = Annotated[str, Meta(max_length=limits.MAX_FRAME_BYTES)]


class PackageId(Wire, frozen=True):
    name: Name
    version: Name


class LeaseGrant(Wire, frozen=True):
    """`since` names the newest heartbeat or register of the worker that had been received."""

    ttl_ms: Annotated[int, Meta(ge=1, le=limits.INT_MAX)]
    since: Name


class Constraints(Wire, frozen=True):
    timeout_ms: Count | None = None
    resources: MachineAmounts | None = None
    """What the node asks for of the machine."""


class RequiredResource(Wire, frozen=True):
    """Something that must already exist on the worker (seed 000 §3.1)."""

    resource_id: Name
    worker_id: Name
    type: Name
    scope: Name | None = None
    expires_at: Time | None = None
    metadata: Raw = EMPTY_OBJECT

    def __post_init__(self) -> None:
        check_time("expires_at", self.expires_at)


class DispatchAffinity(Wire, frozen=True):
    key: Name
    mode: Literal["sticky", "preferred"] = "preferred"
    expires_at: Time | None = None

    def __post_init__(self) -> None:
        check_time("expires_at", self.expires_at)


class WrappedHost(Wire, frozen=True):
    """What the chain of a middleware ends in, and what it would be given now. A large input is left out."""

    node_type: Name
    package: PackageId
    parameters: Raw = NULL
    input_sha256: Name | None = None


class OfAttempt(Wire, frozen=True):
    """The base of the frames about one attempt of a task."""

    run_id: RunName
    task_id: TaskName
    attempt: Attempt


class Dispatch(OfAttempt, frozen=True):
    """Run this attempt. `failures` is the retry budget's number, `attempt` the fence's."""

    failures: Count
    node_id: Name
    node_type: Name
    package: PackageId
    parameters: Raw
    lease: LeaseGrant
    constraints: Constraints = Constraints()
    concurrency_key: Name | None = None
    resource_refs: Annotated[
        tuple[RequiredResource, ...], Meta(max_length=limits.MAX_RESOURCE_REFS)
    ] = ()
    affinity: DispatchAffinity | None = None
    host_node_id: Name | None = None
    middleware_chain: Annotated[tuple[Name, ...], Meta(max_length=limits.NAME_CHARS)] = ()
    chain_index: Count | None = None
    traceparent: Name | None = None
    secrets: dict[Name, Text] | None = None
    host: WrappedHost | None = None


class ExecCancel(OfAttempt, frozen=True):
    """Stop this attempt; kill it after the grace."""

    reason: Text = ""
    grace_ms: Count = 0


class FeedbackChunk(Wire, frozen=True):
    """A fragment of a channel, as text or as base64 (seed 000 §3.3)."""

    channel: Name
    index: Count
    text: Body | None = None
    data_base64: Body | None = None
    mime_type: Name | None = None
    metadata: Raw = EMPTY_OBJECT


class Feedback(OfAttempt, frozen=True):
    """Telemetry of a running attempt; `dropped` counts chunks that were shed before this one."""

    stage: Name | None = None
    progress: Fraction | None = None
    message: Text | None = None
    chunks: Annotated[tuple[FeedbackChunk, ...], Meta(max_length=limits.MAX_CHUNKS)] = ()
    metrics: Gauges = msgspec.field(default_factory=dict)
    dropped: Count = 0


class ResultArtifact(Wire, frozen=True):
    """A resource as a result returns it."""

    resource_id: Name
    worker_id: Name
    type: Name
    size_bytes: Count | None = None
    expires_at: Time | None = None
    inline: bool = False
    metadata: Raw = EMPTY_OBJECT

    def __post_init__(self) -> None:
        check_resource_id(self.resource_id)
        check_time("expires_at", self.expires_at)


class AttemptError(Wire, frozen=True):
    """Why an attempt failed. The category is the retry table's key (PROTOCOL §9)."""

    code: Name
    category: Category
    message: Text = ""
    retryable: bool | None = None
    stack: Text | None = None
    context: Raw = EMPTY_OBJECT


class Result(OfAttempt, frozen=True):
    """The outcome of an attempt: SUCCEEDED, FAILED, SKIPPED or CANCELLED."""

    status: Literal["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]
    result: Raw = EMPTY_OBJECT
    artifacts: Annotated[tuple[ResultArtifact, ...], Meta(max_length=limits.MAX_ARTIFACTS)] = ()
    duration_ms: Count = 0
    metrics: Gauges = msgspec.field(default_factory=dict)
    error: AttemptError | None = None


class ExecError(OfAttempt, frozen=True):
    """The dispatch was refused; nothing started."""

    code: Name
    message: Text = ""
    context: Raw = EMPTY_OBJECT


class NextRequest(OfAttempt, frozen=True):
    """A middleware calls the rest of its chain (PROTOCOL §10)."""

    request_id: Name
    chain_index: Count
    payload: Raw = NULL
    timeout_ms: Count | None = None


class NextResponse(OfAttempt, frozen=True):
    """The response to a `next.request`: `error` is present if and only if the call failed."""

    request_id: Name
    result: Raw = NULL
    error: AttemptError | None = None


class PkgInstall(Wire, frozen=True):
    """Install this package version."""

    name: Name
    version: Name
    url: Url
    sha256: Name
    signature: Text | None = None


class PkgUninstall(Wire, frozen=True):
    """Remove this package version when no attempt uses it."""

    name: Name
    version: Name


class PkgEvent(Wire, frozen=True):
    """The progress or the end of an installation or removal."""

    name: Name
    version: Name
    status: Literal["downloading", "installing", "installed", "failed", "removed"]
    progress: Fraction | None = None
    details: Raw = EMPTY_OBJECT


class PkgCatalog(Wire, frozen=True):
    """The manifest of an installed package version."""

    name: Name
    version: Name
    manifest_sha256: Name
    manifest: Raw


class ResourceCleanup(Wire, frozen=True):
    """Release all resources of a scope, or one resource."""

    scope: Name | None = None
    resource_id: Name | None = None
    reason: Text = ""


class ResourceExport(Wire, frozen=True):
    """Upload the bytes of a resource to this URL; they never travel in a session."""

    resource_id: Name
    upload_url: Url


class ResourceTouch(Wire, frozen=True):
    """Set the expiry of a resource. A worker that does not have it answers with an event."""

    resource_id: Name
    expires_at: Time

    def __post_init__(self) -> None:
        check_time("expires_at", self.expires_at)


class ResourceEvent(Wire, frozen=True):
    """The state of a resource. The fields after `expires_at` come with `ready`; other workers may omit them."""

    resource_id: Name
    state: Literal["ready", "touched", "evicting", "evicted", "released"]
    size_bytes: Count | None = None
    expires_at: Time | None = None
    type: Name | None = None
    scope: Name | None = None
    run_id: RunName | None = None
    node_id: Name | None = None
    package: PackageId | None = None
    """Whose host holds it in memory; none for a file."""
    created_at: Time | None = None
    metadata: Raw = EMPTY_OBJECT
    error: Text | None = None
    """Why what was asked for, an export, could not be done."""

    def __post_init__(self) -> None:
        check_resource_id(self.resource_id)
        check_time("expires_at", self.expires_at)
        check_time("created_at", self.created_at)


FRAMES: Final[tuple[FrameType, ...]] = (
    FrameType(DISPATCH, Dispatch, "worker", authored="parameters"),
    FrameType(CANCEL, ExecCancel, "worker"),
    FrameType(FEEDBACK, Feedback, "scheduler"),
    FrameType(RESULT, Result, "scheduler"),
    FrameType(EXEC_ERROR, ExecError, "scheduler"),
    FrameType(NEXT_REQUEST, NextRequest, "scheduler"),
    FrameType(NEXT_RESPONSE, NextResponse, "worker"),
    FrameType(PKG_INSTALL, PkgInstall, "worker"),
    FrameType(PKG_UNINSTALL, PkgUninstall, "worker"),
    FrameType(PKG_EVENT, PkgEvent, "scheduler"),
    FrameType(PKG_CATALOG, PkgCatalog, "scheduler"),
    FrameType(RESOURCE_CLEANUP, ResourceCleanup, "worker"),
    FrameType(RESOURCE_EXPORT, ResourceExport, "worker"),
    FrameType(RESOURCE_TOUCH, ResourceTouch, "worker"),
    FrameType(RESOURCE_EVENT, ResourceEvent, "scheduler"),
)
