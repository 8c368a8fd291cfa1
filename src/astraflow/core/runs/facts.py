"""Facts: what happened to a run, in the past tense, as it is stored.

Rule 1: a fact is written once and never changed; a run is the fold of its facts and nothing else.
Rule 2: a fact carries everything its fold needs. Folding reads no clock, no plan that may have
        changed since, and draws nothing at random: a back-off delay is *in* the fact.
Rule 3: `at` is wall-clock milliseconds, for people only. No decision is made from it (R13).
Rule 4: a released fact keeps its tag and its fields for ever; new fields have defaults. What is new names its facts
        version (`core.facts_version`).

A fact is shown to a reader of the run as one or more numbered events (`projections.events_of`);
how many is a function of the fact alone (`width`), so that numbers can be given when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

import msgspec

from astraflow.core.categories import Category
from astraflow.core.contract.words import CompensationKind, RunStatus, WaitKind
from astraflow.core.facts_version import VersionedFact
from astraflow.core.ids import RunId, TaskId

StopWhy = Literal["withdraw", "cancel", "timeout", "rebind"]
"""Why a worker was asked to stop an attempt: it is what decides what its end means."""


class TaskFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt or a task failed, as told to people and to the retry policy."""

    code: str
    category: Category
    message: str = ""
    retryable: bool | None = None
    stack: str | None = None


class WaitReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task that could run is waiting for (P2: a run that waits says for what)."""

    kind: WaitKind
    detail: str = ""
    until: int | None = None
    """When the wait ends at the latest, in wall-clock milliseconds, if a time is known."""
    held_by: tuple[str, str] | None = None
    """The run and the node that have the concurrency key."""


NO_METRICS: Final[Mapping[str, float]] = MappingProxyType({})
MAX_METRICS: Final = 256
"""Names that a task keeps the values of."""

NO_METADATA: Final = msgspec.Raw(b"{}")
NO_VALUE: Final = msgspec.Raw(b"null")
"""Of a member that was not given."""


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a stream that an attempt made: a log line, a token, an image part."""

    channel: str
    index: int
    text: str | None = None
    data_base64: str | None = None
    mime_type: str = "text/plain"
    metadata: msgspec.Raw = NO_METADATA
    """An object, as the attempt gave it; `level` of a log line is in it."""


class ArtifactRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource that a result points to; the bytes stay on the worker that made them."""

    resource_id: str
    worker_id: str
    type: str
    size_bytes: int | None = None
    expires_at: str | None = None
    inline: bool = False
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class Fact(VersionedFact, frozen=True, omit_defaults=True, tag_field="fact"):
    """The base of all facts of runs."""

    at: int


class RunTrace(msgspec.Struct, frozen=True, omit_defaults=True):
    """The trace that a run belongs to (W3C trace context)."""

    traceparent: str
    """The span of the run, if it is recorded; else that of the caller, which is passed on."""
    parent_id: str | None = None
    """The span of the caller."""
    is_recorded: bool = False


class SignalKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the addresses of the signals of a run are made of."""

    key: str
    base: str = ""
    """Where the scheduler could be reached from outside when the run was submitted."""


class RunAccepted(Fact, frozen=True, tag="run.accepted"):
    """The run exists from here on: its submission may be answered with 2xx (P1)."""

    run_id: RunId
    tenant: str
    workflow_id: str
    inputs: msgspec.Raw = msgspec.Raw(b"{}")
    idempotency_key: str | None = None
    fingerprint: str | None = None
    deadline_s: float | None = None
    rerun_of: str | None = None
    trace: RunTrace | None = None
    by: str = ""
    corr: str | None = None
    """The id of the request that submitted it."""
    pinned: tuple[int, ...] = ()
    """The tasks that have a pinned result in place of their own."""
    signal_key: SignalKey | None = None
    """Set if systems outside can send signals to addresses of the run."""
    depth: int = 0
    """How many ends of runs led to this one, by triggers."""
    name: str = ""
    """Of its workflow, as the definition says."""
    version: int | None = None
    """Of the saved workflow; None: it was not saved."""
    trigger: str = ""
    """The name of the trigger that submitted it; empty: none did."""


class RunStarted(Fact, frozen=True, tag="run.started"):
    """The first task has been leased."""


class CancelRequested(Fact, frozen=True, tag="run.cancel_requested"):
    """No new attempt starts from here on (P9)."""

    by: str = ""
    reason: str = "user_requested"


class CompensationBegan(Fact, frozen=True, tag="run.compensation_began"):
    """What the run has done is undone: by these branches, in this order."""

    kind: CompensationKind
    branches: tuple[int, ...]


class RunFinished(Fact, frozen=True, tag="run.finished"):
    """All tasks are terminal. The last fact of every run."""

    status: RunStatus
    error: TaskFailure | None = None


class TaskFact(Fact, frozen=True):
    """A fact about one task, named by its place in the plan."""

    task: int


class CallOpened(TaskFact, frozen=True, tag="call.opened"):
    """A middleware called the rest of its chain: `task` is a new task, the last of the run (PROTOCOL §10)."""

    call_id: TaskId
    parent: int
    parent_attempt: int
    request_id: str
    chain_index: int | None
    """Which middleware of the host runs; None: the host itself."""
    payload: msgspec.Raw = msgspec.Raw(b"null")
    timeout_ms: int | None = None


class ScopeOpened(TaskFact, frozen=True, tag="scope.opened"):
    """A node with a body has begun: the tasks of the body are the next of the run, once for each item."""

    first: int
    """The number of the first of them."""
    count: int
    """How many items there are; of a container and a call it is one."""
    parameters: msgspec.Raw = msgspec.Raw(b"{}")
    """What the node was given, without the list of items."""
    items: msgspec.Raw = NO_VALUE
    until: int | None = None
    """When all of it must have ended, in wall-clock milliseconds."""
    for_ms: int | None = None


class ScopeClosing(TaskFact, frozen=True, tag="scope.closing"):
    """No task of the body is begun from here on; items that had not begun are cancelled with this fact."""

    error: TaskFailure | None = None
    """What the node fails with; None: it is cancelled."""


class EdgesDecided(TaskFact, frozen=True, tag="edges.decided"):
    """The conditions of the edges from `source` to the task have been evaluated. `dead` are those that do not hold, by
    their number among the edges into the task."""

    source: int
    dead: tuple[int, ...] = ()
    is_taken: bool = True
    """Whether one of the edges between the two leads on."""


class TaskPassed(TaskFact, frozen=True, tag="task.passed"):
    """The node is disabled: what it was given is passed on as its result, and what follows it goes on."""

    result: msgspec.Raw = msgspec.Raw(b"{}")


class SignalReceived(Fact, frozen=True, tag="run.signal_received"):
    """A message from outside, kept until a node takes it."""

    name: str
    payload: msgspec.Raw = NO_VALUE
    by: str = ""
    signal_id: str | None = None
    """Of the sender: a message that comes again is the same."""


class TaskParked(TaskFact, frozen=True, tag="task.parked"):
    """The scheduler itself waits at this node: for a time, a person or a message. Nothing is held meanwhile."""

    waiting_for: WaitReason
    for_ms: int | None = None
    """How long it waits at most; None: until a time of the wall clock, or for ever."""


class TaskDecided(TaskFact, frozen=True, tag="task.decided"):
    """The scheduler itself has done what the node says."""

    result: msgspec.Raw = msgspec.Raw(b"{}")
    by: str = ""
    signal: int | None = None
    """The message that it took, by its number in the run."""


class TaskWaiting(TaskFact, frozen=True, tag="task.waiting"):
    """A ready task has no place, and this is why."""

    waiting_for: WaitReason


class TaskLeased(TaskFact, frozen=True, tag="task.leased"):
    """Attempt `attempt` belongs to one incarnation of one worker. Committed before its frame leaves."""

    attempt: int
    worker: str
    incarnation: int
    ttl_ms: int
    key: str | None = None
    """The concurrency key, if the node has an expression for it."""
    affinity_key: str | None = None
    """The same for the affinity key."""


class AttemptStarted(TaskFact, frozen=True, tag="attempt.started"):
    """The worker has taken the dispatch."""

    attempt: int
    by: str = ""
    """The `workerId` of the HTTP invocation that runs it; empty for a worker with a session."""
    ttl_ms: int | None = None
    """How long its lease runs from here on without a heartbeat; None: as before."""


class AttemptProgressed(TaskFact, frozen=True, tag="attempt.progressed"):
    """Feedback: best effort, with the number of chunks that were shed on the way."""

    attempt: int
    progress: float | None = None
    message: str | None = None
    stage: str | None = None
    chunks: tuple[Chunk, ...] = ()
    dropped: int = 0
    metrics: Mapping[str, float] = {}


class StopRequested(TaskFact, frozen=True, tag="attempt.stop_requested"):
    """The worker is asked to stop the attempt. What its end means depends on `why`."""

    attempt: int
    why: StopWhy
    grace_ms: int


class AttemptRefused(TaskFact, frozen=True, tag="attempt.refused"):
    """Nothing started: a refusal, a proved withdrawal, or a frame that never left."""

    attempt: int
    code: str
    delay_s: float
    message: str = ""
    counted: bool = True


class AttemptLost(TaskFact, frozen=True, tag="attempt.lost"):
    """The attempt is proved not to run any more, and nobody knows how far it came."""

    attempt: int
    cause: str
    delay_s: float


class AttemptFailed(TaskFact, frozen=True, tag="attempt.failed"):
    """The attempt failed and its policy gives the task another one after `delay_s`."""

    attempt: int
    error: TaskFailure
    delay_s: float
    output: msgspec.Raw = NO_VALUE
    """What the failed attempt returned: evidence for people, never given to tasks downstream."""
    failure: int = 0
    """Which failure of the task it is; 0: nobody counted."""
    allowed: int = 0
    """The failure that would be the last one."""


class TaskSucceeded(TaskFact, frozen=True, tag="task.succeeded"):
    """The one accepted result of the task (P6)."""

    attempt: int
    result: msgspec.Raw = msgspec.Raw(b"{}")
    artifacts: tuple[ArtifactRef, ...] = ()
    duration_ms: int | None = None


PINNED: Final = "pinned"
"""In place of the run that a result is from: it is pinned. No run has this id."""


class TaskReused(TaskFact, frozen=True, tag="task.reused"):
    """The task has a result from the start: a re-run keeps one that an earlier run committed, or it is pinned."""

    from_run: str
    result: msgspec.Raw = msgspec.Raw(b"{}")
    artifacts: tuple[ArtifactRef, ...] = ()


class TaskRebuilt(TaskFact, frozen=True, tag="task.rebuilt"):
    """What the task needs is gone with its worker, and its policy is to make it again.

    `again` are the tasks that made it, and those between them and this one: they run anew, and this one waits for them.
    """

    resource_id: str
    cause: str
    again: tuple[int, ...]
    stale: tuple[int, ...] = ()
    """Of those between, the ones that are under way with what is gone: their success would not count for what is made
    again, so that they run once more."""


class TaskFailed(TaskFact, frozen=True, tag="task.failed"):
    """Final: the policy, the loss budget or the dispatch tries are spent, or none were given."""

    attempt: int
    error: TaskFailure
    confirmed: bool = True
    output: msgspec.Raw = NO_VALUE
    """As in `AttemptFailed`."""


class TaskSkipped(TaskFact, frozen=True, tag="task.skipped"):
    """The task will not run: an upstream failed or was skipped, it is disabled, or it skipped itself."""

    code: str
    because: int | None = None
    attempt: int = 0


class TaskCancelled(TaskFact, frozen=True, tag="task.cancelled"):
    """Stopped by a committed cancel. `confirmed` is False when the worker never said so."""

    attempt: int
    confirmed: bool = True
    phase: str | None = None
    """Where the attempt was when it stopped, and how far it had come: as its worker says."""
    partial: msgspec.Raw = NO_VALUE


AnyFact = (
    RunAccepted
    | RunStarted
    | CancelRequested
    | CompensationBegan
    | RunFinished
    | CallOpened
    | ScopeOpened
    | ScopeClosing
    | EdgesDecided
    | TaskPassed
    | SignalReceived
    | TaskParked
    | TaskDecided
    | TaskWaiting
    | TaskLeased
    | AttemptStarted
    | AttemptProgressed
    | StopRequested
    | AttemptRefused
    | AttemptLost
    | AttemptFailed
    | TaskSucceeded
    | TaskReused
    | TaskRebuilt
    | TaskFailed
    | TaskSkipped
    | TaskCancelled
)

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(AnyFact)

encode_fact = _encoder.encode
"""The stored form of a fact."""


def decode_fact(raw: bytes) -> AnyFact:
    """Read a stored fact, of this release or an earlier one."""
    fact: AnyFact = _decoder.decode(raw)
    return fact


_VARIABLE: Final = frozenset({TaskSucceeded, TaskReused, TaskRebuilt, AttemptProgressed})
FIXED_WIDTH: Final[dict[type[Fact], int]] = {
    **{kind: 1 for kind in get_args(AnyFact) if kind not in _VARIABLE},
    TaskPassed: 2,  # node.result.snapshot, node.state
    TaskDecided: 2,
    AttemptFailed: 2,  # node.error, node.state
    TaskFailed: 2,
}


def width(fact: Fact) -> int:
    """How many numbered events this fact is shown as; at least one."""
    fixed = FIXED_WIDTH.get(type(fact))
    if fixed is not None:
        return fixed
    if isinstance(fact, TaskSucceeded | TaskReused):
        # node.result.snapshot, node.state, and one artifact.ready each
        return 2 + len(fact.artifacts)
    if isinstance(fact, TaskRebuilt):
        return 1 + len(fact.again)  # a node.state each
    assert isinstance(fact, AttemptProgressed), f"not a fact: {fact!r}"
    said = fact.progress is not None or fact.message is not None or fact.stage is not None
    return max(1, int(said or fact.dropped > 0) + len(fact.chunks) + bool(fact.metrics))
