"""Calls of middlewares as the wire sees them: answers, refusals, and the slot that a waiting attempt lends."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.categories import Category
from astraflow.core.dispatch.demand import host_input
from astraflow.core.engine.effects import SendNextResponse
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.core.runs.calls import has_timed_out
from astraflow.core.runs.consequences import LendSlot, RefuseCall
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Cancelled, Failed, Succeeded

if TYPE_CHECKING:
    from astraflow.core.engine.view import View


MAX_TOLD_INPUT_BYTES: Final = 256 * 1024
"""A larger input of a host is not told to its middlewares: a dispatch has to fit into a frame."""


def lenders_of(run: RunRecord, task: int) -> list[TaskId]:
    """The ids of the tasks that wait for this one: those it was called by, directly or not."""
    found = []
    call = run.tasks[task].call
    while call is not None:
        found.append(run.task_id(call.parent))
        call = run.tasks[call.parent].call
    return found


def wrapped_host(run: RunRecord, task: int) -> business.WrappedHost:
    """The host behind a middleware, for its dispatch: what a cache is keyed by, and what a new input is made from."""
    node = run.node_at(task)
    given = host_input(run, task)
    package = business.PackageId(node.package_name, node.package_version)
    if given is None:
        return business.WrappedHost(node.type, package)
    identity = (node.type, node.package_name, node.package_version, msgspec.json.decode(given))
    digest = sha256(msgspec.json.encode(identity, order="sorted")).hexdigest()
    if len(given) > MAX_TOLD_INPUT_BYTES:
        return business.WrappedHost(node.type, package, input_sha256=digest)
    return business.WrappedHost(node.type, package, msgspec.Raw(given), digest)


def answer_call(view: View, run: RunRecord, task: int) -> None:
    """Tell the attempt that waits for an ended call how it ended, if its worker has a session."""
    call = run.tasks[task].call
    assert call is not None
    error = _error_of(run, task)
    _answer(view, run, call.parent, call.request_id, run.tasks[task].result, error)


def _error_of(run: RunRecord, task: int) -> business.AttemptError | None:
    """Why an ended call did not succeed, as its caller is told."""
    state = run.tasks[task].state
    if isinstance(state, Succeeded):
        return None
    # A late one that did not end within its grace either was killed.
    was_stopped = isinstance(state, Cancelled) or (
        isinstance(state, Failed) and state.error.code == errors.CANCEL_TIMEOUT.code
    )
    if was_stopped and has_timed_out(run, task):
        return _error(errors.NEXT_TIMEOUT, "TIMEOUT")
    if isinstance(state, Failed):
        problem = state.error
        return business.AttemptError(
            problem.code, problem.category, problem.message, problem.retryable, problem.stack
        )
    return _error(errors.NEXT_CANCELLED, "CANCELLED")


def refuse_call(view: View, run: RunRecord, effect: RefuseCall) -> None:
    """Tell the attempt that its call was not taken."""
    is_cancelled = effect.code == errors.NEXT_CANCELLED.code
    category: Category = "CANCELLED" if is_cancelled else "CONFIGURATION"
    error = _error(errors.CATALOGUE[effect.code], category)
    _answer(view, run, effect.task, effect.request_id, None, error)


def answer_ended_calls(view: View, run: RunRecord, parent: int, attempt: int) -> None:
    """After a new session: "an unanswered one is … answered from the store" (PROTOCOL §10)."""
    for task in run.tasks[parent].made_calls or ():
        call = run.tasks[task].call
        assert call is not None
        if call.parent_attempt == attempt and run.tasks[task].is_terminal:
            answer_call(view, run, task)


def lend_slot(view: View, run: RunRecord, effect: LendSlot) -> None:
    """Free the slot of an attempt that waits for its calls, or take it again."""
    task = run.tasks[effect.task]
    lease = view.leases.find(run.task_id(effect.task), task.attempt)
    assert lease is not None, "an attempt that calls is leased"
    assert lease.is_lent != effect.is_lent
    lease.is_lent = effect.is_lent
    worker = view.workers.find(run.tenant, lease.worker_id)
    assert worker is not None, "a lease names a known worker"
    node = run.tasks[effect.task].node
    if effect.is_lent:
        view.workers.free_slot(worker, node.type, node.resources)
        view.wake_for(worker)
    else:
        view.workers.take_slot(worker, node.type, node.resources)


def _answer(
    view: View,
    run: RunRecord,
    parent: int,
    request_id: str,
    result: msgspec.Raw | None,
    error: business.AttemptError | None,
) -> None:
    task = run.tasks[parent]
    worker = view.workers.find(run.tenant, task.worker) if task.worker is not None else None
    if worker is None or worker.session_id is None:
        return
    response = business.NextResponse(
        run.run_id,
        run.task_id(parent),
        task.attempt,
        request_id,
        result if result is not None else msgspec.Raw(b"null"),
        error,
    )
    view.batch.effects.append(SendNextResponse(response, worker.session_id))


def _error(code: errors.Code, category: Category) -> business.AttemptError:
    return business.AttemptError(code.code, category, code.says)
