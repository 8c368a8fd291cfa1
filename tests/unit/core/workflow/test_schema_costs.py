"""What a schema can cost, and what it must not refer to."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.workflow.schema_costs import BadSchema, depth_within

LIMIT = 1_000


def doubled(levels: int, via: str | None = None) -> dict[str, Any]:
    """Definitions of which each asks for the next one twice; with `via`, one level below."""

    def step(number: int) -> dict[str, Any]:
        ref = {"$ref": f"#/$defs/d{number + 1}"}
        return ref if via is None else {via: ref}

    names = {f"d{n}": {"anyOf": [step(n), step(n)]} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**names, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        {"anyOf": [{"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]},
        {"patternProperties": {"^a": {"type": "string"}}, "prefixItems": [{}, True]},
        {"$id": "https://example.com/whole", "not": {"type": "null"}},
        {"$ref": "#/allOf/0", "allOf": [{"type": "object"}]},
        {"properties": {"$ref": {"type": "string"}}},
        doubled(5),
    ],
)
def test_a_plain_schema_is_for_values_of_any_depth(schema: Any) -> None:
    assert depth_within(schema, LIMIT) is None


def test_references_that_double_are_refused() -> None:
    with pytest.raises(BadSchema, match="more than 1000 subschemas"):
        depth_within(doubled(20), LIMIT)


def test_references_that_double_with_each_level_limit_the_depth_of_values() -> None:
    deepest = depth_within({"anyOf": [{"items": {"$ref": "#"}}] * 3}, LIMIT)
    assert deepest is not None
    assert 1 <= deepest <= 6
    with pytest.raises(BadSchema, match="subschemas"):
        depth_within({"anyOf": [{"items": {"$ref": "#"}} for _ in range(200)]}, LIMIT)


def test_members_whose_names_fit_several_patterns_add_up() -> None:
    both = {"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}
    assert depth_within(both, LIMIT) is not None


@pytest.mark.parametrize(
    ("schema", "pointer", "words"),
    [
        ({"$ref": "#"}, "", "refers to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#"}]}}}, "", "refers to itself"),
        ({"$ref": "https://example.com/x"}, "/$ref", "same schema"),
        ({"$ref": "other.json#/a"}, "/$ref", "same schema"),
        ({"$ref": 5}, "/$ref", "same schema"),
        ({"properties": {"a/b": {"$ref": "#/$defs/x"}}}, "/properties/a~1b/$ref", "nowhere"),
        ({"$ref": "#/allOf/7", "allOf": [{}]}, "/$ref", "nowhere"),
        ({"items": {"$id": "x"}}, "/items/$id", "whole schema"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "x"}}}, "/$defs/a/$id", "whole schema"),
        ({"$anchor": "x"}, "/$anchor", "not supported"),
        ({"$dynamicRef": "#x"}, "/$dynamicRef", "not supported"),
    ],
)
def test_what_a_schema_must_not_refer_to(schema: Any, pointer: str, words: str) -> None:
    with pytest.raises(BadSchema, match=words) as caught:
        depth_within(schema, LIMIT)
    assert caught.value.pointer == pointer


def test_a_schema_is_not_nested_too_deep() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"not": schema}
    with pytest.raises(BadSchema, match="nested deeper"):
        depth_within(schema, LIMIT)
