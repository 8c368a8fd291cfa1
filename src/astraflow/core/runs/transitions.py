"""The one table of task transitions, and `fold`, the only function that changes a run.

Rule 1: every task transition is a row of a table: of TRANSITIONS, by a fact about the task itself, or of DERIVED
        (`derived`), by what a fact has changed around it. No other code assigns a state. A missing row is a bug of ours
        and raises `InvalidTransition` with the last facts of the run.
Rule 2: a row exists only if a fact can cause it; time passing is a fact too (`AttemptLost`).
Rule 3: terminal states have no rows: they never change (P6). One exception: `TaskRebuilt` opens successes again whose
        outcome is gone with its worker, because a policy says so (P12): its row in DERIVED.
Rule 4: an attempt number is above the last, at every lease, whatever became of the last (R6): one more, unless the run
        has been restored from a backup since.
Rule 5: a call of a middleware is a task that a fact adds to the run. It has no edges: its end is an answer
        to the task that called it, and that task gets no new attempt before all calls below it have ended.
Rule 6: a node with a body (`ScopeOpened`) adds the tasks of its body to the run, once for each item. It ends after all
        of them. The items of a map begin in their order, as many at once as its limit allows: that follows from the
        ends of the others, so it is not stored. Once a scope is closing (`ScopeClosing`) nothing in it begins.
Rule 7: a task that waits for others becomes `Ready` when they have settled. That follows from the plan, so it is not
        stored. A task that can never become ready is *doomed*: it stays `Pending` until the fact of its skip, which
        the same decision records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from astraflow.core.runs.added_tasks import (
    begin_branch,
    close_scope,
    leave_scope,
    note_end,
    open_call,
    open_scope,
)
from astraflow.core.runs.derived import InvalidTransition, Upstream, derive
from astraflow.core.runs.facts import (
    FIXED_WIDTH,
    MAX_METRICS,
    NO_METRICS,
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
    RunAccepted,
    RunFinished,
    RunStarted,
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
    width,
)
from astraflow.core.runs.joins import edges_live, resolve_children, take_decision
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.states import (
    BACKOFF,
    LIVE,
    PASSED,
    REFUSED,
    SUCCEEDED,
    TERMINAL,
    WAITING,
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
    Succeeded,
)
from astraflow.core.workflow.plan import Plan


def _leased(task: Task, fact: TaskLeased) -> State:
    assert fact.attempt > task.attempt, "an attempt number is issued once"
    task.attempt = fact.attempt
    task.worker = fact.worker
    task.waiting_for = None
    task.progress = None
    task.message = None
    task.metrics = NO_METRICS
    task.delay_s = 0.0
    return Leased(fact.worker, fact.attempt, fact.ttl_ms)


def _running(task: Task, fact: AttemptStarted) -> State:
    assert isinstance(task.state, Leased)
    task.tries = 0
    if task.started_at is None:
        task.started_at = fact.at
    ttl_ms = task.state.ttl_ms if fact.ttl_ms is None else fact.ttl_ms
    return Running(task.state.worker, fact.attempt, ttl_ms, fact.by)


def _progressed(task: Task, fact: AttemptProgressed) -> State:
    if fact.progress is not None:
        task.progress = fact.progress
    if fact.message is not None:
        task.message = fact.message
    if fact.metrics:
        task.metrics = _merged(task.metrics, fact.metrics)
    return task.state


def _merged(known: Mapping[str, float], told: Mapping[str, float]) -> Mapping[str, float]:
    """The last value of each. A bounded number of names is kept: the first ones, so that a replay gives the same."""
    new = [name for name in told if name not in known][: max(0, MAX_METRICS - len(known))]
    return {name: told.get(name, known.get(name, 0.0)) for name in (*known, *new)}


def _waiting(task: Task, fact: TaskWaiting) -> State:
    task.waiting_for = fact.waiting_for
    return task.state


def _stopping(task: Task, fact: StopRequested) -> State:
    held = task.state
    assert isinstance(held, Leased | Running | Stopping)
    by = "" if isinstance(held, Leased) else held.by
    return Stopping(held.worker, fact.attempt, held.ttl_ms, fact.why, fact.grace_ms, by)


def _refused(task: Task, fact: AttemptRefused) -> State:
    task.tries += fact.counted
    task.delay_s = fact.delay_s
    return REFUSED


def _lost(task: Task, fact: AttemptLost) -> State:
    assert task.worker is not None
    task.losses += 1
    task.delay_s = fact.delay_s
    return Lost(task.worker, fact.attempt)


def _failed_attempt(task: Task, fact: AttemptFailed) -> State:
    task.failures += 1
    task.tries = 0
    task.delay_s = fact.delay_s
    task.waiting_for = None  # a lost attempt may have waited for its next place already
    return BACKOFF


def _ended(task: Task, at: int) -> None:
    task.finished_at = at
    task.waiting_for = None


def _succeeded(task: Task, fact: TaskSucceeded) -> State:
    _ended(task, fact.at)
    if task.started_at is None:
        task.started_at = fact.at - (fact.duration_ms or 0)
    task.result = fact.result
    task.artifacts = fact.artifacts
    return SUCCEEDED


def _reused(task: Task, fact: TaskReused) -> State:
    _ended(task, fact.at)
    task.result = fact.result
    task.artifacts = fact.artifacts
    return SUCCEEDED


def _parked(task: Task, fact: TaskParked) -> State:
    task.waiting_for = fact.waiting_for
    if task.started_at is None:
        task.started_at = fact.at
    return Parked(fact.waiting_for, fact.for_ms)


def _opened(task: Task, fact: ScopeOpened) -> State:
    task.started_at = fact.at
    task.finished_at = None
    return Opened(fact.until, fact.for_ms)


def _decided(task: Task, fact: TaskDecided) -> State:
    _ended(task, fact.at)
    if task.started_at is None:
        task.started_at = fact.at
    task.result = fact.result
    return SUCCEEDED


def _passed(task: Task, fact: TaskPassed) -> State:
    _ended(task, fact.at)
    task.result = fact.result
    return PASSED


def _failed(task: Task, fact: TaskFailed) -> State:
    _ended(task, fact.at)
    return Failed(fact.error, fact.confirmed)


def _skipped(task: Task, fact: TaskSkipped) -> State:
    _ended(task, fact.at)
    return Skipped(fact.code)


def _cancelled(task: Task, fact: TaskCancelled) -> State:
    _ended(task, fact.at)
    return Cancelled(fact.confirmed)


def _stay(task: Task, fact: ScopeClosing) -> State:
    return task.state


Apply = Callable[[Task, Any], State]
"""A row: changes the counters of the task and returns its next state."""

_HELD: Final = (Leased, Running, Stopping)
_REPORTABLE: Final = (*_HELD, Lost)  # a report may still decide the current attempt
_PLACEABLE: Final = (Ready, Backoff, Lost)
_OPEN: Final = (Pending, Parked, Opened, *_PLACEABLE, *_HELD)


def _rows(states: tuple[type[State], ...], fact: type[Fact], apply: Apply) -> dict[Any, Apply]:
    return {(state, fact): apply for state in states}


TRANSITIONS: Final[Mapping[tuple[type[State], type[Fact]], Apply]] = {
    **_rows(_PLACEABLE, TaskLeased, _leased),
    **_rows(_PLACEABLE, TaskWaiting, _waiting),
    (Leased, AttemptStarted): _running,
    **_rows(_HELD, AttemptProgressed, _progressed),
    **_rows(_HELD, StopRequested, _stopping),
    **_rows(_HELD, AttemptRefused, _refused),
    **_rows(_HELD, AttemptLost, _lost),
    **_rows(_REPORTABLE, AttemptFailed, _failed_attempt),
    **_rows(_REPORTABLE, TaskSucceeded, _succeeded),
    (Pending, TaskReused): _reused,
    (Ready, TaskReused): _reused,
    (Ready, TaskPassed): _passed,
    (Ready, TaskParked): _parked,
    (Ready, ScopeOpened): _opened,
    (Opened, ScopeClosing): _stay,
    **_rows((Ready, Parked, Opened), TaskDecided, _decided),
    **_rows((Pending, Ready, Parked, Opened, Backoff, *_REPORTABLE), TaskFailed, _failed),
    **_rows((Pending, Ready, *_REPORTABLE), TaskSkipped, _skipped),
    **_rows(_OPEN, TaskCancelled, _cancelled),
}

LEADS_TO: Final[Mapping[type[Fact], type[State] | None]] = {
    TaskLeased: Leased,
    TaskWaiting: None,
    AttemptStarted: Running,
    AttemptProgressed: None,
    StopRequested: Stopping,
    AttemptRefused: Backoff,
    AttemptLost: Lost,
    AttemptFailed: Backoff,
    TaskSucceeded: Succeeded,
    TaskReused: Succeeded,
    TaskPassed: Passed,
    TaskParked: Parked,
    ScopeOpened: Opened,
    ScopeClosing: None,
    TaskDecided: Succeeded,
    TaskFailed: Failed,
    TaskSkipped: Skipped,
    TaskCancelled: Cancelled,
}
"""Where a fact leads from any state that has a row for it; None: it stays. For the diagram."""


def fold(run: RunRecord, fact: Fact) -> None:
    """Apply one fact. The caller then advances `run.ready` and `run.doomed`."""
    kind = type(fact)
    fixed = FIXED_WIDTH.get(kind)
    run.last_event += width(fact) if fixed is None else fixed
    run.recent.append(fact)
    fold_other = _OTHERS.get(kind)
    if fold_other is not None:
        fold_other(run, fact)
        return
    assert isinstance(fact, TaskFact)
    index = fact.task
    task = run.tasks[index]
    apply = TRANSITIONS.get((type(task.state), kind))
    if apply is None:
        raise InvalidTransition(run, index, fact)
    state = task.state = apply(task, fact)
    if run.parked or type(state) is Parked:
        _note_parked(run, index, state)
    note = _NOTES.get(kind)
    if note is not None:
        note(run, fact)
    if run.takes_back and task.is_waiting and task.call is None and task.scope is None:
        _wait_again(run, index)
    if type(state) in TERMINAL:
        _end_task(run, index, task)


def _note_parked(run: RunRecord, index: int, state: State) -> None:
    if type(state) is Parked:
        run.parked[index] = None
    else:
        run.parked.pop(index, None)


def _note_leased(run: RunRecord, fact: TaskLeased) -> None:
    if run.stale:
        run.stale.discard(fact.task)
    if run.has_keys:
        run.keys[fact.task] = (fact.key, fact.affinity_key)


def _note_decided(run: RunRecord, fact: TaskDecided) -> None:
    if fact.signal is not None:
        run.signals.pop(fact.signal, None)


def _end_task(run: RunRecord, index: int, task: Task) -> None:
    """A task has ended: tell those that wait for it."""
    if type(task.state) in LIVE:
        task.former = None
    run.open_tasks -= 1
    if task.call is not None:
        for caller in run.callers_of(index):
            run.tasks[caller].open_calls -= 1
        run.answered.append(index)
        return
    if type(task.state) is Failed:
        (run.failed if task.scope is None else task.scope.failed).append(index)
    resolve_children(run, index)
    if task.scope is not None:
        leave_scope(run, task.scope, index)
    elif run.compensation is not None:
        note_end(run, run.compensation, index)


def _take_back(run: RunRecord, fact: TaskRebuilt) -> None:
    """Open tasks that had succeeded, and let everything that may not have begun without them wait for them.

    What runs goes on with what it was given. If its attempt does not end it, it waits like the others; a call of a
    middleware, which has no place upstream to wait at, is given the former result again.
    """
    run.takes_back = True
    run.stale.update(fact.stale)
    for index in fact.again:
        task = run.tasks[index]
        derive(run, index, Upstream.TAKEN_BACK)
        if run.compensation is not None and index in run.compensation.done:
            run.compensation.done.remove(index)
        task.former, task.result = task.result, None
        task.artifacts = ()
        task.finished_at = None
        run.open_tasks += 1
    derive(run, fact.task, Upstream.REOPENED)
    run.tasks[fact.task].rebuilds += 1
    touched = dict.fromkeys((fact.task, *fact.again))
    for index in fact.again:
        touched.update(dict.fromkeys(run.children_of(index)))
    for index in touched:
        _wait_again(run, index)


def _wait_again(run: RunRecord, index: int) -> None:
    task = run.tasks[index]
    if type(task.state) is not Pending and type(task.state) not in WAITING:
        return  # it runs or has ended: it had what it needed
    parents = run.parents_of(index)
    task.remaining = sum(not run.tasks[parent].is_terminal for parent in parents)
    is_any = task.is_waiting and run.node_at(index).join == "any"
    if is_any and any(edges_live(run, parent, index) for parent in parents):
        return  # one that is still there is enough
    dead = _dead_parent(run, index) if task.is_waiting else None
    if task.remaining or dead is not None:
        derive(run, index, Upstream.REOPENED)
        task.waiting_for = None
        task.delay_s = 0.0
    if dead is not None:
        run.doomed.append((index, dead))
    elif not task.remaining and type(task.state) is Pending:
        derive(run, index, Upstream.SETTLED)


def _dead_parent(run: RunRecord, index: int) -> int | None:
    """What was made again for a task that had begun, and did not succeed this time; none if the task may go on."""
    join = run.node_at(index).join
    dead = [one for one in run.parents_of(index) if run.tasks[one].is_terminal]
    dead = [one for one in dead if not edges_live(run, one, index)]
    is_over = join == "all" or (join == "any" and not run.tasks[index].remaining)
    return dead[0] if dead and is_over else None


def _fold_run(run: RunRecord, fact: Fact) -> None:
    if isinstance(fact, RunStarted):
        run.status = "running"
        run.started_at = fact.at
    elif isinstance(fact, CancelRequested):
        run.cancel = fact
    elif isinstance(fact, CompensationBegan):
        assert run.compensation is not None, "only a run with branches can undo"
        run.compensation.kind = fact.kind
        run.compensation.queue = list(fact.branches)
        begin_branch(run, run.compensation)
    elif isinstance(fact, SignalReceived):
        run.signals[run.signal_count] = fact
        run.signal_count += 1
        if fact.signal_id is not None:
            run.signal_ids.add(fact.signal_id)
    elif isinstance(fact, RunFinished):
        assert run.open_tasks == 0, "a run ends when all its tasks have"
        run.status = fact.status
        run.error = fact.error
        run.finished_at = fact.at
    else:
        assert isinstance(fact, RunAccepted), f"not a fact of a run: {fact!r}"


_OTHERS: Final[Mapping[type[Fact], Callable[[RunRecord, Any], None]]] = {
    RunAccepted: _fold_run,
    RunStarted: _fold_run,
    RunFinished: _fold_run,
    CancelRequested: _fold_run,
    CompensationBegan: _fold_run,
    SignalReceived: _fold_run,
    CallOpened: open_call,
    TaskRebuilt: _take_back,
    EdgesDecided: take_decision,
}
"""Facts that are no transition of one task."""
_NOTES: Final[Mapping[type[Fact], Callable[[RunRecord, Any], None]]] = {
    TaskLeased: _note_leased,
    TaskDecided: _note_decided,
    ScopeOpened: open_scope,
    ScopeClosing: close_scope,
}
"""What a transition of a task changes of its run besides."""


def replay(plan: Plan, facts: Iterable[Fact]) -> RunRecord:
    """A run as its stored facts make it. The first of them is its `RunAccepted`."""
    run: RunRecord | None = None
    for fact in facts:
        if run is None:
            assert isinstance(fact, RunAccepted), f"a run begins with its acceptance: {fact!r}"
            run = RunRecord(plan, fact)
        fold(run, fact)
    assert run is not None, "a run has at least one fact"
    # What followed from each fact is stored as facts of its own.
    run.ready.clear()
    run.doomed.clear()
    run.undecided.clear()
    run.answered.clear()
    run.touched.clear()
    return run
