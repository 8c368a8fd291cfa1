"""Conditions on edges and nodes, failures that an edge takes up, and expressions in parameters."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.runs.facts import EdgesDecided, TaskFailure
from tests.tables import each_row
from tests.unit.core.runs.played import Played
from tests.unit.core.workflow.drafts import edge, node, plan

BOOM = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "boom", False, "line 1")
NOT_TAKEN = "skipped E.TASK.BRANCH_NOT_TAKEN"
UPSTREAM = "skipped E.TASK.UPSTREAM_FAILED"


def echo(number: int, label: str, **fields: Any) -> dict[str, Any]:
    return node(number, "core.echo", label=label, **fields)


class TestEdges:
    def test_a_dead_edge_skips_what_it_leads_to_and_all_below(self) -> None:
        nodes = [echo(1, "a"), echo(2, "small"), echo(3, "big"), echo(4, "below big")]
        edges = [edge(1, 2, when="results.n < 5"), edge(1, 3, when="results.n >= 5"), edge(3, 4)]
        played = Played(plan(nodes, edges), {"a": {"n": 3}})
        assert played.states == {
            "a": "succeeded",
            "small": "succeeded",
            "big": NOT_TAKEN,
            "below big": NOT_TAKEN,
        }
        assert played.run.status == "succeeded"
        decided = [fact for fact in played.facts if isinstance(fact, EdgesDecided)]
        assert [(one.task, one.dead) for one in decided] == [(2, (0,)), (1, ())]

    def test_branches_meet_again_where_any_is_enough(self) -> None:
        nodes = [echo(1, "a"), echo(2, "x"), echo(3, "y"), echo(4, "both", join="any")]
        edges = [
            edge(1, 2, when="results.go"),
            edge(1, 3, when="not results.go"),
            edge("2.value", "4.value"),
            edge(3, 4),
        ]
        played = Played(plan(nodes, edges), {"a": {"go": False}})
        assert played.states["both"] == "succeeded"
        assert played.states["x"] == NOT_TAKEN

    def test_a_dead_edge_writes_nothing(self) -> None:
        nodes = [
            echo(1, "a"),
            echo(2, "b"),
            echo(3, "c", join="all_done", parameters={"value": "own"}),
        ]
        edges = [edge("1.value", "3.value", when="results.value > 1"), edge(2, 3)]
        for value, given in ((1, "own"), (2, 2)):
            played = Played(plan(nodes, edges), {"a": {"value": value}})
            assert played.given["c"] == {"value": given}

    def test_several_edges_between_two_nodes_are_decided_together(self) -> None:
        nodes = [echo(1, "a"), echo(2, "b")]
        edges = [edge(1, 2, when="results.n > 1"), edge(1, 2, when="results.n > 2")]
        assert Played(plan(nodes, edges), {"a": {"n": 3}}).states["b"] == "succeeded"
        assert Played(plan(nodes, edges), {"a": {"n": 2}}).states["b"] == NOT_TAKEN
        nodes[1]["join"] = "any"
        assert Played(plan(nodes, edges), {"a": {"n": 2}}).states["b"] == "succeeded"

    def test_a_condition_without_a_value_fails_what_the_edge_leads_to(self) -> None:
        nodes = [echo(1, "a"), echo(2, "b"), echo(3, "c")]
        edges = [edge(1, 2, when="results.n > 1"), edge(2, 3)]
        played = Played(plan(nodes, edges), {"a": {"other": 1}})
        assert played.states["b"] == "failed E.TASK.EXPRESSION"
        assert played.states["c"] == UPSTREAM
        assert played.run.status == "failed"
        assert played.run.error is not None
        expected = "condition results.n > 1: results has no member 'n' (it has: other)"
        assert (played.run.error.message, played.run.error.category) == (expected, "CONFIGURATION")

    def test_what_began_goes_on_without_an_edge_that_has_no_value(self) -> None:
        nodes = [echo(1, "a"), echo(2, "b"), echo(3, "c", join="any")]
        edges = [edge(1, 3), edge("2.value", "3.value", when="results.n > 1")]
        played = Played(plan(nodes, edges), {"b": {"value": 1}})
        assert played.states["c"] == "succeeded"
        assert played.run.status == "succeeded"

    @pytest.mark.parametrize(
        "last",
        [
            {},
            {"disabled": True},
            {"when": "nodes.a.state == 'succeeded'"},
            {"type": "core.wait", "wait": {"seconds": 60}},
        ],
    )
    def test_a_node_with_a_dead_edge_does_not_begin_when_its_last_edge_turns_out_live(
        self, last: dict[str, Any]
    ) -> None:
        """Both within one decision: the end of "a" kills one edge of "c", and fails "b", whose other edge is live."""
        nodes = [echo(1, "a"), echo(2, "b"), {**echo(3, "c"), **last}]
        edges = [
            edge(1, 2, when="results.nope > 1"),
            edge("1.error", 3),
            edge("2.error", 3, when="true"),
        ]
        played = Played(plan(nodes, edges), {"a": {"n": 1}})
        assert played.states["b"] == "failed E.TASK.EXPRESSION"
        assert played.states["c"] == NOT_TAKEN
        assert played.run.status == "failed"

    def test_the_edge_of_a_failed_node_is_dead_whatever_it_says(self) -> None:
        nodes = [echo(1, "a"), echo(2, "b")]
        played = Played(plan(nodes, [edge(1, 2, when="true")]), {"a": BOOM})
        assert played.states["b"] == UPSTREAM


class TestNodes:
    @each_row(
        ("when", "state"),
        [
            ("inputs.n > 1", "succeeded"),
            ("=inputs.n > 9", "skipped E.TASK.CONDITION_FALSE"),
            ("nodes.a.results.go", "succeeded"),
            ("nodes.a.results.nope", "failed E.TASK.EXPRESSION"),
            ("default(nodes.a.results.nope, false)", "skipped E.TASK.CONDITION_FALSE"),
            ("nodes.a.state == 'succeeded' and nodes.a.error == null", "succeeded"),
        ],
    )
    def test_a_node_runs_if_its_condition_holds(self, when: str, state: str) -> None:
        nodes = [echo(1, "a"), echo(2, "b", when=when)]
        made = plan(nodes, [edge(1, 2)], inputs={"n": {}})
        assert Played(made, {"a": {"go": 1}}, n=2).states["b"] == state

    def test_what_follows_a_node_whose_condition_does_not_hold_is_skipped(self) -> None:
        nodes = [echo(1, "a", when="false"), echo(2, "b"), echo(3, "c", join="all_done")]
        played = Played(plan(nodes, [edge(1, 2), edge(2, 3)]))
        assert played.states["b"] == NOT_TAKEN
        assert played.states["c"] == "succeeded"
        assert played.run.status == "succeeded"


class TestFailures:
    def test_a_failure_that_an_edge_takes_up_fails_no_run(self) -> None:
        nodes = [echo(1, "a"), echo(2, "mend"), echo(3, "next")]
        edges = [edge("1.error", "2.value"), edge(1, 3)]
        played = Played(plan(nodes, edges), {"a": BOOM})
        error = {"code": BOOM.code, "category": "USER_CODE", "message": "boom", "stack": "line 1"}
        assert played.given["mend"] == {"value": error}
        assert played.states["next"] == UPSTREAM
        assert (played.run.status, played.run.error) == ("succeeded", None)

    def test_the_handler_is_not_needed_if_nothing_fails(self) -> None:
        played = Played(plan([echo(1, "a"), echo(2, "mend")], [edge("1.error", 2)]))
        assert played.states["mend"] == NOT_TAKEN
        assert played.run.status == "succeeded"

    def test_a_handler_that_fails_fails_the_run_with_its_own_error(self) -> None:
        nodes = [echo(1, "a"), echo(2, "mend")]
        worse = TaskFailure("E.RUNNER.FAILURE", "USER_CODE", "worse", False)
        played = Played(plan(nodes, [edge("1.error", 2)]), {"a": BOOM, "mend": worse})
        assert played.run.error == worse

    @each_row(
        ("when", "status"),
        [("error.category == 'TIMEOUT'", "failed"), ("'oo' in error.message", "succeeded")],
    )
    def test_a_condition_chooses_which_failures_are_taken_up(self, when: str, status: str) -> None:
        made = plan([echo(1, "a"), echo(2, "mend")], [edge("1.error", 2, when=when)])
        played = Played(made, {"a": BOOM})
        assert played.run.status == status
        assert played.states["mend"] == ("succeeded" if status == "succeeded" else NOT_TAKEN)

    def test_a_handler_that_was_skipped_has_taken_nothing_up(self) -> None:
        nodes = [echo(1, "a"), echo(2, "other"), echo(3, "mend")]
        edges = [edge("1.error", 3), edge(2, 3)]
        played = Played(plan(nodes, edges), {"a": BOOM, "other": BOOM})
        assert played.states["mend"] == UPSTREAM
        assert played.run.status == "failed"


class TestParameters:
    def test_expressions_are_bound_before_edges_write(self) -> None:
        parameters = {
            "value": "=1/0",
            "n": "=inputs.n * 2",
            "all": ["=nodes.a.results", {"id": "=run.id", "at": "=run.createdAt"}],
            "text": "=f'{inputs.n} of {len(nodes.a.results.list)}'",
            "plain": "n = 3",
        }
        made = plan(
            [echo(1, "a"), echo(2, "b", parameters={**parameters, "value": "=null"})],
            [edge("1.value", "2.value")],
            inputs={"n": {}},
        )
        result = {"value": "=not evaluated", "list": [1, 2]}
        played = Played(made, {"a": result}, n=4)
        assert played.given["b"] == {
            "value": "=not evaluated",
            "n": 8,
            "all": [result, {"id": "run1", "at": "2023-11-14T22:13:20.000Z"}],
            "text": "4 of 2",
            "plain": "n = 3",
        }

    def test_a_parameter_without_a_value_fails_its_task_and_is_named(self) -> None:
        parameters = {"value": {"deep": ["x", "=nodes.a.results.nope"]}}
        made = plan([echo(1, "a"), echo(2, "b", parameters=parameters)], [edge(1, 2)])
        played = Played(made, {"a": {"value": 1}})
        assert played.run.error is not None
        assert played.run.error.message == (
            "parameters/value/deep/1: nodes.a.results has no member 'nope' (it has: value)"
        )

    def test_what_was_skipped_has_no_results(self) -> None:
        parameters = {"value": "=default(nodes.a.results.x, 'none') + nodes.a.state"}
        nodes = [echo(1, "a", when="false"), echo(2, "b", join="all_done", parameters=parameters)]
        assert Played(plan(nodes, [edge(1, 2)])).given["b"] == {"value": "noneskipped"}


def test_a_join_of_many_conditional_edges_looks_at_each_once() -> None:
    count = 300
    nodes = [*(echo(number, f"s{number}") for number in range(1, count + 1)), echo(900, "end")]
    nodes[-1]["join"] = "all_done"
    edges = [edge(number, 900, when="results.n > 0") for number in range(1, count + 1)]
    outcomes: dict[str, Any] = {f"s{number}": {"n": number % 2} for number in range(1, count + 1)}
    played = Played(plan(nodes, edges), outcomes)
    assert played.states["end"] == "succeeded"
    assert len(played.run.dead_edges) == count // 2
    between = played.run.edges_between(0, count)
    assert [(number, one.source) for number, one in between] == [(0, 0)]
    assert played.run.edges_between(0, count) is between, "found by an index, made once"
