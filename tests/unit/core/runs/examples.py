"""One fact of every kind with all its fields set, and the shortest way into every state."""

from __future__ import annotations

import msgspec

from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.facts import (
    AnyFact,
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
    RunTrace,
    ScopeClosing,
    ScopeOpened,
    SignalKey,
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
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.run import RunRecord
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
from astraflow.core.runs.transitions import fold
from tests.unit.plans import AT, accepted, make_plan, with_body, wrapped

ERROR = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom", False, "line 1")
ARTIFACT = ArtifactRef(
    "r1", "w1", "file", 12, "2026-01-01T00:00:00Z", True, msgspec.Raw(b'{"k":1}')
)
RESULT = msgspec.Raw(b'{"v":1}')

FULL_FACTS: tuple[AnyFact, ...] = (
    RunAccepted(
        AT,
        RunId("run1"),
        "acme",
        "wf",
        msgspec.Raw(b'{"a":1}'),
        "key",
        "fingerprint",
        60.0,
        "run0",
        RunTrace("00-" + "a" * 32 + "-" + "b" * 16 + "-01", "c" * 16, is_recorded=True),
        "ann",
        "req-1",
        (2,),
        SignalKey("key", "https://example.org"),
        3,
        "Nightly sync",
        7,
        "night",
    ),
    RunStarted(AT),
    CancelRequested(AT, "ann", "deadline"),
    CompensationBegan(AT, "cancel", (1,)),
    RunFinished(AT, "failed", ERROR),
    CallOpened(AT, 1, TaskId("call1"), 0, 1, "req1", None, msgspec.Raw(b'{"p":1}'), 900),
    ScopeOpened(AT, 0, 2, 1, RESULT, msgspec.Raw(b"[7]"), AT + 1_000, 1_000),
    ScopeClosing(AT, 0, ERROR),
    EdgesDecided(AT, 0, 0, (0,), False),
    TaskPassed(AT, 0, RESULT),
    SignalReceived(AT, "paid", RESULT, "shop", "order-7"),
    TaskParked(AT, 0, WaitReason("approval", "Ship it?", AT + 1_000), 1_000),
    TaskDecided(AT, 0, RESULT, "ann", 0),
    TaskWaiting(AT, 0, WaitReason("package", "pkg 1.0", AT + 1_000, ("run0", "n4"))),
    TaskLeased(AT, 0, 1, "w1", 3, 30_000, "k", "a"),
    AttemptStarted(AT, 0, 1, "invocation-7", 90_000),
    AttemptProgressed(AT, 0, 1, 0.5, "half", "load", (Chunk("log", 0, "hello"),), 2, {"loss": 0.5}),
    StopRequested(AT, 0, 1, "timeout", 500),
    AttemptRefused(AT, 0, 1, "E.DISPATCH.STALE", 0.2, "too late", False),
    AttemptLost(AT, 0, 1, "lease ended", 0.3),
    AttemptFailed(AT, 0, 1, ERROR, 2.0, RESULT, 1, 3),
    TaskSucceeded(AT, 0, 1, RESULT, (ARTIFACT,), 12),
    TaskReused(AT, 0, "run0", RESULT, (ARTIFACT,)),
    TaskRebuilt(AT, 0, "run1/session", "its worker did not come back", (0,), (1,)),
    TaskFailed(AT, 0, 1, ERROR, False, RESULT),
    TaskSkipped(AT, 0, "E.TASK.UPSTREAM_FAILED", 0, 1),
    TaskCancelled(AT, 0, 1, False, "loading", RESULT),
)

LEASED = TaskLeased(AT, 0, 1, "w1", 1, 30_000)

WAY_TO: dict[type[State], tuple[TaskFact, ...]] = {
    Pending: (),
    Ready: (),
    Leased: (LEASED,),
    Running: (LEASED, AttemptStarted(AT, 0, 1)),
    Stopping: (LEASED, StopRequested(AT, 0, 1, "cancel", 500)),
    Lost: (LEASED, AttemptLost(AT, 0, 1, "lease ended", 0.0)),
    Backoff: (LEASED, AttemptFailed(AT, 0, 1, ERROR, 0.0)),
    Succeeded: (LEASED, TaskSucceeded(AT, 0, 1)),
    Parked: (TaskParked(AT, 0, WaitReason("time", "until noon", AT + 1_000)),),
    Opened: (ScopeOpened(AT, 0, 2, 1, items=msgspec.Raw(b"[7]")),),
    Passed: (TaskPassed(AT, 0),),
    Failed: (TaskFailed(AT, 0, 0, ERROR),),
    Skipped: (TaskSkipped(AT, 0, "E.TASK.DISABLED"),),
    Cancelled: (TaskCancelled(AT, 0, 0),),
    Subsumed: (),
}
"""The facts that bring the first task of a run into a state."""


def places() -> TaskPlaces:
    """Of a run of two tasks, the first of which has a body."""
    return TaskPlaces(make_plan(2, [(0, 1)], nodes={0: with_body()}))


def run_in(state: type[State]) -> tuple[RunRecord, int]:
    """A run of two tasks in a row, and the task of it that is in `state`. A middleware and its host, if
    it is the state that no fact leads to."""
    plan = make_plan(2, [(0, 1)], nodes={0: with_body()})
    run = RunRecord(wrapped(1) if state is Subsumed else plan, accepted())
    fold(run, accepted())
    for fact in WAY_TO[state]:
        fold(run, fact)
    task = 1 if state in (Pending, Subsumed) else 0
    assert type(run.tasks[task].state) is state
    return run, task


def about(fact: Fact, task: int, attempt: int) -> Fact:
    """The same fact of another task and attempt."""
    changes = {"task": task, "attempt": attempt}
    known = {name: value for name, value in changes.items() if name in fact.__struct_fields__}
    return msgspec.structs.replace(fact, **known)
