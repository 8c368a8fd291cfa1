from __future__ import annotations

from typing import Any

from astraflow.core.workflow import validate
from tests.unit.core.workflow.drafts import CORE, definition, edge, found, node, problems, uid


def test_a_workflow_without_nodes_has_nothing_to_run() -> None:
    assert found([]) == [("/nodes", "INVALID")]


def test_a_hundred_thousand_nodes_are_refused_without_a_closer_look() -> None:
    nodes: list[dict[str, Any]] = [{"id": "", "type": ""}] * 100_000
    assert found(nodes) == [("/nodes", "LIMIT")]


def test_too_many_edges_are_refused() -> None:
    assert found([node(1), node(2)], [edge(1, 2)] * 262_145) == [("/edges", "LIMIT")]


def test_a_cycle_is_reported_with_its_members() -> None:
    nodes = [node(number) for number in range(1, 6)]
    edges = [edge(1, 2), edge(2, 3), edge(3, 4), edge(4, 2), edge(4, 5)]
    (problem,) = problems(nodes, edges)
    assert problem.code == "E.WORKFLOW.CYCLE"
    assert problem.pointer == "/nodes/1"
    assert problem.members == (uid(2), uid(3), uid(4))
    names = " → ".join(f"core.noop at /nodes/{place}" for place in (1, 2, 3, 1))
    assert problem.message.endswith(f": {names}")


def test_every_cycle_is_reported() -> None:
    nodes = [node(number) for number in range(1, 5)]
    edges = [edge(1, 2), edge(2, 1), edge(3, 4), edge(4, 3)]
    assert [row.members for row in problems(nodes, edges)] == [
        (uid(1), uid(2)),
        (uid(3), uid(4)),
    ]


def test_a_large_cycle_names_its_first_members_and_counts_the_rest() -> None:
    count = 50
    nodes = [node(number) for number in range(count)]
    edges = [edge(number, (number + 1) % count) for number in range(count)]
    (problem,) = problems(nodes, edges)
    assert len(problem.members) == 20
    assert problem.message.endswith("→ 30 more")


def test_outputs_name_nodes_and_ports() -> None:
    outputs = {
        "a": {"source": {"node": uid(9)}},
        "b": {"source": {"node": uid(1), "port": "nope"}},
    }
    assert found([node(1)], outputs=outputs) == [
        ("/outputs/a/source/node", "UNKNOWN_NODE"),
        ("/outputs/b/source/port", "UNKNOWN_PORT"),
    ]


def test_validation_does_not_change_the_definition() -> None:
    draft = definition([node(1), node(2)], [edge(1, 2)])
    before = draft.raw
    assert validate(draft, CORE) == validate(draft, CORE) == []
    assert draft.raw is before
