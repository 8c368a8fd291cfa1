"""The table of transitions, every pair of it, and the fold."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from astraflow.core.errors import Bug
from astraflow.core.ids import TaskId
from astraflow.core.runs import states
from astraflow.core.runs.commands import LeaseTask, Lose, Report, Start
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.derived import InvalidTransition
from astraflow.core.runs.facts import (
    AttemptProgressed,
    AttemptStarted,
    CallOpened,
    CancelRequested,
    EdgesDecided,
    Fact,
    RunFinished,
    RunStarted,
    TaskFact,
    TaskFailure,
    TaskLeased,
    TaskRebuilt,
    TaskReused,
    TaskSucceeded,
)
from astraflow.core.runs.projections import view_run
from astraflow.core.runs.run import RECENT_FACTS, RunRecord
from astraflow.core.runs.states import (
    TERMINAL,
    Attempted,
    Failed,
    Leased,
    Pending,
    Ready,
    State,
    Succeeded,
)
from astraflow.core.runs.transitions import LEADS_TO, TRANSITIONS, fold, replay
from tests.tables import each_row
from tests.unit.core.runs.examples import ERROR, FULL_FACTS, WAY_TO, about, run_in
from tests.unit.plans import AT, TASK_ATTRIBUTES, accepted, make_plan, retrying, start

STATES = [
    one
    for one in vars(states).values()
    if isinstance(one, type) and issubclass(one, State) and one not in (State, Attempted)
]
# A call is a task that a fact adds: there is no state that it could meet. A rebuild is about several tasks at once. A
# decision about edges may meet a task in any state.
TASK_FACTS = [
    fact
    for fact in FULL_FACTS
    if isinstance(fact, TaskFact) and not isinstance(fact, CallOpened | TaskRebuilt | EdgesDecided)
]
PAIRS = [(state, fact) for state in STATES for fact in TASK_FACTS]


def named(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__


def at_hand(state: type[State], fact: Fact) -> tuple[RunRecord, Fact]:
    """A run with a task in `state`, and the fact as it could be true of that task."""
    run, task = run_in(state)
    attempt = run.tasks[task].attempt + (type(fact) is TaskLeased)
    return run, about(fact, task, attempt)


def user_error(message: str = "boom") -> TaskFailure:
    return TaskFailure("E.RUNNER.FAILURE", "USER_CODE", message)


def rows(state: type[State]) -> Iterator[type[Fact]]:
    return (fact for one, fact in TRANSITIONS if one is state)


def test_the_ways_lead_into_every_state() -> None:
    assert set(WAY_TO) == set(STATES)


@each_row(("state", "fact"), PAIRS)
def test_a_pair_is_a_row_or_a_bug_with_its_story(state: type[State], fact: TaskFact) -> None:
    run, fact_here = at_hand(state, fact)
    assert isinstance(fact_here, TaskFact)
    task = run.tasks[fact_here.task]
    if (state, type(fact)) in TRANSITIONS:
        fold(run, fact_here)
        expected = LEADS_TO[type(fact)]
        assert type(task.state) is (state if expected is None else expected)
        return
    with pytest.raises(InvalidTransition) as raised:
        fold(run, fact_here)
    assert type(task.state) is state
    told = str(raised.value)
    assert repr(task.state) in told
    assert "of run run1" in told
    for earlier in run.recent:
        assert repr(earlier) in told


def test_an_invalid_transition_is_a_bug_of_ours() -> None:
    assert issubclass(InvalidTransition, Bug)


def test_the_map_of_where_facts_lead_has_every_fact_of_the_table() -> None:
    assert set(LEADS_TO) == {fact for _, fact in TRANSITIONS} == {type(one) for one in TASK_FACTS}


@each_row("state", sorted(TERMINAL, key=named))
def test_a_terminal_state_has_no_rows(state: type[State]) -> None:
    assert list(rows(state)) == []


@each_row("state", sorted(set(STATES) - TERMINAL, key=named))
def test_every_other_state_can_be_left(state: type[State]) -> None:
    assert any(LEADS_TO[fact] not in (None, state) for fact in rows(state))


def test_no_fact_leads_a_task_into_the_state_of_a_middleware() -> None:
    assert states.Subsumed not in LEADS_TO.values()


class TestCalls:
    def test_an_opened_call_is_one_more_task_that_is_ready(self) -> None:
        run, _ = run_in(Leased)
        assert CallOpened not in LEADS_TO
        fold(run, CallOpened(AT, 2, TaskId("call1"), 0, 1, "req1", None))
        assert (len(run.tasks), run.open_tasks, run.tasks[0].open_calls) == (3, 3, 1)
        assert (run.ready, run.calls) == ([0, 2], {(0, 1, "req1"): 2})
        assert (run.tasks[2].state, run.tasks[2].node) == (states.READY, run.plan.nodes[0])

    def test_calls_are_numbered_in_the_order_in_which_they_are_opened(self) -> None:
        run, _ = run_in(Leased)
        with pytest.raises(AssertionError, match="in the order in which they are opened"):
            fold(run, CallOpened(AT, 3, TaskId("call1"), 0, 1, "req1", None))


def test_a_story_keeps_only_the_last_facts() -> None:
    run, _ = run_in(Leased)
    for _ in range(3 * RECENT_FACTS):
        fold(run, AttemptProgressed(AT, 0, 1))
    assert len(run.recent) == RECENT_FACTS


def test_an_attempt_number_is_issued_once() -> None:
    run, _ = run_in(states.Lost)
    with pytest.raises(AssertionError, match="issued once"):
        fold(run, TaskLeased(AT, 0, 1, "w2", 1, 1))


def test_a_lease_clears_what_the_last_attempt_said() -> None:
    run, _ = run_in(Leased)
    fold(run, AttemptProgressed(AT, 0, 1, 0.5, "half"))
    fold(run, about(WAY_TO[states.Backoff][-1], 0, 1))
    fold(run, TaskLeased(AT, 0, 2, "w2", 1, 1))
    task = run.tasks[0]
    assert (task.worker, task.progress, task.message, task.delay_s) == ("w2", None, None, 0.0)


def test_a_task_began_when_its_first_attempt_did() -> None:
    run, _ = run_in(Leased)
    fold(run, AttemptStarted(AT + 5, 0, 1))
    fold(run, about(WAY_TO[states.Backoff][-1], 0, 1))
    fold(run, TaskLeased(AT, 0, 2, "w1", 1, 1))
    fold(run, AttemptStarted(AT + 90, 0, 2))
    assert run.tasks[0].started_at == AT + 5


@pytest.mark.parametrize(("duration_ms", "started"), [(40, AT + 60), (None, AT + 100)])
def test_a_result_without_a_start_says_when_it_began(duration_ms: int | None, started: int) -> None:
    run, _ = run_in(Leased)
    fold(run, TaskSucceeded(AT + 100, 0, 1, duration_ms=duration_ms))
    assert (run.tasks[0].started_at, run.tasks[0].finished_at) == (started, AT + 100)


def test_a_lost_attempt_that_then_reports_its_failure_is_a_loss_and_a_failure() -> None:
    """leased 1 -> lost -> failed 1"""
    run = start(make_plan(1, nodes={0: retrying(3)})).run
    for command in (
        LeaseTask(0, "w1", 1, 1),
        Lose(0, 1, "silence"),
        Report(0, 1, "w1", "FAILED", error=user_error()),
    ):
        decide(run, command, AT, Random(1))
        run.check()
    task = run.tasks[0]
    assert (task.attempt, task.losses, task.failures) == (1, 1, 1)


class TestFacts:
    """Facts of the run itself."""

    def test_an_acceptance_changes_nothing_but_the_count_of_events(self) -> None:
        run = RunRecord(make_plan(1), accepted())
        fold(run, accepted())
        assert (run.status, run.last_event) == ("queued", 1)

    def test_a_run_runs_from_its_start_to_its_end(self) -> None:
        run, _ = run_in(states.Succeeded)
        fold(run, RunStarted(AT + 1))
        assert (run.status, run.started_at) == ("running", AT + 1)
        fold(run, about(FULL_FACTS[-1], 1, 0))
        fold(run, RunFinished(AT + 2, "failed", ERROR))
        assert (run.status, run.error, run.finished_at) == ("failed", ERROR, AT + 2)

    def test_a_cancel_is_remembered(self) -> None:
        run, _ = run_in(Ready)
        fold(run, CancelRequested(AT, "ann"))
        assert run.cancel == CancelRequested(AT, "ann")
        assert run.status == "queued"

    def test_a_run_with_open_tasks_does_not_end(self) -> None:
        run, _ = run_in(Ready)
        with pytest.raises(AssertionError, match="a run ends when all its tasks have"):
            fold(run, RunFinished(AT, "succeeded"))


class TestReplay:
    def live(self) -> tuple[RunRecord, list[Fact]]:
        decision = start(make_plan(3, [(0, 1), (0, 2)], nodes={0: retrying(2)}))
        run, facts = decision.run, list(decision.facts)
        for command in (
            LeaseTask(0, "w1", 1, 1),
            Start(0, 1, "w1"),
            Report(0, 1, "w1", "FAILED", error=user_error()),
            LeaseTask(0, "w2", 1, 1),
            Report(0, 2, "w2", "SUCCEEDED"),
            LeaseTask(1, "w2", 1, 1),
            Lose(1, 1, "gone"),
        ):
            facts += decide(run, command, AT, Random(1)).facts
        return run, facts

    def test_a_replayed_run_is_the_live_one(self) -> None:
        run, facts = self.live()
        again = replay(run.plan, facts)
        again.check()
        assert view_run(again) == view_run(run)
        for here, there in zip(again.tasks, run.tasks, strict=True):
            for name in TASK_ATTRIBUTES:
                assert getattr(here, name) == getattr(there, name), name

    def test_a_replayed_run_goes_on_as_the_live_one_would(self) -> None:
        run, facts = self.live()
        again = replay(run.plan, facts)
        for one in (run, again):
            decision = decide(one, Report(1, 1, "w2", "SUCCEEDED"), AT, Random(1))
            assert type(one.tasks[1].state) is Succeeded
            assert decision.facts == [TaskSucceeded(AT, 1, 1)]

    def test_kept_results_are_replayed(self) -> None:
        first = accepted(rerun_of="run0")
        run = replay(make_plan(2, [(0, 1)]), [first, TaskReused(AT, 0, "run0")])
        run.check()
        assert [type(task.state) for task in run.tasks] == [Succeeded, Ready]

    def test_a_run_begins_with_its_acceptance(self) -> None:
        with pytest.raises(AssertionError, match="begins with its acceptance"):
            replay(make_plan(1), [RunStarted(AT)])

    def test_a_run_has_at_least_one_fact(self) -> None:
        with pytest.raises(AssertionError, match="at least one fact"):
            replay(make_plan(1), [])


class TestChildren:
    def test_the_first_task_that_failed_names_the_error(self) -> None:
        run = start(make_plan(2)).run
        for task in (1, 0):
            decide(run, LeaseTask(task, "w1", 1, 1), AT, Random(1))
            decide(run, Report(task, 1, "w1", "FAILED", error=user_error(f"{task}")), AT, Random(1))
        assert run.failed == [1, 0]
        assert run.error == user_error("1")

    def test_a_child_with_two_parents_waits_for_both(self) -> None:
        run = start(make_plan(3, [(0, 2), (1, 2)])).run
        decide(run, LeaseTask(0, "w1", 1, 1), AT, Random(1))
        decide(run, Report(0, 1, "w1", "SUCCEEDED"), AT, Random(1))
        assert type(run.tasks[2].state) is Pending

    def test_a_child_of_two_failures_is_skipped_once(self) -> None:
        run = start(make_plan(3, [(0, 2), (1, 2)])).run
        for task in (0, 1):
            decide(run, LeaseTask(task, "w1", 1, 1), AT, Random(1))
        seen = []
        for task in (0, 1):
            report = Report(task, 1, "w1", "FAILED", error=user_error())
            seen += [type(fact).__name__ for fact in decide(run, report, AT, Random(1)).facts]
        assert seen == ["TaskFailed", "TaskSkipped", "TaskFailed", "RunFinished"]
        assert isinstance(run.tasks[0].state, Failed)
