"""Formulas: operators that write expressions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.builder import Formula, call, expr
from astraflow.core import errors
from astraflow.core.expressions import compile_expression

X = Formula("inputs.x", is_whole=True)


@pytest.mark.parametrize(
    ("formula", "text", "value"),
    [
        (X + 1, "inputs.x + 1", 8),
        (1 + X, "1 + inputs.x", 8),
        (X - 1, "inputs.x - 1", 6),
        (1 - X, "1 - inputs.x", -6),
        ((X + 1) * 2, "(inputs.x + 1) * 2", 16),
        (2 * X, "2 * inputs.x", 14),
        (X / 2, "inputs.x / 2", 3.5),
        (7 / X, "7 / inputs.x", 1.0),
        (X % 4, "inputs.x % 4", 3),
        (X == 7, "inputs.x == 7", True),
        (X != 7, "inputs.x != 7", False),
        ((X < 8) & (X <= 7), "(inputs.x < 8) and (inputs.x <= 7)", True),
        ((X > 8) | (X >= 7), "(inputs.x > 8) or (inputs.x >= 7)", True),
        (~(X > 8), "not (inputs.x > 8)", True),
        (expr("= inputs.list")[0], "(inputs.list)[0]", "a"),
        (call("len", expr("inputs.list")), "len(inputs.list)", 2),
        (call("default", expr("inputs.none"), "d"), 'default(inputs.none, "d")', "d"),
        (expr("inputs").deep["two words"].end, '(inputs).deep["two words"].end', True),
        (X == "ü\n\"'", 'inputs.x == "ü\\n\\"\'"', False),
        (X == [True, None], "inputs.x == [true,null]", False),
    ],
)
def test_an_operator_writes_what_it_means(formula: Formula, text: str, value: Any) -> None:
    assert formula.text == text
    names = {"inputs": {"x": 7, "list": ["a", "b"], "deep": {"two words": {"end": True}}}}
    assert compile_expression(text).evaluate(names) == value


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists))
def test_constants_are_what_they_were(value: Any) -> None:
    if isinstance(value, str) and "\x00" in value:
        return  # no document can hold it
    assert compile_expression((value == X).text).evaluate({"inputs": {"x": value}}) is True


def test_a_formula_has_no_value_before_it_runs() -> None:
    with pytest.raises(TypeError, match="write &"):
        bool(X > 1)
    with pytest.raises(TypeError, match="no items"):
        list(X)
    with pytest.raises(TypeError, match="JSON value"):
        X + object()
    with pytest.raises(AttributeError):
        X.__nothing__  # noqa: B018
    assert repr(X) == "expr('inputs.x')"
    assert len({X, X}) == 1


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(errors.Refused, match=r"E\.WORKFLOW\.EXPRESSION.*1 \+"):
        expr("1 +")
    with pytest.raises(errors.Refused, match="did you mean 'upper'"):
        call("uper", X)
