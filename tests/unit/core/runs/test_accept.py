"""Taking a run in."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from astraflow.core.runs.accept import accept, downstream
from astraflow.core.runs.consequences import EnqueueTask, FinishRun
from astraflow.core.runs.facts import RunFinished, TaskReused
from astraflow.core.runs.states import Pending, Ready, Succeeded
from tests.unit.core.runs.examples import ARTIFACT, RESULT
from tests.unit.plans import AT, accepted, make_plan, start

EMPTY = msgspec.Raw(b"{}")


class TestFresh:
    def test_tasks_without_an_upstream_are_queued(self) -> None:
        decision = start(make_plan(3, [(0, 2)]))
        assert decision.facts == [accepted()]
        assert decision.consequences == [EnqueueTask(0), EnqueueTask(1)]
        decision.run.check()

    def test_events_are_numbered_from_one(self) -> None:
        decision = start(make_plan(1))
        assert (decision.first, decision.run.last_event) == (1, 1)

    def test_a_workflow_without_nodes_has_succeeded(self) -> None:
        decision = start(make_plan(0))
        assert decision.facts == [accepted(), RunFinished(AT, "succeeded")]
        assert decision.consequences == [FinishRun("succeeded")]
        decision.run.check()


class TestKept:
    def test_a_kept_result_is_taken_over_and_what_follows_it_is_queued(self) -> None:
        decision = accept(
            make_plan(3, [(0, 1), (1, 2)]),
            accepted(rerun_of="run0"),
            Random(1),
            {0: (RESULT, (ARTIFACT,))},
        )
        run = decision.run
        run.check()
        assert decision.facts[1:] == [TaskReused(AT, 0, "run0", RESULT, (ARTIFACT,))]
        assert decision.consequences == [EnqueueTask(1)]
        assert [type(task.state) for task in run.tasks] == [Succeeded, Ready, Pending]
        assert (run.tasks[0].result, run.tasks[0].attempt) == (RESULT, 0)

    def test_kept_results_may_follow_each_other_in_any_order(self) -> None:
        decision = accept(
            make_plan(4, [(0, 1), (1, 2), (2, 3)]),
            accepted(rerun_of="run0"),
            Random(1),
            {2: (EMPTY, ()), 0: (EMPTY, ()), 1: (EMPTY, ())},
        )
        decision.run.check()
        assert decision.consequences == [EnqueueTask(3)]

    def test_a_run_that_keeps_everything_has_succeeded(self) -> None:
        decision = accept(make_plan(1), accepted(rerun_of="run0"), Random(1), {0: (EMPTY, ())})
        assert decision.run.status == "succeeded"
        assert decision.consequences == [FinishRun("succeeded")]

    def test_only_a_rerun_keeps_results(self) -> None:
        with pytest.raises(AssertionError):
            accept(make_plan(1), accepted(), Random(1), {0: (EMPTY, ())})


class TestDownstream:
    def test_it_is_the_tasks_and_all_that_depend_on_them(self) -> None:
        plan = make_plan(6, [(0, 1), (1, 2), (3, 2), (2, 4)])
        assert downstream(plan, [1]) == {1, 2, 4}
        assert downstream(plan, [1, 3]) == {1, 2, 3, 4}
        assert downstream(plan, []) == set()

    def test_two_ways_to_a_task_lead_there_once(self) -> None:
        plan = make_plan(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
        assert downstream(plan, [0]) == {0, 1, 2, 3}
