"""What a schema says about the shape of a value."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow.schema_shapes import is_trivial, items_of, may_fit, types_at

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string"},
        "limit": {"type": ["integer", "null"]},
        "page": {"$ref": "#/$defs/page~1one"},
        "rows": {"type": "array", "items": {"type": "object"}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}},
        "mode": {"enum": ["a", 1, 1.5, None, True, [], {}]},
        "kind": {"const": "x"},
        "any": {},
        "odd": {"type": 5},
        "yes": True,
        "loop": {"$ref": "#/properties/loop"},
        "7": {"type": "boolean"},
    },
    "$defs": {"page/one": {"additionalProperties": {"type": "boolean"}}},
}


@pytest.mark.parametrize(
    ("path", "types"),
    [
        ((), {"object"}),
        (("url",), {"string"}),
        (("limit",), {"integer", "null"}),
        (("page", "anything"), {"boolean"}),
        (("rows", "3"), {"object"}),
        (("pair", "0"), {"string"}),
        (("pair", "1"), {"number"}),
        (("mode",), {"string", "integer", "number", "null", "boolean", "array", "object"}),
        (("kind",), {"string"}),
        (("7",), {"boolean"}),
    ],
)
def test_the_types_at_a_path(path: tuple[str, ...], types: set[str]) -> None:
    assert types_at(SCHEMA, path) == frozenset(types)


@pytest.mark.parametrize(
    "path", [("any",), ("odd",), ("yes",), ("yes", "x"), ("loop",), ("none",), ("url", "x")]
)
def test_where_nothing_is_known(path: tuple[str, ...]) -> None:
    assert types_at(SCHEMA, path) is None


def test_members_that_a_pattern_may_describe_are_not_known() -> None:
    assert (
        types_at({"patternProperties": {"": {}}, "additionalProperties": {"type": "null"}}, ("a",))
        is None
    )


def test_the_items_of_a_list() -> None:
    assert items_of(SCHEMA, ("rows",)) == frozenset({"object"})


@pytest.mark.parametrize(
    ("given", "wanted", "fits"),
    [
        (None, {"string"}, True),
        ({"string"}, None, True),
        ({"string"}, {"object"}, False),
        ({"array"}, {"number"}, False),
        ({"integer"}, {"number"}, True),
        ({"number"}, {"integer"}, True),
        ({"string", "null"}, {"null", "object"}, True),
    ],
)
def test_types_that_may_fit(given: Any, wanted: Any, fits: bool) -> None:
    assert may_fit(given and frozenset(given), wanted and frozenset(wanted)) is fits


@pytest.mark.parametrize(
    ("schema", "trivial"),
    [
        (True, True),
        (False, False),
        ({}, True),
        ({"type": "object", "title": "x", "properties": {"a": {}, "b": True}}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"type": "array"}, False),
        ({"required": ["a"]}, False),
    ],
)
def test_a_schema_that_every_object_fits(schema: Any, trivial: bool) -> None:
    assert is_trivial(schema) is trivial
