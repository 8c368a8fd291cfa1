"""Calls of middlewares: the tasks they open, how they end, and what their callers are told."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.ids import NodeId
from astraflow.core.runs import calls as module
from astraflow.core.runs.calls import STOP_GRACE_MS, chain_index_of
from astraflow.core.runs.commands import (
    Call,
    Cancel,
    Fail,
    LeaseTask,
    Lose,
    Refuse,
    Report,
    RunCommand,
    StopOverdue,
    TimeOut,
)
from astraflow.core.runs.consequences import (
    AnswerCall,
    AttemptOver,
    Consequence,
    EnqueueTask,
    FinishRun,
    LendSlot,
    RefuseCall,
    StopAttempt,
)
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    CallOpened,
    Fact,
    RunFinished,
    StopRequested,
    TaskCancelled,
    TaskFailed,
    TaskFailure,
    TaskSucceeded,
)
from astraflow.core.runs.projections import view_run
from astraflow.core.runs.rerun import keep_for_rerun_from, keep_for_rerun_of_failed
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import (
    Backoff,
    Cancelled,
    Failed,
    Lost,
    Passed,
    Ready,
    Stopping,
    Subsumed,
)
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow.plan import Plan
from tests.unit.plans import AT, TASK_ATTRIBUTES, make_plan, retrying, start, wrapped

NULL = msgspec.Raw(b"null")
ERROR = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom")


class Told:
    """A run, with all its facts so far, that is checked and replayed after every command."""

    def __init__(self, plan: Plan) -> None:
        accepted = start(plan)
        self.run = accepted.run
        self.facts: list[Fact] = list(accepted.facts)
        self.consequences: list[Consequence] = list(accepted.consequences)

    def give(self, *commands: RunCommand) -> Decision:
        for command in commands:
            decision = decide(self.run, command, AT, Random(7))
            self.facts += decision.facts
            self.consequences = decision.consequences
            self.run.check()
            assert_equal(replay(self.run.plan, self.facts), self.run)
        return decision

    def lease(self, task: int, worker: str = "w1") -> Decision:
        return self.give(LeaseTask(task, worker, 1, 30_000))

    def call(self, task: int, request: str = "a", place: int = 0, **fields: Any) -> Decision:
        attempt = self.run.tasks[task].attempt
        worker = self.run.tasks[task].worker or "w1"
        return self.give(Call(task, attempt, worker, request, place, **fields))

    def end(self, task: int, status: Any = "SUCCEEDED", **fields: Any) -> Decision:
        """The worker reports the current attempt."""
        here = self.run.tasks[task]
        return self.give(Report(task, here.attempt, here.worker or "w1", status, **fields))

    def fail(self, task: int) -> Decision:
        return self.end(task, "FAILED", error=ERROR)

    def kind(self, task: int) -> type:
        return type(self.run.tasks[task].state)


def assert_equal(again: RunRecord, run: RunRecord) -> None:
    again.check()
    assert view_run(again) == view_run(run)
    assert again.calls == run.calls
    for here, there in zip(again.tasks, run.tasks, strict=True):
        for name in TASK_ATTRIBUTES:
            assert getattr(here, name) == getattr(there, name), name


def kinds(decision: Decision) -> list[type]:
    return [type(fact) for fact in decision.facts]


def open_chain(**fields: Any) -> Told:
    """n1 (task 0) has called n2 (task 3), which has called the host n0 (task 4); all are leased."""
    told = Told(wrapped(2, **fields))
    told.lease(0)
    told.call(0, "a", 0)
    told.lease(3)
    told.call(3, "b", 1)
    told.lease(4, "w2")
    return told


class TestTheChain:
    def test_a_middleware_is_not_run_for_itself(self) -> None:
        told = Told(wrapped(2))
        assert told.consequences == [EnqueueTask(0)]
        assert (told.kind(1), told.kind(2)) == (Subsumed, Subsumed)
        assert told.lease(1).ignored == "task is not waiting for a place"
        assert told.run.open_tasks == 1

    def test_the_task_of_a_host_runs_its_outermost_middleware(self) -> None:
        run = Told(wrapped(2)).run
        assert run.tasks[0].node.node_id == "n1"
        assert (run.task_id(0), run.host_of(0), chain_index_of(run, 0)) == ("run1.0", 0, 0)

    def test_a_disabled_host_is_passed_with_its_middlewares(self) -> None:
        told = Told(wrapped(1, n0={"disabled": True}))
        assert told.consequences == [FinishRun("succeeded")]
        assert (told.kind(0), told.kind(1)) == (Passed, Subsumed)

    def test_a_node_without_middlewares_has_no_place_in_a_chain(self) -> None:
        run = Told(make_plan(1)).run
        assert run.tasks[0].node.node_id == "n0"
        assert chain_index_of(run, 0) is None

    def test_each_call_opens_one_task_with_the_next_link_and_the_last_runs_the_host(self) -> None:
        told = Told(wrapped(2))
        told.lease(0)
        payload = msgspec.Raw(b'{"p":1}')
        first = told.call(0, "a", 0, payload=payload)
        call_id = told.run.task_id(3)
        assert first.facts == [CallOpened(AT, 3, call_id, 0, 1, "a", 1, payload)]
        assert first.consequences == [LendSlot(0, True), EnqueueTask(3)]
        assert (told.run.tasks[3].node.node_id, chain_index_of(told.run, 3)) == ("n2", 1)
        told.lease(3)
        second = told.call(3, "b", 1)
        assert second.facts == [CallOpened(AT, 4, told.run.task_id(4), 3, 1, "b", None, NULL)]
        assert second.consequences == [LendSlot(3, True), EnqueueTask(4)]
        assert (told.run.tasks[4].node.node_id, chain_index_of(told.run, 4)) == ("n0", None)
        assert (told.run.host_of(3), told.run.host_of(4)) == (0, 0)
        assert list(told.run.callers_of(4)) == [3, 0]

    def test_answers_go_up_the_chain_and_slots_are_taken_again(self) -> None:
        told = open_chain()
        assert told.end(4).consequences == [AttemptOver(4, 1), AnswerCall(4), LendSlot(3, False)]
        assert told.end(3).consequences == [AttemptOver(3, 1), AnswerCall(3), LendSlot(0, False)]
        ended = told.end(0)
        assert kinds(ended) == [TaskSucceeded, RunFinished]
        assert ended.consequences == [AttemptOver(0, 1), FinishRun("succeeded")]
        assert told.run.status == "succeeded"

    def test_a_chain_may_be_called_as_often_as_a_middleware_likes(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        for number in range(3):
            assert told.call(0, f"r{number}").consequences[0] == LendSlot(0, True)
            told.lease(2 + number)
            told.end(2 + number)
        told.end(0)
        assert told.run.status == "succeeded"
        assert len(told.run.calls) == 3

    def test_a_slot_is_lent_once_by_two_calls_at_a_time_and_taken_when_both_have_ended(
        self,
    ) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        assert LendSlot(0, True) in told.call(0, "a").consequences
        assert told.call(0, "b").consequences == [EnqueueTask(3)]
        told.lease(2)
        told.lease(3)
        assert told.end(3).consequences == [AttemptOver(3, 1), AnswerCall(3)]
        assert told.end(2).consequences == [AttemptOver(2, 1), AnswerCall(2), LendSlot(0, False)]

    def test_ids_of_calls_follow_from_their_requests(self) -> None:
        ids = [[told.run.task_id(3), told.run.task_id(4)] for told in (open_chain(), open_chain())]
        assert ids[0] == ids[1]
        assert len(set(ids[0])) == 2
        other = Told(wrapped(2))
        other.lease(0)
        other.call(0, "other request")
        assert other.run.task_id(3) != ids[0][0]

    def test_a_new_attempt_that_repeats_a_request_makes_another_call(self) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0, "a")
        told.fail(0)
        told.lease(0)
        told.call(0, "a")
        assert told.run.task_id(2) != told.run.task_id(3)
        assert told.kind(3) is Ready


class TestRepeatedRequests:
    def test_a_request_that_comes_again_opens_nothing_and_waits(self) -> None:
        told = open_chain()
        again = told.call(0, "a")
        assert (again.facts, again.consequences, again.ignored) == ([], [], "call is known")

    def test_one_that_has_ended_is_answered_again(self) -> None:
        told = open_chain()
        told.end(4)
        told.end(3)
        again = told.call(0, "a")
        assert (again.facts, again.consequences) == ([], [AnswerCall(3)])


class TestRefusals:
    def refused(self, decision: Decision, task: int, code: errors.Code) -> None:
        assert decision.facts == []
        assert decision.consequences == [RefuseCall(task, 1, "x", code.code)]
        assert decision.ignored == "call refused"

    def test_a_cancelled_run_opens_no_calls(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.give(Cancel("ann", 500))
        self.refused(told.call(0, "x"), 0, errors.NEXT_CANCELLED)

    def test_an_attempt_that_is_being_stopped_opens_no_calls(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.give(TimeOut(0, 1, 500))
        self.refused(told.call(0, "x"), 0, errors.NEXT_CANCELLED)

    @pytest.mark.parametrize("place", [1, 7])
    def test_a_middleware_calls_from_its_own_place_only(self, place: int) -> None:
        told = Told(wrapped(2))
        told.lease(0)
        self.refused(told.call(0, "x", place), 0, errors.NEXT_INVALID)

    def test_a_host_has_nothing_to_call(self) -> None:
        self.refused(open_chain().call(4, "x", 2), 4, errors.NEXT_INVALID)

    def test_a_node_without_middlewares_has_nothing_to_call(self) -> None:
        told = Told(make_plan(1))
        told.lease(0)
        self.refused(told.call(0, "x", 0), 0, errors.NEXT_INVALID)

    def test_a_loop_that_never_ends_is_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MAX_CALLS", 2)
        monkeypatch.setattr(module, "CALLS_PER_TASK", 0)
        told = Told(wrapped(1))
        told.lease(0)
        told.call(0, "a")
        told.call(0, "b")
        self.refused(told.call(0, "x"), 0, errors.NEXT_LIMIT)
        assert told.call(0, "a").ignored == "call is known"

    def test_a_run_with_many_tasks_may_make_more_calls(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "MAX_CALLS", 1)
        told = Told(wrapped(1))
        told.lease(0)
        for request in "abcd":
            assert kinds(told.call(0, request)) == [CallOpened]
        self.refused(told.call(0, "x"), 0, errors.NEXT_LIMIT)

    @pytest.mark.parametrize("command", [Call(0, 2, "w1", "x", 0), Call(0, 1, "w2", "x", 0)])
    def test_a_call_of_another_attempt_or_worker_is_late(self, command: Call) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        late = told.give(command)
        assert (late.facts, late.consequences, late.ignored) == ([], [], "late call")

    def test_a_call_of_a_lost_attempt_is_late(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.give(Lose(0, 1, "silence"))
        assert told.call(0, "x").ignored == "late call"


class TestTheEndOfACaller:
    """Rule 3: what an attempt called is stopped, all the way down, before the next attempt."""

    def test_a_call_that_no_worker_has_is_cancelled_at_once_and_the_caller_is_queued_once(
        self,
    ) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0, "a")
        told.call(0, "b")
        ended = told.fail(0)
        assert kinds(ended) == [AttemptFailed, TaskCancelled, TaskCancelled]
        assert ended.consequences == [AttemptOver(0, 1), EnqueueTask(0, 1.0)]
        assert told.lease(0).facts != []

    def test_a_failed_caller_is_queued_when_its_calls_are_proved_to_have_ended(self) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0)
        told.lease(2, "w2")
        ended = told.fail(0)
        assert kinds(ended) == [AttemptFailed, StopRequested]
        stop = StopAttempt(2, 1, "w2", "cancel", STOP_GRACE_MS)
        assert ended.consequences == [AttemptOver(0, 1), stop]
        assert told.lease(0).ignored == "task is not waiting for a place"
        over = told.end(2, "CANCELLED")
        assert over.facts == [TaskCancelled(AT, 2, 1)]
        assert over.consequences == [AttemptOver(2, 1), EnqueueTask(0, 1.0)]
        assert told.lease(0).facts != []

    def test_a_lost_caller_waits_in_the_same_way(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.call(0)
        told.lease(2, "w2")
        ended = told.give(Lose(0, 1, "silence"))
        assert kinds(ended) == [AttemptLost, StopRequested]
        delay_s = told.run.tasks[0].delay_s
        over = told.give(Lose(2, 1, "silence"))
        assert over.facts == [TaskCancelled(AT, 2, 1, confirmed=False)]
        assert over.consequences == [AttemptOver(2, 1), EnqueueTask(0, delay_s)]

    def test_all_calls_must_have_ended(self) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        for number in range(2):
            told.call(0, f"r{number}")
            told.lease(2 + number)
        told.fail(0)
        assert told.end(2).consequences == [AttemptOver(2, 1)]
        assert told.end(3, "CANCELLED").consequences == [AttemptOver(3, 1), EnqueueTask(0, 1.0)]

    def test_the_stop_goes_down_the_chain_link_by_link(self) -> None:
        """
        n1 fails     -> n2 is asked to stop
        n2 stops     -> n0 is asked to stop, and n1 still waits
        n0 stops     -> n1 is queued
        """
        told = open_chain(n1=retrying())
        assert told.fail(0).consequences[-1] == StopAttempt(3, 1, "w1", "cancel", STOP_GRACE_MS)
        middle = told.end(3, "CANCELLED")
        assert middle.facts == [
            TaskCancelled(AT, 3, 1),
            StopRequested(AT, 4, 1, "cancel", STOP_GRACE_MS),
        ]
        assert middle.consequences == [
            AttemptOver(3, 1),
            StopAttempt(4, 1, "w2", "cancel", STOP_GRACE_MS),
        ]
        assert told.lease(0).ignored == "task is not waiting for a place"
        assert told.end(4, "CANCELLED").consequences == [AttemptOver(4, 1), EnqueueTask(0, 1.0)]

    def test_a_link_that_waits_for_its_next_attempt_leaves_nothing_running_below(self) -> None:
        """
        n2 fails     -> n0 is asked to stop, n2 waits for that
        n1 fails     -> n2 is cancelled at once; n0 may still run, and n1 waits for it
        """
        told = open_chain(n1=retrying(), n2=retrying())
        assert kinds(told.fail(3)) == [AttemptFailed, StopRequested]
        ended = told.fail(0)
        assert kinds(ended) == [AttemptFailed, TaskCancelled]
        assert ended.consequences == [AttemptOver(0, 1)]
        assert told.end(4, "CANCELLED").consequences == [AttemptOver(4, 1), EnqueueTask(0, 1.0)]

    def test_a_caller_that_succeeds_leaves_no_call_behind_and_the_run_waits_for_them(self) -> None:
        told = open_chain()
        ended = told.end(0)
        assert kinds(ended) == [TaskSucceeded, StopRequested]
        told.end(3, "CANCELLED")
        assert not told.run.is_terminal
        over = told.end(4)
        assert kinds(over) == [TaskSucceeded, RunFinished]
        assert told.run.status == "succeeded"

    def test_a_link_that_did_not_await_its_call_is_answered_and_its_slot_comes_back_later(
        self,
    ) -> None:
        told = open_chain()
        ended = told.end(3)
        assert ended.consequences[1:] == [
            StopAttempt(4, 1, "w2", "cancel", STOP_GRACE_MS),
            AnswerCall(3),
        ]
        assert told.end(4, "CANCELLED").consequences == [AttemptOver(4, 1), LendSlot(0, False)]

    def test_a_caller_that_fails_for_good_fails_the_run_when_its_calls_have_ended(self) -> None:
        told = open_chain()
        assert kinds(told.fail(0)) == [TaskFailed, StopRequested]
        told.end(3, "CANCELLED")
        over = told.end(4, "CANCELLED")
        assert kinds(over) == [TaskCancelled, RunFinished]
        assert (told.run.status, told.run.error) == ("failed", ERROR)

    def test_a_call_is_asked_to_stop_once(self) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0)
        told.lease(2)
        told.give(Lose(0, 1, "silence"))
        late = told.end(0)
        assert kinds(late) == [TaskSucceeded]
        assert late.consequences == [AttemptOver(0, 1)]

    def test_a_call_that_was_being_stopped_for_its_timeout_is_then_cancelled(self) -> None:
        told = Told(wrapped(1, n0=retrying(), n1=retrying()))
        told.lease(0)
        told.call(0)
        told.lease(2)
        told.give(TimeOut(2, 1, 500))
        told.fail(0)
        state = told.run.tasks[2].state
        assert isinstance(state, Stopping)
        assert state.why == "cancel"
        assert kinds(told.fail(2)) == [TaskFailed]

    @pytest.mark.parametrize("code", [errors.DISPATCH_STALE.code, errors.DISPATCH_DRAINING.code])
    def test_a_call_that_is_refused_while_it_is_stopped_is_not_tried_again(self, code: str) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0)
        told.lease(2)
        told.fail(0)
        over = told.give(Refuse(2, 1, "w1", code))
        assert over.facts == [TaskCancelled(AT, 2, 1)]
        assert over.consequences[-1] == EnqueueTask(0, 1.0)

    def test_a_call_whose_worker_does_not_confirm_stands_before_the_next_attempt(self) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0)
        told.lease(2, "w2")
        told.fail(0)
        overdue = told.give(StopOverdue(2, 1))
        assert overdue.facts == []
        assert overdue.ignored == "a new attempt needs proof that this one has ended"
        assert told.give(Lose(2, 1, "its lease ended")).consequences[-1] == EnqueueTask(0, 1.0)


class TestTheEndOfACall:
    def test_its_failure_does_not_fail_the_run(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.call(0)
        told.lease(2)
        failed = told.fail(2)
        assert failed.facts == [TaskFailed(AT, 2, 1, ERROR)]
        assert failed.consequences == [AttemptOver(2, 1), AnswerCall(2), LendSlot(0, False)]
        assert (told.kind(2), told.run.failed) == (Failed, [])
        told.end(0)
        assert (told.run.status, told.run.error) == ("succeeded", None)

    def test_it_has_retries_of_its_own_by_the_policy_of_its_node(self) -> None:
        told = Told(wrapped(1, n0=retrying(2)))
        told.lease(0)
        told.call(0)
        told.lease(2)
        assert told.fail(2).consequences == [AttemptOver(2, 1), EnqueueTask(2, 1.0)]
        assert told.kind(2) is Backoff
        told.lease(2, "w2")
        assert kinds(told.fail(2)) == [TaskFailed]
        assert told.run.tasks[0].failures == 0

    def test_it_is_lost_for_itself(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.call(0)
        told.lease(2)
        assert kinds(told.give(Lose(2, 1, "silence"))) == [AttemptLost]
        assert (told.kind(2), told.run.tasks[0].losses) == (Lost, 0)
        assert told.end(2).consequences == [AttemptOver(2, 1), AnswerCall(2), LendSlot(0, False)]

    def test_a_worker_that_stopped_a_lost_attempt_says_nothing_new(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.call(0)
        told.lease(2)
        told.give(Lose(2, 1, "silence"))
        late = told.end(2, "CANCELLED")
        assert (late.facts, late.consequences, late.ignored) == ([], [], "already counted as lost")

    def test_one_that_can_never_have_a_place_is_answered(self) -> None:
        told = Told(wrapped(1))
        told.lease(0)
        told.call(0)
        ended = told.give(Fail(2, ERROR))
        assert ended.consequences == [AnswerCall(2), LendSlot(0, False)]

    def test_a_disabled_link_is_skipped_and_its_call_is_answered(self) -> None:
        told = Told(wrapped(2, n2={"disabled": True}))
        told.lease(0)
        called = told.call(0)
        assert called.consequences == [LendSlot(0, True), AnswerCall(3), LendSlot(0, False)]


class TestCancelOfTheRun:
    def test_calls_that_run_are_stopped_and_the_others_end_at_once(self) -> None:
        told = open_chain()
        told.call(0, "unplaced")
        cancelled = told.give(Cancel("ann", 500))
        assert [
            effect.task for effect in cancelled.consequences if isinstance(effect, StopAttempt)
        ] == [
            0,
            3,
            4,
        ]
        assert AnswerCall(5) in cancelled.consequences
        assert told.kind(5) is Cancelled
        for task in (4, 3, 0):
            told.end(task, "CANCELLED")
        assert told.run.status == "cancelled"

    def test_a_caller_that_waited_for_its_calls_to_end_is_not_queued_any_more(self) -> None:
        told = Told(wrapped(1, n1=retrying()))
        told.lease(0)
        told.call(0)
        told.lease(2)
        told.fail(0)
        told.give(Cancel("ann", 500))
        assert told.kind(0) is Cancelled
        assert told.end(2, "CANCELLED").consequences == [AttemptOver(2, 1), FinishRun("cancelled")]

    def test_a_call_whose_worker_does_not_confirm_ends_without_its_word(self) -> None:
        told = open_chain()
        told.give(Cancel("ann", 500))
        overdue = told.give(StopOverdue(4, 1))
        [failed] = overdue.facts
        assert isinstance(failed, TaskFailed)
        assert (failed.error.code, failed.confirmed) == (errors.CANCEL_TIMEOUT.code, False)


class TestReruns:
    def ended(self, *, is_failing: bool = False) -> RunRecord:
        """A run whose host was called through its chain once; its calls are tasks 3 and 4."""
        told = open_chain()
        told.end(4, result=NULL)
        told.end(3, result=NULL)
        if is_failing:
            told.fail(0)
        else:
            told.end(0, result=NULL)
        assert told.run.is_terminal
        return told.run

    def test_the_result_of_a_host_is_kept_and_calls_are_none_of_the_plan(self) -> None:
        assert set(keep_for_rerun_of_failed(self.ended())) == {0}
        assert keep_for_rerun_of_failed(self.ended(is_failing=True)) == {}

    def test_from_a_middleware_its_host_is_repeated(self) -> None:
        assert keep_for_rerun_from(self.ended(), [NodeId("n2")]) == {}
