"""Values that are stored by reference: handed on whole, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.expressions.stored_value import (
    VALUE_TYPE,
    StoredValue,
    is_stored_value,
    with_stored_values,
)
from tests.tables import each_row

REF: dict[str, Any] = {"resourceRef": {"resourceId": "r/1", "type": VALUE_TYPE, "sizeBytes": 9}}


@each_row(
    ("value", "is_one"),
    [
        (REF, True),
        ({**REF, "more": 1}, False),
        ({"resourceRef": {"resourceId": "r", "type": "file"}}, False),
        ({"resourceRef": VALUE_TYPE}, False),
        ([REF], False),
        (None, False),
    ],
)
def test_a_reference_has_one_shape(value: Any, is_one: bool) -> None:
    assert is_stored_value(value) == is_one


def evaluate(text: str) -> Any:
    names = {"big": with_stored_values(REF), "rest": with_stored_values({"a": [REF, 1], "b": "x"})}
    return compile_expression(text).evaluate(names)


@each_row(
    ("text", "value"),
    [
        ("big", REF),
        ("rest", {"a": [REF, 1], "b": "x"}),
        ("rest.a[0]", REF),
        ("{'kept': big}", {"kept": REF}),
        ("big is None", False),
        ("rest.b if big != None else 0", "x"),
    ],
)
def test_it_is_handed_on_as_it_was(text: str, value: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(evaluate(text))) == value


@pytest.mark.parametrize(
    "text",
    [
        "big.member",
        "big[0]",
        "len(big)",
        "big + 'x'",
        "big == 'x'",
        "rest.a == [1, 2]",
        "'x' in big",
        "str(big)",
        "json(rest)",
        "f'{big}'",
        "big < 3",
        "-big",
        "keys(big)",
    ],
)
def test_whatever_looks_into_it_says_that_it_cannot(text: str) -> None:
    with pytest.raises(ExpressionError, match="stored by reference"):
        evaluate(text)


def test_it_is_written_as_it_was_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(StoredValue(REF["resourceRef"]))) == REF
