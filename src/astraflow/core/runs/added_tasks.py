"""Tasks that facts add to a run, and tasks that wait for their turn: calls, bodies of nodes, branches that undo.

These functions are parts of `transitions.fold`.
"""

from __future__ import annotations

from astraflow.core.runs.branches import Branches
from astraflow.core.runs.derived import Upstream, derive
from astraflow.core.runs.facts import CallOpened, ScopeClosing, ScopeOpened
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.scopes import Scope
from astraflow.core.runs.states import SUBSUMED, Failed, Succeeded


def open_call(run: RunRecord, fact: CallOpened) -> None:
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


def note_end(run: RunRecord, state: Branches, index: int) -> None:
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
            begin_branch(run, state)


def begin_branch(run: RunRecord, state: Branches) -> None:
    """Let the next branch run, if there is one."""
    state.current = state.queue.pop(0) if state.queue else None
    if state.current is None:
        return
    state.left = len(state.branches[state.current])
    run.tasks[state.current].remaining = 0
    derive(run, state.current, Upstream.SETTLED)


def open_scope(run: RunRecord, fact: ScopeOpened) -> None:
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
        run.touched[fact.task] = None


def leave_scope(run: RunRecord, scope: Scope, task: int) -> None:
    """A task of a scope has ended, and its item with it if it was the last."""
    item = scope.item_of(task)
    scope.left[item] -= 1
    if type(run.tasks[task].state) is Failed:
        run.touched[scope.owner] = None
    if scope.left[item]:
        return
    scope.ended += 1
    run.touched[scope.owner] = None
    if scope.started < scope.count and scope.closing is None:
        first = scope.first_of(scope.started)
        scope.started += 1
        for place in scope.roots:
            run.tasks[first + place].remaining = 0
            derive(run, first + place, Upstream.SETTLED)


def close_scope(run: RunRecord, fact: ScopeClosing) -> None:
    scope = run.scopes[fact.task]
    scope.closing = fact
    for index in range(scope.first_of(scope.started), scope.first_of(scope.count)):
        task = run.tasks[index]
        if not task.is_terminal:
            derive(run, index, Upstream.CLOSED)
            task.finished_at = fact.at
            run.open_tasks -= 1
    for item in range(scope.started, scope.count):
        scope.left[item] = 0
    scope.ended += scope.count - scope.started
    scope.started = scope.count
    run.touched[fact.task] = None
