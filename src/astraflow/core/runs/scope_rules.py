"""Nodes with a body: containers, calls of other workflows, and maps.

Rule 1: such a node holds no slot and no lease. It begins by adding the tasks of its body to the run, and ends after the
        last of them.
Rule 2: how it begins is in `scope_opening`.
Rule 3: a failure inside that no error edge takes up is a failure of its item. Policy `stop` closes the scope at once,
        `finish` lets everything inside end; both fail the node. `collect` (maps only) puts null in the place of the
        result and lists the error.
Rule 4: a scope that is closing begins nothing; what workers run is stopped, and the node ends when that is proved.
Rule 5: the results of a map stand in the order of its items, whatever the order of their ends. If they are too large
        for a result, they are stored first, and the result of the map refers to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.runs.calls import end_call, end_calls
from astraflow.core.runs.consequences import StoreCollected, UnqueueTask
from astraflow.core.runs.facts import (
    ScopeClosing,
    TaskCancelled,
    TaskDecided,
    TaskFailed,
    TaskFailure,
)
from astraflow.core.runs.joins import is_handled
from astraflow.core.runs.states import LIVE, Failed, Opened
from astraflow.core.runs.values import results_of
from astraflow.core.workflow.bindings import MISSING, write
from astraflow.core.workflow.maps import ERRORS, collected
from astraflow.core.workflow.plan import read_port

if TYPE_CHECKING:
    from astraflow.core.runs.commands import Collect
    from astraflow.core.runs.decision import Decision
    from astraflow.core.runs.run import RunRecord
    from astraflow.core.runs.scopes import Scope

MAX_COLLECTED_BYTES: Final = 3 * 1024 * 1024
"""What a node with a body may return inline: it must fit a frame, as the result of any other node."""
MAX_ERRORS: Final = 1_000
"""Errors that a map lists."""
STOP_GRACE_MS: Final = 10_000


def _fail(decision: Decision, task: int, error: TaskFailure) -> None:
    decision.record(TaskFailed(decision.at, task, decision.run.tasks[task].attempt, error))


# -- ending ------------------------------------------------------------------------------------


def advance_scope(decision: Decision, owner: int) -> None:
    """Something inside has ended: close the scope if a failure asks for it, and end its node if all has ended."""
    run = decision.run
    scope = run.scopes[owner]
    if run.tasks[owner].is_terminal:
        return
    if scope.closing is None and scope.step.policy == "stop":
        failed = _first_failure(run, scope)
        if failed is not None:
            close_scope(decision, owner, _failure_of(run, scope, failed))
    if scope.is_over:
        _end(decision, owner, scope)


def _end(decision: Decision, owner: int, scope: Scope) -> None:
    run = decision.run
    closing = scope.closing
    if run.is_cancelled_at(owner) or (closing is not None and closing.error is None):
        decision.record(TaskCancelled(decision.at, owner, 0))
        return
    failed = None if scope.step.policy == "collect" else _first_failure(run, scope)
    if closing is not None:
        assert closing.error is not None
        _fail(decision, owner, closing.error)
    elif failed is not None:
        _fail(decision, owner, _failure_of(run, scope, failed))
    else:
        result = _results(run, scope)
        if len(result) <= MAX_COLLECTED_BYTES:
            decision.record(TaskDecided(decision.at, owner, msgspec.Raw(result)))
        elif scope.step.map is not None:
            decision.consequences.append(StoreCollected(owner))
        else:
            message = f"the outputs have {len(result)} bytes together"
            _fail(decision, owner, _failure(errors.RESULT_TOO_LARGE, message))


def collected_list(run: RunRecord, owner: int) -> bytes:
    """The results of a map that has ended, as JSON."""
    scope = run.scopes[owner]
    results = [_item_result(run, scope.first_of(item)) for item in range(scope.count)]
    return b"[" + b",".join(results) + b"]"


def collect(decision: Decision, command: Collect) -> None:
    """What a map has collected is stored, or cannot be."""
    run = decision.run
    scope = run.scopes.get(command.task)
    is_open = isinstance(run.tasks[command.task].state, Opened)
    if scope is None or not is_open or not scope.is_over or scope.closing is not None:
        decision.ignored = "nothing is to be stored"
        return
    if command.ref is None:
        code = errors.RESULT_NOT_STORED
        message = f"{code.says}: {command.problem}"
        decision.finish_task(
            TaskFailed(
                decision.at, command.task, 0, TaskFailure(code.code, "INFRASTRUCTURE", message)
            )
        )
        return
    assert scope.step.map is not None
    result: dict[str, Any] = {scope.step.map.collect: command.ref}
    if scope.step.policy == "collect":
        result[ERRORS] = _item_errors(run, scope)
    raw = msgspec.Raw(msgspec.json.encode(result))
    decision.finish_task(TaskDecided(decision.at, command.task, raw))


def _failure(code: errors.Code, message: str) -> TaskFailure:
    return TaskFailure(code.code, "CONFIGURATION", message, retryable=False)


def _first_failure(run: RunRecord, scope: Scope) -> int | None:
    return next((task for task in scope.failed if not is_handled(run, task)), None)


def _failure_of(run: RunRecord, scope: Scope, failed: int) -> TaskFailure:
    """What a node fails with because of a task inside."""
    state = run.tasks[failed].state
    assert isinstance(state, Failed)
    error = state.error
    where = f"node {run.tasks[failed].node.label}"
    if scope.step.map is not None:
        where = f"item {scope.item_of(failed)}"
    return msgspec.structs.replace(error, message=f"{where}: {error.message}", retryable=None)


def _results(run: RunRecord, scope: Scope) -> bytes:
    over = scope.step.map
    if over is not None:
        errors_of_items = _item_errors(run, scope) if scope.step.policy == "collect" else None
        results = [_item_result(run, scope.first_of(item)) for item in range(scope.count)]
        return bytes(collected(over, results, errors_of_items))
    document: Any = {}
    decoded: dict[int, Any] = {}
    for output in scope.plan.outputs:
        source = scope.first + output.source
        if source not in decoded:
            is_live = type(run.tasks[source].state) in LIVE
            decoded[source] = results_of(run, source) if is_live else None
        given = decoded[source]
        value = MISSING if given is None else read_port(output, given)
        document = write(
            output.write or (output.name,), document, None if value is MISSING else value
        )
    if scope.step.is_call:
        document = {"outputs": document}
    return msgspec.json.encode(document)


def _item_result(run: RunRecord, task: int) -> bytes:
    state = run.tasks[task]
    is_live = type(state.state) in LIVE and state.result is not None
    return bytes(state.result) if is_live and state.result is not None else b"null"


def _item_errors(run: RunRecord, scope: Scope) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for task in scope.failed:
        item = scope.item_of(task)
        state = run.tasks[task].state
        if item in found or not isinstance(state, Failed) or is_handled(run, task):
            continue
        error = state.error
        found[item] = {
            "index": item,
            "code": error.code,
            "category": error.category,
            "message": error.message,
        }
        if len(found) == MAX_ERRORS:
            break
    return [found[item] for item in sorted(found)]


# -- closing -----------------------------------------------------------------------------------


def close_scope(decision: Decision, owner: int, error: TaskFailure | None) -> None:
    """Begin nothing more inside, and stop what runs."""
    run = decision.run
    scope = run.scopes[owner]
    begun = range(scope.first, scope.first_of(scope.started))
    decision.record(ScopeClosing(decision.at, owner, error))
    for index in begun:
        task = run.tasks[index]
        if task.is_terminal:
            continue
        if isinstance(task.state, Opened):
            if run.scopes[index].closing is None:
                close_scope(decision, index, None)
        elif task.is_held and not decision.take_back(index):
            decision.stop(index, "cancel", STOP_GRACE_MS)
            for call in run.open_calls_of(index) if task.open_calls else ():
                end_call(decision, call)
        else:
            decision.record(TaskCancelled(decision.at, index, task.attempt))
            decision.consequences.append(UnqueueTask(index))
            end_calls(decision, index)
    # What became ready or doomed on the way is among what was cancelled.
    run.ready = [index for index in run.ready if not run.tasks[index].is_terminal]


def end_scope_time(decision: Decision, owner: int) -> None:
    """The time of a container or a call is over."""
    state = decision.run.tasks[owner].state
    assert isinstance(state, Opened)
    scope = decision.run.scopes[owner]
    if scope.is_over and scope.closing is None:
        decision.consequences.append(StoreCollected(owner))  # who was to store it has died
        return
    if scope.closing is not None or state.until is None:
        decision.ignored = "scope is closing"
        return
    message = f"the nodes inside had not ended after {(state.for_ms or 0) / 1000:g} s"
    error = TaskFailure(errors.TIMEOUT.code, "TIMEOUT", message, retryable=False)
    close_scope(decision, owner, error)
