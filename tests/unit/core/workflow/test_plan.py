from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.ids import NodeId
from astraflow.core.workflow import InputEdge, PlanNode, ResourceRefValue, bind, find_resource_refs
from astraflow.core.workflow.limits import MAX_PARAMETERS_DEPTH, MAX_RESOURCE_REFS

Results = Callable[[int], dict[str, Any] | None]


def make(parameters: dict[str, Any], *inputs: InputEdge) -> PlanNode:
    return PlanNode(
        node_id=NodeId("n"),
        type="x.y",
        label="",
        package_name="x",
        package_version="1",
        parameters=msgspec.json.encode(parameters),
        inputs=inputs,
    )


def bound(node: PlanNode, **results: Any) -> Any:
    """The bound parameters; `s0=...` are the results of source 0."""
    return msgspec.json.decode(bind(node, lambda source: results.get(f"s{source}")))


def test_without_inputs_the_authored_bytes_pass_unchanged() -> None:
    node = make({"a": 1})
    assert bind(node, lambda source: pytest.fail("nothing to look up")) is node.parameters


def test_results_are_written_over_the_authored_parameters() -> None:
    node = make({"url": "x", "page": None}, InputEdge(0, ("page", "id"), ("page",)))
    assert bound(node, s0={"page": {"id": 7}}) == {"url": "x", "page": 7}


def test_the_done_port_reads_true() -> None:
    assert bound(make({}, InputEdge(0, None, ("go",))), s0={}) == {"go": True}


@pytest.mark.parametrize("results", [None, {}, {"page": 5}])
def test_a_missing_output_leaves_the_parameter_as_authored(results: Any) -> None:
    node = make({"page": "authored"}, InputEdge(0, ("page", "id"), ("page",)))
    assert bound(node, s0=results) == {"page": "authored"}


def test_null_is_a_value_and_is_written() -> None:
    node = make({"page": "authored"}, InputEdge(0, ("page",), ("page",)))
    assert bound(node, s0={"page": None}) == {"page": None}


def test_a_multiple_port_gets_a_list_in_edge_order() -> None:
    edges = [InputEdge(source, ("v",), ("all",), multiple=True) for source in (2, 0, 1)]
    node = make({"all": "authored"}, *edges)
    assert bound(node, s0={"v": "a"}, s1={}, s2={"v": "c"}) == {"all": ["c", "a"]}
    assert bound(node) == {"all": "authored"}


def test_later_edges_write_over_earlier_ones_without_touching_the_results() -> None:
    results = {"page": {"id": 1, "tabs": [1]}}
    node = make({}, InputEdge(0, ("page",), ("a",)), InputEdge(0, None, ("a", "tabs", "0")))
    assert bound(node, s0=results) == {"a": {"id": 1, "tabs": [True]}}
    assert results == {"page": {"id": 1, "tabs": [1]}}


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ({"result": 5}, 5),
        ({"result": 5, "b": 1}, {"result": 5, "b": 1}),
        ({"b": 1}, {"b": 1}),
        ({}, {}),
    ],
)
def test_an_object_with_one_key_is_unwrapped_where_the_port_says_so(
    results: dict[str, Any], expected: Any
) -> None:
    node = make({}, InputEdge(0, (), ("value",), unwrap="result"))
    assert bound(node, s0=results) == {"value": expected}


def test_an_error_edge_reads_the_error_of_its_source() -> None:
    node = make({"m": ""}, InputEdge(3, ("message",), ("m",), of_error=True))
    errors = {3: {"message": "boom"}}
    assert bind(node, lambda source: {"message": "no"}, errors.get) == b'{"m":"boom"}'
    assert bind(node, lambda source: {"message": "no"}) == b'{"m":""}'


def test_references_are_found_in_the_order_they_stand_each_once() -> None:
    first = {"resourceRef": {"resourceId": "a", "workerId": "w", "type": "file", "scope": "run"}}
    second = {"resourceRef": {"resourceId": "b", "workerId": 7}}
    parameters = {"x": [first, {"deep": second}], "y": first, "z": {"resourceRef": "text"}}
    expected = [ResourceRefValue("a", "w", "file", "run"), ResourceRefValue("b")]
    assert find_resource_refs(parameters) == expected
    assert find_resource_refs(msgspec.json.encode(parameters)) == expected


def test_a_reference_spelt_with_escapes_is_found_too() -> None:
    text = rb'{"a": {"resource\u0052ef": {"resourceId": "r"}}}'
    assert find_resource_refs(text) == [ResourceRefValue("r")]


@pytest.mark.parametrize("text", [b"{}", b'{"a": "resourceRef"}', b'{"resourceRef": {"id": 1}}'])
def test_what_only_looks_like_a_reference_is_none(text: bytes) -> None:
    assert find_resource_refs(text) == []


def test_references_are_bounded_in_depth_and_number() -> None:
    deep: dict[str, Any] = {"resourceRef": {"resourceId": "deep"}}
    for _ in range(MAX_PARAMETERS_DEPTH):
        deep = {"in": deep}
    assert find_resource_refs(deep) == [ResourceRefValue("deep")]
    assert find_resource_refs({"in": deep}) == []
    many = [{"resourceRef": {"resourceId": str(n)}} for n in range(200)]
    assert len(find_resource_refs({"many": many})) == MAX_RESOURCE_REFS


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(max_size=3)))
def test_binding_keeps_every_parameter_that_no_edge_writes(parameters: dict[str, Any]) -> None:
    small = {k: v for k, v in parameters.items() if not isinstance(v, int) or abs(v) < 2**53}
    node = make(small, InputEdge(0, ("v",), ("d",)))
    assert bound(node, s0={"v": [1]}) == {**small, "d": [1]}
