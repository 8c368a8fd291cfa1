"""What an expression gives by a run, for who is writing it. Nothing of the run changes.

Rule 1: a preview reads what whoever may read the run can read. Secrets have no value here, and addresses of signals,
        which are keys, are left out.
Rule 2: it costs what an expression may cost in a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core import errors
from astraflow.core.contract.expressions import (
    MAX_VALUE_BYTES,
    Evaluation,
    EvaluationProblem,
)
from astraflow.core.expressions import Expression, ExpressionError, compile_expression
from astraflow.core.runs.scope_views import find_task
from astraflow.core.runs.values import Names, NodeValues
from astraflow.core.timestamps import iso

if TYPE_CHECKING:
    from astraflow.core.errors import Code
    from astraflow.core.runs.run import RunRecord
    from astraflow.core.workflow.plan import Plan

SECRETS = "secrets"


class _AllNodes(NodeValues):
    """`nodes` with every node, by its id, its label, and the name that the writer gives it."""

    def __init__(self, run: RunRecord, task: int, aliases: Mapping[str, str]) -> None:
        super().__init__(run, task)
        self._aliases = aliases
        self._known: dict[int, dict[str, int]] = {}

    def _names_in(self, plan: Plan) -> Mapping[str, int]:
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = self._all_names(plan)
        return known

    def _all_names(self, plan: Plan) -> dict[str, int]:
        ids = {str(node.node_id): place for place, node in enumerate(plan.nodes)}
        labels = Counter(node.label for node in plan.nodes)
        named = {
            node.label: place for place, node in enumerate(plan.nodes) if labels[node.label] == 1
        }
        given = {name: ids[one] for name, one in self._aliases.items() if one in ids}
        return {**named, **ids, **given}


def names_for(
    run: RunRecord, node_id: str | None, aliases: Mapping[str, str], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What the expressions of a node read in a preview."""
    task = 0
    if node_id is not None:
        try:
            task = find_task(run, node_id)
        except errors.NotFound:
            task = 0
    fields = {
        "id": run.run_id,
        "workflowId": run.accepted.workflow_id,
        "createdAt": iso(run.accepted.at),
    }
    return Names(run, task, {"run": fields, "nodes": _AllNodes(run, task, aliases), **given})


def preview(text: str, names: Mapping[str, Any]) -> Evaluation:
    """Evaluate an expression, and say what it gives, or why it gives nothing."""
    try:
        expression = compile_expression(text)
    except ExpressionError as error:
        return _no_value(errors.WORKFLOW_EXPRESSION, error)
    try:
        raw = _evaluate(expression, names)
    except ExpressionError as error:
        return _no_value(errors.TASK_EXPRESSION, error)
    if len(raw) > MAX_VALUE_BYTES:
        return Evaluation(value=None, value_truncated=True)
    return Evaluation(value=msgspec.Raw(raw))


def _evaluate(expression: Expression, names: Mapping[str, Any]) -> bytes:
    if any(one.name == SECRETS for one in expression.references):
        raise ExpressionError("the value of a secret is known to the worker alone")
    return msgspec.json.encode(expression.evaluate(names), enc_hook=_refuse)


def _refuse(value: object) -> object:
    """`nodes` itself is no value: it would be all results of the run."""
    raise ExpressionError("nodes cannot be shown as a whole: name one of them")


def _no_value(code: Code, error: ExpressionError) -> Evaluation:
    problem = EvaluationProblem(code=code.code, message=error.message, position=error.position)
    return Evaluation(value=None, error=problem)
