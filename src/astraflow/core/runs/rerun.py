"""Which committed results a re-run keeps.

A re-run is a run of its own: it has its own facts, events and end, and takes over the results of the
run that it repeats. Nothing of the earlier run changes. A task is kept only if it succeeded and nothing
upstream of it is repeated, so that every kept result is one its own upstream would give again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from astraflow.core import errors
from astraflow.core.ids import NodeId
from astraflow.core.runs.accept import ReusedResults, downstream
from astraflow.core.runs.facts import ArtifactRef
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Skipped, Succeeded
from astraflow.core.workflow.plan import Plan, PlanNode


def keep_for_rerun_from(
    base: RunRecord, nodes: Iterable[NodeId], gone: frozenset[str] = frozenset()
) -> ReusedResults:
    """Keep what is not downstream of `nodes`.

    `gone` names artifacts that no longer exist: "one whose artifact is gone is produced again".

    Raises:
        NotFound: a node is not in the run's workflow.
        Conflict: the run has not ended.
    """
    check_ended(base)
    first: list[int] = []
    places = base.plan.index
    for node in nodes:
        index = places.get(node)
        if index is None:
            message = f"no such node, or one inside of another: {node}"
            raise errors.NotFound(errors.WORKFLOW_UNKNOWN_NODE, message)
        # A middleware runs with its host, and never for itself.
        host = base.plan.nodes[index].host
        first.append(index if host is None else host)
    return _keep(base, first, gone)


def keep_for_rerun_of_failed(base: RunRecord, gone: frozenset[str] = frozenset()) -> ReusedResults:
    """Keep all that succeeded.

    Raises:
        Conflict: the run has not ended.
    """
    check_ended(base)
    return _keep(base, [], gone)


def nodes_with_inputs(plan: Plan) -> list[NodeId]:
    """The nodes whose expressions may read the inputs of the run: other inputs may change what they do."""
    return [node.node_id for node in plan.nodes if any("input" in text for text in _texts(node))]


def _texts(node: PlanNode) -> Iterator[str]:
    """Everything in a node that may be an expression."""
    yield from (one.text for one in node.expressions)
    yield from (edge.when or "" for edge in node.edges_in)
    yield node.when or ""
    # What the scheduler itself does has expressions in places of its own.
    yield "" if node.control is None else "inputs"


def check_ended(base: RunRecord) -> None:
    """Raises: Conflict, if the run has not ended."""
    if not base.is_terminal:
        raise errors.Conflict(errors.RUN_NOT_TERMINAL, f"the run is still {base.status}")


def _is_undone(base: RunRecord, task: int) -> bool:
    """Whether a branch has run to undo a task, or the task is in such a branch: neither is kept."""
    node = base.plan.nodes[task]
    branches = [one for one in (node.on_failure, node.on_cancel) if one is not None]
    has_run = any(type(base.tasks[one].state) is not Skipped for one in branches)
    return has_run or node.branch is not None


def _artifacts_of(base: RunRecord, task: int) -> Iterator[ArtifactRef]:
    """What a task has made, and what the tasks inside of it have."""
    pending = [task]
    while pending:
        index = pending.pop()
        yield from base.tasks[index].artifacts
        scope = base.scopes.get(index)
        if scope is not None:
            pending += reversed(range(scope.first, scope.first_of(scope.count)))


def _keep(base: RunRecord, first: list[int], gone: frozenset[str]) -> ReusedResults:
    # The tasks of the plan: a call of a middleware is made again with its host, or not at all.
    tasks = base.tasks[: len(base.plan.nodes)]
    artifacts = [tuple(_artifacts_of(base, index)) for index in range(len(tasks))]
    for index, task in enumerate(tasks):
        is_gone = any(artifact.resource_id in gone for artifact in artifacts[index])
        if type(task.state) is not Succeeded or is_gone or _is_undone(base, index):
            first.append(index)
    repeated = downstream(base.plan, first)
    return {
        index: (task.result, artifacts[index])
        for index, task in enumerate(tasks)
        if index not in repeated and task.result is not None
    }
