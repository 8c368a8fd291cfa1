"""The operators of the language, over JSON values.

Numbers do not become strings nor strings numbers by themselves: a workflow that adds "1" and 1 has a mistake, and the
error says so. Booleans are no numbers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from astraflow.core.expressions.budget import Budget, ExpressionError, kind_of
from astraflow.core.expressions.stored_value import StoredValue

MAX_INTEGER: Final = 2**63 - 1
"""Larger integers cannot be read by everybody who reads the JSON."""

Operator = Callable[[Any, Any, Budget], Any]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def checked(value: Any) -> Any:
    """A number that JSON can carry."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError("the number is too large")
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        raise ExpressionError("the number is too large: integers have 63 bits")
    return value


def _refuse(word: str, left: Any, right: Any) -> ExpressionError:
    hint = ""
    if isinstance(left, str) != isinstance(right, str) and word == "add":
        hint = "; use str(…) to make a string of it"
    return ExpressionError(f"cannot {word} {kind_of(left)} and {kind_of(right)}{hint}")


def _add(left: Any, right: Any, budget: Budget) -> Any:
    if is_number(left) and is_number(right):
        return checked(left + right)
    if isinstance(left, str) and isinstance(right, str):
        budget.charge_text(len(left) + len(right))
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        budget.charge_items(len(left) + len(right))
        return left + right
    raise _refuse("add", left, right)


def _arithmetic(word: str, compute: Callable[[Any, Any], Any]) -> Operator:
    def operate(left: Any, right: Any, budget: Budget) -> Any:
        if not (is_number(left) and is_number(right)):
            raise _refuse(word, left, right)
        try:
            return checked(compute(left, right))
        except ZeroDivisionError:
            raise ExpressionError("division by zero") from None
        except OverflowError:
            raise ExpressionError("the number is too large") from None

    return operate


def _power(left: Any, right: Any) -> Any:
    # The bits of a power are those of its base times its exponent: what has too many is not computed.
    is_integer = isinstance(left, int) and isinstance(right, int) and right > 0 and abs(left) > 1
    if is_integer and left.bit_length() * right > 128:
        raise OverflowError
    result = left**right
    if isinstance(result, complex):
        raise ExpressionError("a negative number has no such power")
    return result


def equal(left: Any, right: Any, budget: Budget) -> bool:
    """Equality of JSON values: 1 equals 1.0, true does not equal 1."""
    if isinstance(left, str) and isinstance(right, str):
        budget.charge_text(min(len(left), len(right)))
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        budget.charge_items(1)
        return len(left) == len(right) and all(
            equal(one, other, budget) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        budget.charge_items(1)
        return left.keys() == right.keys() and all(
            equal(left[key], right[key], budget) for key in left
        )
    budget.charge(1)
    for one in (left, right):
        if isinstance(one, StoredValue) and not (left is None or right is None):
            raise ExpressionError(f"cannot compare {kind_of(one)}")
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_number(left) and is_number(right):
        return bool(left == right)
    return left is None and right is None


def _ordered(word: str, compare: Callable[[Any, Any], bool]) -> Operator:
    def operate(left: Any, right: Any, budget: Budget) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            budget.charge_text(min(len(left), len(right)))
        elif not (is_number(left) and is_number(right)):
            raise ExpressionError(f"cannot compare {kind_of(left)} {word} {kind_of(right)}")
        return compare(left, right)

    return operate


def contains(item: Any, container: Any, budget: Budget) -> bool:
    """`item in container`: an item of an array, a key of an object, a part of a string."""
    if isinstance(container, str):
        if not isinstance(item, str):
            raise ExpressionError(f"cannot look for {kind_of(item)} in a string")
        budget.charge_text(len(container) + len(item))
        return item in container
    if isinstance(container, Mapping):
        budget.charge(1)
        return isinstance(item, str) and item in container
    if isinstance(container, list):
        return any(equal(item, one, budget) for one in container)
    raise ExpressionError(f"cannot look for something in {kind_of(container)}")


BINARY: Final[Mapping[type[ast.operator], Operator]] = {
    ast.Add: _add,
    ast.Sub: _arithmetic("subtract", lambda left, right: left - right),
    ast.Mult: _arithmetic("multiply", lambda left, right: left * right),
    ast.Div: _arithmetic("divide", lambda left, right: left / right),
    ast.FloorDiv: _arithmetic("divide", lambda left, right: left // right),
    ast.Mod: _arithmetic("divide", lambda left, right: left % right),
    ast.Pow: _arithmetic("raise", _power),
}

COMPARISONS: Final[Mapping[type[ast.cmpop], Operator]] = {
    ast.Eq: equal,
    ast.NotEq: lambda left, right, budget: not equal(left, right, budget),
    ast.Lt: _ordered("<", lambda left, right: left < right),
    ast.LtE: _ordered("<=", lambda left, right: left <= right),
    ast.Gt: _ordered(">", lambda left, right: left > right),
    ast.GtE: _ordered(">=", lambda left, right: left >= right),
    ast.In: contains,
    ast.NotIn: lambda item, container, budget: not contains(item, container, budget),
    # `is None` is what people write who know Python.
    ast.Is: equal,
    ast.IsNot: lambda left, right, budget: not equal(left, right, budget),
}


def negative(value: Any) -> Any:
    if not is_number(value):
        raise ExpressionError(f"cannot negate {kind_of(value)}")
    return -value


def positive(value: Any) -> Any:
    if not is_number(value):
        raise ExpressionError(f"{kind_of(value)} has no sign")
    return value


def member(value: Any, name: str, text: str) -> Any:
    """`value.name` or `value["name"]`; `text` is how the value is written in the expression."""
    if isinstance(value, Mapping):
        try:
            return value[name]
        except KeyError:
            known = ", ".join(list(value)[:8])
            having = f"it has: {known}" if known else "it has no members"
            raise MissingMember(f"{text} has no member '{name}' ({having})") from None
    if value is None:
        raise MissingMember(f"{text} is null, it has no member '{name}'")
    raise ExpressionError(f"{text} is {kind_of(value)}, it has no member '{name}'")


def element(value: Any, key: Any, text: str) -> Any:
    """`value[key]`."""
    if isinstance(key, str):
        return member(value, key, text)
    if value is None:
        raise MissingMember(f"{text} is null, it has no items")
    if not isinstance(value, list | str):
        raise ExpressionError(f"{text} is {kind_of(value)}, it has no items by number")
    if not isinstance(key, int) or isinstance(key, bool):
        raise ExpressionError(f"{text} has items by number, not by {kind_of(key)}")
    try:
        return value[key]
    except IndexError:
        raise MissingMember(f"{text} has {len(value)} items, no item {key}") from None


class MissingMember(ExpressionError):
    """What is looked for is not there; `default` and `get` take another value then."""
