"""How a run ended."""

from __future__ import annotations

from typing import Any

from astraflow.core import errors
from astraflow.core.contract.runs import Run


class RunFailed(errors.AstraflowError):
    """The run ended, and did not succeed. `run` is how it ended."""

    def __init__(self, run: Run) -> None:
        known = errors.CATALOGUE.get(run.error.code) if run.error else None
        fallback = errors.TASK_CANCELLED if run.status == "cancelled" else errors.RUNNER_FAILURE
        said = f": {run.error.message}" if run.error else ""
        super().__init__(known or fallback, f"run {run.run_id} {run.status}{said}")
        self.run = run


def results_of(run: Run) -> dict[str, Any]:
    """The result of each node of a run that succeeded, by id. A node inside of a map has one for each item: the map
    has them all.

    Raises:
        RunFailed: it did not succeed.
    """
    if run.status != "succeeded":
        raise RunFailed(run)
    return {
        node.node_id: node.result
        for node in run.nodes
        if node.status == "succeeded" and (node.items is None or node.result is not None)
    }
