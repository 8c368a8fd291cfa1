"""The closed sets of words of the API: statuses, states and kinds. Categories are in `core/categories.py`."""

from __future__ import annotations

from typing import Final, Literal

RunStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]
NodeStatus = Literal[
    "pending",
    "ready",
    "dispatched",
    "running",
    "retrying",
    "waiting",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
]
AttemptStatus = Literal[
    "dispatched", "running", "succeeded", "failed", "lost", "refused", "cancelled", "skipped"
]
WaitKind = Literal[
    "worker",
    "package",
    "resource",
    "capacity",
    "slot",
    "key",
    "affinity",
    "retry",
    "dispatch",
    "calls",
    "tenant",
    "approval",
    "signal",
    "time",
]
WorkerStatus = Literal["online", "degraded", "draining", "lost", "offline"]
ResourceState = Literal["ready", "evicting", "evicted", "released"]
RolloutState = Literal["running", "succeeded", "failed", "rolled_back"]

TERMINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
"""The statuses in which a run stays."""

DispatcherKind = Literal["http", "cloud_tasks", "nats"]
"""How tasks get to an HTTP pool."""

CallbackOutcome = Literal["SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"]
"""How an HTTP worker says that an attempt ended."""

CompensationKind = Literal["failure", "cancel"]
"""Why what a run has done is undone."""
