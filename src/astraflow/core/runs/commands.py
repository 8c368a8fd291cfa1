"""Commands: what somebody asks of a run, or reports about one of its attempts.

Each is checked against the run when it is decided: a report of an attempt that is no longer the
current one is a normal thing, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from astraflow.core.runs.facts import NO_VALUE, ArtifactRef, Chunk, TaskFailure, WaitReason

OutcomeStatus = Literal["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]


class RunCommand(msgspec.Struct, frozen=True):
    """The base of all commands."""


class Cancel(RunCommand, frozen=True):
    """Somebody wants the run to stop; or its deadline has passed (`reason="deadline"`)."""

    by: str
    grace_ms: int
    reason: str = "user_requested"


class LeaseTask(RunCommand, frozen=True):
    """Placement has chosen a worker for a task that may run."""

    task: int
    worker: str
    incarnation: int
    ttl_ms: int
    key: str | None = None
    affinity_key: str | None = None


class Collect(RunCommand, frozen=True):
    """What a map has collected is stored by reference, or could not be (`problem`)."""

    task: int
    ref: msgspec.Raw | None
    problem: str = ""


class Wait(RunCommand, frozen=True):
    """Placement has found no place for a task."""

    task: int
    waiting_for: WaitReason


class Fail(RunCommand, frozen=True):
    """Placement can never find a place for a task (a pinned resource is gone)."""

    task: int
    error: TaskFailure


class Rebuild(RunCommand, frozen=True):
    """What a task needs is gone: have it made again by the tasks upstream that made it."""

    task: int
    resource_id: str
    cause: str


class Start(RunCommand, frozen=True):
    """The worker has taken the dispatch; `by` and `ttl_ms` as in `AttemptStarted`."""

    task: int
    attempt: int
    worker: str
    by: str = ""
    ttl_ms: int | None = None


class Progress(RunCommand, frozen=True):
    """Feedback of a running attempt."""

    task: int
    attempt: int
    worker: str
    progress: float | None = None
    message: str | None = None
    stage: str | None = None
    chunks: tuple[Chunk, ...] = ()
    dropped: int = 0
    metrics: Mapping[str, float] = {}


class Report(RunCommand, frozen=True):
    """A worker's terminal report of an attempt."""

    task: int
    attempt: int
    worker: str
    status: OutcomeStatus
    result: msgspec.Raw = msgspec.Raw(b"{}")
    artifacts: tuple[ArtifactRef, ...] = ()
    duration_ms: int | None = None
    error: TaskFailure | None = None
    lost: str | None = None
    """The resource for want of which it failed, if it is to be made again."""
    phase: str | None = None
    partial: msgspec.Raw = NO_VALUE
    """Of a cancelled attempt, as in `TaskCancelled`."""


class Refuse(RunCommand, frozen=True):
    """Nothing started: the worker refused the dispatch, or its frame never reached a socket."""

    task: int
    attempt: int
    worker: str
    code: str
    message: str = ""


class Call(RunCommand, frozen=True):
    """A middleware calls the rest of its chain. `chain_index` is its own place in it."""

    task: int
    attempt: int
    worker: str
    request_id: str
    chain_index: int
    payload: msgspec.Raw = msgspec.Raw(b"null")
    timeout_ms: int | None = None


class EndCall(RunCommand, frozen=True):
    """The call has taken longer than its caller allowed."""

    task: int


class EndWait(RunCommand, frozen=True):
    """The time of a parked task has come."""

    task: int


class ReceiveSignal(RunCommand, frozen=True):
    """A message from outside."""

    name: str
    payload: msgspec.Raw = msgspec.Raw(b"null")
    by: str = ""
    signal_id: str | None = None


class Approve(RunCommand, frozen=True):
    """A person has decided at a parked task."""

    task: int
    approved: bool
    by: str = ""
    comment: str = ""
    values: msgspec.Raw = msgspec.Raw(b"{}")


class TakeList(RunCommand, frozen=True):
    """The list of a map that was stored by reference has been read."""

    task: int
    resource_id: str
    items: msgspec.Raw


class Withdraw(RunCommand, frozen=True):
    """The dispatch was not acknowledged in time: take it back, but only on proof."""

    task: int
    attempt: int


class Lose(RunCommand, frozen=True):
    """It is proved that the attempt does not run any more, and there was no report."""

    task: int
    attempt: int
    cause: str


class TimeOut(RunCommand, frozen=True):
    """The attempt has run longer than its node allows."""

    task: int
    attempt: int
    grace_ms: int


class Restart(RunCommand, frozen=True):
    """An operator wants the attempt to end and its task to run anew, on the loss budget."""

    task: int
    attempt: int
    grace_ms: int


class StopOverdue(RunCommand, frozen=True):
    """A stop was asked for, and grace and the time after it have passed without a report."""

    task: int
    attempt: int
