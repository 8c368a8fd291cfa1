"""Expressions as Python values: `flow.input("total") * 2` becomes the text `=inputs.total * 2`.

Operators give a new formula and evaluate nothing: a formula has no truth value, so `and`, `or` and `not` are written
`&`, `|` and `~`, each side in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import UNSET

from astraflow.core import errors
from astraflow.core.expressions import ExpressionError, compile_expression
from astraflow.core.expressions.functions import FUNCTIONS

_is_name: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


class Formula:
    """An expression of a workflow. Made by `expr`, `call`, `Flow.input` and operators."""

    __slots__ = ("_is_whole", "text")

    def __init__(self, text: str, *, is_whole: bool = False) -> None:
        """`is_whole`: other operators can be applied to the text without brackets."""
        self.text = text
        self._is_whole = is_whole

    @property
    def operand(self) -> str:
        """The text as a part of another expression."""
        return self.text if self._is_whole else f"({self.text})"

    def __getattr__(self, name: str) -> Formula:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, key: str | int) -> Formula:
        return Formula(self.operand + member(key), is_whole=True)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no value yet: write &, | and ~ for and, or and not")

    def __iter__(self) -> Any:
        raise TypeError(
            "an expression has no items yet: use call(…), or a comprehension in expr(…)"
        )

    def __repr__(self) -> str:
        return f"expr({self.text!r})"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return _binary("==", self, other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return _binary("!=", self, other)

    def __lt__(self, other: object) -> Formula:
        return _binary("<", self, other)

    def __le__(self, other: object) -> Formula:
        return _binary("<=", self, other)

    def __gt__(self, other: object) -> Formula:
        return _binary(">", self, other)

    def __ge__(self, other: object) -> Formula:
        return _binary(">=", self, other)

    def __add__(self, other: object) -> Formula:
        return _binary("+", self, other)

    def __radd__(self, other: object) -> Formula:
        return _binary("+", other, self)

    def __sub__(self, other: object) -> Formula:
        return _binary("-", self, other)

    def __rsub__(self, other: object) -> Formula:
        return _binary("-", other, self)

    def __mul__(self, other: object) -> Formula:
        return _binary("*", self, other)

    def __rmul__(self, other: object) -> Formula:
        return _binary("*", other, self)

    def __truediv__(self, other: object) -> Formula:
        return _binary("/", self, other)

    def __rtruediv__(self, other: object) -> Formula:
        return _binary("/", other, self)

    def __mod__(self, other: object) -> Formula:
        return _binary("%", self, other)

    def __and__(self, other: object) -> Formula:
        return _binary("and", self, other)

    def __or__(self, other: object) -> Formula:
        return _binary("or", self, other)

    def __invert__(self) -> Formula:
        return Formula(f"not {self.operand}")


def expr(text: str) -> Formula:
    """An expression, with or without its `=`.

    Raises: Refused, if it is none.
    """
    text = text.removeprefix("=").strip()
    check(text)
    return Formula(text)


def call(function: str, *arguments: object) -> Formula:
    """A call of a function of the expression language: `call("upper", name)`.

    Raises: Refused, if there is no such function.
    """
    if function not in FUNCTIONS and function != "default":
        near = get_close_matches(function, FUNCTIONS, n=1)
        also = f"; did you mean {near[0]!r}?" if near else ""
        raise errors.Refused(errors.WORKFLOW_EXPRESSION, f"there is no function {function!r}{also}")
    return Formula(f"{function}({', '.join(map(text_of, arguments))})", is_whole=True)


def check(text: str) -> None:
    """Raises: Refused, if the text is no expression."""
    try:
        compile_expression(text)
    except ExpressionError as error:
        raise errors.Refused(
            errors.WORKFLOW_EXPRESSION, f"not an expression: {text[:80]}: {error.message}"
        ) from None


def condition_of(condition: str | Formula) -> str:
    """The text of a `when`. Raises: Refused, if it is no expression."""
    return condition.text if isinstance(condition, Formula) else expr(condition).text


def member(key: str | int) -> str:
    """How a member of something is written."""
    return f".{key}" if isinstance(key, str) and _is_name(key) else f"[{_literal(key)}]"


def text_of(value: object) -> str:
    """A value as a part of an expression that needs no brackets round it."""
    return value.text if isinstance(value, Formula) else _literal(value)


def _binary(sign: str, left: object, right: object) -> Formula:
    sides = (one.operand if isinstance(one, Formula) else _literal(one) for one in (left, right))
    return Formula(f" {sign} ".join(sides))


def _literal(value: object) -> str:
    """JSON is a part of the language. Raises: TypeError, if the value is not."""
    return msgspec.json.encode(value, enc_hook=_refuse).decode()


def _refuse(value: object) -> object:
    raise TypeError(f"a constant of an expression is a JSON value, not {type(value).__name__}")


def plain(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A JSON value in which `convert` has replaced what is none. Formulas become their text; members that are not set
    are left out."""
    if isinstance(value, Formula):
        return f"={value.text}"
    if isinstance(value, Mapping):
        items = ((str(key), one) for key, one in value.items() if one is not UNSET)
        return {key: plain(one, convert) for key, one in items}
    if isinstance(value, list | tuple):
        return [plain(one, convert) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return convert(value)
