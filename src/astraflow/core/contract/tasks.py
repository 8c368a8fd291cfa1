"""The HTTP worker contract (ADR-023): what is pushed to a pool, and what its workers report. camelCase.

Unknown members are ignored in callbacks: foreign workers may send more than we know.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from astraflow.core.categories import Category
from astraflow.core.contract.base import (
    MAX_ID_CHARS,
    OBJECT,
    JsonObject,
    Query,
    RestObject,
    Timestamp,
    doc,
)
from astraflow.core.contract.words import CallbackOutcome

MAX_CALLBACK_BYTES: Final = 1024**2
MAX_OUTPUT_BYTES: Final = 256 * 1024
MAX_MESSAGE_BYTES: Final = 4 * 1024
MAX_STACK_BYTES: Final = 64 * 1024
STACK_CUT: Final = "\n… cut: the stack trace was longer than 64 KiB"

_WorkerId = Annotated[
    str,
    doc("Who runs the attempt, unique for this invocation.", min_length=1, max_length=MAX_ID_CHARS),
]
_Attempt = Annotated[int, doc("The number of the attempt.", ge=1, le=2**53)]
_AttemptId = (
    Annotated[str, doc("`attemptId` of the envelope; checked when sent.", max_length=MAX_ID_CHARS)]
    | None
)


def _absent() -> msgspec.Raw:
    return msgspec.Raw(b"null")


def is_absent(value: msgspec.Raw) -> bool:
    """Whether a value was not sent, or is null."""
    return bytes(value) == b"null"


class EnvelopePackage(RestObject, frozen=True, kw_only=True):
    """The package of the node."""

    name: Annotated[str, doc("Its name.")]
    version: Annotated[str, doc("Its version.")]


class TaskEnvelope(RestObject, frozen=True, kw_only=True):
    """One attempt of a task, as it is pushed to a pool."""

    task_id: Annotated[str, doc("The task; the callbacks name it in their path.")]
    run_id: Annotated[str, doc("The run.")]
    asset_id: Annotated[str, doc("The id of the node.")]
    task_key: Annotated[str, doc("`workflowId/nodeId`.")]
    tenant_id: Annotated[str, doc("The tenant.")]
    workspace_id: Annotated[str, doc("The workspace of the pool, `default` unless set.")]
    attempt: Annotated[int, doc("The number of the attempt, which every callback carries.")]
    attempt_id: Annotated[str, doc("The attempt in one word.")]
    dispatch_id: Annotated[
        str, doc("The same for every delivery of this attempt: a second one must not run.")
    ]
    failures: Annotated[int, doc("How often the task has failed before.")]
    node_type: Annotated[str, doc("Which handler runs it.")]
    package: Annotated[EnvelopePackage, doc("Where the handler comes from.")]
    parameters: Annotated[msgspec.Raw, doc("The input of the handler.", extra_json_schema=OBJECT)]
    resources: Annotated[
        JsonObject,
        doc(
            "What the node asks for of a machine: `cpu`, `memoryBytes` and `gpu`, those that it asks for."
        ),
    ]
    enqueued_at: Annotated[Timestamp, doc("When the attempt was issued.")]
    deadline: Annotated[
        Timestamp | None, doc("When it must have ended, if its node has a timeout.")
    ]
    timeout_ms: Annotated[int | None, doc("The timeout of the node, from the start.")] = None
    callback_base_url: Annotated[str, doc("What `/v1/tasks/…` is appended to.")]
    task_token: Annotated[str, doc("The bearer token of the callbacks.")]
    token_expires_at: Annotated[Timestamp, doc("Heartbeats renew it before.")]
    heartbeat_interval_ms: Annotated[int, doc("How often to send a heartbeat.")]
    heartbeat_timeout_ms: Annotated[int, doc("After so long without one the attempt has failed.")]
    cancel_grace_period_ms: Annotated[int, doc("How long a cancelled attempt may take to stop.")]
    traceparent: Annotated[str | None, doc("The trace that it belongs to (W3C).")] = None
    secrets: Annotated[
        dict[str, str] | None, doc("The secrets that the node declares, by name.")
    ] = None


class CallbackQuery(Query, frozen=True, kw_only=True):
    """A callback has none. What stands there is ignored, so that the token is what is judged first."""

    IGNORES_OTHERS: ClassVar[bool] = True


class _CallbackBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of the three bodies."""

    attempt: _Attempt
    worker_id: _WorkerId
    attempt_id: _AttemptId = None


class TaskStarted(_CallbackBody, frozen=True, kw_only=True):
    """The worker began."""

    started_at: Annotated[Timestamp, doc("By the clock of the worker.")] | None = None

    EXAMPLE: ClassVar[JsonObject] = {
        "attempt": 1,
        "workerId": "worker-abc123",
        "startedAt": "2026-01-15T10:00:00Z",
    }


class TaskHeartbeat(_CallbackBody, frozen=True, kw_only=True):
    """The worker is alive."""

    heartbeat_at: (
        Annotated[Timestamp, doc("For people: liveness is when it was received.")] | None
    ) = None
    progress_pct: Annotated[int, doc("How far it is, in percent.", ge=0, le=100)] | None = None
    message: Annotated[str, doc("At most 4 KiB.")] | None = None

    EXAMPLE: ClassVar[JsonObject] = {
        "attempt": 1,
        "workerId": "worker-abc123",
        "heartbeatAt": "2026-01-15T10:05:00Z",
        "progressPct": 45,
        "message": "Processing partition 5 of 10",
    }


class CallbackError(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why an attempt failed."""

    category: Annotated[Category, doc("What decides whether another attempt is worth it.")]
    message: Annotated[str, doc("At most 4 KiB.")] = ""
    code: (
        Annotated[str, doc("A code of the worker's own.", min_length=1, max_length=MAX_ID_CHARS)]
        | None
    ) = None
    stack_trace: Annotated[str, doc("Cut at 64 KiB.")] | None = None
    retryable: Annotated[bool, doc("Overrides what the category says.")] | None = None


class TaskCompleted(_CallbackBody, frozen=True, kw_only=True):
    """The worker has ended the attempt."""

    outcome: Annotated[CallbackOutcome, doc("How it ended.")]
    completed_at: Annotated[Timestamp, doc("By the clock of the worker.")] | None = None
    output: Annotated[
        msgspec.Raw, doc("The result, at most 256 KiB.", extra_json_schema=OBJECT)
    ] = msgspec.field(default_factory=_absent)
    result: Annotated[
        msgspec.Raw, doc("Read as `output` when that is absent.", extra_json_schema=OBJECT)
    ] = msgspec.field(default_factory=_absent)
    error: Annotated[CallbackError | None, doc("Of a FAILED attempt, and only of one.")] = None
    metrics: Annotated[dict[str, float], doc("Numbers about the attempt.")] | None = None
    cancelled_during_phase: (
        Annotated[str, doc("Where it was when it stopped.", max_length=MAX_ID_CHARS)] | None
    ) = None
    partial_progress: Annotated[
        msgspec.Raw, doc("How far it had come.", extra_json_schema=OBJECT)
    ] = msgspec.field(default_factory=_absent)

    @property
    def returned(self) -> msgspec.Raw:
        """Its output, under whichever name."""
        return self.result if is_absent(self.output) else self.output

    EXAMPLE: ClassVar[JsonObject] = {
        "attempt": 1,
        "workerId": "worker-abc123",
        "outcome": "SUCCEEDED",
        "completedAt": "2026-01-15T10:30:00Z",
        "output": {"rowCount": 1_000_000},
        "metrics": {"cpuTimeMs": 45_000},
    }


class CallbackAccepted(RestObject, frozen=True, kw_only=True):
    """The report is stored."""

    acknowledged: Annotated[bool, doc("Always true.")]
    server_time: Annotated[Timestamp, doc("The clock of the scheduler.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "acknowledged": True,
        "serverTime": "2026-01-15T10:00:01.000Z",
    }


class HeartbeatAccepted(CallbackAccepted, frozen=True, kw_only=True):
    """The heartbeat counts."""

    should_cancel: Annotated[bool, doc("The worker is to stop and to report CANCELLED.")]
    cancel_reason: Annotated[str | None, doc("Why.")] = None
    task_token: Annotated[str | None, doc("A token to use from now on.")] = None
    token_expires_at: Annotated[Timestamp | None, doc("When that token expires.")] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "acknowledged": True,
        "serverTime": "2026-01-15T10:05:00.000Z",
        "shouldCancel": False,
    }


class CompletionAccepted(CallbackAccepted, frozen=True, kw_only=True):
    """The outcome is stored."""

    final_state: Annotated[str, doc("The state of the attempt.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "acknowledged": True,
        "serverTime": "2026-01-15T10:30:01.000Z",
        "finalState": "SUCCEEDED",
    }


class CallbackRefused(RestObject, frozen=True, kw_only=True):
    """Why a callback was refused."""

    error: Annotated[str, doc("The code.")]
    message: Annotated[str, doc("What happened.")]
    field: Annotated[str | None, doc("The member of the body that is wrong.")] = None
    state: Annotated[str | None, doc("The state of the attempt.")] = None
    expected_attempt: Annotated[int | None, doc("The newest attempt.")] = None
    received_attempt: Annotated[int | None, doc("The attempt of the callback or of its token.")] = (
        None
    )

    EXAMPLE: ClassVar[JsonObject] = {
        "error": "attempt_mismatch",
        "message": "the report is not of the newest attempt of the task",
        "expectedAttempt": 2,
        "receivedAttempt": 1,
    }
