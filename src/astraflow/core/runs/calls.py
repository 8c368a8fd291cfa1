"""Calls of middlewares: `ctx.next()` as tasks of their own (PROTOCOL §10).

Rule 1: the request is recorded before it acts. One that comes again, after a new session say, opens nothing: it
        is answered from what is recorded, or waits for the same call.
Rule 2: a call is made by the current attempt of a task that is not being stopped, and only by a middleware: the
        host itself has nothing to call. What it gives the host is an object, or nothing.
Rule 3: when an attempt ends, its calls are stopped. All below it are proved to have ended before the task gets
        another attempt, so that two attempts of one host never run at once through an orphaned chain. That holds
        whatever the next attempt is for: a retry, a loss, or a resource that was made again.
Rule 4: a call that takes longer than its caller allows is stopped as if it were cancelled; the caller is told
        `E.NEXT.TIMEOUT` once it is proved to have ended, so that a second call never runs beside the first.
Rule 5: an attempt that waits for its calls lends its slot and its key: a chain must not block itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.ids import TaskId, uuid5
from astraflow.core.runs.commands import Call
from astraflow.core.runs.consequences import AnswerCall, EnqueueTask, LendSlot, RefuseCall
from astraflow.core.runs.facts import CallOpened, TaskCancelled
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Stopping

if TYPE_CHECKING:
    from astraflow.core.runs.decision import Decision

MAX_CALLS: Final = 10_000
"""Calls of one run: a loop that never ends must not fill the memory (P16)."""
CALLS_PER_TASK: Final = 2
"""A run with many tasks, as a map over a long list, may make as many calls as this for each of them."""
STOP_GRACE_MS: Final = 10_000
_PARAMETERS: Final = (b"{", b"n")
"""How a payload begins that can be the parameters of a host: an object, or null for those that it has."""


def chain_index_of(run: RunRecord, task: int) -> int | None:
    """The place of a task in its host's chain; None for a host, and for a node without middlewares."""
    call = run.tasks[task].call
    if call is not None:
        return call.chain_index
    return 0 if run.node_at(task).middlewares else None


def open_call(decision: Decision, command: Call) -> None:
    """Decide a call of a current attempt."""
    run = decision.run
    known = run.calls.get((command.task, command.attempt, command.request_id))
    if known is not None:
        if run.tasks[known].is_terminal:
            decision.consequences.append(AnswerCall(known))
        decision.ignored = "call is known"
        return
    code = _refusal(run, command)
    if code is not None:
        refusal = RefuseCall(command.task, command.attempt, command.request_id, code)
        decision.consequences.append(refusal)
        decision.ignored = "call refused"
        return
    host = run.node_at(command.task)
    chain = host.middlewares
    following = command.chain_index + 1
    call_id = uuid5(
        run.run_id,
        host.node_id,
        str(command.task),
        str(command.attempt),
        command.request_id,
    )
    if run.tasks[command.task].open_calls == 0:
        decision.consequences.append(LendSlot(command.task, True))
    decision.record(
        CallOpened(
            decision.at,
            len(run.tasks),
            TaskId(call_id),
            command.task,
            command.attempt,
            command.request_id,
            following if following < len(chain) else None,
            command.payload,
            command.timeout_ms,
        )
    )


def _refusal(run: RunRecord, command: Call) -> str | None:
    if run.is_cancelled_at(command.task) or isinstance(run.tasks[command.task].state, Stopping):
        return errors.NEXT_CANCELLED.code
    if chain_index_of(run, command.task) != command.chain_index:
        return errors.NEXT_INVALID.code
    if bytes(command.payload)[:1] not in _PARAMETERS:
        return errors.NEXT_INVALID.code
    own_tasks = len(run.tasks) - len(run.calls)
    if len(run.calls) >= max(MAX_CALLS, CALLS_PER_TASK * own_tasks):
        return errors.NEXT_LIMIT.code
    return None


def end_calls(decision: Decision, parent: int) -> None:
    """The attempt of `parent` is over: stop what it called."""
    run = decision.run
    if run.tasks[parent].open_calls == 0:
        return
    for call in run.open_calls_of(parent):
        end_call(decision, call)


def end_call(decision: Decision, call: int) -> None:
    """Stop a call that has not ended, and all below it."""
    task = decision.run.tasks[call]
    if not task.is_held or decision.take_back(call):
        decision.record(TaskCancelled(decision.at, call, task.attempt))
        end_calls(decision, call)
    elif not (isinstance(task.state, Stopping) and task.state.why == "cancel"):
        decision.stop(call, "cancel", STOP_GRACE_MS)


def has_timed_out(run: RunRecord, call: int) -> bool:
    """Whether a call that was cancelled was ended by its timeout: nothing else ends one while its caller goes on."""
    opened = run.tasks[call].call
    assert opened is not None
    is_stopped = run.is_cancelled_at(call) or isinstance(run.tasks[opened.parent].state, Stopping)
    return opened.timeout_ms is not None and not is_stopped


def advance_callers(decision: Decision) -> None:
    """Tell the callers of ended calls, and queue a task again that only waited for its calls to end."""
    run = decision.run
    ended, run.answered = run.answered, []
    callers: dict[int, None] = {}
    for call in ended:
        opened = run.tasks[call].call
        assert opened is not None
        if run.tasks[opened.parent].is_held:
            decision.consequences.append(AnswerCall(call))
        callers.update(dict.fromkeys(run.callers_of(call)))
    for caller in callers:
        task = run.tasks[caller]
        if task.open_calls == 0 and task.is_held:
            decision.consequences.append(LendSlot(caller, False))
        elif task.open_calls == 0 and task.is_waiting:
            decision.consequences.append(EnqueueTask(caller, task.delay_s))
