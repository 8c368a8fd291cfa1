"""The inputs of a run: declared, given, filled in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.errors import WORKFLOW_INPUT
from astraflow.core.workflow import InvalidDocument, declared_inputs, decode_definition, take_inputs
from astraflow.core.workflow.limits import MAX_INPUTS_BYTES
from tests.unit.core.workflow.drafts import definition, found, node

INPUTS: dict[str, Any] = {
    "city": {"schema": {"type": "string", "minLength": 1}, "required": True},
    "days": {"schema": {"type": "integer"}, "default": 3, "required": True},
    "options": {"schema": {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}}},
    "note": {"default": None},
}


def taken(given: Any, inputs: dict[str, Any] = INPUTS) -> Any:
    declared = declared_inputs(definition([node(1)], inputs=inputs).workflow)
    return msgspec.json.decode(take_inputs(declared, msgspec.Raw(msgspec.json.encode(given))))


def refused(given: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDocument) as caught:
        taken(given)
    assert caught.value.code is WORKFLOW_INPUT
    return [(row.pointer, row.message) for row in caught.value.problems]


def test_defaults_are_filled_in_and_the_rest_stays_away() -> None:
    assert taken({"city": "Oslo"}) == {"city": "Oslo", "days": 3}
    assert taken({"city": "Oslo", "days": 5, "note": None}) == {
        "city": "Oslo",
        "days": 5,
        "note": None,
    }
    assert taken({}, {}) == {}


def test_what_is_kept_stands_on_one_line() -> None:
    """A store keeps one fact a line, and people write definitions and requests on many."""
    document = msgspec.json.format(
        definition([node(1)], inputs={"a": {"default": [1, {"b": "\n"}]}, "c": {}}).raw
    )
    declared = declared_inputs(decode_definition(document).workflow)
    kept = take_inputs(declared, msgspec.Raw(b'{\n  "c": [\n 1.0, "x" ]\n}\n'))
    assert bytes(kept) == b'{"c":[1.0,"x"],"a":[1,{"b":"\\n"}]}'
    assert bytes(take_inputs((), msgspec.Raw(b"{\n}"))) == b"{}"


def test_all_that_is_wrong_is_told_with_its_place() -> None:
    rows = refused({"days": "5", "options": {"unit": "K"}, "citty": "Oslo", "a/b": 1})
    assert [pointer for pointer, _ in rows] == [
        "/inputs/citty",
        "/inputs/a~1b",
        "/inputs/city",
        "/inputs/days",
        "/inputs/options/unit",
    ]
    assert rows[0][1].endswith("did you mean 'city'?")
    assert rows[2][1] == "the input is required and missing"


def test_null_is_a_value() -> None:
    assert [pointer for pointer, _ in refused({"city": None})] == ["/inputs/city"]


def test_inputs_are_bounded() -> None:
    ((pointer, message),) = refused({"city": "x" * MAX_INPUTS_BYTES})
    assert pointer == "/inputs"
    assert "larger than" in message


@pytest.mark.parametrize(
    "value", [b"[" * 5_000 + b"]" * 5_000, b"[" * 60 + b"]" * 60, b"18446744073709551616", b"["]
)
def test_what_no_frame_can_hold_is_no_input(value: bytes) -> None:
    declared = declared_inputs(definition([node(1)], inputs=INPUTS).workflow)
    with pytest.raises(InvalidDocument) as caught:
        take_inputs(declared, msgspec.Raw(b'{"city": "a", "note": ' + value + b"}"))
    assert [row.pointer for row in caught.value.problems] == ["/inputs"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"inputs": INPUTS}, []),
        (
            {"inputs": {"a": {"schema": {"type": "integer"}, "default": "x"}}},
            ("/inputs/a/default", "INPUT"),
        ),
        (
            {"inputs": {"a": {"schema": {"items": {"type": "null"}}, "default": [None, 1]}}},
            ("/inputs/a/default/1", "INPUT"),
        ),
        (
            {"inputs": {"a": {"schema": {"type": "strin"}, "default": 1}}},
            ("/inputs/a/schema/type", "SCHEMA"),
        ),
        ({"inputs": {"a": {"default": [1]}}}, []),
        ({"inputs": {"a": {"default": 2**64}}}, ("/inputs/a/default", "INVALID")),
        (
            {"outputs": {"a": {"source": {"node": node(1)["id"]}, "schema": {"$ref": "x"}}}},
            ("/outputs/a/schema/$ref", "SCHEMA"),
        ),
        ({"outputs": {"a": {"source": {"node": node(1)["id"]}, "schema": {}}}}, []),
    ],
)
def test_what_a_definition_declares_must_be_sound(fields: dict[str, Any], expected: Any) -> None:
    assert found([node(1)], **fields) == ([expected] if expected else [])
