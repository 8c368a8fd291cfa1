"""What a death means for each attempt that was in the host."""

from __future__ import annotations

import signal
from typing import Any, get_args

import msgspec
import pytest

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts.exit_outcomes import Cause, HostDeath, outcome_of
from astraflow.worker.hosts.hosted_attempt import HostedAttempt
from tests.tables import each_row


def running(grace_s: float | None = None, **fields: bool) -> HostedAttempt:
    package = business.PackageId("p", "1")
    lease = business.LeaseGrant(1, "hb")
    one = HostedAttempt(
        business.Dispatch(
            RunId("r"), TaskId("t"), 2, 0, "n", "p.x", package, msgspec.Raw(b"{}"), lease
        ),
        0.0,
        0.0,
    )
    one.grace_s = grace_s
    for name, value in fields.items():
        setattr(one, name, value)
    return one


def code_of(one: HostedAttempt, death: HostDeath, is_alone: bool = True) -> str | None:
    result = outcome_of(one, death, is_alone)
    if result is None:
        return None
    assert (result.run_id, result.task_id, result.attempt) == ("r", "t", 2)
    return result.error.code if result.error is not None else result.status


@each_row(
    ("death", "code"),
    [
        (HostDeath(0, "itself"), "E.RUNNER.CRASHED"),
        (HostDeath(-signal.SIGSEGV, "itself"), "E.RUNNER.CRASHED"),
        (HostDeath(-signal.SIGKILL, "itself"), "E.RUNNER.CRASHED"),
        (HostDeath(-signal.SIGKILL, "itself", was_short_of_memory=True), "E.RUNNER.OOM"),
        (HostDeath(-signal.SIGSEGV, "itself", was_short_of_memory=True), "E.RUNNER.CRASHED"),
        (HostDeath(-signal.SIGKILL, "memory"), "E.RUNNER.OOM"),
        (HostDeath(-signal.SIGKILL, "broken"), "E.RUNNER.CRASHED"),
        (HostDeath(75, "fence"), "E.TASK.HOST_LOST"),
        (HostDeath(-signal.SIGKILL, "ours"), "E.TASK.HOST_LOST"),
    ],
)
def test_one_attempt_alone_gets_the_cause(death: HostDeath, code: str) -> None:
    assert code_of(running(), death) == code


@each_row("cause", get_args(Cause))
def test_several_attempts_are_lost_whatever_the_cause(cause: Any) -> None:
    assert code_of(running(), HostDeath(-9, cause), is_alone=False) == "E.TASK.HOST_LOST"


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_package_that_does_not_load_fails_all_that_wait_for_it(is_alone: bool) -> None:
    error = business.AttemptError("E.RUNNER.FAILURE", "CONFIGURATION", "no module")
    death = HostDeath(3, "itself", is_ready=False, load_error=error)
    result = outcome_of(running(), death, is_alone)
    assert result is not None
    assert result.error == error
    late = HostDeath(-9, "late", "30 s", is_ready=False)
    assert code_of(running(), late, is_alone) == "E.RUNNER.CRASHED"


@pytest.mark.parametrize("cause", ["ours", "fence"])
def test_what_waits_for_a_host_that_is_ended_for_other_reasons_is_lost(cause: Any) -> None:
    assert code_of(running(), HostDeath(-9, cause, is_ready=False)) == "E.TASK.HOST_LOST"


@each_row("cause", get_args(Cause))
@each_row("is_alone", [True, False])
def test_an_attempt_that_was_asked_to_end_has_ended(cause: Any, is_alone: bool) -> None:
    death = HostDeath(-9, cause)
    assert code_of(running(5.0), death, is_alone) == "CANCELLED"
    assert code_of(running(5.0, is_overdue=True), death, is_alone) == "CANCEL_TIMEOUT"
    assert code_of(running(0.0, is_overdue=True), death, is_alone) == "CANCELLED"


def test_of_a_killed_attempt_only_its_end_is_told() -> None:
    assert code_of(running(5.0, is_killed=True), HostDeath(-9, "ours")) is None


@each_row(
    ("death", "says"),
    [
        (HostDeath(3, "itself"), "with code 3"),
        (HostDeath(-signal.SIGBUS, "itself"), "SIGBUS"),
        (HostDeath(-99, "itself"), "99"),
        (HostDeath(-9, "itself", was_short_of_memory=True), "no memory left"),
        (HostDeath(-9, "memory", "7 bytes"), "7 bytes"),
        (HostDeath(-9, "broken", "why"), "why"),
        (HostDeath(-9, "late", "30 s"), "30 s"),
        (HostDeath(75, "fence"), "fence"),
        (HostDeath(-9, "ours"), "another attempt"),
    ],
)
def test_a_death_can_be_told_in_a_sentence(death: HostDeath, says: str) -> None:
    assert says in death.says()


def test_the_last_words_of_a_host_are_the_stack_of_the_attempt() -> None:
    result = outcome_of(running(), HostDeath(1, "itself", tail="Fatal Python error"), True)
    assert result is not None
    assert result.error is not None
    assert result.error.stack == "Fatal Python error"
