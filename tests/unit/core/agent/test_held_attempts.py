"""What a worker holds: taking and refusing, fences, reports."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.agent import held_attempts as module
from astraflow.core.agent.held_attempts import HeldAttempt, HeldAttempts
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol.business import Dispatch, NextRequest
from astraflow.core.protocol.wire import AttemptRef
from tests.unit.core.agent.desk import dispatch_of, result_of


def taken(attempts: HeldAttempts, dispatch: Dispatch, now: float = 0.0) -> HeldAttempt:
    held = attempts.offer(dispatch, now, now)
    assert isinstance(held, HeldAttempt)
    attempts.check()
    return held


def done(attempts: HeldAttempts, number: int = 1, frame_id: str | None = None) -> HeldAttempt:
    held = taken(attempts, dispatch_of(number))
    attempts.finish(held, result_of(number))
    if frame_id is not None:
        attempts.queued(held, frame_id)
    attempts.check()
    return held


@pytest.fixture
def attempts() -> HeldAttempts:
    return HeldAttempts(4)


class TestTaking:
    def test_a_first_dispatch_is_taken(self, attempts: HeldAttempts) -> None:
        held = taken(attempts, dispatch_of(1, timeout_ms=5000), 10.0)
        assert attempts.working() == [held]
        assert (held.fence_at, held.timeout_at, held.phase) == (28.0, 15.0, "running")
        assert held.ref == AttemptRef(TaskId("run1.1"), 1)

    def test_a_held_attempt_is_known_and_not_taken_again(self, attempts: HeldAttempts) -> None:
        taken(attempts, dispatch_of(1))
        assert attempts.offer(dispatch_of(1), 0.0, 0.0) is None
        done(attempts, 2)
        assert attempts.offer(dispatch_of(2), 0.0, 0.0) is None

    @pytest.mark.parametrize("attempt", [1, 2])
    def test_lower_or_equal_attempts_that_are_no_longer_held_are_refused(
        self, attempt: int, attempts: HeldAttempts
    ) -> None:
        attempts.drop(taken(attempts, dispatch_of(1, 2)))
        refusal = attempts.offer(dispatch_of(1, attempt), 0.0, 0.0)
        assert refusal == errors.DISPATCH_STALE.code
        assert isinstance(attempts.offer(dispatch_of(1, 3), 0.0, 0.0), HeldAttempt)

    def test_a_lease_since_an_unknown_frame_is_refused(self) -> None:
        assert HeldAttempts(4).offer(dispatch_of(1), None, 0.0) == errors.DISPATCH_STALE.code

    def test_a_dispatch_that_arrives_past_its_fence_is_refused(self) -> None:
        attempts = HeldAttempts(4)
        assert attempts.offer(dispatch_of(1), 0.0, 18.0) == errors.DISPATCH_STALE.code
        assert isinstance(attempts.offer(dispatch_of(2), 0.0, 17.9), HeldAttempt)

    def test_a_newer_attempt_does_not_begin_while_an_older_one_has_not_ended(self) -> None:
        attempts = HeldAttempts(4)
        taken(attempts, dispatch_of(1, 1))
        assert attempts.offer(dispatch_of(1, 2), 0.0, 0.0) == errors.DISPATCH_STALE.code

    def test_a_draining_worker_takes_nothing_new(self, attempts: HeldAttempts) -> None:
        attempts.is_draining = True
        assert attempts.offer(dispatch_of(1), 0.0, 0.0) == errors.DISPATCH_DRAINING.code

    def test_a_concurrency_key_is_single_flight(self, attempts: HeldAttempts) -> None:
        held = taken(attempts, dispatch_of(1, concurrency_key="printer"))
        refusal = attempts.offer(dispatch_of(2, concurrency_key="printer"), 0.0, 0.0)
        assert refusal == errors.CMD_CONCURRENCY_VIOLATION.code
        attempts.finish(held, result_of(1))
        attempts.check()
        taken(attempts, dispatch_of(3, concurrency_key="printer"))

    def test_twice_the_slots_may_be_held_and_no_more(self) -> None:
        attempts = HeldAttempts(1)
        taken(attempts, dispatch_of(1))
        taken(attempts, dispatch_of(2))
        assert attempts.offer(dispatch_of(3), 0.0, 0.0) == errors.DISPATCH_OVERLOADED.code

    def test_an_attempt_whose_cancel_came_first_is_refused(self, attempts: HeldAttempts) -> None:
        attempts.refuse_later(TaskId("run1.1"), 2)
        assert attempts.offer(dispatch_of(1, 2), 0.0, 0.0) == errors.DISPATCH_STALE.code
        assert isinstance(attempts.offer(dispatch_of(1, 3), 0.0, 0.0), HeldAttempt)

    def test_the_oldest_tasks_are_forgotten_when_too_many_are_remembered(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "REMEMBERED_TASKS", 2)
        attempts = HeldAttempts(4)
        for number in (1, 2, 1, 3):
            attempts.refuse_later(TaskId(f"run1.{number}"), 1)
        assert isinstance(attempts.offer(dispatch_of(2), 0.0, 0.0), HeldAttempt)
        assert attempts.offer(dispatch_of(3), 0.0, 0.0) == errors.DISPATCH_STALE.code


class TestFences:
    def test_an_answered_heartbeat_moves_the_fence_of_what_it_named(self) -> None:
        attempts = HeldAttempts(4)
        one, two = taken(attempts, dispatch_of(1)), taken(attempts, dispatch_of(2))
        attempts.answered(
            (one.ref, AttemptRef(TaskId("run1.2"), 9), AttemptRef(TaskId("run1.7"), 1)), 10.0
        )
        assert (one.fence_at, two.fence_at) == (28.0, 18.0)

    def test_an_older_answer_does_not_move_a_fence_back(self, attempts: HeldAttempts) -> None:
        held = taken(attempts, dispatch_of(1))
        attempts.answered((held.ref,), 10.0)
        attempts.answered((held.ref,), 5.0)
        assert held.fence_at == 28.0

    def test_what_is_past_its_fence_is_to_be_killed_once(self, attempts: HeldAttempts) -> None:
        held = taken(attempts, dispatch_of(1))
        assert attempts.past_fence(17.9) == []
        assert attempts.past_fence(18.0) == [held]
        held.phase = "killing"
        assert attempts.past_fence(18.0) == []

    def test_a_report_has_no_fence(self, attempts: HeldAttempts) -> None:
        done(attempts)
        assert attempts.past_fence(1000.0) == []
        assert not attempts.is_due(1000.0)
        assert attempts.deadline() is None

    def test_what_has_run_too_long_is_to_be_stopped_once(self, attempts: HeldAttempts) -> None:
        held = taken(attempts, dispatch_of(1, timeout_ms=5000))
        taken(attempts, dispatch_of(2))
        assert attempts.past_timeout(4.9) == []
        assert attempts.past_timeout(5.0) == [held]
        held.phase = "stopping"
        assert attempts.past_timeout(5.0) == []

    def test_the_deadline_is_the_first_fence_or_timeout(self, attempts: HeldAttempts) -> None:
        assert attempts.deadline() is None
        one = taken(attempts, dispatch_of(1))
        assert attempts.deadline() == 18.0
        two = taken(attempts, dispatch_of(2, timeout_ms=5000))
        assert attempts.deadline() == 5.0
        assert not attempts.is_due(4.9)
        assert attempts.is_due(5.0)
        two.phase = "stopping"
        # It is found out by looking, and only then.
        assert attempts.deadline() == 5.0
        assert not attempts.is_due(5.0)
        assert attempts.deadline() == 18.0
        one.phase = two.phase = "killing"
        assert not attempts.is_due(18.0)
        assert attempts.deadline() is None


class TestReports:
    def test_a_finished_attempt_is_a_report_until_ack_seq_covers_it(self) -> None:
        attempts = HeldAttempts(4)
        held = done(attempts, 1, "frame-1")
        other = done(attempts, 2, "frame-2")
        assert attempts.working() == []
        assert attempts.reports() == [held, other]
        assert attempts.find(TaskId("run1.1"), 1) is held
        attempts.committed(["frame-1", "frame-9"])
        assert attempts.reports() == [other]
        assert not attempts.is_empty
        attempts.committed(["frame-2"])
        assert attempts.is_empty

    def test_heartbeats_name_what_runs_and_what_is_held(self, attempts: HeldAttempts) -> None:
        done(attempts, 1)
        taken(attempts, dispatch_of(2))
        assert attempts.named() == (
            AttemptRef(TaskId("run1.2"), 1),
            AttemptRef(TaskId("run1.1"), 1),
        )

    def test_an_attempt_has_one_report(self, attempts: HeldAttempts) -> None:
        held = done(attempts)
        with pytest.raises(AssertionError, match="one report"):
            attempts.finish(held, result_of())

    @pytest.mark.parametrize("fields", [{}, {"concurrency_key": "printer"}])
    def test_what_is_dropped_leaves_nothing_to_tell(self, fields: dict[str, Any]) -> None:
        attempts = HeldAttempts(4)
        attempts.drop(taken(attempts, dispatch_of(1, **fields)))
        attempts.check()
        assert attempts.is_empty
        assert attempts.find(TaskId("run1.1"), 1) is None


class TestLending:
    """PROTOCOL §10: "A waiting parent lends its slot and its concurrency key"."""

    def keyed(self, attempts: HeldAttempts, number: int) -> HeldAttempt:
        return taken(attempts, dispatch_of(number, concurrency_key="printer"))

    def waits(self, held: HeldAttempt) -> HeldAttempt:
        held.calls["a"] = NextRequest(RunId("run1"), held.task_id, 1, "a", 0)
        return held

    def is_busy(self, attempts: HeldAttempts, number: int = 8) -> bool:
        offered = attempts.offer(dispatch_of(number, concurrency_key="printer"), 0.0, 0.0)
        if isinstance(offered, HeldAttempt):
            attempts.drop(offered)
            return False
        assert offered == errors.CMD_CONCURRENCY_VIOLATION.code
        return True

    def test_a_key_is_lent_down_a_chain_and_given_back_up(self, attempts: HeldAttempts) -> None:
        chain = [self.waits(self.keyed(attempts, number)) for number in (1, 2)]
        chain.append(self.keyed(attempts, 3))
        assert [held.lent_key_by for held in chain] == [None, "run1.1", "run1.2"]
        assert self.is_busy(attempts)
        for held in reversed(chain):
            held.calls.clear()
            attempts.finish(held, result_of(int(held.task_id[-1])))
            attempts.check()
        assert isinstance(
            attempts.offer(dispatch_of(4, concurrency_key="printer"), 0.0, 0.0), HeldAttempt
        )

    def test_a_lender_that_ends_first_leaves_the_key_with_its_borrower(self) -> None:
        attempts = HeldAttempts(4)
        outer = self.waits(self.keyed(attempts, 1))
        inner = self.keyed(attempts, 2)
        attempts.drop(outer)
        attempts.check()
        assert inner.lent_key_by is None
        assert self.is_busy(attempts)
        attempts.finish(inner, result_of(2))
        attempts.check()
        assert not self.is_busy(attempts, 9)

    def test_a_link_that_ends_out_of_turn_leaves_the_key_to_those_around_it(self) -> None:
        attempts = HeldAttempts(4)
        outer = self.waits(self.keyed(attempts, 1))
        middle = self.waits(self.keyed(attempts, 2))
        inner = self.keyed(attempts, 3)
        attempts.drop(middle)
        attempts.check()
        assert inner.lent_key_by == outer.task_id
        attempts.drop(inner)
        attempts.check()
        outer.calls.clear()
        assert self.is_busy(attempts)

    def test_attempts_that_wait_for_their_calls_do_not_count_as_load(self) -> None:
        attempts = HeldAttempts(1)
        for number in (1, 2, 3):
            self.waits(taken(attempts, dispatch_of(number)))
        taken(attempts, dispatch_of(4))
        taken(attempts, dispatch_of(5))
        assert attempts.offer(dispatch_of(6), 0.0, 0.0) == errors.DISPATCH_OVERLOADED.code
