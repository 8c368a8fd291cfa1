"""The stored form of a plan: what is read is what was stored, and equal parts are one object."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core.workflow.core_manifest import CONTAINER_TYPE
from astraflow.core.workflow.stored_plan import decode_plan, encode_plan
from tests.unit.core.workflow.drafts import edge, node, plan, uid


def test_equal_parts_of_nodes_are_one_object() -> None:
    nodes = [node(number, parameters={"n": 1}) for number in range(1, 20)]
    read = decode_plan(encode_plan(plan(nodes)))
    for part in ("type", "label", "package_name", "package_version", "parameters", "retry"):
        assert len({id(getattr(one, part)) for one in read.nodes}) == 1, part


def test_nodes_with_parameters_and_labels_of_their_own_share_the_rest() -> None:
    nodes = [
        node(number, label="step " * number, parameters={"n": "x" * number})
        for number in range(1, 20)
    ]
    made = plan(nodes)
    read = decode_plan(encode_plan(made))
    assert read == made
    assert len({id(one.type) for one in read.nodes}) == 1
    assert len({one.label for one in read.nodes}) == 19


def test_a_node_is_found_by_its_id() -> None:
    read = decode_plan(encode_plan(plan([node(1), node(2), node(3)])))
    assert [read.find(one.node_id) for one in read.nodes] == [0, 1, 2]
    assert list(read.index.values()) == [0, 1, 2]
    assert read.find("another") is None


def test_nodes_that_differ_in_anything_else_are_read_as_they_are() -> None:
    made = plan(
        [
            node(1),
            node(2, timeoutMs=1_000),
            node(3),
            node(4, "core.echo", parameters={"value": 1}),
            node(5, priority=3),
            node(6, retry={"maxAttempts": 3}),
        ],
        [edge(1, 3), edge(1, 2)],
    )
    read = decode_plan(encode_plan(made))
    assert read == made
    read.check()


def test_a_fan_out_shares_its_edges() -> None:
    nodes = [node(number) for number in range(1, 12)]
    made = plan(nodes, [edge(1, number) for number in range(2, 12)])
    read = decode_plan(encode_plan(made))
    assert read == made
    assert len({id(one.edges_in) for one in read.nodes[1:]}) == 1
    assert len({id(one) for one in read.parents[1:]}) == 1


def test_nodes_of_two_kinds_in_turns_share_the_parts_of_their_kind() -> None:
    kinds = ("core.noop", "core.echo")
    made = plan([node(number, kinds[number % 2], parameters={}) for number in range(1, 20)])
    read = decode_plan(encode_plan(made))
    assert read == made
    assert len({id(one.type) for one in read.nodes}) == 2
    assert len({id(one.parameters) for one in read.nodes}) == 2


def test_containers_are_read_with_their_bodies() -> None:
    container = node(1, CONTAINER_TYPE), node(2, parent=uid(1))
    made = plan([*container, node(3, CONTAINER_TYPE), node(4, parent=uid(3)), node(5)])
    read = decode_plan(encode_plan(made))
    assert len(read.nodes) == 3
    assert read == made
    read.check()


def test_a_plan_of_an_earlier_release_is_read_and_shares_equal_parts() -> None:
    nodes = [node(number, label=f"step {number // 2}") for number in range(1, 12)]
    nodes += [node(12, "core.echo", parameters={"value": 1}), node(13, "core.echo")]
    made = plan(nodes)
    former = {**msgspec.structs.asdict(made), "index": made.index}
    read = decode_plan(msgspec.msgpack.encode(former))
    assert read == made
    assert len({id(one.type) for one in read.nodes}) == 2


@pytest.mark.parametrize("raw", [b"", b"\x80", b"\x93\x01\x02\x03"])
def test_what_is_no_plan_is_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_plan(raw)
