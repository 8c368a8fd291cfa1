"""Nodes that the scheduler itself carries out: choices, waits, approvals, signals.

Rule 1: none of them holds a slot, a lease or a process. A choice is decided at once; the others park their task until a
        time, a person or a message ends the wait, and that is a fact.
Rule 2: a wait for so many seconds, and every deadline, is measured by the clock that only goes forward; after a restart
        the wall clock says how much of it is left. A wait until a time of day ends when the wall clock shows that time.
Rule 3: a message is kept from when it comes until a node takes it, the oldest first; it is taken once. One that its
        sender names comes once.
Rule 4: an approval is decided once, by the first who decides, or by its deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.expressions.budget import Budget
from astraflow.core.expressions.operations import equal, is_number
from astraflow.core.runs.commands import Approve, EndWait, ReceiveSignal
from astraflow.core.runs.conditions import expression_failure
from astraflow.core.runs.consequences import WatchParked
from astraflow.core.runs.facts import (
    RunStarted,
    SignalReceived,
    TaskDecided,
    TaskFailed,
    TaskFailure,
    TaskParked,
    WaitReason,
)
from astraflow.core.runs.states import Parked
from astraflow.core.runs.values import bind_parameters, names_of
from astraflow.core.timestamps import iso, parse_iso
from astraflow.core.workflow.settings_rules import is_signal_name

if TYPE_CHECKING:
    from astraflow.core.runs.decision import Decision
    from astraflow.core.runs.run import RunRecord
    from astraflow.core.workflow.definition import WaitSpec
    from astraflow.core.workflow.plan import ControlStep

MAX_SIGNALS: Final = 1_000
"""Messages of one run that no node has taken yet."""
MAX_SIGNAL_BYTES: Final = 4 * 1024 * 1024
"""What their payloads may have together: an active run is kept in memory."""


def perform(decision: Decision, task: int, step: ControlStep) -> None:
    """Begin a node of the scheduler that is ready."""
    run = decision.run
    if run.status == "queued":
        decision.record(RunStarted(decision.at))
    try:
        if step.choose is not None:
            decision.record(TaskDecided(decision.at, task, _choose(run, task, step.choose)))
        elif step.wait is not None:
            _wait(decision, task, step.wait)
        elif step.signal is not None:
            _await_signal(decision, task, step.signal.name, step.signal.timeout_seconds)
        else:
            assert step.approval is not None, "a step of the scheduler is one of these"
            text = _text(run, task, step.approval.message, "approval/message")
            _park(decision, task, "approval", text, step.approval.timeout_s)
    except ExpressionError as error:
        failure = expression_failure(error)
        decision.record(TaskFailed(decision.at, task, run.tasks[task].attempt, failure))


def _choose(run: RunRecord, task: int, how: str) -> msgspec.Raw:
    """The case that a node chooses: its edges lead on, those of the others do not."""
    parameters = msgspec.json.decode(bind_parameters(run, task, run.node_at(task)))
    value = parameters.get("value")
    case = _case_of(parameters, value)
    if how == "if":
        case = "true" if parameters.get("condition") else "false"
    return msgspec.Raw(msgspec.json.encode({"case": case, "value": value}))


def _case_of(parameters: dict[str, Any], value: Any) -> str | None:
    for one in parameters.get("cases") or ():
        is_chosen = bool(one.get("when"))
        if "equals" in one:
            is_chosen = equal(one["equals"], value, Budget())
        if is_chosen:
            return str(one["port"])
    default: str | None = parameters.get("default")
    return default


# -- waiting -----------------------------------------------------------------------------------


def _wait(decision: Decision, task: int, wait: WaitSpec) -> None:
    if wait.until is None:
        assert wait.seconds is not None, "a wait has either"
        for_ms = int(wait.seconds * 1000)
        until = decision.at + for_ms
    else:
        for_ms = None
        until = _time_of(decision.run, task, wait.until)
    if until <= decision.at:
        decision.record(TaskDecided(decision.at, task, _waited(until)))
        return
    _park_until(decision, task, WaitReason("time", f"until {iso(until)}", until), for_ms)


def _waited(until: int) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"until": iso(until)}))


def _time_of(run: RunRecord, task: int, text: str) -> int:
    """The wall-clock milliseconds of a time as it is written, or of the value of an expression."""
    value = _value(run, task, text, "wait/until")
    if is_number(value) and abs(value) < 10**11:
        return int(value * 1000)
    until = parse_iso(value) if isinstance(value, str) else None
    if until is None:
        raise ExpressionError(
            "wait/until: the value is neither an RFC 3339 time nor seconds since 1970"
        )
    return until


def _value(run: RunRecord, task: int, text: str, where: str) -> Any:
    """A setting as it is written, or the value of an expression."""
    if not text.startswith("="):
        return text
    try:
        return compile_expression(text[1:]).evaluate(names_of(run, task))
    except ExpressionError as error:
        raise ExpressionError(f"{where}: {error.message}") from None


def _text(run: RunRecord, task: int, text: str, where: str) -> str:
    value = _value(run, task, text, where)
    if not isinstance(value, str):
        raise ExpressionError(f"{where}: the value is no string")
    return value


def _await_signal(decision: Decision, task: int, name: str, timeout_s: float | None) -> None:
    run = decision.run
    wanted = _text(run, task, name, "signal/name")
    if not is_signal_name(wanted):
        raise ExpressionError("signal/name: no signal can be sent under this name")
    number = next((one for one, fact in run.signals.items() if fact.name == wanted), None)
    if number is None:
        _park(decision, task, "signal", wanted, timeout_s)
    else:
        _take_signal(decision, task, number)


def _take_signal(decision: Decision, task: int, number: int) -> None:
    signal = decision.run.signals[number]
    result = {"name": signal.name, "payload": signal.payload, "receivedAt": iso(signal.at)}
    encoded = msgspec.Raw(msgspec.json.encode(result))
    decision.record(TaskDecided(decision.at, task, encoded, signal.by, number))


def _park(decision: Decision, task: int, kind: Any, detail: str, timeout_s: float | None) -> None:
    for_ms = None if timeout_s is None else int(timeout_s * 1000)
    until = None if for_ms is None else decision.at + for_ms
    _park_until(decision, task, WaitReason(kind, detail, until), for_ms)


def _park_until(decision: Decision, task: int, reason: WaitReason, for_ms: int | None) -> None:
    decision.record(TaskParked(decision.at, task, reason, for_ms))
    if reason.until is not None:
        decision.consequences.append(WatchParked(task, reason.until - decision.at))


# -- what ends a wait --------------------------------------------------------------------------


def end_wait(decision: Decision, command: EndWait) -> None:
    """The time of a parked task has come: the wait is over, or its deadline."""
    run = decision.run
    state = run.tasks[command.task].state
    if not isinstance(state, Parked) or state.waiting_for.until is None:
        decision.ignored = "task is not parked"
        return
    reason = state.waiting_for
    assert reason.until is not None
    if state.for_ms is None and decision.at < reason.until:
        # The wall clock was set back, or the timer came early.
        decision.consequences.append(WatchParked(command.task, reason.until - decision.at))
        return
    if reason.kind == "time":
        decision.finish_task(TaskDecided(decision.at, command.task, _waited(reason.until)))
        return
    approval = None if reason.kind == "signal" else _step_of(run, command.task).approval
    if approval is not None and approval.default is not None:
        _decide_approval(decision, Approve(command.task, approval.default == "approve"))
        return
    what = "nobody decided" if reason.kind == "approval" else "no signal came"
    error = TaskFailure(
        errors.TIMEOUT.code, "TIMEOUT", f"{what} by {iso(reason.until)}", retryable=False
    )
    decision.finish_task(TaskFailed(decision.at, command.task, 0, error))


def _step_of(run: RunRecord, task: int) -> ControlStep:
    step = run.node_at(task).control
    assert step is not None, "only a node of the scheduler is parked"
    return step


def receive_signal(decision: Decision, command: ReceiveSignal) -> None:
    """Keep a message, and give it to the first task that waits for it."""
    run = decision.run
    is_known = command.signal_id is not None and command.signal_id in run.signal_ids
    if run.cancel is not None or is_known:
        decision.ignored = "signal is known" if is_known else "run is cancelled"
        return
    decision.record(
        SignalReceived(decision.at, command.name, command.payload, command.by, command.signal_id)
    )
    for task in run.parked:
        state = run.tasks[task].state
        assert isinstance(state, Parked), "what is listed is parked"
        reason = state.waiting_for
        if (reason.kind, reason.detail) == ("signal", command.name):
            _take_signal(decision, task, run.signal_count - 1)
            return


def approve(decision: Decision, command: Approve) -> None:
    """A person has decided."""
    state = decision.run.tasks[command.task].state
    if not isinstance(state, Parked) or state.waiting_for.kind != "approval":
        decision.ignored = "nobody is asked"
        return
    _decide_approval(decision, command)


def _decide_approval(decision: Decision, command: Approve) -> None:
    result = {
        "approved": command.approved,
        "comment": command.comment,
        "by": command.by or None,
        "values": command.values,
    }
    encoded = msgspec.Raw(msgspec.json.encode(result))
    decision.finish_task(TaskDecided(decision.at, command.task, encoded, command.by))
