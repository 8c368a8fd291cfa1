"""Callbacks of HTTP workers: the reports of attempts that were pushed to a pool (PROTOCOL §9).

Rule 1: liveness is when a report was received, whatever it says of its time. It is not stored, as a heartbeat of a
        session is not; after a restart each started attempt has one full timeout.
Rule 2: the answer leaves after the commit of what it follows from, so that an answer means that it is durable.
Rule 3: the grace of a stop counts from the first answer that told the worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.dispatch import AttemptLease
from astraflow.core.engine.effects import AnswerCallback
from astraflow.core.engine.result_checks import check_result
from astraflow.core.engine.timers import StopDue, TimeoutDue
from astraflow.core.runs.callbacks import (
    Beat,
    Callback,
    CallbackAnswer,
    Completed,
    Started,
    judge,
    state_word,
)
from astraflow.core.runs.commands import Progress, Report, Start
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Stopping

if TYPE_CHECKING:
    from astraflow.core.engine.view import View


def on_callback(view: View, callback: Callback) -> bool:
    """Decide what an HTTP worker reports; whether its run is active. The answer is an effect."""
    place = view.runs.find_task(callback.tenant, callback.task_id)
    if place is None or place[0].run_id != callback.run_id:
        return False
    run, task = place
    answer: CallbackAnswer | errors.AstraflowError
    try:
        known = judge(run, task, callback)
        answer = _decide(view, run, task, callback) if known is None else known
    except errors.Conflict as refused:
        view.count(f"callback: {refused.code.code}")
        answer = refused
        _note_told(view, run, task, callback)
    view.batch.effects.append(AnswerCallback(callback.token, answer))
    return True


def _decide(view: View, run: RunRecord, task: int, callback: Callback) -> CallbackAnswer:
    if isinstance(callback, Started):
        return _start(view, run, task, callback)
    if isinstance(callback, Beat):
        return _beat(view, run, task, callback)
    assert isinstance(callback, Completed)
    worker = run.tasks[task].worker
    assert worker is not None, "an attempt has a worker"
    if callback.metrics:
        view.decide(run, Progress(task, callback.attempt, worker, metrics=callback.metrics))
    refusal = None
    if callback.outcome == "SUCCEEDED":
        refusal = check_result(view, run, task, callback.attempt, worker, callback.output)
    view.decide(
        run,
        Report(
            task,
            callback.attempt,
            worker,
            callback.outcome if refusal is None else "FAILED",
            callback.output,
            error=callback.error if refusal is None else refusal,
            phase=callback.phase,
            partial=callback.partial,
        ),
    )
    return CallbackAnswer(final_state=state_word(run.tasks[task].state))


def _start(view: View, run: RunRecord, task: int, callback: Started) -> CallbackAnswer:
    lease = _lease_of(view, callback)
    worker = view.workers.find(run.tenant, lease.worker_id)
    pool = None if worker is None else worker.pool
    assert pool is not None, "a pool that holds an attempt is not removed"
    ttl_ms = int(pool.heartbeat_timeout_s * 1000)
    view.decide(run, Start(task, callback.attempt, lease.worker_id, callback.worker_id, ttl_ms))
    lease.is_taken = True
    view.leases.shorten(lease, pool.heartbeat_timeout_s, view.now)
    watch_timeout(view, run, task)
    return CallbackAnswer()


def watch_timeout(view: View, run: RunRecord, task: int) -> None:
    """Step in when a started attempt outlives the timeout of its node."""
    timeout_s = run.tasks[task].node.timeout_s
    if timeout_s is not None:
        when = view.now + timeout_s + view.settings.timeout_slack_s
        view.timers.set(when, TimeoutDue(run.task_id(task), run.tasks[task].attempt))


def _beat(view: View, run: RunRecord, task: int, callback: Beat) -> CallbackAnswer:
    lease = _lease_of(view, callback)
    if lease.is_revoked:
        code = errors.TASK_EXPIRED
        raise errors.Conflict(code, code.says, detail={"state": "FAILED"})
    view.leases.extend(lease, view.now)
    if callback.progress is not None or callback.message is not None:
        worker = lease.worker_id
        view.decide(
            run, Progress(task, callback.attempt, worker, callback.progress, callback.message)
        )
    state = run.tasks[task].state
    if not isinstance(state, Stopping):
        return CallbackAnswer()
    _begin_grace(view, lease, state)
    reason = run.cancel.reason if run.cancel is not None else state.why
    return CallbackAnswer(should_cancel=True, cancel_reason=reason)


def _note_told(view: View, run: RunRecord, task: int, callback: Callback) -> None:
    """A repeated start of the attempt that is being stopped was told so."""
    state = run.tasks[task].state
    is_told = isinstance(callback, Started) and isinstance(state, Stopping)
    if is_told and isinstance(state, Stopping) and state.attempt == callback.attempt:
        _begin_grace(view, _lease_of(view, callback), state)


def _begin_grace(view: View, lease: AttemptLease, state: Stopping) -> None:
    if lease.is_stop_told:
        return
    lease.is_stop_told = True
    worker = view.workers.find(lease.tenant, lease.worker_id)
    pool = None if worker is None else worker.pool
    grace_s = state.grace_ms / 1000 if pool is None else pool.cancel_grace_s
    view.timers.set(view.now + grace_s, StopDue(lease.task_id, lease.attempt))


def _lease_of(view: View, callback: Callback) -> AttemptLease:
    lease = view.leases.find(callback.task_id, callback.attempt)
    assert lease is not None, "an attempt that is under way is leased"
    return lease
