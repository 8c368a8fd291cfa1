"""The timeline of a task: every fact about it as a sentence that an operator can act on."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from astraflow.core.runs.facts import (
    PINNED,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    CallOpened,
    CancelRequested,
    CompensationBegan,
    EdgesDecided,
    Fact,
    ScopeClosing,
    ScopeOpened,
    SignalReceived,
    StopRequested,
    TaskCancelled,
    TaskDecided,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskParked,
    TaskPassed,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
)
from astraflow.core.timestamps import iso


def task_timeline(facts: Iterable[Fact], task: int) -> list[str]:
    """The timeline of one task: its own facts, and the cancel of its run."""
    lines = []
    for fact in facts:
        if concerns(fact, (task,)) or isinstance(fact, CancelRequested):
            lines.append(f"{iso(fact.at)} {describe_fact(fact)}")
    return lines


def concerns(fact: Fact, tasks: Collection[int]) -> bool:
    """Whether a fact is about one of these tasks."""
    if isinstance(fact, TaskRebuilt) and not set(fact.again).isdisjoint(tasks):
        return True
    return isinstance(fact, TaskFact) and fact.task in tasks


def describe_fact(fact: Fact) -> str:
    """One fact about a task as a sentence."""
    match fact:
        case CancelRequested(by=by, reason=reason):
            return f"cancel of the run was requested by {by or 'the scheduler'} ({reason})"
        case CompensationBegan(kind=kind, branches=branches):
            return f"what was done is undone by {len(branches)} branches, after a {kind}"
        case CallOpened(parent=parent, parent_attempt=attempt):
            return f"was called by attempt {attempt} of task {parent}"
        case ScopeOpened(count=count):
            return "began its body" if count == 1 else f"began its {count} items"
        case ScopeClosing(error=error):
            why = "it is cancelled" if error is None else f"{error.code}: {error.message}"
            return f"begins nothing more ({why})"
        case EdgesDecided(source=source, dead=dead):
            outcome = "hold" if not dead else f"do not hold for {len(dead)} of them"
            return f"the conditions of the edges from task {source} {outcome}"
        case SignalReceived(name=name, by=by):
            return f"signal {name} came from {by or 'outside'}"
        case TaskParked(waiting_for=waiting):
            return f"waits for {waiting.kind}: {waiting.detail}"
        case TaskDecided(by=by):
            return f"was decided by {by or 'the scheduler'}"
        case TaskPassed():
            return "is disabled: passed on what it was given"
        case TaskWaiting(waiting_for=waiting):
            return f"waits for {waiting.kind}: {waiting.detail}"
        case TaskLeased(attempt=attempt, worker=worker, incarnation=incarnation):
            return f"attempt {attempt} was leased to {worker} (boot {incarnation})"
        case AttemptStarted(attempt=attempt):
            return f"attempt {attempt} was taken by its worker"
        case AttemptProgressed(attempt=attempt, chunks=chunks):
            return f"attempt {attempt} gave feedback with {len(chunks)} chunks"
        case StopRequested(attempt=attempt, why=why):
            return f"attempt {attempt} was asked to stop ({why})"
        case AttemptRefused(attempt=attempt, code=code, delay_s=delay_s):
            return f"attempt {attempt} did not start ({code}); {_next_try(fact.at, delay_s)}"
        case AttemptLost(attempt=attempt, cause=cause, delay_s=delay_s):
            return f"attempt {attempt} was lost ({cause}); {_next_try(fact.at, delay_s)}"
        case AttemptFailed(attempt=attempt, error=error, delay_s=delay_s, failure=failure):
            counted = f", failure {failure} of {fact.allowed}" if failure else ""
            return f"attempt {attempt} failed with {error.code}{counted}; {_next_try(fact.at, delay_s)}"
        case TaskSucceeded(attempt=attempt):
            return f"succeeded with attempt {attempt}"
        case TaskReused(from_run=from_run) if from_run == PINNED:
            return "took its pinned result"
        case TaskReused(from_run=from_run):
            return f"took over its result from run {from_run}"
        case TaskRebuilt(resource_id=resource_id, cause=cause, again=again):
            # Read at the node that needs it and at those that made it.
            return (
                f"{resource_id} is gone ({cause}): it is made again by {len(again)} nodes, "
                "then the one that needs it goes on"
            )
        case TaskFailed(attempt=attempt, error=error):
            return f"failed at attempt {attempt} with {error.code}: {error.message}"
        case TaskSkipped(code=code):
            return f"was skipped ({code})"
        case TaskCancelled(attempt=attempt, confirmed=confirmed):
            said = "confirmed" if confirmed else "not confirmed by its worker"
            return f"was cancelled at attempt {attempt} ({said})"
    return type(fact).__name__


def _next_try(at: int, delay_s: float) -> str:
    return f"next try in {delay_s:.1f} s, at {iso(at + int(delay_s * 1000))}"
