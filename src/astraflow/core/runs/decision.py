"""A decision: the facts of one command against one run, what they demand of the tables, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.ids import is_pool
from astraflow.core.runs.calls import advance_callers, end_calls
from astraflow.core.runs.compensation import compensate
from astraflow.core.runs.conditions import begins, decide_edges, skip_code
from astraflow.core.runs.consequences import (
    AttemptOver,
    Consequence,
    EnqueueTask,
    FinishRun,
    StopAttempt,
)
from astraflow.core.runs.controls import perform
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    Fact,
    RunFinished,
    StopRequested,
    StopWhy,
    TaskFact,
    TaskFailure,
    TaskSkipped,
)
from astraflow.core.runs.joins import is_handled
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_opening import open_scope
from astraflow.core.runs.scope_rules import advance_scope
from astraflow.core.runs.states import Failed, Leased, Stopping
from astraflow.core.runs.transitions import fold

if TYPE_CHECKING:
    from random import Random


class Decision:
    """What a command came to. `ignored` names why a report had no effect, if it had none."""

    __slots__ = ("at", "consequences", "facts", "first", "ignored", "lasts", "rng", "run")

    def __init__(self, run: RunRecord, at: int, rng: Random) -> None:
        self.run = run
        self.at = at
        self.rng = rng
        self.first = run.last_event + 1  # the number of the first event of the first fact
        self.facts: list[Fact] = []
        self.lasts: list[int] = []  # the number of the last event of each fact
        self.consequences: list[Consequence] = []
        self.ignored: str | None = None

    def record(self, fact: Fact) -> None:
        fold(self.run, fact)
        self.facts.append(fact)
        self.lasts.append(self.run.last_event)

    def finish_task(self, fact: Fact) -> None:
        """Record a terminal fact and everything that follows from it."""
        self.record(fact)
        assert isinstance(fact, TaskFact)
        if self.run.tasks[fact.task].open_calls:
            end_calls(self, fact.task)
        advance(self)

    def stop(self, index: int, why: StopWhy, grace_ms: int) -> None:
        """Ask the worker to stop the current attempt of a task."""
        task = self.run.tasks[index]
        assert task.worker is not None
        self.record(StopRequested(self.at, index, task.attempt, why, grace_ms))
        self.consequences.append(StopAttempt(index, task.attempt, task.worker, why, grace_ms))

    def take_back(self, index: int) -> bool:
        """End a push of an HTTP pool that nobody has started: from now on its start is refused, so that there is
        nothing to stop. Whether the attempt was one."""
        task = self.run.tasks[index]
        if type(task.state) is not Leased or not is_pool(task.worker):
            return False
        self.consequences.append(AttemptOver(index, task.attempt))
        return True

    def try_again(self, fact: AttemptFailed | AttemptLost | AttemptRefused) -> None:
        """Record the end of an attempt and queue the task, once all that the attempt called has ended."""
        self.record(fact)
        task = self.run.tasks[fact.task]
        if task.open_calls:
            end_calls(self, fact.task)
        elif task.is_waiting:
            self.consequences.append(EnqueueTask(fact.task, fact.delay_s))
        advance(self)

    def is_cancelled(self, index: int) -> bool:
        """Whether a task gets no further attempt: its run is cancelled, the call it is, or the scope it is in."""
        state = self.run.tasks[index].state
        is_stopped = isinstance(state, Stopping) and state.why == "cancel"
        return self.run.is_cancelled_at(index) or is_stopped or self.run.is_closing(index)


def advance(decision: Decision) -> None:
    """Skip what can no longer run, queue what now can, and end the run when all has ended."""
    _advance_tasks(decision)
    if decision.run.compensation is not None:
        compensate(decision)
        _advance_tasks(decision)
    if decision.run.open_tasks == 0 and not decision.run.is_terminal:
        _finish_run(decision)


def _advance_tasks(decision: Decision) -> None:
    run = decision.run
    while run.doomed or run.ready or run.answered or run.undecided or run.touched:
        advance_callers(decision)
        while run.undecided:
            decide_edges(decision, *run.undecided.pop())
        while run.doomed:
            child, parent = run.doomed.pop()
            if not run.tasks[child].is_terminal:
                code = skip_code(run, child, parent).code
                decision.record(TaskSkipped(decision.at, child, code, parent))
        ready, run.ready = run.ready, []
        for task in ready:
            state = run.tasks[task]
            if state.is_terminal:
                continue  # its last edge was live, and an earlier one was not: it was skipped above
            is_own = state.call is None and state.node.host is None
            step = state.node.control if is_own else None
            if not begins(decision, task):
                continue
            if step is not None and step.body is not None:
                open_scope(decision, task, step.body)
            elif step is not None:
                perform(decision, task, step)
            elif run.tasks[task].open_calls == 0:  # else the end of the last of them queues it
                decision.consequences.append(EnqueueTask(task))
        if run.touched and not (run.doomed or run.ready or run.answered or run.undecided):
            touched, run.touched = run.touched, {}
            for owner in touched:
                advance_scope(decision, owner)


def _finish_run(decision: Decision) -> None:
    run = decision.run
    error: TaskFailure | None = None
    if run.cancel is not None and run.cancel.reason == "deadline":
        error = TaskFailure(errors.TIMEOUT.code, "TIMEOUT", "the run did not end by its deadline")
        finished = RunFinished(decision.at, "failed", error)
    elif run.cancel is not None:
        finished = RunFinished(decision.at, "cancelled")
    else:
        finished = RunFinished(decision.at, "succeeded")
        unhandled = next((task for task in run.failed if not is_handled(run, task)), None)
        if unhandled is not None:
            state = run.tasks[unhandled].state
            assert isinstance(state, Failed)
            finished = RunFinished(decision.at, "failed", state.error)
    decision.record(finished)
    decision.consequences.append(FinishRun(finished.status))
