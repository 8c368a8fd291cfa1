"""`decide`: one command against one run → the facts to store and what they demand of the tables.

Rule 1: a report counts only if it is of the current attempt, from the worker it was leased to, and the
        task is not terminal (R7). All others change nothing; the decision says which kind it was.
Rule 2: a new attempt is issued only for a task that no worker may be running. The way out of
        `Leased`/`Running`/`Stopping` is a report, a refusal, or a proof (`Lose`).
Rule 3: once a cancel is recorded no attempt is issued (P9): failures, losses and refusals then end the task.
Rule 4: `Cancelled` needs a recorded cancel. Work that a worker stopped for its own reasons is lost.
Rule 5: when the last task has ended, the run ends, in the same decision.

The facts are folded into the run as they are made, because later ones follow from earlier ones (a failure
skips what is downstream). A caller that cannot commit them throws the run away and folds the stored ones again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.ids import is_pool
from astraflow.core.runs.calls import end_call, open_call
from astraflow.core.runs.commands import (
    Approve,
    Call,
    Cancel,
    Collect,
    EndCall,
    EndWait,
    Fail,
    LeaseTask,
    Lose,
    Progress,
    Rebuild,
    ReceiveSignal,
    Refuse,
    Report,
    Restart,
    RunCommand,
    Start,
    StopOverdue,
    TakeList,
    TimeOut,
    Wait,
    Withdraw,
)
from astraflow.core.runs.consequences import (
    AttemptOver,
)
from astraflow.core.runs.controls import approve, end_wait, receive_signal
from astraflow.core.runs.decision import Decision, advance
from astraflow.core.runs.facts import (
    NO_VALUE,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    CancelRequested,
    RunStarted,
    ScopeClosing,
    StopWhy,
    TaskCancelled,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
)
from astraflow.core.runs.rebuild import rebuild
from astraflow.core.runs.retry import (
    DISPATCH_TRIES,
    LOSS_BUDGET,
    dispatch_delay_s,
    may_retry,
    retry_delay_s,
)
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_opening import take_list
from astraflow.core.runs.scope_rules import collect, end_scope_time
from astraflow.core.runs.states import (
    Attempted,
    Leased,
    Lost,
    Opened,
    Running,
    Stopping,
)

if TYPE_CHECKING:
    from random import Random

UNCOUNTED_REFUSALS: Final = frozenset(
    {errors.DISPATCH_DRAINING.code, errors.CMD_CONCURRENCY_VIOLATION.code}
)
"""PROTOCOL §5.5: "CONCURRENCY_VIOLATION and DRAINING wait without counting"."""


def is_current(run: RunRecord, task: int, attempt: int, worker: str) -> bool:
    """Whether a report of this attempt by this worker still decides the task (R7)."""
    state = run.tasks[task].state
    return isinstance(state, Attempted) and state.attempt == attempt and state.worker == worker


def decide(run: RunRecord, command: RunCommand, at: int, rng: Random) -> Decision:
    """Decide one command. `facts` are folded already; carry out `consequences` on the tables."""
    decision = Decision(run, at, rng)
    if run.finished_at is not None:
        decision.ignored = "run is terminal"
        return decision
    _HANDLERS[type(command)](decision, command)
    return decision


def _cancel(decision: Decision, command: Cancel) -> None:
    run = decision.run
    if run.cancel is not None:
        decision.ignored = "cancel already requested"
        return
    decision.record(CancelRequested(decision.at, command.by, command.reason))
    # What a worker may be running is stopped; all else ends at once. Tasks that become ready or doomed
    # on the way are among those cancelled, so they are not advanced before the end.
    for index, task in enumerate(run.tasks):
        if run.is_undoing(index):
            continue
        if task.is_held and not decision.take_back(index):
            decision.stop(index, "cancel", command.grace_ms)
        elif isinstance(task.state, Opened):
            decision.record(ScopeClosing(decision.at, index))  # it ends when all inside have
        elif not task.is_terminal:
            decision.record(TaskCancelled(decision.at, index, task.attempt))
    run.ready.clear()
    run.doomed.clear()
    run.undecided.clear()
    advance(decision)


def _lease(decision: Decision, command: LeaseTask) -> None:
    run = decision.run
    task = run.tasks[command.task]
    is_placeable = task.is_waiting and task.open_calls == 0
    if run.is_cancelled_at(command.task) or not is_placeable:
        decision.ignored = "task is not waiting for a place"
        return
    if run.status == "queued":
        decision.record(RunStarted(decision.at))
    attempt = next_attempt(run, command.task)
    decision.record(
        TaskLeased(
            decision.at,
            command.task,
            attempt,
            command.worker,
            command.incarnation,
            command.ttl_ms,
            command.key,
            command.affinity_key,
        )
    )


def next_attempt(run: RunRecord, task: int) -> int:
    """One more at *every* dispatch, also when the last one was never acknowledged (R6). Above the floor of a restored
    run are only numbers that its former life cannot have used (ADR 38)."""
    return max(run.tasks[task].attempt, run.attempt_floor) + 1


def _wait(decision: Decision, command: Wait) -> None:
    task = decision.run.tasks[command.task]
    if not task.is_waiting:
        decision.ignored = "task is not waiting for a place"
    elif task.waiting_for == command.waiting_for:
        decision.ignored = "already said"
    else:
        decision.record(TaskWaiting(decision.at, command.task, command.waiting_for))


def _fail_unplaceable(decision: Decision, command: Fail) -> None:
    task = decision.run.tasks[command.task]
    if not task.is_waiting:
        decision.ignored = "task is not waiting for a place"
        return
    decision.finish_task(TaskFailed(decision.at, command.task, task.attempt, command.error))


def _start(decision: Decision, command: Start) -> None:
    state = decision.run.tasks[command.task].state
    if type(state) is not Leased or not is_current(
        decision.run, command.task, command.attempt, command.worker
    ):
        decision.ignored = "attempt is not waiting for its start"
        return
    decision.record(
        AttemptStarted(decision.at, command.task, command.attempt, command.by, command.ttl_ms)
    )


def _progress(decision: Decision, command: Progress) -> None:
    run = decision.run
    held = run.tasks[command.task].is_held
    if not held or not is_current(run, command.task, command.attempt, command.worker):
        decision.ignored = "late feedback"
        return
    if type(run.tasks[command.task].state) is Leased:
        # Feedback may overtake the ack of the dispatch, and says the same: the worker has taken it.
        decision.record(AttemptStarted(decision.at, command.task, command.attempt))
    decision.record(
        AttemptProgressed(
            decision.at,
            command.task,
            command.attempt,
            command.progress,
            command.message,
            command.stage,
            command.chunks,
            command.dropped,
            command.metrics,
        )
    )


def _report(decision: Decision, command: Report) -> None:
    if not is_current(decision.run, command.task, command.attempt, command.worker):
        decision.ignored = "late report"
        return
    if type(decision.run.tasks[command.task].state) is Lost and _was_stopped(command):
        decision.ignored = "already counted as lost"
        return
    decision.consequences.append(AttemptOver(command.task, command.attempt))
    if command.status == "SUCCEEDED" and command.task in decision.run.stale:
        _lose_attempt(decision, command.task, MADE_AGAIN)
    elif command.status == "SUCCEEDED":
        decision.finish_task(
            TaskSucceeded(
                decision.at,
                command.task,
                command.attempt,
                command.result,
                command.artifacts,
                command.duration_ms,
            )
        )
    elif command.status == "SKIPPED":
        decision.finish_task(
            TaskSkipped(decision.at, command.task, errors.TASK_SKIPPED.code, None, command.attempt)
        )
    elif command.status == "FAILED":
        _report_failed(decision, command)
    else:
        _report_cancelled(decision, command)


MADE_AGAIN: Final = "what it was given is made again"
"""The cause of the loss of an attempt that succeeded too late (`rebuild`)."""
LOSSES: Final = {
    errors.TASK_DRAINED.code: "drained",
    errors.TASK_HOST_LOST.code: "its host died",
}
"""Failures that are none of the attempt's own, and the cause of the loss that they are. PROTOCOL §2: stopped at the
drain's deadline, "requeued on the loss budget"."""


def _was_stopped(command: Report) -> bool:
    """Whether the report only says that the attempt ended on its worker, for reasons not its own."""
    is_lost = command.error is not None and command.error.code in LOSSES
    return command.status == "CANCELLED" or is_lost


def _report_failed(decision: Decision, command: Report) -> None:
    error = command.error or TaskFailure(
        errors.RUNNER_FAILURE.code, "USER_CODE", "no error was given"
    )
    state = decision.run.tasks[command.task].state
    if error.code in LOSSES:
        _lose_attempt(decision, command.task, LOSSES[error.code])
    elif command.lost is not None and not decision.is_cancelled(command.task):
        if type(state) is not Lost:
            cause = "its resource is gone"
            decision.record(AttemptLost(decision.at, command.task, command.attempt, cause, 0.0))
        _rebuild(decision, Rebuild(command.task, command.lost, error.message))
    elif error.code == errors.CANCEL_TIMEOUT.code and _why(state) not in (None, "cancel"):
        # It had to be killed. What it was stopped for decides what that means, not how it ended.
        _report_cancelled(decision, command)
    else:
        output = NO_VALUE if bytes(command.result) == b"{}" else command.result
        _fail_attempt(decision, command.task, error, output=output)


def _rebuild(decision: Decision, command: Rebuild) -> None:
    rebuild(decision, command)
    advance(decision)


def _why(state: object) -> StopWhy | None:
    return state.why if isinstance(state, Stopping) else None


def _report_cancelled(decision: Decision, command: Report) -> None:
    why = _why(decision.run.tasks[command.task].state)
    if why == "cancel":
        decision.finish_task(
            TaskCancelled(
                decision.at, command.task, command.attempt, True, command.phase, command.partial
            )
        )
    elif why == "withdraw":
        _refuse_attempt(decision, command.task, errors.DISPATCH_WITHDRAWN.code, "withdrawn")
    elif why == "timeout":
        _fail_attempt(decision, command.task, _timeout_problem(), output=_where_stopped(command))
    elif why is None and is_pool(command.worker):
        # A worker with a session says so when it drains; one without has no such reason.
        error = TaskFailure(
            errors.TASK_CANCELLED.code, "CANCELLED", "the worker cancelled it, nobody had asked for"
        )
        _fail_attempt(decision, command.task, error, output=_where_stopped(command))
    else:
        _lose_attempt(decision, command.task, "stopped by its worker")


def _where_stopped(command: Report) -> msgspec.Raw:
    """PROTOCOL §9: `CANCELLED` "keeps `cancelledDuringPhase` and `partialProgress`", also where it is a failure."""
    told = {"cancelledDuringPhase": command.phase, "partialProgress": command.partial}
    given = {name: value for name, value in told.items() if value not in (None, NO_VALUE)}
    return msgspec.Raw(msgspec.json.encode(given)) if given else NO_VALUE


def _fail_attempt(
    decision: Decision,
    index: int,
    error: TaskFailure,
    confirmed: bool = True,
    output: msgspec.Raw = NO_VALUE,
) -> None:
    run = decision.run
    task = run.tasks[index]
    policy = run.tasks[index].node.retry
    failures = task.failures + 1
    if decision.is_cancelled(index) or not may_retry(error, failures, policy):
        decision.finish_task(TaskFailed(decision.at, index, task.attempt, error, confirmed, output))
        return
    delay_s = retry_delay_s(failures, policy, decision.rng)
    attempt = task.attempt
    decision.try_again(
        AttemptFailed(
            decision.at, index, attempt, error, delay_s, output, failures, policy.max_attempts
        )
    )


def _lose_attempt(decision: Decision, index: int, cause: str) -> None:
    run = decision.run
    task = run.tasks[index]
    if decision.is_cancelled(index):
        decision.finish_task(TaskCancelled(decision.at, index, task.attempt, confirmed=False))
    elif run.tasks[index].node.idempotency == "none":
        # Its package says that it must not run again once it may have started.
        error = TaskFailure(errors.TASK_LOST.code, "INFRASTRUCTURE", cause)
        decision.finish_task(TaskFailed(decision.at, index, task.attempt, error))
    elif task.losses + 1 >= LOSS_BUDGET:
        error = TaskFailure(errors.TASK_LOST_TOO_OFTEN.code, "INFRASTRUCTURE", cause)
        decision.finish_task(TaskFailed(decision.at, index, task.attempt, error))
    else:
        delay_s = dispatch_delay_s(task.losses, decision.rng)
        decision.try_again(AttemptLost(decision.at, index, task.attempt, cause, delay_s))


def _refuse_attempt(decision: Decision, index: int, code: str, message: str) -> None:
    run = decision.run
    task = run.tasks[index]
    row = errors.CATALOGUE.get(code)
    is_counted = code not in UNCOUNTED_REFUSALS
    if decision.is_cancelled(index):
        decision.finish_task(TaskCancelled(decision.at, index, task.attempt))
    elif row is not None and not row.retryable:
        error = TaskFailure(code, "CONFIGURATION", message)
        decision.finish_task(TaskFailed(decision.at, index, task.attempt, error))
    elif is_counted and task.tries + 1 >= DISPATCH_TRIES:
        error = TaskFailure(
            errors.DISPATCH_UNAVAILABLE.code, "INFRASTRUCTURE", f"the last refusal was: {code}"
        )
        decision.finish_task(TaskFailed(decision.at, index, task.attempt, error))
    else:
        delay_s = dispatch_delay_s(task.tries, decision.rng)
        decision.try_again(
            AttemptRefused(
                decision.at, index, task.attempt, code, delay_s, message, counted=is_counted
            )
        )


def _refuse(decision: Decision, command: Refuse) -> None:
    run = decision.run
    held = run.tasks[command.task].is_held
    if not held or not is_current(run, command.task, command.attempt, command.worker):
        decision.ignored = "late refusal"
        return
    decision.consequences.append(AttemptOver(command.task, command.attempt))
    _refuse_attempt(decision, command.task, command.code, command.message)


def _call(decision: Decision, command: Call) -> None:
    run = decision.run
    held = run.tasks[command.task].is_held
    if not held or not is_current(run, command.task, command.attempt, command.worker):
        decision.ignored = "late call"
        return
    open_call(decision, command)
    advance(decision)


def _end_call(decision: Decision, command: EndCall) -> None:
    if decision.run.tasks[command.task].is_terminal:
        decision.ignored = "call has ended"
        return
    end_call(decision, command.task)
    advance(decision)


def _withdraw(decision: Decision, command: Withdraw) -> None:
    state = decision.run.tasks[command.task].state
    if type(state) is not Leased or state.attempt != command.attempt:
        decision.ignored = "attempt was taken or is over"
        return
    decision.stop(command.task, "withdraw", 0)


def _lose(decision: Decision, command: Lose) -> None:
    task = decision.run.tasks[command.task]
    if not task.is_held or task.attempt != command.attempt:
        decision.ignored = "attempt is over"
        return
    decision.consequences.append(AttemptOver(command.task, command.attempt))
    why = _why(task.state)
    if why == "withdraw":
        _refuse_attempt(
            decision, command.task, errors.DISPATCH_WITHDRAWN.code, f"withdrawn: {command.cause}"
        )
    elif why == "timeout":
        _fail_attempt(decision, command.task, _timeout_problem(), confirmed=False)
    elif is_pool(task.worker) and type(task.state) is not Leased and why != "rebind":
        _fail_silent(decision, command.task)
    else:
        _lose_attempt(decision, command.task, command.cause)


def _fail_silent(decision: Decision, index: int) -> None:
    """PROTOCOL §9: a started attempt whose heartbeats stop "fails with `HEARTBEAT_TIMEOUT`, the retry policy decides
    about the task"."""
    code = errors.HEARTBEAT_TIMEOUT
    error = TaskFailure(code.code, "INFRASTRUCTURE", code.says)
    task = decision.run.tasks[index]
    if task.node.idempotency == "none":
        # Its package says that it must not run again once it may have started.
        decision.finish_task(TaskFailed(decision.at, index, task.attempt, error, confirmed=False))
    else:
        _fail_attempt(decision, index, error, confirmed=False)


def _time_out(decision: Decision, command: TimeOut) -> None:
    state = decision.run.tasks[command.task].state
    is_running = isinstance(state, Leased | Running) and state.attempt == command.attempt
    if not is_running:
        decision.ignored = "attempt is over or already stopping"
        return
    decision.stop(command.task, "timeout", command.grace_ms)


def _restart(decision: Decision, command: Restart) -> None:
    state = decision.run.tasks[command.task].state
    is_running = isinstance(state, Leased | Running) and state.attempt == command.attempt
    if not is_running:
        decision.ignored = "attempt is over or already stopping"
    elif decision.take_back(command.task):
        _lose_attempt(decision, command.task, "rebound before it started")
    else:
        decision.stop(command.task, "rebind", command.grace_ms)


def _stop_overdue(decision: Decision, command: StopOverdue) -> None:
    """PROTOCOL §5.7: ended by the scheduler with `confirmed: false`. A *new* attempt still needs proof,
    so only a task that gets none is ended here; the others wait for their lease to run out."""
    run = decision.run
    task = run.tasks[command.task]
    state = task.state
    if not isinstance(state, Stopping) or state.attempt != command.attempt:
        decision.ignored = "attempt is over"
        return
    # A call that is stopped in a run that goes on stands before its caller's next attempt.
    if state.why == "cancel" and (task.call is None or run.is_cancelled_at(command.task)):
        error = TaskFailure(errors.CANCEL_TIMEOUT.code, "CANCELLED", "the worker did not confirm")
        decision.consequences.append(AttemptOver(command.task, command.attempt))
        decision.finish_task(
            TaskFailed(decision.at, command.task, task.attempt, error, confirmed=False)
        )
        return
    failures = task.failures + 1
    problem = _timeout_problem()
    if state.why == "timeout" and not may_retry(
        problem, failures, run.tasks[command.task].node.retry
    ):
        decision.consequences.append(AttemptOver(command.task, command.attempt))
        decision.finish_task(
            TaskFailed(decision.at, command.task, task.attempt, problem, confirmed=False)
        )
        return
    decision.ignored = "a new attempt needs proof that this one has ended"


def _receive_signal(decision: Decision, command: ReceiveSignal) -> None:
    receive_signal(decision, command)
    advance(decision)


def _take_list(decision: Decision, command: TakeList) -> None:
    take_list(decision, command)
    advance(decision)


def _end_wait(decision: Decision, command: EndWait) -> None:
    """The time of a task that the scheduler itself carries out has come."""
    if isinstance(decision.run.tasks[command.task].state, Opened):
        end_scope_time(decision, command.task)
        advance(decision)
    else:
        end_wait(decision, command)


def _timeout_problem() -> TaskFailure:
    return TaskFailure(errors.RUNNER_TIMEOUT.code, "TIMEOUT", "the attempt ran longer than allowed")


_HANDLERS: Final[dict[type[RunCommand], Callable[[Decision, Any], None]]] = {
    Call: _call,
    EndCall: _end_call,
    Cancel: _cancel,
    LeaseTask: _lease,
    Wait: _wait,
    Fail: _fail_unplaceable,
    Rebuild: _rebuild,
    Start: _start,
    Progress: _progress,
    Report: _report,
    Refuse: _refuse,
    Withdraw: _withdraw,
    Lose: _lose,
    TimeOut: _time_out,
    Restart: _restart,
    StopOverdue: _stop_overdue,
    EndWait: _end_wait,
    Collect: collect,
    TakeList: _take_list,
    ReceiveSignal: _receive_signal,
    Approve: approve,
}
