"""What a callback is answered, for each state that its attempt can be in."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.callbacks import (
    Beat,
    Callback,
    CallbackAnswer,
    Completed,
    Started,
    attempt_id,
    dispatch_id,
    judge,
)
from astraflow.core.runs.commands import (
    Cancel,
    LeaseTask,
    Lose,
    Refuse,
    Report,
    RunCommand,
    Start,
    TimeOut,
)
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import TaskFailed, TaskFailure
from astraflow.core.runs.run import RunRecord
from tests.tables import each_row
from tests.unit.plans import AT, make_plan, retrying, start

POOL = "pool/functions"
LEASED = (LeaseTask(0, POOL, 0, 20_000),)
RUNNING = (*LEASED, Start(0, 1, POOL, "i1", 15_000))
FAILURE = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "it broke")
FAILED = (*RUNNING, Report(0, 1, POOL, "FAILED", error=FAILURE))
STATES: dict[str, tuple[RunCommand, ...]] = {
    "leased": LEASED,
    "running": RUNNING,
    "cancelling": (*RUNNING, Cancel("ann", 500)),
    "timed out": (*RUNNING, TimeOut(0, 1, 500)),
    "lost": (*LEASED, Lose(0, 1, "not started")),
    "refused": (*LEASED, Refuse(0, 1, POOL, "E.DISPATCH.PUSH_REFUSED")),
    "retrying": FAILED,
    "succeeded": (*RUNNING, Report(0, 1, POOL, "SUCCEEDED")),
    "skipped": (*RUNNING, Report(0, 1, POOL, "SKIPPED")),
    "cancelled": (*LEASED, Cancel("ann", 500)),
}
OK = "ok"
"""It is decided."""
EXPECTED = {
    # state: started, started by another, heartbeat, completed SUCCEEDED, completed FAILED
    "leased": (OK, OK, "not_started", OK, OK),
    "running": ("again", "already_started", OK, OK, OK),
    "cancelling": ("task_already_terminal", "task_already_terminal", OK, OK, OK),
    "timed out": ("task_already_terminal", "task_already_terminal", OK, OK, OK),
    "lost": ("task_already_terminal", "task_already_terminal", "task_expired", OK, OK),
    "refused": (
        "task_already_terminal",
        "task_already_terminal",
        "task_expired",
        "task_already_terminal",
        "task_already_terminal",
    ),
    "retrying": (
        "task_already_terminal",
        "task_already_terminal",
        "task_expired",
        "task_already_terminal",
        "FAILED",
    ),
    "succeeded": (
        "task_already_terminal",
        "task_already_terminal",
        "task_expired",
        "SUCCEEDED",
        "task_already_terminal",
    ),
    "skipped": (
        "task_already_terminal",
        "task_already_terminal",
        "task_expired",
        "task_already_terminal",
        "task_already_terminal",
    ),
    "cancelled": (
        "task_already_terminal",
        "task_already_terminal",
        "task_expired",
        "task_already_terminal",
        "task_already_terminal",
    ),
}


def run_in(state: str) -> RunRecord:
    # A second task keeps the run alive: an ended run is judged in the same way.
    run = start(make_plan(2, nodes={0: retrying(2)})).run
    for command in STATES[state]:
        decide(run, command, AT, Random(1))
    return run


def callback(kind: type[Callback], by: str = "i1", **more: Any) -> Callback:
    fields: dict[str, Any] = {"token_attempt": 1, "attempt": 1, "attempt_id": None, **more}
    return kind(
        token=None,
        tenant="acme",
        run_id=RunId("run1"),
        task_id=TaskId("run1.0"),
        worker_id=by,
        **fields,
    )


def answer_of(run: RunRecord, given: Callback) -> str:
    try:
        answer = judge(run, 0, given)
    except errors.Conflict as refused:
        return refused.code.code
    if answer is None:
        return OK
    return answer.final_state or "again"


@each_row("state", list(STATES))
def test_each_callback_in_each_state(state: str) -> None:
    run = run_in(state)
    given = (
        callback(Started),
        callback(Started, by="i2"),
        callback(Beat),
        callback(Completed, outcome="SUCCEEDED"),
        callback(Completed, outcome="FAILED", error=FAILURE),
    )
    assert tuple(answer_of(run, one) for one in given) == EXPECTED[state]


@each_row(
    ("ended_by", "answer"),
    [
        ((Report(0, 1, POOL, "CANCELLED"),), "FAILED"),
        ((TimeOut(0, 1, 500), Report(0, 1, POOL, "CANCELLED")), "FAILED"),
        ((Cancel("ann", 500), Report(0, 1, POOL, "CANCELLED")), "CANCELLED"),
        ((Report(0, 1, POOL, "FAILED", error=FAILURE),), "task_already_terminal"),
        ((Report(0, 1, POOL, "SUCCEEDED"),), "task_already_terminal"),
    ],
)
def test_cancelled_again_is_answered_as_before(
    ended_by: tuple[RunCommand, ...], answer: str
) -> None:
    run = start(make_plan(2)).run
    for command in (*RUNNING, *ended_by):
        decide(run, command, AT, Random(1))
    assert answer_of(run, callback(Completed, outcome="CANCELLED")) == answer


@each_row(
    ("phase", "partial", "kept"),
    [
        (None, None, b"null"),
        ("loading", None, b'{"cancelledDuringPhase":"loading"}'),
        (None, b'{"n":5}', b'{"partialProgress":{"n":5}}'),
    ],
)
def test_where_a_cancelled_attempt_was_is_kept_with_its_failure(
    phase: str | None, partial: bytes | None, kept: bytes
) -> None:
    run = start(make_plan(2)).run
    for command in RUNNING:
        decide(run, command, AT, Random(1))
    given = msgspec.Raw(partial or b"null")
    done = decide(run, Report(0, 1, POOL, "CANCELLED", phase=phase, partial=given), AT, Random(1))
    failed = [fact for fact in done.facts if isinstance(fact, TaskFailed)]
    assert [bytes(fact.output) for fact in failed] == [kept]


@each_row(
    ("change", "received"),
    [
        ({"attempt": 2, "token_attempt": 2}, 2),
        ({"attempt": 2}, 2),
        ({"token_attempt": 7}, 7),
        ({"attempt_id": "run1.0.9"}, 1),
    ],
)
def test_another_attempt_is_told_both_numbers(change: dict[str, Any], received: int) -> None:
    with pytest.raises(errors.Conflict) as refused:
        judge(run_in("running"), 0, callback(Beat, **change))
    assert refused.value.code is errors.ATTEMPT_MISMATCH
    assert refused.value.detail == {"expectedAttempt": 1, "receivedAttempt": received}


def test_the_ids_of_an_attempt() -> None:
    task_id = TaskId("run1.0")
    assert judge(run_in("running"), 0, callback(Started, attempt_id=attempt_id(task_id, 1))) == (
        CallbackAnswer()
    )
    assert dispatch_id(RunId("run1"), task_id, 3) == "run1-0-3"
    assert dispatch_id(RunId("run1"), TaskId("5f-call"), 1) == "run1-5f-call-1"
