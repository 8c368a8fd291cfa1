"""Which committed results a re-run keeps.

A re-run is a run of its own: it has its own facts, events and end, and takes over the results of the
run that it repeats. Nothing of the earlier run changes. A task is kept only if it succeeded and nothing
upstream of it is repeated, so that every kept result is one its own upstream would give again.
"""

from __future__ import annotations

from collections.abc import Iterable

from astraflow.core import errors
from astraflow.core.ids import NodeId
from astraflow.core.runs.accept import ReusedResults, downstream
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Succeeded


def keep_for_rerun_from(
    base: RunRecord, nodes: Iterable[NodeId], gone: frozenset[str] = frozenset()
) -> ReusedResults:
    """Keep what is not downstream of `nodes`.

    `gone` names artifacts that no longer exist: "one whose artifact is gone is produced again".

    Raises:
        NotFound: a node is not in the run's workflow.
        Conflict: the run has not ended.
    """
    _require_ended(base)
    first: list[int] = []
    for node in nodes:
        index = base.plan.index.get(node)
        if index is None:
            raise errors.NotFound(errors.WORKFLOW_UNKNOWN_NODE, f"no such node: {node}")
        first.append(index)
    return _keep(base, first, gone)


def keep_for_rerun_of_failed(base: RunRecord, gone: frozenset[str] = frozenset()) -> ReusedResults:
    """Keep all that succeeded.

    Raises:
        Conflict: the run has not ended.
    """
    _require_ended(base)
    return _keep(base, [], gone)


def _require_ended(base: RunRecord) -> None:
    if not base.is_terminal:
        raise errors.Conflict(errors.RUN_NOT_TERMINAL, f"the run is still {base.status}")


def _keep(base: RunRecord, first: list[int], gone: frozenset[str]) -> ReusedResults:
    for index, task in enumerate(base.tasks):
        is_gone = any(artifact.resource_id in gone for artifact in task.artifacts)
        if type(task.state) is not Succeeded or is_gone:
            first.append(index)
    repeated = downstream(base.plan, first)
    return {
        index: (task.result, tuple(task.artifacts))
        for index, task in enumerate(base.tasks)
        if index not in repeated and task.result is not None
    }
