"""Rebuilding a lost resource: which tasks run again when a resource is gone that a later task needs.

The tasks upstream whose results name the resource made it, or handed it on. They run again, and so does everything
between them and the task that needs it: a session in which nobody has logged in is not the session that was lost. The
same holds for every other task that has yet to end and will be given it. What has ended keeps its result. What lies
between and is under way has acted on what is gone: when it succeeds, it counts as lost and runs once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.runs.calls import end_calls
from astraflow.core.runs.commands import Rebuild
from astraflow.core.runs.consequences import UnqueueTask
from astraflow.core.runs.facts import TaskFailed, TaskFailure, TaskRebuilt
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Succeeded
from astraflow.core.workflow.plan import find_resource_refs

if TYPE_CHECKING:
    from astraflow.core.runs.decision import Decision

REBUILDS: Final = 3
"""How often one task has what it needs made again. A resource that is lost more often is lost by being used."""


def rebuild(decision: Decision, command: Rebuild) -> None:
    """Have the resource made again, or fail the task that needs it and say why. What became ready is the caller's to
    take up."""
    run = decision.run
    task = run.tasks[command.task]
    if run.is_cancelled_at(command.task) or not task.is_waiting:
        decision.ignored = "task is not waiting for a place"
        return
    again = makers_of(run, command.task, command.resource_id)
    on_the_way = _on_the_way(run, command.task, command.resource_id)
    stale = tuple(index for index in on_the_way if run.tasks[index].is_held)
    refusal = _refusal(run, command.task, again, stale)
    if refusal is not None:
        message = f"{command.cause}; {refusal}: {command.resource_id}"
        error = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", message, retryable=False)
        decision.finish_task(TaskFailed(decision.at, command.task, task.attempt, error))
        return
    waiting = [index for index, one in enumerate(run.tasks) if one.is_waiting]
    decision.record(
        TaskRebuilt(decision.at, command.task, command.resource_id, command.cause, again, stale)
    )
    for index in waiting:
        if not run.tasks[index].is_waiting:
            decision.consequences.append(UnqueueTask(index))
    end_calls(decision, command.task)


def _refusal(
    run: RunRecord, task: int, again: tuple[int, ...], stale: tuple[int, ...]
) -> str | None:
    """Why it cannot be made again."""
    if run.tasks[run.host_of(task)].scope is not None:
        return "it cannot be made again within a container, a call or a map"
    if not again:
        return "no node of the run made it"
    if run.tasks[task].call is not None:
        return "it cannot be made again within a chain of middlewares"
    if run.tasks[task].rebuilds >= REBUILDS:
        return f"it was made again {REBUILDS} times"
    if any(run.tasks[index].node.idempotency == "none" for index in (*again, *stale)):
        return "a node that would make it again must not run twice"
    return None


def makers_of(run: RunRecord, task: int, resource_id: str) -> tuple[int, ...]:
    """The tasks that have to run again so that the task finds such a resource, in the order of the plan."""
    on_the_way = _on_the_way(run, task, resource_id)
    return tuple(index for index in on_the_way if type(run.tasks[index].state) is Succeeded)


def _on_the_way(run: RunRecord, task: int, resource_id: str) -> list[int]:
    """The tasks that made it, and those between them and whoever has yet to use it, in the order of the plan."""
    host = run.host_of(task)
    if run.tasks[host].scope is not None:
        return []
    upstream = _upstream(run, host)
    made = [index for index in upstream if _names(run, index, resource_id)]
    again = _between(run, made, upstream)
    handed_on = [index for index in _downstream(run, made) if _names(run, index, resource_id)]
    givers = {*made, *handed_on}
    for other in sorted({child for index in givers for child in run.plan.children[index]}):
        if other not in again and other != host and not run.tasks[other].is_terminal:
            above = _upstream(run, other)
            again |= _between(run, [index for index in made if index in above], above)
    return sorted(again)


def _between(run: RunRecord, made: list[int], upstream: set[int]) -> set[int]:
    """Everything on a way from there to a task, which is: both downstream of a maker and upstream of the task."""
    again = set(made)
    pending = list(made)
    while pending:
        for child in run.plan.children[pending.pop()]:
            if child in upstream and child not in again:
                again.add(child)
                pending.append(child)
    return again


def _upstream(run: RunRecord, task: int) -> set[int]:
    return _reachable(run.plan.parents, [task])


def _downstream(run: RunRecord, tasks: list[int]) -> set[int]:
    return _reachable(run.plan.children, tasks)


def _reachable(neighbours: Sequence[Sequence[int]], tasks: list[int]) -> set[int]:
    """What the tasks lead to, step by step; themselves not included, unless they lead to each other."""
    found: set[int] = set()
    pending = list(tasks)
    while pending:
        for index in neighbours[pending.pop()]:
            if index not in found:
                found.add(index)
                pending.append(index)
    return found


def _names(run: RunRecord, index: int, resource_id: str) -> bool:
    task = run.tasks[index]
    if any(artifact.resource_id == resource_id for artifact in task.artifacts):
        return True
    return task.result is not None and any(
        ref.resource_id == resource_id for ref in find_resource_refs(bytes(task.result))
    )
