"""Which committed results a re-run keeps."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.ids import NodeId
from astraflow.core.runs.accept import accept
from astraflow.core.runs.commands import LeaseTask, Report
from astraflow.core.runs.consequences import EnqueueTask
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import ArtifactRef, TaskFailure
from astraflow.core.runs.rerun import (
    keep_for_rerun_from,
    keep_for_rerun_of_failed,
    nodes_with_inputs,
)
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.definition import WaitSpec
from astraflow.core.workflow.plan import ControlStep, InEdge, Plan, PlanExpression
from tests.unit.core.runs.examples import RESULT
from tests.unit.plans import AT, accepted, make_plan, start, with_body

CHAIN = make_plan(3, [(0, 1), (1, 2)])
ERROR = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom")


def artifact_of(task: int) -> ArtifactRef:
    return ArtifactRef(f"r{task}", "w1", "file")


def finished(plan: Plan, failing: int | None = None) -> RunRecord:
    """A run that has ended: every task gave an artifact, or `failing` failed."""
    run = start(plan).run
    for task in range(len(plan.nodes)):
        decide(run, LeaseTask(task, "w1", 1, 1), AT, Random(1))
        report = Report(task, 1, "w1", "SUCCEEDED", RESULT, (artifact_of(task),))
        if task == failing:
            report = Report(task, 1, "w1", "FAILED", error=ERROR)
        decide(run, report, AT, Random(1))
    assert run.is_terminal
    return run


class TestFromANode:
    def test_what_is_not_downstream_of_it_is_kept(self) -> None:
        kept = keep_for_rerun_from(finished(CHAIN), [NodeId("n1")])
        assert kept == {0: (RESULT, (artifact_of(0),))}

    def test_from_the_first_node_nothing_is_kept(self) -> None:
        assert keep_for_rerun_from(finished(CHAIN), [NodeId("n0")]) == {}

    def test_several_nodes_may_be_named(self) -> None:
        base = finished(make_plan(4, [(0, 1), (2, 3)]))
        assert set(keep_for_rerun_from(base, [NodeId("n1"), NodeId("n3")])) == {0, 2}

    def test_what_failed_elsewhere_is_repeated_too(self) -> None:
        base = finished(make_plan(4, [(0, 1), (2, 3)]), failing=2)
        assert set(keep_for_rerun_from(base, [NodeId("n1")])) == {0}

    def test_an_unknown_node_is_refused(self) -> None:
        with pytest.raises(
            errors.NotFound, match="no such node, or one inside of another: n9"
        ) as raised:
            keep_for_rerun_from(finished(CHAIN), [NodeId("n9")])
        assert raised.value.code == errors.WORKFLOW_UNKNOWN_NODE

    def test_a_run_that_goes_on_is_not_repeated(self) -> None:
        with pytest.raises(errors.Conflict, match="the run is still queued") as raised:
            keep_for_rerun_from(start(CHAIN).run, [NodeId("n0")])
        assert raised.value.code == errors.RUN_NOT_TERMINAL


class TestOfWhatFailed:
    def test_all_that_succeeded_is_kept(self) -> None:
        assert set(keep_for_rerun_of_failed(finished(CHAIN, failing=1))) == {0}

    def test_a_run_without_failures_keeps_everything(self) -> None:
        assert set(keep_for_rerun_of_failed(finished(CHAIN))) == {0, 1, 2}

    def test_what_lost_its_artifact_is_made_again_with_all_that_follows(self) -> None:
        assert set(keep_for_rerun_of_failed(finished(CHAIN), frozenset({"r1"}))) == {0}

    def test_a_run_that_goes_on_is_not_repeated(self) -> None:
        with pytest.raises(errors.Conflict):
            keep_for_rerun_of_failed(start(CHAIN).run)


def test_a_rerun_begins_where_the_kept_results_end() -> None:
    base = finished(CHAIN, failing=1)
    kept = keep_for_rerun_of_failed(base)
    decision = accept(base.plan, accepted(rerun_of=base.run_id), Random(1), kept)
    decision.run.check()
    assert decision.consequences == [EnqueueTask(1)]
    assert base.status == "failed"


def test_a_map_is_kept_with_what_its_items_made_and_made_again_when_some_of_it_is_gone() -> None:
    given = {**with_body(), "parameters": b'{"list":[1,2]}'}
    run = start(make_plan(2, [(0, 1)], nodes={0: given})).run
    for task in (2, 3):
        decide(run, LeaseTask(task, "w1", 1, 1), AT, Random(1))
        made = (artifact_of(task),)
        decide(run, Report(task, 1, "w1", "SUCCEEDED", RESULT, made), AT, Random(1))
    decide(run, LeaseTask(1, "w1", 1, 1), AT, Random(1))
    decide(run, Report(1, 1, "w1", "FAILED", error=ERROR), AT, Random(1))
    kept = keep_for_rerun_of_failed(run)
    assert {task: artifacts for task, (_, artifacts) in kept.items()} == {
        0: (artifact_of(2), artifact_of(3))
    }
    assert keep_for_rerun_of_failed(run, frozenset({"r3"})) == {}


class TestOtherInputs:
    def test_nodes_that_may_read_inputs_are_found_wherever_an_expression_can_stand(self) -> None:
        texts = PlanExpression(("a",), "inputs.n")
        changes: list[dict[str, Any]] = [
            {},
            {"expressions": (texts,)},
            {"when": "=inputs.n > 1"},
            {"edges_in": (InEdge(0, "control", when="=inputs.n"),)},
            with_body(),
            {"control": ControlStep(wait=WaitSpec(seconds=1))},
            {"expressions": (PlanExpression(("a",), "nodes.x"),)},
        ]
        plan = make_plan(len(changes), [])
        nodes = tuple(
            msgspec.structs.replace(node, **change)
            for node, change in zip(plan.nodes, changes, strict=True)
        )
        changed = msgspec.structs.replace(plan, nodes=nodes)
        assert nodes_with_inputs(changed) == [NodeId(f"n{index}") for index in range(1, 6)]
