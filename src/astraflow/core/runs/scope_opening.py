"""How nodes with a body begin: what they are given, and the list of a map.

Rule 1: what such a node was given is part of the fact that opens it: what happens upstream later changes nothing
        inside.
Rule 2: a list that is stored by reference is read by the scheduler before the map opens. Until then the map is ready
        and waits for the resource, as any task does whose resource is away: so a cancel, a restart and a resource that
        has to be made again are what they are for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.expressions.budget import kind_of
from astraflow.core.expressions.stored_value import stored_resource, with_stored_values
from astraflow.core.runs.conditions import expression_failure
from astraflow.core.runs.consequences import EnqueueTask, WatchParked
from astraflow.core.runs.facts import (
    RunStarted,
    ScopeOpened,
    TaskDecided,
    TaskFailed,
    TaskFailure,
    TaskWaiting,
    WaitReason,
)
from astraflow.core.runs.scopes import read_items
from astraflow.core.runs.value_checks import input_failure
from astraflow.core.runs.values import bind_parameters, names_of
from astraflow.core.workflow.bindings import MISSING, read, write
from astraflow.core.workflow.maps import collected
from astraflow.core.workflow.problems import InvalidDocument
from astraflow.core.workflow.run_inputs import take_inputs

if TYPE_CHECKING:
    from astraflow.core.runs.commands import TakeList
    from astraflow.core.runs.decision import Decision
    from astraflow.core.runs.run import RunRecord
    from astraflow.core.workflow.plan import BodyStep, MapStep

MAX_ITEMS: Final = 100_000
"""Of one map: its tasks are in memory while the run is active."""
MAX_RUN_TASKS: Final = 250_000
"""Of one run, with the tasks of all bodies."""
MAX_LIST_BYTES: Final = 32 * 1024 * 1024
"""Of a list that is stored by reference: it is in memory, and in the fact that opens its map, which is read whole for
each reader that begins with the first event."""

_WAITS_FOR: Final = "the list of the map: "


def open_scope(decision: Decision, task: int, step: BodyStep) -> None:
    """Begin a node with a body."""
    run = decision.run
    if run.status == "queued":
        decision.record(RunStarted(decision.at))
    try:
        opened = _opened(decision, task, step)
    except ExpressionError as error:
        opened = expression_failure(error)
    _record(decision, task, opened)


def _record(
    decision: Decision, task: int, opened: ScopeOpened | TaskDecided | TaskWaiting | TaskFailure
) -> None:
    if isinstance(opened, TaskFailure):
        attempt = decision.run.tasks[task].attempt
        decision.record(TaskFailed(decision.at, task, attempt, opened))
        return
    decision.record(opened)
    if isinstance(opened, TaskWaiting):
        decision.consequences.append(EnqueueTask(task))
    elif isinstance(opened, ScopeOpened) and opened.until is not None:
        decision.consequences.append(WatchParked(task, opened.until - decision.at))


def _opened(
    decision: Decision, task: int, step: BodyStep
) -> ScopeOpened | TaskDecided | TaskWaiting | TaskFailure:
    run = decision.run
    parameters = bind_parameters(run, task, run.node_at(task))
    first, for_ms = len(run.tasks), None
    if step.map is not None:
        return _begun_map(decision, task, step, step.map, msgspec.json.decode(parameters))
    if first + len(step.plan.nodes) > MAX_RUN_TASKS:
        return _too_many(first + len(step.plan.nodes), MAX_RUN_TASKS, "tasks in this run")
    misfit = input_failure(run, task, parameters)
    if misfit is not None:
        return misfit
    if step.inputs is not None:
        inputs = msgspec.json.decode(parameters).get("inputs", {})
        if not isinstance(inputs, dict):
            return _invalid("/inputs: the value is no object")
        try:
            parameters = bytes(take_inputs(step.inputs, msgspec.Raw(msgspec.json.encode(inputs))))
        except InvalidDocument as error:
            return _invalid(f"{error.problems[0].pointer}: {error.problems[0].message}")
    if step.timeout_s is not None:
        for_ms = int(step.timeout_s * 1000)
    until = None if for_ms is None else decision.at + for_ms
    return ScopeOpened(
        decision.at, task, first, 1, msgspec.Raw(parameters), until=until, for_ms=for_ms
    )


def _invalid(message: str) -> TaskFailure:
    return TaskFailure(errors.TASK_INPUT_INVALID.code, "CONFIGURATION", message, retryable=False)


def _too_many(count: int, limit: int, what: str) -> TaskFailure:
    message = f"there are more than {limit} {what}: {count}"
    return TaskFailure(errors.TASK_TOO_MANY.code, "CONFIGURATION", message, retryable=False)


# -- maps --------------------------------------------------------------------------------------


def _begun_map(
    decision: Decision, task: int, step: BodyStep, over: MapStep, parameters: Any
) -> ScopeOpened | TaskDecided | TaskWaiting | TaskFailure:
    if over.path is None:
        assert over.over is not None, "a map has either"
        items = _evaluate(decision.run, task, over.over)
    else:
        items = read(over.path, parameters)
    stored = stored_resource(items)
    if stored is not None:
        return TaskWaiting(decision.at, task, WaitReason("resource", _WAITS_FOR + stored))
    if not isinstance(items, list):
        kind = "nothing" if items is MISSING else kind_of(with_stored_values(items))
        return _no_list(kind)
    listed = msgspec.Raw(msgspec.json.encode(items))
    return _opened_map(decision, task, step, over, parameters, len(items), listed)


def awaited_list(run: RunRecord, task: int) -> str | None:
    """The resource that a map waits for, which is its list; None if it waits for none."""
    state = run.tasks[task]
    is_map = state.node.control is not None and state.node.control.body is not None
    reason = state.waiting_for if is_map and state.is_waiting else None
    return None if reason is None else reason.detail.removeprefix(_WAITS_FOR)


def take_list(decision: Decision, command: TakeList) -> None:
    """The stored list of a map has been read: open the map. What became ready is the caller's to take up."""
    run, task = decision.run, command.task
    if awaited_list(run, task) != command.resource_id:
        decision.ignored = "map does not wait for this list"
        return
    control = run.node_at(task).control
    assert control is not None
    assert control.body is not None
    over = control.body.map
    assert over is not None, "only a map reads a list"
    try:
        parameters = msgspec.json.decode(bind_parameters(run, task, run.node_at(task)))
        count = len(read_items(command.items))
    except ExpressionError as error:
        _record(decision, task, expression_failure(error))
    except msgspec.ValidationError:
        _record(decision, task, _no_list(kind_of(msgspec.json.decode(command.items))))
    else:
        opened = _opened_map(decision, task, control.body, over, parameters, count, command.items)
        _record(decision, task, opened)


def _evaluate(run: RunRecord, task: int, text: str) -> Any:
    try:
        return compile_expression(text).evaluate(names_of(run, task))
    except ExpressionError as error:
        raise ExpressionError(f"map/over: {error.message}") from None


def _no_list(kind: str) -> TaskFailure:
    return _invalid(f"map/over: the value is no list but {kind}")


def _opened_map(
    decision: Decision,
    task: int,
    step: BodyStep,
    over: MapStep,
    parameters: Any,
    count: int,
    items: msgspec.Raw,
) -> ScopeOpened | TaskDecided | TaskFailure:
    if count > MAX_ITEMS:
        return _too_many(count, MAX_ITEMS, "items in one map")
    first = len(decision.run.tasks)
    tasks = first + count * len(step.plan.nodes)
    if tasks > MAX_RUN_TASKS:
        return _too_many(tasks, MAX_RUN_TASKS, "tasks in this run")
    if not count:
        failed: list[Any] | None = [] if step.policy == "collect" else None
        return TaskDecided(decision.at, task, collected(over, [], failed))
    if over.path is not None:
        parameters = write(over.path, parameters, None)
    given = msgspec.Raw(msgspec.json.encode(parameters))
    return ScopeOpened(decision.at, task, first, count, given, items)
