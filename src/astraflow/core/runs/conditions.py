"""Whether a task begins: conditions of edges and nodes, and nodes that are disabled.

Rule 1: a condition is evaluated once, when what it reads has ended, and the outcome is a fact. The conditions of the
        edges between two tasks are decided together, when the source ends; that of a node when the node is ready.
Rule 2: a condition without a value fails the task that it is for, with the expression in the message.
Rule 3: a disabled node passes on what it was given, so that what follows it goes on. Its expressions are not evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.expressions import ExpressionError
from astraflow.core.runs.facts import (
    EdgesDecided,
    TaskFailed,
    TaskFailure,
    TaskPassed,
    TaskSkipped,
)
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import LIVE, Failed, Pending, Skipped
from astraflow.core.runs.values import bind_parameters, edge_holds, holds, results_of

if TYPE_CHECKING:
    from astraflow.core.runs.decision import Decision
    from astraflow.core.workflow.plan import InEdge

_NOT_TAKEN = frozenset({errors.TASK_BRANCH_NOT_TAKEN.code, errors.TASK_CONDITION_FALSE.code})


def expression_failure(error: ExpressionError) -> TaskFailure:
    """The failure of a task whose expression has no value: it would have none at the next attempt either."""
    return TaskFailure(errors.TASK_EXPRESSION.code, "CONFIGURATION", error.message, retryable=False)


def decide_edges(decision: Decision, source: int, task: int) -> None:
    """Evaluate the conditions of the edges between a task that has ended and one that has not."""
    run = decision.run
    state = run.tasks[task]
    if state.is_terminal:
        return
    edges = run.edges_between(source, task)
    conditional = [one for one in edges if one[1].is_conditional]
    try:
        dead = tuple([number for number, edge in conditional if not _holds(run, source, edge)])
    except ExpressionError as error:
        if type(state.state) is Pending:
            failure = expression_failure(error)
            decision.record(TaskFailed(decision.at, task, state.attempt, failure))
            return
        dead = tuple([number for number, _ in conditional])  # it began without them, and goes on so
    decision.record(EdgesDecided(decision.at, task, source, dead, len(dead) < len(edges)))


def _holds(run: RunRecord, source: int, edge: InEdge) -> bool:
    is_failed = type(run.tasks[source].state) is Failed
    if is_failed != (edge.kind == "error"):
        return True  # it is dead anyway, whatever its condition says
    if edge.case is not None and (results_of(run, source) or {}).get("case") != edge.case:
        return False
    return edge.when is None or edge_holds(run, source, edge.when)


def begins(decision: Decision, task: int) -> bool:
    """Whether a task that is ready is to be run; if not, record what becomes of it."""
    run = decision.run
    state = run.tasks[task]
    node = state.node if state.node.host is None and state.call is None else run.node_at(task)
    if node.disabled:
        decision.record(TaskPassed(decision.at, task, _passed_on(run, task)))
        return False
    if state.call is not None and state.node.disabled:
        # A plan of an earlier release may have a disabled middleware in its chain.
        decision.record(TaskSkipped(decision.at, task, errors.TASK_DISABLED.code))
        return False
    if node.when is None or state.call is not None:
        return True
    try:
        if holds(run, task, node.when):
            return True
    except ExpressionError as error:
        failure = expression_failure(error)
        decision.record(TaskFailed(decision.at, task, state.attempt, failure))
        return False
    code = errors.TASK_CONDITION_FALSE.code
    decision.record(TaskSkipped(decision.at, task, code))
    return False


def _passed_on(run: RunRecord, task: int) -> msgspec.Raw:
    node = run.node_at(task)
    return msgspec.Raw(bind_parameters(run, task, msgspec.structs.replace(node, expressions=())))


def skip_code(run: RunRecord, task: int, because: int) -> errors.Code:
    """Why a task is skipped that can never run because of another one."""
    state = run.tasks[because].state
    is_elsewhere = type(state) in LIVE or (isinstance(state, Skipped) and state.code in _NOT_TAKEN)
    if isinstance(state, Failed):
        # The edges for failures lead elsewhere; without one of them it needed the success.
        kinds = {edge.kind for _, edge in run.edges_between(because, task)}
        is_elsewhere = kinds == {"error"}
    return errors.TASK_BRANCH_NOT_TAKEN if is_elsewhere else errors.TASK_UPSTREAM_FAILED
