"""Making again what was lost with its worker."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core.runs.commands import Cancel, LeaseTask, Lose, Rebuild, Report, RunCommand
from astraflow.core.runs.consequences import AttemptOver, EnqueueTask, UnqueueTask
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.derived import InvalidTransition
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    Fact,
    RunFinished,
    TaskFailed,
    TaskFailure,
    TaskRebuilt,
    TaskSkipped,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of
from astraflow.core.runs.rebuild import REBUILDS, makers_of
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Failed, Ready, Succeeded
from astraflow.core.runs.timeline import task_timeline
from astraflow.core.runs.transitions import fold, replay
from astraflow.core.workflow.plan import Feature, RetryPolicy
from tests.unit.plans import AT, make_plan, start

SESSION = {"page": {"resourceRef": {"resourceId": "r1", "workerId": "w1", "type": "page"}}}


class World:
    """A run, and all that was decided about it."""

    def __init__(self, size: int, edges: list[tuple[int, int]], **nodes: Any) -> None:
        self.plan = make_plan(size, edges, **nodes)
        first = start(self.plan)
        self.run: RunRecord = first.run
        self.facts: list[Fact] = list(first.facts)

    def decide(self, command: RunCommand) -> Decision:
        decision = decide(self.run, command, AT, Random(0))
        self.facts.extend(decision.facts)
        self.run.check()
        return decision

    def lease(self, task: int, worker: str = "w1") -> int:
        self.decide(LeaseTask(task, worker, 1, 30_000))
        return self.run.tasks[task].attempt

    def succeed(self, task: int, result: object = None) -> None:
        attempt = self.lease(task)
        raw = msgspec.Raw(msgspec.json.encode(result or {}))
        self.decide(Report(task, attempt, "w1", "SUCCEEDED", raw))

    def states(self) -> list[str]:
        return [type(task.state).__name__ for task in self.run.tasks]

    def assert_replays(self) -> None:
        again = replay(self.plan, self.facts)
        for one, other in zip(again.tasks, self.run.tasks, strict=True):
            assert (one.state, one.remaining, one.rebuilds) == (
                other.state,
                other.remaining,
                other.rebuilds,
            )


@pytest.fixture
def chain() -> World:
    """open → click → extract, of which the last is ready."""
    world = World(3, [(0, 1), (1, 2)])
    world.succeed(0, SESSION)
    world.succeed(1, {"clicked": True})
    return world


def test_the_maker_and_what_lies_between_run_again(chain: World) -> None:
    decision = chain.decide(Rebuild(2, "r1", "its worker did not come back"))
    assert decision.facts == [TaskRebuilt(AT, 2, "r1", "its worker did not come back", (0, 1))]
    assert decision.consequences == [UnqueueTask(2), EnqueueTask(0)]
    assert chain.states() == ["Ready", "Pending", "Pending"]
    chain.assert_replays()


def test_the_run_succeeds_when_all_is_made_again(chain: World) -> None:
    chain.decide(Rebuild(2, "r1", "gone"))
    chain.succeed(0, SESSION)
    assert chain.states() == ["Succeeded", "Ready", "Pending"]
    chain.succeed(1)
    chain.succeed(2)
    assert chain.run.status == "succeeded"
    assert [task.attempt for task in chain.run.tasks] == [2, 2, 1]
    chain.assert_replays()


def test_a_neighbour_that_used_it_keeps_its_result_and_one_that_waits_waits_again() -> None:
    world = World(4, [(0, 1), (0, 2), (0, 3)])
    world.succeed(0, SESSION)
    world.succeed(1)
    decision = world.decide(Rebuild(2, "r1", "gone"))
    assert world.states() == ["Ready", "Succeeded", "Pending", "Pending"]
    assert decision.consequences == [UnqueueTask(2), UnqueueTask(3), EnqueueTask(0)]
    world.succeed(0, SESSION)
    assert world.states() == ["Succeeded", "Succeeded", "Ready", "Ready"]
    world.assert_replays()


def test_a_neighbour_that_runs_is_left_alone() -> None:
    world = World(3, [(0, 1), (0, 2)])
    world.succeed(0, SESSION)
    attempt = world.lease(1)
    world.decide(Rebuild(2, "r1", "gone"))
    assert world.states() == ["Ready", "Leased", "Pending"]
    world.decide(Report(1, attempt, "w1", "SUCCEEDED"))
    assert world.states() == ["Ready", "Succeeded", "Pending"]


def test_a_pending_child_counts_its_upstream_anew() -> None:
    world = World(4, [(0, 1), (0, 2), (2, 3), (0, 3)])
    world.succeed(0, SESSION)
    assert world.run.tasks[3].remaining == 1
    world.decide(Rebuild(1, "r1", "gone"))
    assert world.run.tasks[3].remaining == 2
    for task in (0, 1, 2, 3):
        world.succeed(task)
    assert world.run.status == "succeeded"


def test_what_was_done_to_it_for_a_later_user_elsewhere_is_done_again() -> None:
    """4 will get it from 2, which is not upstream of 1: 2 has acted on the one that is gone."""
    world = World(5, [(0, 1), (0, 2), (2, 4), (3, 4)])
    world.succeed(0, SESSION)
    world.succeed(2, {"value": SESSION})
    assert makers_of(world.run, 1, "r1") == (0, 2)
    world.decide(Rebuild(1, "r1", "gone"))
    assert world.states() == ["Ready", "Pending", "Pending", "Ready", "Pending"]
    for task in (0, 2, 3):
        world.succeed(task, SESSION)
    world.succeed(4)
    assert makers_of(world.run, 1, "r1") == (0,)
    world.assert_replays()


def test_one_that_only_hands_it_on_runs_again_too() -> None:
    world = World(3, [(0, 1), (1, 2)])
    world.succeed(0, SESSION)
    world.succeed(1, {"value": SESSION})
    assert makers_of(world.run, 2, "r1") == (0, 1)
    assert makers_of(world.run, 2, "other") == ()


def test_a_report_for_want_of_it_is_a_loss_and_makes_it_again(chain: World) -> None:
    attempt = chain.lease(2)
    error = TaskFailure("E.RESOURCE.LOST", "INFRASTRUCTURE", "evicted", False)
    decision = chain.decide(Report(2, attempt, "w1", "FAILED", error=error, lost="r1"))
    assert [type(fact) for fact in decision.facts] == [AttemptLost, TaskRebuilt]
    assert decision.consequences[0] == AttemptOver(2, attempt)
    assert EnqueueTask(0) in decision.consequences
    assert chain.run.tasks[2].losses == 1
    chain.assert_replays()


def test_what_nobody_in_the_run_made_cannot_be_made_again(chain: World) -> None:
    chain.decide(Rebuild(2, "r9", "gone"))
    state = chain.run.tasks[2].state
    assert isinstance(state, Failed)
    assert state.error.code == "E.RESOURCE.LOST"
    assert "no node of the run made it: r9" in state.error.message
    assert chain.run.status == "failed"


def test_it_is_made_again_a_few_times_and_no_more(chain: World) -> None:
    for _ in range(REBUILDS):
        chain.decide(Rebuild(2, "r1", "gone"))
        chain.succeed(0, SESSION)
        chain.succeed(1)
    decision = chain.decide(Rebuild(2, "r1", "gone"))
    assert isinstance(decision.facts[0], TaskFailed)
    assert f"made again {REBUILDS} times" in decision.facts[0].error.message


def test_a_node_that_must_not_run_twice_is_not_run_again() -> None:
    world = World(2, [(0, 1)], nodes={0: {"idempotency": "none"}})
    world.succeed(0, SESSION)
    world.decide(Rebuild(1, "r1", "gone"))
    state = world.run.tasks[1].state
    assert isinstance(state, Failed)
    assert "must not run twice" in state.error.message


def test_a_cancelled_run_makes_nothing_again(chain: World) -> None:
    chain.lease(2)
    chain.decide(Cancel("", 1000))
    decision = chain.decide(Rebuild(2, "r1", "gone"))
    assert decision.ignored is not None
    assert decision.facts == []


def test_readers_are_told_of_every_task_that_runs_again(chain: World) -> None:
    fact = chain.decide(Rebuild(2, "r1", "its worker did not come back")).facts[0]
    events = events_of(fact, 7, TaskPlaces(chain.plan))
    assert [event.id for event in events] == [7, 8, 9]
    nodes = [chain.plan.nodes[index].node_id for index in (2, 0, 1)]
    assert [event.body.node_id for event in events] == nodes
    assert {event.body.status for event in events} == {"pending"}
    assert "did not come back" in events[1].body.message


def test_the_story_says_so_at_the_one_that_waits_and_at_those_that_run_again(chain: World) -> None:
    chain.decide(Rebuild(2, "r1", "its worker did not come back"))
    for task in (0, 1, 2):
        told = task_timeline(chain.facts, task)[-1]
        assert "r1 is gone (its worker did not come back): it is made again by 2 nodes" in told


def test_only_a_success_can_be_taken_back() -> None:
    world = World(2, [(0, 1)])
    assert type(world.run.tasks[0].state) is Ready
    with pytest.raises(InvalidTransition):
        fold(world.run, TaskRebuilt(AT, 1, "r1", "gone", (0,)))


def test_only_one_that_waits_for_a_place_can_wait_for_it_again(chain: World) -> None:
    chain.lease(2)
    with pytest.raises(InvalidTransition):
        fold(chain.run, TaskRebuilt(AT, 2, "r1", "gone", (0,)))
    assert type(chain.run.tasks[1].state) is Succeeded


def test_a_late_word_of_a_lost_attempt_makes_it_again_too(chain: World) -> None:
    attempt = chain.lease(2)
    chain.decide(Lose(2, attempt, "its lease ended"))
    error = TaskFailure("E.RESOURCE.LOST", "INFRASTRUCTURE", "evicted", False)
    decision = chain.decide(Report(2, attempt, "w1", "FAILED", error=error, lost="r1"))
    assert [type(fact) for fact in decision.facts] == [TaskRebuilt]
    chain.assert_replays()


def test_another_task_that_is_given_it_finds_what_lies_between_done_as_well() -> None:
    """open → (log in → look) and, of the same page, shop; open is made again for shop alone."""
    world = World(4, [(0, 1), (0, 2), (1, 2), (0, 3)])
    world.succeed(0, SESSION)
    world.succeed(1, {"in": True})
    assert makers_of(world.run, 3, "r1") == (0, 1)
    world.succeed(2, {"seen": True})
    assert makers_of(world.run, 3, "r1") == (0,)


class TestUnderWay:
    """open → (log in → look) and, of the same page, shop; the page is lost while somebody logs in."""

    def world(self, **nodes: Any) -> tuple[World, int]:
        world = World(4, [(0, 1), (0, 2), (1, 2), (0, 3)], **nodes)
        world.succeed(0, SESSION)
        return world, world.lease(1)

    def test_what_lies_between_and_succeeds_late_runs_once_more(self) -> None:
        world, attempt = self.world()
        (rebuilt,) = world.decide(Rebuild(3, "r1", "gone")).facts
        assert isinstance(rebuilt, TaskRebuilt)
        assert (rebuilt.again, rebuilt.stale) == ((0,), (1,))
        late = world.decide(Report(1, attempt, "w1", "SUCCEEDED", msgspec.Raw(b"{}")))
        assert [type(fact) for fact in late.facts] == [AttemptLost]
        assert world.states() == ["Ready", "Pending", "Pending", "Pending"]
        world.succeed(0, SESSION)
        world.succeed(1, {"in": True})  # its next attempt counts
        assert world.states() == ["Succeeded", "Succeeded", "Ready", "Ready"]
        world.assert_replays()

    def test_what_lies_on_no_way_keeps_its_success(self) -> None:
        world = World(3, [(0, 1), (0, 2)])
        world.succeed(0, SESSION)
        attempt = world.lease(1)
        (rebuilt,) = world.decide(Rebuild(2, "r1", "gone")).facts
        assert isinstance(rebuilt, TaskRebuilt)
        assert rebuilt.stale == ()
        world.decide(Report(1, attempt, "w1", "SUCCEEDED", msgspec.Raw(b"{}")))
        assert world.states()[1] == "Succeeded"

    def test_what_must_not_run_twice_is_not_run_once_more(self) -> None:
        world, _ = self.world(nodes={1: {"idempotency": "none"}})
        decision = world.decide(Rebuild(3, "r1", "gone"))
        assert type(decision.facts[0]) is TaskFailed
        assert world.states()[0] == "Succeeded"


class TestMadeAgainInVain:
    """open → (look, shop): the page is lost while somebody shops, and cannot be opened again."""

    PROBLEM = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "it failed", False)

    def world(self, **nodes: Any) -> tuple[World, int]:
        world = World(3, [(0, 1), (0, 2)], **nodes)
        world.succeed(0, SESSION)
        attempt = world.lease(1)
        world.decide(Rebuild(2, "r1", "gone"))
        again = world.lease(0)
        world.decide(Report(0, again, "w1", "FAILED", error=self.PROBLEM))
        assert world.states() == ["Failed", "Leased", "Skipped"]
        return world, attempt

    def test_what_was_under_way_may_still_succeed(self) -> None:
        world, attempt = self.world()
        world.decide(Report(1, attempt, "w1", "SUCCEEDED"))
        assert world.states() == ["Failed", "Succeeded", "Skipped"]

    def test_what_was_under_way_and_is_lost_gets_no_other_attempt(self) -> None:
        world, attempt = self.world()
        decision = world.decide(Lose(1, attempt, "its lease ended"))
        assert [type(fact) for fact in decision.facts] == [AttemptLost, TaskSkipped, RunFinished]
        assert not [one for one in decision.consequences if isinstance(one, EnqueueTask)]
        assert world.states() == ["Failed", "Skipped", "Skipped"]
        world.assert_replays()

    def test_what_was_under_way_and_fails_gets_no_other_attempt(self) -> None:
        world, attempt = self.world(nodes={1: {"retry": RetryPolicy(max_attempts=3)}})
        problem = msgspec.structs.replace(self.PROBLEM, retryable=True)
        decision = world.decide(Report(1, attempt, "w1", "FAILED", error=problem))
        assert [type(fact) for fact in decision.facts] == [AttemptFailed, TaskSkipped, RunFinished]
        assert world.run.status == "failed"
        world.assert_replays()


@pytest.mark.parametrize(("join", "is_over"), [("all", True), ("any", True), ("all_done", False)])
def test_the_join_of_a_task_says_whether_what_failed_again_ends_it(
    join: str, is_over: bool
) -> None:
    features = frozenset({Feature.JOIN_ANY, Feature.JOIN_ALL_DONE})
    world = World(3, [(0, 1), (0, 2)], nodes={1: {"join": join}}, features=features)
    world.succeed(0, SESSION)
    attempt = world.lease(1)
    world.decide(Rebuild(2, "r1", "gone"))
    problem = TestMadeAgainInVain.PROBLEM
    world.decide(Report(0, world.lease(0), "w1", "FAILED", error=problem))
    world.decide(Lose(1, attempt, "its lease ended"))
    assert world.states()[1] == ("Skipped" if is_over else "Lost")
    world.assert_replays()


def test_a_task_whose_attempt_is_lost_waits_for_what_is_made_again() -> None:
    world = World(3, [(0, 1), (0, 2)])
    world.succeed(0, SESSION)
    attempt = world.lease(1)
    world.decide(Rebuild(2, "r1", "gone"))
    decision = world.decide(Lose(1, attempt, "its lease ended"))
    assert not [one for one in decision.consequences if isinstance(one, EnqueueTask)]
    assert world.states() == ["Ready", "Pending", "Pending"]
    world.assert_replays()
    world.succeed(0, SESSION)
    assert world.states() == ["Succeeded", "Ready", "Ready"]
    world.assert_replays()
