"""What the parameters of a task are made of: committed results, errors, and the names that expressions read.

Everything here follows from the facts of the run: it is the same whenever it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.runs.projections import node_status
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Failed
from astraflow.core.timestamps import iso
from astraflow.core.workflow.plan import PlanNode, bind


class NodeValues(Mapping[str, Any]):
    """`nodes` in an expression: what has become of the nodes that expressions name, read when it is asked for."""

    def __init__(self, run: RunRecord) -> None:
        self._run = run

    def __getitem__(self, name: str) -> dict[str, Any]:
        index = self._run.plan.names[name]
        return {
            "results": results_of(self._run, index),
            "error": error_of(self._run, index),
            "state": node_status(self._run.tasks[index]),
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.plan.names)

    def __len__(self) -> int:
        return len(self._run.plan.names)


def results_of(run: RunRecord, index: int) -> dict[str, Any] | None:
    """The committed results of a task; while it runs anew, those that were taken back."""
    raw = run.tasks[index].result or run.tasks[index].former
    if raw is None:
        return None
    results: dict[str, Any] = msgspec.json.decode(raw)
    return results


def error_of(run: RunRecord, index: int) -> dict[str, Any] | None:
    """What the error port of a failed task carries: `{code, category, message, stack}`."""
    state = run.tasks[index].state
    if not isinstance(state, Failed):
        return None
    error = state.error
    return {
        "code": error.code,
        "category": error.category,
        "message": error.message,
        "stack": error.stack,
    }


def names_of(run: RunRecord) -> dict[str, Any]:
    """What the expressions of a task read."""
    accepted = run.accepted
    return {
        "inputs": msgspec.json.decode(accepted.inputs),
        "nodes": NodeValues(run),
        "run": {
            "id": run.run_id,
            "workflowId": accepted.workflow_id,
            "createdAt": iso(accepted.at),
        },
    }


def bind_parameters(run: RunRecord, index: int, node: PlanNode) -> bytes:
    """The parameters of a task as its node authored them, with what its edges bring.

    Raises: ExpressionError.
    """
    return bind(
        node,
        lambda source: results_of(run, source),
        lambda source: error_of(run, source),
        lambda: names_of(run),
        lambda edge: (index, edge) in run.dead_edges,
    )


def holds(run: RunRecord, condition: str) -> bool:
    """Whether the condition of a node holds. Raises: ExpressionError."""
    return _is_true(condition, names_of(run))


def edge_holds(run: RunRecord, source: int, condition: str) -> bool:
    """Whether the condition of an edge holds, now that its source has ended. Raises: ExpressionError."""
    results, error = results_of(run, source), error_of(run, source)
    return _is_true(condition, {**names_of(run), "results": results, "error": error})


def _is_true(condition: str, names: Mapping[str, Any]) -> bool:
    try:
        return bool(compile_expression(condition).evaluate(names))
    except ExpressionError as error:
        raise ExpressionError(f"condition {condition[:80]}: {error.message}") from None
