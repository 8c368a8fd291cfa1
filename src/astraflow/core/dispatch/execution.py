"""What a node was executed with: its package and the parameters that its attempt was given.

Parameters follow from the facts of the run and are stored nowhere: they are bound again when somebody asks.
"""

from __future__ import annotations

import msgspec

from astraflow.core.dispatch.demand import bind_task
from astraflow.core.expressions import ExpressionError
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.states import Failed, Parked, Succeeded


class NodeExecution(msgspec.Struct, frozen=True):
    """`parameters` is None where nothing was executed yet, or a parameter has no value."""

    package: str
    version: str
    parameters: bytes | None


def execution_of(run: RunRecord, task: int) -> NodeExecution:
    """What the last attempt of a task was given. References to secrets stay references."""
    found = run.tasks[task]
    return NodeExecution(
        found.node.package_name,
        found.node.package_version,
        _parameters(run, task) if _is_executed(found) else None,
    )


def _is_executed(task: Task) -> bool:
    """Whether a worker was given the task, or the scheduler itself has carried it out."""
    is_control = task.node.control is not None
    return task.attempt > 0 or (is_control and type(task.state) in (Succeeded, Failed, Parked))


def _parameters(run: RunRecord, task: int) -> bytes | None:
    try:
        return bind_task(run, task)[0]
    except ExpressionError:
        return None  # the error of the node says which parameter has no value
