"""What a command comes to: the exact facts and effects, for each state it can meet."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.runs.commands import (
    Cancel,
    Fail,
    LeaseTask,
    Lose,
    Progress,
    Refuse,
    Report,
    RunCommand,
    Start,
    StopOverdue,
    TimeOut,
    Wait,
    Withdraw,
)
from astraflow.core.runs.consequences import AttemptOver, EnqueueTask, FinishRun, StopAttempt
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import (
    MAX_METRICS,
    AttemptFailed,
    AttemptLost,
    AttemptProgressed,
    AttemptRefused,
    AttemptStarted,
    CancelRequested,
    Chunk,
    RunFinished,
    RunStarted,
    StopRequested,
    TaskCancelled,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskPassed,
    TaskSkipped,
    TaskSucceeded,
    TaskWaiting,
    WaitReason,
)
from astraflow.core.runs.projections import view_run
from astraflow.core.runs.retry import DISPATCH_TRIES, LOSS_BUDGET
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Cancelled, Failed, Lost, Stopping
from astraflow.core.workflow.plan import InputEdge, PlanExpression
from tests.unit.plans import AT, JOINING, make_plan, retrying, start

LEASE = LeaseTask(0, "w1", 1, 30_000)


def give(run: RunRecord, *commands: RunCommand) -> Decision:
    decision = None
    for command in commands:
        decision = decide(run, command, AT, Random(7))
        run.check()
    assert decision is not None
    return decision


def kinds(decision: Decision) -> list[type]:
    return [type(fact) for fact in decision.facts]


def leased(plan: Any = None, **fields: Any) -> RunRecord:
    run = start(plan or make_plan(1), **fields).run
    give(run, LEASE)
    return run


@pytest.fixture
def run() -> RunRecord:
    return leased()


def user_error(**fields: Any) -> TaskFailure:
    return TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom", **fields)


class TestLease:
    def test_the_first_lease_starts_the_run(self) -> None:
        decision = give(start(make_plan(1)).run, LEASE)
        assert decision.facts == [RunStarted(AT), TaskLeased(AT, 0, 1, "w1", 1, 30_000)]
        assert decision.run.status == "running"

    def test_a_task_that_is_leased_is_not_leased_again(self) -> None:
        decision = give(leased(), LEASE)
        assert decision.facts == []
        assert decision.ignored == "task is not waiting for a place"

    def test_a_task_with_an_unsettled_upstream_is_not_leased(self) -> None:
        run = start(make_plan(2, [(0, 1)])).run
        assert give(run, LeaseTask(1, "w1", 1, 30_000)).facts == []

    def test_each_lease_has_the_next_attempt_number_whatever_became_of_the_last(self) -> None:
        run = leased()
        give(run, Refuse(0, 1, "w1", errors.DISPATCH_STALE.code), LEASE)
        assert run.tasks[0].attempt == 2
        give(run, Lose(0, 2, "gone"), LEASE)
        assert run.tasks[0].attempt == 3


class TestWaiting:
    def test_a_reason_is_said_once(self) -> None:
        run = start(make_plan(1)).run
        reason = WaitReason("package", "no worker offers it")
        assert give(run, Wait(0, reason)).facts == [TaskWaiting(AT, 0, reason)]
        assert give(run, Wait(0, reason)).ignored == "already said"

    def test_a_leased_task_waits_for_nothing(self) -> None:
        assert give(leased(), Wait(0, WaitReason("slot"))).facts == []

    def test_a_task_without_a_possible_place_fails(self) -> None:
        run = start(make_plan(1)).run
        error = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE")
        decision = give(run, Fail(0, error))
        assert kinds(decision) == [TaskFailed, RunFinished]
        assert run.error == error

    def test_a_leased_task_does_not_fail_for_want_of_a_place(self) -> None:
        error = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE")
        assert give(leased(), Fail(0, error)).ignored == "task is not waiting for a place"


class TestStart:
    def test_the_ack_of_a_dispatch_is_its_start(self) -> None:
        assert give(leased(), Start(0, 1, "w1")).facts == [AttemptStarted(AT, 0, 1)]

    @pytest.mark.parametrize("command", [Start(0, 2, "w1"), Start(0, 1, "w2")])
    def test_another_attempt_or_worker_does_not_start_it(self, command: Start) -> None:
        assert give(leased(), command).facts == []

    def test_a_second_ack_changes_nothing(self) -> None:
        assert give(leased(), Start(0, 1, "w1"), Start(0, 1, "w1")).facts == []


class TestProgress:
    def test_feedback_of_the_current_attempt_is_recorded(self, run: RunRecord) -> None:
        chunks = (Chunk("log", 0, "hello"),)
        decision = give(run, Start(0, 1, "w1"), Progress(0, 1, "w1", 0.5, "half", None, chunks))
        assert decision.facts == [AttemptProgressed(AT, 0, 1, 0.5, "half", None, chunks)]
        assert (run.tasks[0].progress, run.tasks[0].message) == (0.5, "half")

    def test_feedback_that_overtakes_the_ack_is_the_start(self) -> None:
        decision = give(leased(), Progress(0, 1, "w1", 0.5))
        assert decision.facts == [AttemptStarted(AT, 0, 1), AttemptProgressed(AT, 0, 1, 0.5)]

    def test_feedback_keeps_what_it_does_not_mention(self, run: RunRecord) -> None:
        give(run, Progress(0, 1, "w1", 0.5, "half"), Progress(0, 1, "w1", dropped=3))
        assert (run.tasks[0].progress, run.tasks[0].message) == (0.5, "half")

    def test_of_each_metric_the_last_value_is_kept_for_one_attempt(self, run: RunRecord) -> None:
        give(
            run,
            Start(0, 1, "w1"),
            Progress(0, 1, "w1", metrics={"loss": 0.5, "rows": 1}),
            Progress(0, 1, "w1", 0.5),
            Progress(0, 1, "w1", metrics={"loss": 0.25}),
        )
        assert run.tasks[0].metrics == {"loss": 0.25, "rows": 1}
        give(run, Lose(0, 1, "gone"), LeaseTask(0, "w2", 1, 30_000))
        assert run.tasks[0].metrics == {}

    def test_a_bounded_number_of_metrics_is_kept(self, run: RunRecord) -> None:
        for first in (0, 200):
            many = {f"m{number}": 1.0 for number in range(first, first + 200)}
            give(run, Progress(0, 1, "w1", metrics=many))
        give(run, Progress(0, 1, "w1", metrics={"m0": 2.0, "new": 1.0}))
        kept = run.tasks[0].metrics
        assert len(kept) == MAX_METRICS
        assert (kept["m0"], kept["m255"]) == (2.0, 1.0)
        assert "m256" not in kept and "new" not in kept

    def test_late_feedback_is_dropped(self, run: RunRecord) -> None:
        give(run, Lose(0, 1, "gone"))
        assert give(run, Progress(0, 1, "w1", 0.5)).ignored == "late feedback"


class TestReport:
    def test_a_result_ends_the_task_and_the_run(self) -> None:
        result = msgspec.Raw(b'{"v":1}')
        decision = give(leased(), Report(0, 1, "w1", "SUCCEEDED", result, (), 12))
        assert decision.facts == [
            TaskSucceeded(AT, 0, 1, result, (), 12),
            RunFinished(AT, "succeeded"),
        ]
        assert decision.consequences == [AttemptOver(0, 1), FinishRun("succeeded")]

    def test_a_result_makes_what_is_downstream_ready(self) -> None:
        run = leased(make_plan(3, [(0, 1), (0, 2), (1, 2)]))
        decision = give(run, Report(0, 1, "w1", "SUCCEEDED"))
        assert decision.consequences == [AttemptOver(0, 1), EnqueueTask(1)]

    @pytest.mark.parametrize(
        "command", [Report(0, 2, "w1", "SUCCEEDED"), Report(0, 1, "w2", "SUCCEEDED")]
    )
    def test_a_report_of_another_attempt_or_worker_has_no_effect(self, command: Report) -> None:
        decision = give(leased(), command)
        assert (decision.facts, decision.consequences, decision.ignored) == ([], [], "late report")

    def test_late_result_of_fenced_attempt_is_ignored_once_a_newer_one_is_issued(self) -> None:
        """leased 1 -> lost -> leased 2 -> result of 1"""
        run = leased()
        give(run, Lose(0, 1, "lease ended"), LEASE)
        assert give(run, Report(0, 1, "w1", "SUCCEEDED")).ignored == "late report"

    def test_a_report_after_the_lease_ended_counts_while_no_newer_attempt_is_issued(self) -> None:
        """leased 1 -> lost -> result of 1"""
        run = leased()
        give(run, Lose(0, 1, "lease ended"))
        assert kinds(give(run, Report(0, 1, "w1", "SUCCEEDED")))[0] is TaskSucceeded

    def test_the_first_terminal_report_wins(self) -> None:
        run = leased(make_plan(2))
        give(run, Report(0, 1, "w1", "SUCCEEDED"))
        decision = give(run, Report(0, 1, "w1", "FAILED", error=user_error()))
        assert decision.ignored == "late report"

    def test_nothing_happens_to_a_run_that_has_ended(self, run: RunRecord) -> None:
        give(run, Report(0, 1, "w1", "SUCCEEDED"))
        decision = decide(run, Cancel("me", 0), AT, Random(1))
        assert (decision.facts, decision.ignored) == ([], "run is terminal")

    def test_a_node_may_skip_itself_and_with_it_what_is_downstream(self) -> None:
        decision = give(leased(make_plan(2, [(0, 1)])), Report(0, 1, "w1", "SKIPPED"))
        assert decision.facts == [
            TaskSkipped(AT, 0, errors.TASK_SKIPPED.code, None, 1),
            TaskSkipped(AT, 1, errors.TASK_UPSTREAM_FAILED.code, 0),
            RunFinished(AT, "succeeded"),
        ]


class TestFailure:
    def test_without_a_policy_one_failure_is_final(self) -> None:
        decision = give(leased(), Report(0, 1, "w1", "FAILED", error=user_error()))
        assert kinds(decision) == [TaskFailed, RunFinished]
        assert decision.run.status == "failed"
        assert decision.run.error == user_error()

    def test_a_failure_without_an_error_is_a_failure_of_user_code(self, run: RunRecord) -> None:
        give(run, Report(0, 1, "w1", "FAILED"))
        state = run.tasks[0].state
        assert isinstance(state, Failed)
        assert state.error.category == "USER_CODE"

    def test_a_policy_gives_another_attempt_after_its_delay(self) -> None:
        run = leased(make_plan(1, nodes={0: retrying(3)}))
        decision = give(run, Report(0, 1, "w1", "FAILED", error=user_error()))
        assert decision.facts == [AttemptFailed(AT, 0, 1, user_error(), 1.0, failure=1, allowed=3)]
        assert decision.consequences == [AttemptOver(0, 1), EnqueueTask(0, 1.0)]
        decision = give(run, LEASE, Report(0, 2, "w1", "FAILED", error=user_error()))
        assert decision.facts == [AttemptFailed(AT, 0, 2, user_error(), 2.0, failure=2, allowed=3)]
        decision = give(run, LEASE, Report(0, 3, "w1", "FAILED", error=user_error()))
        assert kinds(decision) == [TaskFailed, RunFinished]

    def test_independent_branches_finish_and_descendants_are_skipped(self) -> None:
        run = leased(make_plan(4, [(0, 1), (1, 2)]))
        decision = give(run, Report(0, 1, "w1", "FAILED", error=user_error()))
        assert kinds(decision) == [TaskFailed, TaskSkipped, TaskSkipped]
        assert decision.run.status == "running"
        give(run, LeaseTask(3, "w1", 1, 1), Report(3, 1, "w1", "SUCCEEDED"))
        assert run.status == "failed"

    def test_drained_work_is_lost_not_failed(self) -> None:
        error = TaskFailure(errors.TASK_DRAINED.code, "INFRASTRUCTURE")
        decision = give(leased(), Report(0, 1, "w1", "FAILED", error=error))
        assert kinds(decision) == [AttemptLost]

    def test_work_that_lost_its_host_through_another_is_lost_not_failed(self) -> None:
        run = leased()
        error = TaskFailure(errors.TASK_HOST_LOST.code, "INFRASTRUCTURE", "killed by SIGSEGV")
        decision = give(run, Report(0, 1, "w1", "FAILED", error=error))
        (lost,) = decision.facts
        assert isinstance(lost, AttemptLost)
        assert lost.cause == "its host died"
        assert (run.tasks[0].losses, run.tasks[0].failures) == (1, 0)
        late = give(run, Report(0, 1, "w1", "FAILED", error=error))
        assert late.ignored == "already counted as lost"

    def test_work_that_was_killed_after_its_grace_is_judged_by_what_it_was_stopped_for(
        self,
    ) -> None:
        killed = TaskFailure(errors.CANCEL_TIMEOUT.code, "CANCELLED", "killed")
        report = Report(0, 1, "w1", "FAILED", error=killed)
        run = leased()
        give(run, TimeOut(0, 1, 1000), report)
        assert run.error is not None
        assert run.error.code == errors.RUNNER_TIMEOUT.code
        assert kinds(give(leased(), Withdraw(0, 1), report)) == [AttemptRefused]
        run = leased()
        give(run, Cancel("someone", 1000), report)
        state = run.tasks[0].state
        assert isinstance(state, Failed)
        assert state.error == killed
        assert run.status == "cancelled"


class TestLoss:
    def test_a_lost_attempt_is_given_out_again(self) -> None:
        decision = give(leased(), Lose(0, 1, "lease ended"))
        assert kinds(decision) == [AttemptLost]
        assert type(decision.run.tasks[0].state) is Lost
        assert [type(effect) for effect in decision.consequences] == [AttemptOver, EnqueueTask]

    def test_an_attempt_that_is_over_cannot_be_lost(self, run: RunRecord) -> None:
        give(run, Lose(0, 1, "lease ended"))
        assert give(run, Lose(0, 1, "lease ended")).ignored == "attempt is over"

    def test_the_loss_budget_ends_the_task(self, run: RunRecord) -> None:
        for attempt in range(1, LOSS_BUDGET):
            give(run, Lose(0, attempt, "gone"), LEASE)
        decision = give(run, Lose(0, LOSS_BUDGET, "gone"))
        assert kinds(decision) == [TaskFailed, RunFinished]
        assert run.error is not None
        assert run.error.code == errors.TASK_LOST_TOO_OFTEN.code

    def test_losses_do_not_count_as_failures(self) -> None:
        run = leased(make_plan(1, nodes={0: retrying(2)}))
        give(run, Lose(0, 1, "gone"), LEASE)
        decision = give(run, Report(0, 2, "w1", "FAILED", error=user_error()))
        assert kinds(decision) == [AttemptFailed]

    def test_a_node_that_must_not_run_again_fails_when_it_is_lost(self) -> None:
        run = leased(make_plan(1, nodes={0: {"idempotency": "none"}}))
        give(run, Lose(0, 1, "gone"))
        assert run.error is not None
        assert run.error.code == errors.TASK_LOST.code

    def test_work_stopped_by_its_worker_is_lost_not_cancelled(self) -> None:
        assert kinds(give(leased(), Report(0, 1, "w1", "CANCELLED"))) == [AttemptLost]


class TestRefusal:
    def test_a_refusal_is_a_dispatch_try(self, run: RunRecord) -> None:
        decision = give(run, Refuse(0, 1, "w1", errors.DISPATCH_STALE.code))
        assert kinds(decision) == [AttemptRefused]
        assert run.tasks[0].tries == 1

    def test_five_tries_in_a_row_end_the_task(self, run: RunRecord) -> None:
        for attempt in range(1, DISPATCH_TRIES):
            give(run, Refuse(0, attempt, "w1", errors.DISPATCH_STALE.code), LEASE)
        give(run, Refuse(0, DISPATCH_TRIES, "w1", errors.DISPATCH_STALE.code))
        assert run.error is not None
        assert run.error.code == errors.DISPATCH_UNAVAILABLE.code

    def test_an_attempt_that_was_taken_begins_the_count_anew(self, run: RunRecord) -> None:
        give(run, Refuse(0, 1, "w1", errors.DISPATCH_STALE.code), LEASE, Start(0, 2, "w1"))
        assert run.tasks[0].tries == 0

    @pytest.mark.parametrize(
        "code", [errors.DISPATCH_DRAINING.code, errors.CMD_CONCURRENCY_VIOLATION.code]
    )
    def test_draining_and_busy_keys_wait_without_counting(self, code: str, run: RunRecord) -> None:
        give(run, Refuse(0, 1, "w1", code))
        assert run.tasks[0].tries == 0

    def test_a_refusal_that_cannot_be_mended_fails_at_once(self, run: RunRecord) -> None:
        give(run, Refuse(0, 1, "w1", errors.RESOURCE_MISSING.code, "no such resource"))
        assert run.error is not None
        assert run.error.code == errors.RESOURCE_MISSING.code

    def test_an_unknown_code_is_tried_again(self) -> None:
        assert kinds(give(leased(), Refuse(0, 1, "w1", "X.CUSTOM"))) == [AttemptRefused]

    def test_a_late_refusal_is_ignored(self, run: RunRecord) -> None:
        give(run, Lose(0, 1, "gone"))
        decision = give(run, Refuse(0, 1, "w1", errors.DISPATCH_STALE.code))
        assert decision.ignored == "late refusal"


class TestWithdraw:
    def test_a_withdrawn_attempt_is_stopped_and_not_given_away(self) -> None:
        decision = give(leased(), Withdraw(0, 1))
        assert decision.facts == [StopRequested(AT, 0, 1, "withdraw", 0)]
        assert decision.consequences == [StopAttempt(0, 1, "w1", "withdraw", 0)]
        assert give(decision.run, LEASE).facts == []

    def test_one_that_was_taken_is_not_withdrawn(self) -> None:
        decision = give(leased(), Start(0, 1, "w1"), Withdraw(0, 1))
        assert decision.ignored == "attempt was taken or is over"

    def test_proof_makes_it_a_dispatch_try(self, run: RunRecord) -> None:
        give(run, Withdraw(0, 1), Lose(0, 1, "lease ended"))
        assert (run.tasks[0].tries, run.tasks[0].losses) == (1, 0)

    def test_a_report_of_being_stopped_is_proof_too(self) -> None:
        decision = give(leased(), Withdraw(0, 1), Report(0, 1, "w1", "CANCELLED"))
        assert kinds(decision) == [AttemptRefused]

    def test_a_result_that_came_first_counts(self) -> None:
        decision = give(leased(), Withdraw(0, 1), Report(0, 1, "w1", "SUCCEEDED"))
        assert kinds(decision)[0] is TaskSucceeded

    def test_without_proof_it_waits_for_the_end_of_its_lease(self) -> None:
        decision = give(leased(), Withdraw(0, 1), StopOverdue(0, 1))
        assert decision.facts == []
        assert decision.ignored == "a new attempt needs proof that this one has ended"


class TestTimeout:
    def test_a_timeout_stops_the_attempt(self) -> None:
        decision = give(leased(), Start(0, 1, "w1"), TimeOut(0, 1, 500))
        assert decision.consequences == [StopAttempt(0, 1, "w1", "timeout", 500)]

    def test_one_that_is_being_stopped_does_not_time_out(self) -> None:
        decision = give(leased(), TimeOut(0, 1, 500), TimeOut(0, 1, 500))
        assert decision.ignored == "attempt is over or already stopping"

    def test_being_stopped_by_a_timeout_is_a_failure_of_that_category(self, run: RunRecord) -> None:
        give(run, TimeOut(0, 1, 500), Report(0, 1, "w1", "CANCELLED"))
        assert run.error is not None
        assert run.error.category == "TIMEOUT"

    def test_a_lost_timeout_is_retried_as_a_failure(self) -> None:
        run = leased(make_plan(1, nodes={0: retrying(2)}))
        assert kinds(give(run, TimeOut(0, 1, 500), Lose(0, 1, "gone"))) == [AttemptFailed]

    def test_overdue_without_another_attempt_it_ends_unconfirmed(self, run: RunRecord) -> None:
        give(run, TimeOut(0, 1, 500), StopOverdue(0, 1))
        state = run.tasks[0].state
        assert isinstance(state, Failed)
        assert not state.confirmed

    def test_overdue_with_another_attempt_it_waits_for_proof(self) -> None:
        run = leased(make_plan(1, nodes={0: retrying(2)}))
        give(run, TimeOut(0, 1, 500), StopOverdue(0, 1))
        assert type(run.tasks[0].state) is Stopping

    def test_one_that_is_over_is_not_overdue(self) -> None:
        run = leased(make_plan(2))
        give(run, Report(0, 1, "w1", "SUCCEEDED"))
        assert give(run, StopOverdue(0, 1)).ignored == "attempt is over"


class TestCancel:
    def test_what_does_not_run_ends_at_once(self) -> None:
        run = start(make_plan(2, [(0, 1)])).run
        decision = give(run, Cancel("me", 500))
        assert decision.facts == [
            CancelRequested(AT, "me"),
            TaskCancelled(AT, 0, 0),
            TaskCancelled(AT, 1, 0),
            RunFinished(AT, "cancelled"),
        ]

    def test_what_runs_is_stopped_and_the_run_waits_for_it(self) -> None:
        run = leased(make_plan(2, [(0, 1)]))
        decision = give(run, Cancel("me", 500))
        assert decision.consequences == [StopAttempt(0, 1, "w1", "cancel", 500)]
        assert decision.run.status == "running"
        give(run, Report(0, 1, "w1", "CANCELLED"))
        assert run.status == "cancelled"
        assert run.tasks[0].state == Cancelled(True)

    def test_a_second_cancel_changes_nothing(self, run: RunRecord) -> None:
        give(run, Cancel("me", 500))
        assert give(run, Cancel("me", 500)).ignored == "cancel already requested"

    def test_no_attempt_starts_after_a_cancel(self) -> None:
        run = leased(make_plan(1, nodes={0: retrying(5)}))
        give(run, Cancel("me", 500), Report(0, 1, "w1", "FAILED", error=user_error()))
        assert run.status == "cancelled"
        assert type(run.tasks[0].state) is Failed

    def test_a_task_lost_after_a_cancel_is_cancelled_unconfirmed(self, run: RunRecord) -> None:
        give(run, Cancel("me", 500), Lose(0, 1, "gone"))
        assert run.tasks[0].state == Cancelled(False)

    def test_a_task_refused_after_a_cancel_is_cancelled(self, run: RunRecord) -> None:
        give(run, Cancel("me", 500), Refuse(0, 1, "w1", errors.DISPATCH_STALE.code))
        assert run.tasks[0].state == Cancelled(True)

    def test_a_worker_that_never_confirms_leaves_a_failed_task_in_a_cancelled_run(self) -> None:
        run = leased()
        give(run, Cancel("me", 500), StopOverdue(0, 1))
        state = run.tasks[0].state
        assert isinstance(state, Failed)
        assert (state.error.code, state.confirmed) == (errors.CANCEL_TIMEOUT.code, False)
        assert run.status == "cancelled"

    def test_a_result_that_came_first_is_kept_in_the_cancelled_run(self, run: RunRecord) -> None:
        give(run, Cancel("me", 500), Report(0, 1, "w1", "SUCCEEDED"))
        assert run.status == "cancelled"
        assert run.tasks[0].result is not None

    def test_a_deadline_ends_the_run_as_failed(self, run: RunRecord) -> None:
        give(run, Cancel("", 500, "deadline"), Report(0, 1, "w1", "CANCELLED"))
        assert run.status == "failed"
        assert run.error is not None
        assert run.error.code == errors.TIMEOUT.code

    def test_waiting_tasks_do_not_become_ready_while_their_run_is_cancelled(self) -> None:
        run = leased(make_plan(3, [(0, 1), (1, 2)]))
        decision = give(run, Cancel("me", 500))
        assert not [one for one in decision.consequences if isinstance(one, EnqueueTask)]


class TestDisabled:
    def test_a_disabled_node_passes_on_what_it_was_given(self) -> None:
        inputs = (InputEdge(0, ("value",), ("got",)),)
        given = {"disabled": True, "inputs": inputs, "parameters": b'{"own":1,"e":"=1/0"}'}
        given["expressions"] = (PlanExpression(("e",), "1/0"),)
        run = leased(make_plan(3, [(0, 1), (1, 2)], nodes={1: given}))
        report = Report(0, 1, "w1", "SUCCEEDED", msgspec.Raw(b'{"value":7}'))
        decision = give(run, report)
        assert kinds(decision) == [TaskSucceeded, TaskPassed]
        assert decision.consequences[-1] == EnqueueTask(2)
        assert run.tasks[1].result == msgspec.Raw(b'{"own":1,"e":"=1/0","got":7}')
        shown = view_run(run).nodes[1]
        assert (shown.status, shown.error and shown.error.code) == ("skipped", "E.TASK.DISABLED")

    def test_a_workflow_of_disabled_nodes_succeeds_at_once(self) -> None:
        decision = start(make_plan(1, nodes={0: {"disabled": True}}))
        assert decision.run.status == "succeeded"


class TestJoins:
    def test_any_runs_on_the_first_success(self) -> None:
        run = start(
            make_plan(3, [(0, 2), (1, 2)], nodes={2: {"join": "any"}}, features=JOINING)
        ).run
        give(run, LeaseTask(0, "w1", 1, 1), LeaseTask(1, "w1", 1, 1))
        decision = give(run, Report(0, 1, "w1", "SUCCEEDED"))
        assert EnqueueTask(2) in decision.consequences
        give(run, Report(1, 1, "w1", "SUCCEEDED"), LeaseTask(2, "w1", 1, 1))
        give(run, Report(2, 1, "w1", "SUCCEEDED"))
        assert run.status == "succeeded"

    def test_any_is_skipped_when_nothing_upstream_succeeds(self) -> None:
        run = start(
            make_plan(3, [(0, 2), (1, 2)], nodes={2: {"join": "any"}}, features=JOINING)
        ).run
        give(run, LeaseTask(0, "w1", 1, 1), LeaseTask(1, "w1", 1, 1))
        assert kinds(give(run, Report(0, 1, "w1", "FAILED"))) == [TaskFailed]
        decision = give(run, Report(1, 1, "w1", "FAILED"))
        assert kinds(decision) == [TaskFailed, TaskSkipped, RunFinished]

    def test_all_done_runs_whatever_became_of_upstream(self) -> None:
        run = start(make_plan(2, [(0, 1)], nodes={1: {"join": "all_done"}}, features=JOINING)).run
        decision = give(run, LEASE, Report(0, 1, "w1", "FAILED"))
        assert EnqueueTask(1) in decision.consequences

    def test_all_done_waits_for_every_upstream_task(self) -> None:
        run = start(
            make_plan(3, [(0, 2), (1, 2)], nodes={2: {"join": "all_done"}}, features=JOINING)
        ).run
        decision = give(run, LEASE, Report(0, 1, "w1", "SUCCEEDED"))
        assert EnqueueTask(2) not in decision.consequences

    def test_an_error_edge_runs_on_failure_and_is_dead_on_success(self) -> None:
        plan = make_plan(2, error_edges=[(0, 1)], features=JOINING)
        run = start(plan).run
        decision = give(run, LEASE, Report(0, 1, "w1", "FAILED"))
        assert EnqueueTask(1) in decision.consequences
        run = start(plan).run
        decision = give(run, LEASE, Report(0, 1, "w1", "SUCCEEDED"))
        assert kinds(decision) == [TaskSucceeded, TaskSkipped, RunFinished]

    def test_all_needs_every_edge_alive(self) -> None:
        run = start(make_plan(3, [(0, 2)], error_edges=[(1, 2)], features=JOINING)).run
        give(run, LEASE, LeaseTask(1, "w1", 1, 1), Report(0, 1, "w1", "SUCCEEDED"))
        decision = give(run, Report(1, 1, "w1", "FAILED"))
        assert EnqueueTask(2) in decision.consequences
