"""Bad workflows: all problems, as pointers and codes, bounded."""

from __future__ import annotations

from astraflow.core.workflow.limits import MAX_PROBLEMS
from tests.unit.core.workflow.drafts import edge, found, node, problems


def test_all_problems_of_a_definition_are_reported_at_once() -> None:
    trap = {"inputPorts": [{"key": "a", "binding": {"path": "parameters.__proto__.x"}}]}
    nodes = [
        node(1, label="\u202e"),
        node(1),
        {"id": "x", "type": "core.noop"},
        node(4, "no.such"),
        node(5, package={"name": "nope"}),
        node(6, ui=trap),
        node(7),
        node(8),
    ]
    edges = [
        edge(7, 8),
        edge(8, 7),
        edge(7, 7),
        edge(7, 99),
        edge("7.nope", 8),
        edge(7, 8, id="same"),
        edge(7, 8, id="same"),
    ]
    assert found(nodes, edges) == [
        ("/nodes/0/label", "BAD_TEXT"),
        ("/nodes/2/id", "BAD_ID"),
        ("/nodes/3/type", "UNKNOWN_TYPE"),
        ("/nodes/4/package", "UNKNOWN_PACKAGE"),
        ("/nodes/5/ui/inputPorts/0/binding/path", "BAD_PATH"),
        ("/nodes/1/id", "DUPLICATE_ID"),
        ("/edges/2", "SELF_EDGE"),
        ("/edges/3/target/node", "UNKNOWN_NODE"),
        ("/edges/4/source/port", "UNKNOWN_PORT"),
        ("/edges/6/id", "DUPLICATE_ID"),
        ("/nodes/6", "CYCLE"),
    ]


def test_a_flood_of_problems_is_bounded_and_counted() -> None:
    rows = problems([node(number, "no.such") for number in range(1_000)])
    assert len(rows) == MAX_PROBLEMS
    assert rows[-1].message == "and 901 more"


def test_a_sound_definition_has_no_problem() -> None:
    nodes = [node(1, "core.echo", parameters={"value": 1}), node(2, "core.log")]
    assert problems(nodes, [edge("1.value", "2.message")]) == []
