"""What an HTTP worker reports of an attempt, judged against its run (PROTOCOL §9, ADR-023).

The same judgement serves a run that is active and one that has ended and was read from the store. Its order is that of
the contract: the attempt, then what the state of the attempt allows. Who the worker is was checked before.

Rule 1: an attempt belongs to the invocation that started it (`workerId`). A second delivery of the same push is told to
        stop at its start.
Rule 2: nothing revives an attempt that is over. The first terminal report wins; the same outcome again gets the same
        answer, another outcome is told the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.contract.words import CallbackOutcome
from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.facts import NO_VALUE, TaskFailure
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import (
    Backoff,
    Cancelled,
    Failed,
    Leased,
    Lost,
    Running,
    Skipped,
    State,
    Stopping,
    Succeeded,
)


class Callback(msgspec.Struct, frozen=True, kw_only=True):
    """The base of the three callbacks. `token`: whatever the shell needs to find its caller again."""

    token: object
    tenant: str
    run_id: RunId
    task_id: TaskId
    token_attempt: int
    """The attempt that the task token was made for."""
    attempt: int
    attempt_id: str | None
    worker_id: str


class Started(Callback, frozen=True, kw_only=True):
    """The worker began."""


class Beat(Callback, frozen=True, kw_only=True):
    """The worker is alive."""

    progress: float | None = None
    message: str | None = None


class Completed(Callback, frozen=True, kw_only=True):
    """The worker has ended the attempt."""

    outcome: CallbackOutcome
    output: msgspec.Raw = msgspec.Raw(b"{}")
    error: TaskFailure | None = None
    metrics: Mapping[str, float] = {}
    phase: str | None = None
    partial: msgspec.Raw = NO_VALUE


class CallbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a callback that was accepted is answered with."""

    final_state: str | None = None
    should_cancel: bool = False
    cancel_reason: str | None = None


def attempt_id(task_id: TaskId, attempt: int) -> str:
    """The one word for an attempt."""
    return f"{task_id}.{attempt}"


def dispatch_id(run_id: RunId, task_id: TaskId, attempt: int) -> str:
    """PROTOCOL §9: "a function of (run, task, attempt), so that a repaired dispatch repeats it and is run once"."""
    prefix = f"{run_id}."
    name = task_id.removeprefix(prefix)
    return f"{run_id}-{name}-{attempt}"


def judge(run: RunRecord, task: int, callback: Callback) -> CallbackAnswer | None:
    """What a callback is answered if nothing changes by it; None: it is to be decided.

    Raises:
        Conflict: with the code and the fields of the contract.
    """
    _check_attempt(run, task, callback)
    state = run.tasks[task].state
    if isinstance(callback, Started):
        return _judge_started(state, callback)
    if isinstance(callback, Beat):
        _check_beat(state, callback)
        return None
    assert isinstance(callback, Completed)
    return _judge_completed(state, callback)


def _check_attempt(run: RunRecord, task: int, callback: Callback) -> None:
    current = run.tasks[task].attempt
    wanted = attempt_id(callback.task_id, callback.attempt)
    given = callback.token_attempt if callback.token_attempt != current else callback.attempt
    if given == current and callback.attempt_id in (None, wanted):
        return
    raise errors.Conflict(
        errors.ATTEMPT_MISMATCH,
        errors.ATTEMPT_MISMATCH.says,
        detail={"expectedAttempt": current, "receivedAttempt": given},
    )


def _judge_started(state: State, callback: Callback) -> CallbackAnswer | None:
    if isinstance(state, Leased):
        return None
    if isinstance(state, Running):
        _check_invocation(state, callback)
        return CallbackAnswer()
    raise _over(state)


def _check_beat(state: State, callback: Callback) -> None:
    if isinstance(state, Leased):
        raise errors.Conflict(errors.NOT_STARTED, errors.NOT_STARTED.says)
    if not isinstance(state, Running | Stopping):
        raise errors.Conflict(
            errors.TASK_EXPIRED, errors.TASK_EXPIRED.says, detail={"state": state_word(state)}
        )
    _check_invocation(state, callback)


def _judge_completed(state: State, callback: Completed) -> CallbackAnswer | None:
    if isinstance(state, Leased | Lost):
        return None
    if isinstance(state, Running | Stopping):
        _check_invocation(state, callback)
        return None
    if not _is_same_outcome(state, callback.outcome):
        raise _over(state)
    return CallbackAnswer(final_state=state_word(state))


def _is_same_outcome(state: State, outcome: CallbackOutcome) -> bool:
    """Whether an attempt that is over may have been ended by a report with this outcome."""
    if isinstance(state, Failed) and outcome == "CANCELLED":
        return state.error.code in _CANCELLED_AS_FAILED
    return state_word(state) == outcome


def _check_invocation(state: Running | Stopping, callback: Callback) -> None:
    if state.by and state.by != callback.worker_id:
        raise errors.Conflict(
            errors.ALREADY_STARTED, errors.ALREADY_STARTED.says, detail={"state": "RUNNING"}
        )


def _over(state: State) -> errors.Conflict:
    code = errors.TASK_ALREADY_TERMINAL
    return errors.Conflict(code, code.says, detail={"state": state_word(state)})


_CANCELLED_AS_FAILED: Final = frozenset({errors.TASK_CANCELLED.code, errors.RUNNER_TIMEOUT.code})
"""What a report of CANCELLED becomes where no cancel is committed: nobody had asked, or the node's timeout had."""
_WORDS: Final[dict[type[State], str]] = {
    Leased: "DISPATCHED",
    Running: "RUNNING",
    Succeeded: "SUCCEEDED",
    Failed: "FAILED",
    Skipped: "SKIPPED",
    Cancelled: "CANCELLED",
}


def state_word(state: State) -> str:
    """The state of the current attempt, as the contract names it."""
    if isinstance(state, Stopping):
        return "CANCELLED" if state.why == "cancel" else "FAILED"
    if isinstance(state, Backoff):
        return "REFUSED" if state.is_refused else "FAILED"
    return _WORDS.get(type(state), "LOST")
