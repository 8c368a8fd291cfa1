"""What an expression may cost, and the errors that it ends with.

Rule 1: the cost is counted, not measured: the same expression over the same values always ends alike, on every machine
        and when a run is read again from its facts.
Rule 2: everything that takes time or memory in proportion to a value is charged before it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from astraflow.core.expressions.stored_value import StoredValue

MAX_TEXT: Final = 4_096
"""Characters of an expression."""
MAX_COST: Final = 1_000_000
"""A step costs 10, a character 1/16, an item of a list 10: at most some tens of milliseconds, and some megabytes."""
MAX_SIZE: Final = 2_000_000
"""What a value may have that an expression makes, in the same units, a part costing 1."""
STEP: Final = 10
_CHARACTERS_PER_UNIT: Final = 16
_MAX_MESSAGE: Final = 300


class ExpressionError(Exception):
    """An expression has no value. The message says why, in words for the author of the expression. `position`: the
    character that is wrong, from 0 on, if one is."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.message = message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + "…"


class Budget:
    """What is left to spend for one evaluation."""

    __slots__ = ("left",)

    def __init__(self, limit: int = MAX_COST) -> None:
        self.left = limit

    def charge(self, cost: int) -> None:
        """Raises: ExpressionError, if the expression costs more than it may."""
        self.left -= cost
        if self.left < 0:
            raise ExpressionError("the expression takes too long or makes too large a value")

    def charge_text(self, characters: int) -> None:
        self.charge(STEP + characters // _CHARACTERS_PER_UNIT)

    def charge_walk(self, value: Any, *, is_read: bool = False) -> None:
        """Charge for looking at every part of a value. `is_read`: what is only referred to cannot be part of it."""
        pending = [value]
        while pending:
            one = pending.pop()
            if isinstance(one, str):
                self.charge(1 + len(one) // _CHARACTERS_PER_UNIT)
            elif isinstance(one, list):
                self.charge(1 + len(one))
                pending.extend(one)
            elif is_read and isinstance(one, StoredValue):
                raise ExpressionError(f"cannot read {kind_of(one)}")
            elif isinstance(one, Mapping):
                self.charge(1 + len(one) + sum(map(len, one)) // _CHARACTERS_PER_UNIT)
                pending.extend(one.values())

    def charge_items(self, count: int) -> None:
        self.charge(STEP + count * STEP)


def kind_of(value: Any) -> str:
    """The JSON type of a value, with its article, as errors call it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, StoredValue):
        return "a large value, which is stored by reference and which only a node can read"
    return "an array" if isinstance(value, list) else "an object"
