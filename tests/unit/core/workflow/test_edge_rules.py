from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import Feature
from astraflow.core.workflow.plan import InEdge, InputEdge
from tests.tables import each_row
from tests.unit.core.workflow.drafts import edge, found, node, plan, uid

ECHO = "core.echo"


def test_an_edge_without_ports_is_pure_order() -> None:
    made = plan([node(1), node(2)], [edge(1, 2)])
    assert made.nodes[1].edges_in == (InEdge(0, "control"),)
    assert made.nodes[1].inputs == ()
    assert made.parents == ((), (0,))
    assert made.children == ((1,), ())


@each_row("target", ["2", "2.trigger"])
@each_row("source", ["1", "1.done", "1.value"])
def test_an_edge_into_the_trigger_writes_nothing(source: str, target: str) -> None:
    made = plan([node(1, ECHO), node(2, ECHO)], [edge(source, target)])
    assert made.nodes[1].edges_in == (InEdge(0, "control"),)
    assert made.nodes[1].inputs == ()


@pytest.mark.parametrize("source", ["1", "1.done"])
def test_done_reads_true_where_it_is_bound_to_a_parameter(source: str) -> None:
    made = plan([node(1), node(2, ECHO)], [edge(source, "2.value")])
    assert made.nodes[1].inputs == (InputEdge(0, None, ("value",)),)
    assert made.nodes[1].edges_in == (InEdge(0, "data"),)


def test_a_data_edge_reads_and_writes_by_the_bindings() -> None:
    made = plan([node(1, ECHO), node(2, "core.template")], [edge("1.value", "2.values")])
    assert made.nodes[1].inputs == (InputEdge(0, ("value",), ("values",)),)


def test_control_ports_take_any_number_of_edges() -> None:
    edges = [edge(1, 3), edge(2, "3.trigger"), edge("1.done", "3.trigger")]
    made = plan([node(1), node(2), node(3)], edges)
    assert [row.source for row in made.nodes[2].edges_in] == [0, 1, 0]
    assert made.parents[2] == (0, 1)


def test_two_edges_into_one_input_are_a_problem() -> None:
    nodes = [node(1, ECHO), node(2, ECHO), node(3, ECHO)]
    edges = [edge("1.value", "3.value"), edge("2.value", "3.value")]
    assert found(nodes, edges) == [("/edges/1/target/port", "DOUBLE_INPUT")]


def test_a_multiple_input_takes_several_edges() -> None:
    many = {"inputPorts": [{"key": "all", "multiple": True}]}
    nodes = [node(1, ECHO), node(2, ECHO), node(3, ECHO, ui=many)]
    made = plan(nodes, [edge("2.value", "3.all"), edge("1.value", "3.all")])
    assert [(row.source, row.multiple) for row in made.nodes[2].inputs] == [(1, True), (0, True)]


def test_an_error_port_is_there_without_being_declared() -> None:
    made = plan([node(1), node(2, "core.log")], [edge("1.error", "2.message")])
    assert made.nodes[1].edges_in == (InEdge(0, "error"),)
    assert made.nodes[1].inputs == (InputEdge(0, (), ("message",), of_error=True),)
    assert made.features == {Feature.ERROR_PORT}


def test_an_error_edge_may_be_order_only() -> None:
    made = plan([node(1), node(2)], [edge("1.error", 2)])
    assert made.nodes[1].edges_in == (InEdge(0, "error"),)
    assert made.nodes[1].inputs == ()


def test_a_node_whose_outputs_nobody_declares_has_an_error_port_too() -> None:
    carried = node(1, "far.away", package={"name": "far", "version": "1"}, ui={"inputPorts": []})
    made = plan([carried, node(2)], [edge("1.error", 2)])
    assert made.features == {Feature.ERROR_PORT}


def test_a_declared_control_port_is_order_only() -> None:
    own = {"inputPorts": [{"key": "go", "kind": "control"}]}
    made = plan([node(1, ECHO), node(2, ui=own)], [edge("1.value", "2.go")])
    assert made.nodes[1].edges_in == (InEdge(0, "control"),)
    assert made.nodes[1].inputs == ()


def test_a_condition_stays_with_its_edge() -> None:
    edges = [edge(1, 2, when="results.ok"), edge(1, 3)]
    made = plan([node(1), node(2), node(3)], edges)
    assert made.nodes[1].edges_in == (InEdge(0, "control", "results.ok"),)
    assert made.nodes[2].edges_in == (InEdge(0, "control"),)
    assert made.features == {Feature.CONDITION}


@each_row(
    ("row", "expected"),
    [
        (edge(1, 9), [("/edges/0/target/node", "UNKNOWN_NODE")]),
        (edge(9, 1), [("/edges/0/source/node", "UNKNOWN_NODE")]),
        (
            edge(8, 9),
            [("/edges/0/source/node", "UNKNOWN_NODE"), ("/edges/0/target/node", "UNKNOWN_NODE")],
        ),
        (edge(1, 1), [("/edges/0", "SELF_EDGE")]),
        (edge("1.nope", 2), [("/edges/0/source/port", "UNKNOWN_PORT")]),
        (edge(1, "2.nope"), [("/edges/0/target/port", "UNKNOWN_PORT")]),
        (edge(1, "2.error"), [("/edges/0/target/port", "UNKNOWN_PORT")]),
        (edge(1, 2, when=""), [("/edges/0/when", "BAD_TEXT")]),
        (edge(1, 2, when="x" * 5_000), [("/edges/0/when", "LIMIT")]),
        (edge(1, 2, id=""), [("/edges/0/id", "BAD_TEXT")]),
    ],
)
def test_an_edge_that_makes_no_sense_is_reported(
    row: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert found([node(1), node(2)], [row]) == expected


def test_two_edges_with_one_id_are_a_problem() -> None:
    nodes = [node(1), node(2), node(3)]
    edges = [edge(1, 2, id="e"), edge(2, 3, id="e"), edge(1, 3)]
    assert found(nodes, edges) == [("/edges/1/id", "DUPLICATE_ID")]


def test_an_edge_may_not_cross_the_border_of_a_container() -> None:
    nodes = [node(1, "core.container"), node(2, parent=uid(1)), node(3)]
    assert found(nodes, [edge(2, 3)]) == [("/edges/0", "INVALID")]
    assert found(nodes, [edge(1, 3)]) == []


def test_a_middleware_has_no_edges() -> None:
    nodes = [node(1, middlewares=[uid(2)]), node(2), node(3)]
    assert found(nodes, [edge(2, 3), edge(3, 2)])[:2] == [
        ("/edges/0/source/node", "INVALID"),
        ("/edges/1/target/node", "INVALID"),
    ]


def test_a_map_has_no_ports_for_the_cases_of_its_items() -> None:
    chooses = node(1, "core.if", parameters={"condition": True}, map={"over": "=[1]"})
    assert found([chooses, node(2)], [edge("1.true", "2")]) == [("/edges/0/source/port", "INVALID")]
    assert found([chooses, node(2)], [edge("1.items", "2")]) == []
