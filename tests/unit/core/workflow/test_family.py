from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.ids import NodeId
from astraflow.core.workflow import Feature
from astraflow.core.workflow.limits import MAX_CONTAINER_DEPTH
from tests.tables import each_row
from tests.unit.core.workflow.drafts import edge, found, node, plan, uid

BOX = "core.container"


def test_a_container_holds_nodes_and_containers() -> None:
    nodes = [node(1, parent=uid(2)), node(2, BOX, parent=uid(3)), node(3, BOX)]
    made = plan(nodes)
    assert made.features == {Feature.SUBGRAPH}
    inside = [made]
    while (step := inside[-1].nodes[0].control) is not None and step.body is not None:
        inside.append(step.body.plan)
    assert [[row.node_id for row in level.nodes] for level in inside] == [
        [uid(3)],
        [uid(2)],
        [uid(1)],
    ]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node(1, parent=uid(9))], [("/nodes/0/parent", "UNKNOWN_NODE")]),
        ([node(1, parent=uid(2)), node(2)], [("/nodes/0/parent", "INVALID")]),
        ([node(1, BOX, parent=uid(1))], [("/nodes/0/parent", "CYCLE")]),
        (
            [node(1, BOX, parent=uid(2)), node(2, BOX, parent=uid(1)), node(3, parent=uid(2))],
            [("/nodes/0/parent", "CYCLE")],
        ),
    ],
)
def test_a_parent_is_a_container_and_not_inside_itself(
    nodes: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    assert found(nodes) == expected


def test_containers_stand_in_each_other_up_to_a_depth() -> None:
    depth = MAX_CONTAINER_DEPTH
    boxes = [node(1, BOX), *(node(n, BOX, parent=uid(n - 1)) for n in range(2, depth + 1))]
    assert found([*boxes, node(900, parent=uid(depth))]) == []
    boxes = [*boxes, node(depth + 1, BOX, parent=uid(depth))]
    inside = [node(900, parent=uid(depth + 1)), node(901, parent=uid(depth + 1))]
    limit = [(f"/nodes/{depth + at}/parent", "LIMIT") for at in (1, 2)]
    assert found([*boxes, *inside]) == limit
    assert found(list(reversed([*boxes, *inside]))) == [
        ("/nodes/0/parent", "LIMIT"),
        ("/nodes/1/parent", "LIMIT"),
    ]


def test_middlewares_wrap_their_host_in_order() -> None:
    nodes = [node(1), node(2, middlewares=[uid(4), uid(3)]), node(3), node(4)]
    made = plan(nodes, [edge(1, 2)])
    host = made.nodes[made.index[NodeId(uid(2))]]
    assert [made.nodes[place].node_id for place in host.middlewares] == [uid(4), uid(3)]
    assert [row.host for row in made.nodes] == [None, None, 1, 1]
    assert made.features == {Feature.MIDDLEWARE}


@each_row(
    ("nodes", "expected"),
    [
        ([node(1, middlewares=[uid(9)])], [("/nodes/0/middlewares/0", "UNKNOWN_NODE")]),
        ([node(1, middlewares=[uid(1)])], [("/nodes/0/middlewares/0", "INVALID")]),
        (
            [node(1, middlewares=[uid(2)]), node(2, middlewares=[uid(3)]), node(3)],
            [("/nodes/0/middlewares/0", "INVALID")],
        ),
        (
            [node(1, middlewares=[uid(3)]), node(2, middlewares=[uid(3)]), node(3)],
            [("/nodes/1/middlewares/0", "INVALID")],
        ),
        (
            [node(1, middlewares=[uid(3)]), node(2, BOX), node(3, parent=uid(2))],
            [("/nodes/0/middlewares/0", "INVALID")],
        ),
        (
            [node(1, middlewares=[uid(2), uid(2)]), node(2)],
            [("/nodes/0/middlewares/1", "INVALID")],
        ),
        (
            [node(1, middlewares=[uid(2), uid(1)]), node(2)],
            [("/nodes/0/middlewares/1", "INVALID")],
        ),
        (
            [node(1, middlewares=[uid(2)]), node(2, "core.wait", wait={"seconds": 1})],
            [("/nodes/0/middlewares/0", "INVALID")],
        ),
        (
            [node(1, "core.wait", wait={"seconds": 1}, middlewares=[uid(2)]), node(2)],
            [("/nodes/0/middlewares", "INVALID")],
        ),
        ([node(1), node(2, "core.retry")], [("/nodes/1", "INVALID")]),
    ],
)
def test_a_middleware_wraps_one_host_beside_it(
    nodes: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    assert found(nodes) == expected


def test_a_node_that_is_not_made_to_wrap_others_may_stand_in_for_one() -> None:
    made = plan([node(1, middlewares=[uid(2)]), node(2, "core.echo")])
    assert made.nodes[0].middlewares == (1,)


def test_a_middleware_with_an_edge_is_told_at_both_ends() -> None:
    nodes = [node(1, middlewares=[uid(2)]), node(2, "core.retry"), node(3)]
    assert found(nodes, [edge(3, 2), edge(2, 1)]) == [
        ("/edges/0/target/node", "INVALID"),
        ("/edges/1/source/node", "INVALID"),
    ]


@pytest.mark.parametrize(
    ("kind", "parameters", "pointer"),
    [
        ("core.retry", {"attempts": 0}, "attempts"),
        ("core.retry", {"categories": ["OTHER"]}, "categories/0"),
        ("core.timeout", {"seconds": 0}, "seconds"),
        ("core.timeout", {}, "seconds"),
        ("core.cache", {"ttlSeconds": "1"}, "ttlSeconds"),
        ("core.rate_limit", {"count": 1.5}, "count"),
        ("core.loop", {"until": {}}, "until/path"),
        ("core.loop", {"times": 1001}, "times"),
        ("core.log_calls", {"level": "loud"}, "level"),
    ],
)
def test_the_parameters_of_a_middleware_are_checked(
    kind: str, parameters: dict[str, Any], pointer: str
) -> None:
    nodes = [node(1, middlewares=[uid(2)]), node(2, kind, parameters=parameters)]
    [(where, _)] = found(nodes)
    assert where == f"/nodes/1/parameters/{pointer}"
