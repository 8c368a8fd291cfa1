"""Schemas of values: compiled once, bounded, and fair to what is not known yet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.workflow.limits import MAX_SCHEMA_BYTES, MAX_VIOLATION_CHARS, MAX_VIOLATIONS
from astraflow.core.workflow.schema_costs import BadSchema
from astraflow.core.workflow.value_schemas import ValueSchema, Violation, compile_schema


def compiled(schema: Any) -> ValueSchema:
    return compile_schema(msgspec.json.encode(schema))


HTTP = compiled(
    {
        "type": "object",
        "properties": {
            "url": {"type": "string", "format": "uri"},
            "times": {"type": "integer", "minimum": 0},
            "body": {"type": "object", "required": ["id"], "maxProperties": 2, "minProperties": 1},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["url"],
        "additionalProperties": False,
    }
)


def test_a_schema_is_compiled_once() -> None:
    assert compiled({"type": "null", "title": "once"}) is compiled(
        {"type": "null", "title": "once"}
    )


@pytest.mark.parametrize(
    ("value", "pointer", "words"),
    [
        ({}, "/url", "required"),
        ({"url": 5}, "/url", 'of type "string"'),
        ({"url": "no address"}, "/url", '"uri"'),
        ({"url": "a:b", "times": -1}, "/times", "minimum"),
        ({"url": "a:b", "ti/mes": 1}, "/ti~1mes", "no member of this name"),
        ({"url": "a:b", "body": {}}, "/body/id", "required"),
        ({"url": "a:b", "mode": "c"}, "/mode", "one of"),
    ],
)
def test_a_violation_has_the_place_and_the_reason(value: Any, pointer: str, words: str) -> None:
    found = HTTP.violations(value)
    assert pointer in [one.pointer for one in found]
    assert words in next(one.message for one in found if one.pointer == pointer)


def test_a_violation_tells_nothing_of_the_value() -> None:
    private = "s3cr3t" * 50
    assert all(
        private not in one.message for one in HTTP.violations({"url": private, "mode": private})
    )


def test_violations_are_bounded() -> None:
    schema = compiled({"additionalProperties": {"type": "null"}, "propertyNames": {"maxLength": 3}})
    found = schema.violations({f"member {n} {'x' * 500}": n for n in range(500)})
    assert len(found) == MAX_VIOLATIONS
    assert all(len(one.message) <= MAX_VIOLATION_CHARS + 1 for one in found)
    closed = compiled({"properties": {"a": {}}, "additionalProperties": False})
    assert len(closed.violations({str(n): n for n in range(500)})) == MAX_VIOLATIONS
    (long,) = closed.violations({"x" * 10_000: 1})
    assert long.pointer == ""


@pytest.mark.parametrize(
    "value",
    [
        {"url": "=inputs.url", "times": "=inputs.times"},
        {"url": {"secretRef": {"name": "address"}}},
        {"url": {"resourceRef": {"resourceId": "r"}}},
        {"url": "a:b", "body": {"id": "=inputs.id"}},
        {"url": "a:b", "mode": "=inputs.mode"},
    ],
)
def test_what_is_replaced_before_the_node_runs_is_no_violation(value: Any) -> None:
    assert HTTP.authored_violations(value) == []


@pytest.mark.parametrize(
    "value",
    [
        {"url": {"a": "=x"}},
        {"url": "=x", "zz": "=y"},
        {"url": "=x", "body": {"other": "=y"}},
        {"url": "=x", "body": {"id": "=1", "b": "=2", "c": 3}},
    ],
)
def test_what_no_expression_can_make_right_is_a_violation(value: Any) -> None:
    assert HTTP.authored_violations(value)


def test_a_value_that_a_node_is_given_holds_no_expressions() -> None:
    found = HTTP.violations({"url": "a:b", "times": "=5"})
    assert found == [Violation("/times", 'the value is not of type "integer"')]


@pytest.mark.parametrize(
    ("value", "wired"),
    [
        ({}, ("url",)),
        ({"url": 5}, ("url",)),
        ({"url": "a:b", "body": {}}, ("body", "id")),
        ({"url": "a:b", "body": 5}, ("body", "id")),
        ({"url": "a:b", "mode": None}, ("mode",)),
    ],
)
def test_what_an_edge_writes_is_no_violation(value: Any, wired: tuple[str, ...]) -> None:
    assert HTTP.violations(value)
    assert HTTP.authored_violations(value, [wired]) == []


def test_what_an_edge_does_not_write_is_still_one() -> None:
    assert HTTP.authored_violations({}, [("times",)]) == [
        Violation("/url", "it is required and missing")
    ]
    assert HTTP.authored_violations(
        {"url": "a:b", "body": {"a": 1, "b": 2, "c": 3}}, [("body", "id")]
    )


def test_a_branch_that_depends_on_what_is_not_known_is_not_taken() -> None:
    schema = compiled(
        {
            "if": {"properties": {"mode": {"const": "file"}}},
            "then": {"required": ["path"]},
            "else": {"required": ["url"]},
            "unevaluatedProperties": False,
        }
    )
    assert schema.authored_violations({"mode": "=inputs.mode"}) == []
    assert schema.authored_violations({"mode": "file"})
    either = compiled({"anyOf": [{"required": ["a"]}, {"properties": {"b": {"const": 1}}}]})
    assert either.authored_violations({"b": "=x"}) == []


@pytest.mark.parametrize(
    ("raw", "pointer", "words"),
    [
        (b"5", "", "an object, true or false"),
        (b"{", "", "cannot be read"),
        (b'{"type": "strin"}', "/type", "valid"),
        (b'{"pattern": "("}', "/pattern", "regex"),
        (b'{"pattern": "(?=a)b"}', "/pattern", "regex"),
        (b'{"pattern": "(a{1000}){1000}"}', "/pattern", "regex"),
        (b'{"$schema": "https://example.com/own"}', "/$schema", "draft"),
        (b'{"$schema": 5}', "/$schema", "draft"),
        (b'{"items": {"$ref": "https://example.com/x"}}', "/items/$ref", "same schema"),
        (b'{"title": "' + b"x" * MAX_SCHEMA_BYTES + b'"}', "", "larger"),
        (b"[" * 5_000 + b"]" * 5_000, "", "cannot be read"),
    ],
)
def test_what_is_no_schema(raw: bytes, pointer: str, words: str) -> None:
    with pytest.raises(BadSchema, match=words) as caught:
        compile_schema(raw)
    assert caught.value.pointer == pointer


def test_an_earlier_draft_can_be_named() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 5,
        "exclusiveMinimum": True,
    }
    assert not compiled(schema).is_valid(5)
    assert compiled(
        {"$schema": "http://json-schema.org/draft-07/schema", "items": [{"type": "null"}]}
    ).is_valid([None])


def test_a_pattern_takes_linear_time() -> None:
    assert not compiled({"pattern": "^(a+)+$"}).is_valid("a" * 200_000 + "b")


def test_a_value_too_deep_for_a_costly_schema_is_a_violation() -> None:
    costly = compiled({"anyOf": [{"items": {"$ref": "#"}, "maxItems": n} for n in range(1, 11)]})
    value: list[Any] = []
    assert costly.is_valid([value])
    for _ in range(30):
        value = [value]
    assert not costly.is_valid(value)
    (found,) = costly.violations(value)
    assert "nested deeper than" in found.message
    wide = [{"a": 1}, {"a": 2}]
    assert costly.is_valid(wide)
