"""Which tasks may run once a task has ended: the joins of edges.

`all` (default): every edge must be live; one dead edge dooms the task. `any`: the first live edge makes it ready; all
dead doom it. `all_done`: ready when every upstream task is terminal. An edge is live when its source succeeded or was
passed (or, for an error edge, failed), and its condition holds. Conditions are not evaluated here: the edges of a
source that has ended are *undecided* until the fact of the decision, which the same decision records.
"""

from __future__ import annotations

from astraflow.core.runs.derived import Upstream, derive
from astraflow.core.runs.facts import EdgesDecided
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import LIVE, Failed, Pending, Skipped, State


def resolve_children(run: RunRecord, parent: int) -> None:
    tasks = run.tasks
    is_simple = run.is_simple
    live = type(tasks[parent].state) in LIVE
    for child in run.children_of(parent):
        task = tasks[child]
        if not is_simple and not task.is_terminal and _may_be_live(run, parent, child):
            run.undecided.append((parent, child))
            continue
        if type(task.state) is not Pending:
            continue  # already ready (join any), cancelled or skipped
        task.remaining -= 1
        if not is_simple:
            _resolve_edges(run, parent, child)
        elif not live:
            run.doomed.append((child, parent))
        elif task.remaining == 0:
            derive(run, child, Upstream.SETTLED)


def _may_be_live(run: RunRecord, parent: int, child: int) -> bool:
    """Whether a conditional edge between two tasks is live if its condition holds."""
    state = type(run.tasks[parent].state)
    return any(
        edge.is_conditional and _leads_on(state, edge.kind)
        for _, edge in run.edges_between(parent, child)
    )


def _leads_on(state: type[State], kind: str) -> bool:
    return state is Failed if kind == "error" else state in LIVE


def take_decision(run: RunRecord, fact: EdgesDecided) -> None:
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
    live = edges_live(run, parent, child)
    if node.join == "all_done":
        becomes_ready, is_doomed = task.remaining == 0, False
    elif node.join == "any":
        becomes_ready = live
        is_doomed = not live and task.remaining == 0
    else:
        becomes_ready = live and task.remaining == 0
        is_doomed = not live
    if becomes_ready:
        derive(run, child, Upstream.SETTLED)
    elif is_doomed:
        run.doomed.append((child, parent))


def edges_live(run: RunRecord, parent: int, child: int) -> bool:
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
