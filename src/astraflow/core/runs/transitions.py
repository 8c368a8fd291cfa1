"""The one table of task transitions, and `fold`, the only function that changes a run.

Rule 1: every task transition is a row of a table in this file: TRANSITIONS, by a fact about the task itself, or
        DERIVED, by what a fact has changed upstream of it. No other code assigns a state. A missing row is a bug of
        ours and raises `InvalidTransition` with the last facts of the run.
Rule 2: a row exists only if a fact can cause it; time passing is a fact too (`AttemptLost`).
Rule 3: terminal states have no rows: they never change (P6). One exception: `TaskRebuilt` opens successes again whose
        outcome is gone with its worker, because a policy says so (P12): its row in DERIVED.
Rule 4: an attempt number is one more than the last, at every lease, whatever became of the last (R6).
Rule 5: a call of a middleware is a task that a fact adds to the run. It has no edges: its end is an answer
        to the task that called it, and that task gets no new attempt before all calls below it have ended.
Rule 6: a node with a body (`ScopeOpened`) adds the tasks of its body to the run, once for each item. It ends after all
        of them. The items of a map begin in their order, as many at once as its limit allows: that follows from the
        ends of the others, so it is not stored. Once a scope is closing (`ScopeClosing`) nothing in it begins.
Rule 7: a task that waits for others becomes `Ready` when they have settled. That follows from the plan, so it is not
        stored. A task that can never become ready is *doomed*: it stays `Pending` until the fact of its skip, which
        the same decision records.

Joins. `all` (default): every edge must be live; one dead edge dooms the task. `any`: the first live edge
makes it ready; all dead doom it. `all_done`: ready when every upstream task is terminal. An edge is live
when its source succeeded or was passed (or, for an error edge, failed), and its condition holds. Conditions are not
evaluated here: the edges of a source that has ended are *undecided* until the fact of the decision, which the same
decision records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from astraflow.core.errors import INTERNAL, Bug
from astraflow.core.runs.branches import Branches
from astraflow.core.runs.facts import (
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
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.scopes import Scope
from astraflow.core.runs.states import (
    BACKOFF,
    CANCELLED,
    LIVE,
    PASSED,
    PENDING,
    READY,
    REFUSED,
    SUBSUMED,
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


class InvalidTransition(Bug):
    """A fact met a state that has no row for it: a bug of ours, told with the last facts of the run."""

    def __init__(self, run: RunRecord, task: int, cause: object) -> None:
        state = run.tasks[task].state
        recent = "\n".join(f"  {one!r}" for one in run.recent)
        super().__init__(
            INTERNAL,
            f"no transition from {state!r} by {cause!r} for task {task} of run {run.run_id}; "
            f"the run's last facts:\n{recent}",
        )


def _leased(task: Task, fact: TaskLeased) -> State:
    assert fact.attempt == task.attempt + 1, "an attempt number is issued once"
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


class Upstream(StrEnum):
    """What a fact about other tasks means for a task."""

    SETTLED = "all that it waits for has settled"
    REOPENED = "a task that it waits for runs again"
    TAKEN_BACK = "its outcome is gone with its worker"
    CLOSED = "its item had not begun when its scope was closed"


DERIVED: Final[Mapping[tuple[type[State], Upstream], State]] = {
    (Pending, Upstream.SETTLED): READY,
    (Pending, Upstream.REOPENED): PENDING,
    (Ready, Upstream.REOPENED): PENDING,
    (Backoff, Upstream.REOPENED): PENDING,
    (Lost, Upstream.REOPENED): PENDING,
    (Succeeded, Upstream.TAKEN_BACK): PENDING,
    (Pending, Upstream.CLOSED): CANCELLED,
}


def _derive(run: RunRecord, index: int, upstream: Upstream) -> None:
    task = run.tasks[index]
    state = DERIVED.get((type(task.state), upstream))
    if state is None:
        raise InvalidTransition(run, index, upstream)
    task.state = state
    if upstream is Upstream.SETTLED:
        run.ready.append(index)


def fold(run: RunRecord, fact: Fact) -> None:
    """Apply one fact. The caller then advances `run.ready` and `run.doomed`."""
    run.last_event += width(fact)
    run.recent.append(fact)
    if not isinstance(fact, TaskFact):
        _fold_run(run, fact)
        return
    if type(fact) is CallOpened:
        _open_call(run, fact)
        return
    if type(fact) is TaskRebuilt:
        _take_back(run, fact)
        return
    if type(fact) is EdgesDecided:
        _decide_edges(run, fact)
        return
    task = run.tasks[fact.task]
    apply = TRANSITIONS.get((type(task.state), type(fact)))
    if apply is None:
        raise InvalidTransition(run, fact.task, fact)
    task.state = apply(task, fact)
    if type(task.state) is Parked:
        run.parked[fact.task] = None
    elif run.parked:
        run.parked.pop(fact.task, None)
    if type(fact) is ScopeOpened:
        _open_scope(run, fact)
    elif type(fact) is ScopeClosing:
        _close_scope(run, fact)
    if type(fact) is TaskDecided and fact.signal is not None:
        run.signals.pop(fact.signal, None)
    if run.stale and type(fact) is TaskLeased:
        run.stale.discard(fact.task)
    if run.takes_back and task.is_waiting and task.call is None and task.scope is None:
        _wait_again(run, fact.task)
    if type(task.state) in TERMINAL:
        task.former = None
        run.open_tasks -= 1
        if task.call is not None:
            for caller in run.callers_of(fact.task):
                run.tasks[caller].open_calls -= 1
            run.answered.append(fact.task)
            return
        if type(task.state) is Failed:
            (run.failed if task.scope is None else task.scope.failed).append(fact.task)
        _resolve_children(run, fact.task)
        if task.scope is not None:
            _leave_scope(run, task.scope, fact.task)
        elif run.compensation is not None:
            _note_end(run, run.compensation, fact.task)


def _note_end(run: RunRecord, state: Branches, index: int) -> None:
    """A task of a run that can undo has ended: it can be undone from here on, or its branch goes on."""
    node = run.plan.nodes[index]
    if node.branch is None:
        can_be_undone = node.on_failure is not None or node.on_cancel is not None
        if can_be_undone and type(run.tasks[index].state) is Succeeded:
            state.done.append(index)
        return
    state.open -= 1
    if node.branch == state.current:
        state.left -= 1
        if state.left == 0:
            _begin_branch(run, state)


def _begin_branch(run: RunRecord, state: Branches) -> None:
    """Let the next branch run, if there is one."""
    state.current = state.queue.pop(0) if state.queue else None
    if state.current is None:
        return
    state.left = len(state.branches[state.current])
    run.tasks[state.current].remaining = 0
    _derive(run, state.current, Upstream.SETTLED)


def _open_scope(run: RunRecord, fact: ScopeOpened) -> None:
    assert fact.first == len(run.tasks), "tasks are numbered in the order in which they are added"
    step = run.node_at(fact.task).control
    assert step is not None
    assert step.body is not None
    scope = run.scopes[fact.task] = Scope(fact, step.body)
    plan = scope.plan
    rows = [
        (plan.nodes[node.middlewares[0]] if node.middlewares else node, len(plan.parents[place]))
        for place, node in enumerate(plan.nodes)
    ]
    is_subsumed = [node.host is not None for node in plan.nodes]
    tasks = run.tasks
    for item in range(scope.count):
        # The first tasks of an item that has not begun wait for one that is none: its turn.
        waits = int(item >= scope.started)
        for place, (node, parents) in enumerate(rows):
            task = Task(parents or waits, node, None, scope)
            if is_subsumed[place]:
                task.state = SUBSUMED
            elif not parents and not waits:
                run.ready.append(len(tasks))
            tasks.append(task)
    run.open_tasks += sum(scope.left)
    if sum(scope.left[:1]) == 0:  # a body without nodes
        scope.ended = scope.count
        run.settling[fact.task] = None


def _leave_scope(run: RunRecord, scope: Scope, task: int) -> None:
    """A task of a scope has ended, and its item with it if it was the last."""
    item = scope.item_of(task)
    scope.left[item] -= 1
    if type(run.tasks[task].state) is Failed:
        run.settling[scope.owner] = None
    if scope.left[item]:
        return
    scope.ended += 1
    run.settling[scope.owner] = None
    if scope.started < scope.count and scope.closing is None:
        first = scope.first_of(scope.started)
        scope.started += 1
        for place in scope.roots:
            run.tasks[first + place].remaining = 0
            _derive(run, first + place, Upstream.SETTLED)


def _close_scope(run: RunRecord, fact: ScopeClosing) -> None:
    scope = run.scopes[fact.task]
    scope.closing = fact
    for index in range(scope.first_of(scope.started), scope.first_of(scope.count)):
        task = run.tasks[index]
        if not task.is_terminal:
            _derive(run, index, Upstream.CLOSED)
            _ended(task, fact.at)
            run.open_tasks -= 1
    for item in range(scope.started, scope.count):
        scope.left[item] = 0
    scope.ended += scope.count - scope.started
    scope.started = scope.count
    run.settling[fact.task] = None


def _open_call(run: RunRecord, fact: CallOpened) -> None:
    assert fact.task == len(run.tasks), "calls are numbered in the order in which they are opened"
    host = run.node_at(fact.parent)
    node = host
    if fact.chain_index is not None:
        plan = run.plan_of(run.host_of(fact.parent))
        node = plan.nodes[host.middlewares[fact.chain_index]]
    run.tasks.append(Task(0, node, fact))
    run.calls[fact.parent, fact.parent_attempt, fact.request_id] = fact.task
    parent = run.tasks[fact.parent]
    if parent.made_calls is None:
        parent.made_calls = []
    parent.made_calls.append(fact.task)
    for caller in run.callers_of(fact.task):
        run.tasks[caller].open_calls += 1
    run.open_tasks += 1
    run.ready.append(fact.task)


def _take_back(run: RunRecord, fact: TaskRebuilt) -> None:
    """Open tasks that had succeeded, and let everything that may not have begun without them wait for them.

    What runs goes on with what it was given. If its attempt does not end it, it waits like the others; a call of a
    middleware, which has no place upstream to wait at, is given the former result again.
    """
    run.takes_back = True
    run.stale.update(fact.stale)
    for index in fact.again:
        task = run.tasks[index]
        _derive(run, index, Upstream.TAKEN_BACK)
        if run.compensation is not None and index in run.compensation.done:
            run.compensation.done.remove(index)
        task.former, task.result = task.result, None
        task.artifacts = ()
        task.finished_at = None
        run.open_tasks += 1
    _derive(run, fact.task, Upstream.REOPENED)
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
    if is_any and any(_edges_live(run, parent, index) for parent in parents):
        return  # one that is still there is enough
    dead = _dead_parent(run, index) if task.is_waiting else None
    if task.remaining or dead is not None:
        _derive(run, index, Upstream.REOPENED)
        task.waiting_for = None
        task.delay_s = 0.0
    if dead is not None:
        run.doomed.append((index, dead))
    elif not task.remaining and type(task.state) is Pending:
        _derive(run, index, Upstream.SETTLED)


def _dead_parent(run: RunRecord, index: int) -> int | None:
    """What was made again for a task that had begun, and did not succeed this time; none if the task may go on."""
    join = run.node_at(index).join
    dead = [one for one in run.parents_of(index) if run.tasks[one].is_terminal]
    dead = [one for one in dead if not _edges_live(run, one, index)]
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
        _begin_branch(run, run.compensation)
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


def _resolve_children(run: RunRecord, parent: int) -> None:
    live = type(run.tasks[parent].state) in LIVE
    for child in run.children_of(parent):
        task = run.tasks[child]
        if not run.is_simple and not task.is_terminal and _may_be_live(run, parent, child):
            run.undecided.append((parent, child))
            continue
        if type(task.state) is not Pending:
            continue  # already ready (join any), cancelled or skipped
        task.remaining -= 1
        if not run.is_simple:
            _resolve_edges(run, parent, child)
        elif not live:
            run.doomed.append((child, parent))
        elif task.remaining == 0:
            _derive(run, child, Upstream.SETTLED)


def _may_be_live(run: RunRecord, parent: int, child: int) -> bool:
    """Whether a conditional edge between two tasks is live if its condition holds."""
    state = type(run.tasks[parent].state)
    return any(
        edge.is_conditional and _leads_on(state, edge.kind)
        for _, edge in run.edges_between(parent, child)
    )


def _leads_on(state: type[State], kind: str) -> bool:
    return state is Failed if kind == "error" else state in LIVE


def _decide_edges(run: RunRecord, fact: EdgesDecided) -> None:
    child = fact.task
    for number, _ in run.edges_between(fact.source, child):
        run.dead_edges.discard((child, number))
    run.dead_edges.update((child, number) for number in fact.dead)
    task = run.tasks[child]
    if type(task.state) is Pending:
        task.remaining -= 1
        _resolve_edges(run, fact.source, child)


def _resolve_edges(run: RunRecord, parent: int, child: int) -> None:
    """The join rule for a child of a plan that has error edges or joins other than `all`."""
    task = run.tasks[child]
    node = run.node_at(child)
    live = _edges_live(run, parent, child)
    if node.join == "all_done":
        becomes_ready, is_doomed = task.remaining == 0, False
    elif node.join == "any":
        becomes_ready = live
        is_doomed = not live and task.remaining == 0
    else:
        becomes_ready = live and task.remaining == 0
        is_doomed = not live
    if becomes_ready:
        _derive(run, child, Upstream.SETTLED)
    elif is_doomed:
        run.doomed.append((child, parent))


def _edges_live(run: RunRecord, parent: int, child: int) -> bool:
    """Whether the edges between two tasks are live: all of them, or one where the child joins any."""
    state = type(run.tasks[parent].state)
    lives = [
        _leads_on(state, edge.kind) and (child, number) not in run.dead_edges
        for number, edge in run.edges_between(parent, child)
    ]
    return any(lives) if run.node_at(child).join == "any" else all(lives)


def is_handled(run: RunRecord, failed: int) -> bool:
    """Whether the failure of a task was taken up: an error edge of it is live, and what it leads to was not skipped."""
    for child in run.children_of(failed):
        if isinstance(run.tasks[child].state, Skipped):
            continue
        for number, edge in run.edges_between(failed, child):
            if edge.kind == "error" and (child, number) not in run.dead_edges:
                return True
    return False


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
    run.settling.clear()
    return run
