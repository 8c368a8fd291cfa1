"""Parameters that fit the schema of their node, and edges between types that fit."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow import StaticCatalog, core_manifest
from astraflow.core.workflow.manifest_rules import validate_manifest
from astraflow.core.workflow.stored_plan import decode_plan, encode_plan
from tests.unit.core.workflow.drafts import edge, found, manifest, node, plan, problems

PARAMETERS = {
    "type": "object",
    "properties": {
        "url": {"type": "string"},
        "count": {"type": "integer"},
        "rows": {"type": "array", "items": {"type": "number"}},
        "options": {"type": "object"},
    },
    "required": ["url"],
}
RESULTS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "size": {"type": "integer"}, "any": {}},
}


def port(key: str, side: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "binding": {"path": f"{side}.{key}"}, **fields}


FETCH = {
    "type": "ex.fetch",
    "schema": {"parameters": PARAMETERS, "results": RESULTS},
    "ui": {
        "inputPorts": [
            port("url", "parameters"),
            port("count", "parameters"),
            port("rows", "parameters", multiple=True),
            port("options", "parameters"),
        ],
        "outputPorts": [
            port("text", "results"),
            port("size", "results"),
            port("any", "results"),
            {"key": "all", "binding": {"path": "results"}},
            {"key": "one", "binding": {"path": "results.text", "unwrap": "x"}},
        ],
    },
}
BROKEN = {"type": "ex.broken", "schema": {"parameters": {"type": "strin"}, "results": None}}
CATALOG = StaticCatalog([manifest(nodes=[FETCH, BROKEN]), core_manifest()])


def fetch(number: int, **fields: Any) -> dict[str, Any]:
    return node(number, "ex.fetch", **fields)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"url": "a"}, []),
        ({"url": "=run.id"}, []),
        ({"url": 5}, [("/nodes/0/parameters/url", "PARAMETER")]),
        ({}, [("/nodes/0/parameters/url", "PARAMETER")]),
        ({"url": "a", "rows": [1, "b"]}, [("/nodes/0/parameters/rows/1", "PARAMETER")]),
        (5, [("/nodes/0/parameters", "INVALID")]),
    ],
)
def test_authored_parameters_fit_the_schema_of_their_type(
    parameters: Any, expected: list[tuple[str, str]]
) -> None:
    assert found([fetch(1, parameters=parameters)], catalog=CATALOG) == expected


def test_equal_nodes_have_equal_problems() -> None:
    nodes = [fetch(number, parameters={"url": number % 2}) for number in range(1, 4)]
    pointers = [pointer for pointer, _ in found(nodes, catalog=CATALOG)]
    assert pointers == [f"/nodes/{place}/parameters/url" for place in range(3)]


def test_what_an_edge_writes_is_not_missing() -> None:
    nodes = [node(1, "core.echo"), fetch(2)]
    assert found(nodes, [edge("1.value", "2.url")], catalog=CATALOG) == []
    assert found(nodes, [edge("1.value", "2.count")], catalog=CATALOG) == [
        ("/nodes/1/parameters/url", "PARAMETER")
    ]


def test_the_item_of_a_map_is_not_missing() -> None:
    mapped = fetch(1, map={"over": "rows", "item": "url"})
    assert found([mapped], catalog=CATALOG) == []


def test_a_node_may_carry_its_own_schema() -> None:
    own = {"parameters": {"required": ["value"]}}
    assert found([node(1, "core.echo", schema=own)]) == [("/nodes/0/parameters/value", "PARAMETER")]
    empty: dict[str, Any] = {"parameters": None, "results": {}}
    assert found([fetch(1, schema=empty)], catalog=CATALOG) == [
        ("/nodes/0/parameters/url", "PARAMETER")
    ]
    assert found([node(1, "core.echo", schema={})]) == []


def test_a_schema_of_its_own_must_be_one() -> None:
    own = {"parameters": {"items": {"type": "strin"}}, "results": {"$ref": "https://example.com"}}
    assert found([node(1, "core.echo", schema=own)]) == [
        ("/nodes/0/schema/parameters/items/type", "SCHEMA"),
        ("/nodes/0/schema/results/$ref", "SCHEMA"),
    ]


def test_a_schema_of_a_package_that_is_none_is_not_held_against_the_author() -> None:
    assert found([node(1, "ex.broken", parameters={"a": 1})], catalog=CATALOG) == []


def test_a_manifest_with_a_schema_that_is_none_is_refused() -> None:
    rows = validate_manifest(manifest(nodes=[FETCH, BROKEN]))
    assert [(row.pointer, row.code) for row in rows] == [
        ("/nodes/1/schema/parameters/type", "E.PKG.INVALID")
    ]


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("1.text", "2.url", None),
        ("1.any", "2.count", None),
        ("1.one", "2.count", None),
        ("1.size", "2.count", None),
        ("1.size", "2.rows", None),
        ("1.error", "2.url", None),
        ("1.all", "2.options", None),
        ("1.text", "2.options", "the edge brings string, and its target takes object"),
        ("1.text", "2.rows", "the edge brings string, and its target takes number"),
        ("1.all", "2.url", "the edge brings object, and its target takes string"),
        ("1.done", "2.count", "the edge brings boolean, and its target takes integer"),
    ],
)
def test_an_edge_between_types_that_never_fit_is_a_problem(
    source: str, target: str, says: str | None
) -> None:
    given = {"url": "a"}
    nodes = [fetch(1, parameters=given), fetch(2, parameters=given)]
    rows = problems(nodes, [edge(source, target)], catalog=CATALOG)
    assert [(row.pointer, row.code, row.message) for row in rows] == (
        [] if says is None else [("/edges/0", "E.WORKFLOW.EDGE_TYPE", says)]
    )


def test_a_plan_holds_the_schemas_that_its_nodes_need_each_once() -> None:
    given = {"url": "a"}
    nodes = [fetch(1, parameters=given), fetch(2), fetch(3), node(4, "core.echo")]
    edges = [edge("1.text", "2.url"), edge("1.text", "3.url"), edge("1.text", "4.value")]
    made = plan(nodes, edges, catalog=CATALOG)
    assert len(made.schemas) == 2
    authored, bound, other, echo = made.nodes
    assert authored.parameters_schema is None  # nothing is bound: it was checked already
    assert bound.parameters_schema == other.parameters_schema is not None
    assert authored.results_schema == bound.results_schema is not None
    assert (echo.parameters_schema, echo.results_schema) == (None, None)
    assert decode_plan(encode_plan(made)) == made


def test_a_host_in_a_chain_may_be_given_other_parameters() -> None:
    host = fetch(1, parameters={"url": "a"}, middlewares=[node(2)["id"]])
    made = plan([host, node(2)], catalog=CATALOG)
    assert [one.parameters_schema is not None for one in made.nodes] == [True, False]
