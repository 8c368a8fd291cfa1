"""The functions of the language. Each takes JSON values, charges for its work, and gives a JSON value."""

from __future__ import annotations

import ast
import base64
import binascii
import hashlib
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cmp_to_key
from typing import Any, Final, NamedTuple

import msgspec

from astraflow.core.expressions.budget import Budget, ExpressionError, kind_of
from astraflow.core.expressions.operations import (
    BINARY,
    COMPARISONS,
    MissingMember,
    checked,
    element,
    equal,
    is_number,
)


class Function(NamedTuple):
    """One function: what it does, how many arguments it takes, and its line in the reference."""

    call: Callable[..., Any]
    least: int
    most: int
    help: str


_WORDS: Final[Mapping[Any, str]] = {str: "a string", list: "an array", Mapping: "an object"}


def _need(value: Any, wanted: Any, name: str) -> Any:
    """The value, if it is of a type; else an error that names the function."""
    if not isinstance(value, wanted):
        word = _WORDS.get(wanted, "an array, an object or a string")
        raise ExpressionError(f"{name} takes {word}, not {kind_of(value)}")
    return value


def _text(value: Any, name: str, budget: Budget) -> str:
    text: str = _need(value, str, name)
    budget.charge_text(len(text))
    return text


def _items(value: Any, name: str, budget: Budget) -> list[Any]:
    items: list[Any] = _need(value, list, name)
    budget.charge_items(len(items))
    return items


def _number(value: Any, name: str) -> Any:
    if not is_number(value):
        raise ExpressionError(f"{name} takes a number, not {kind_of(value)}")
    return value


def _len(budget: Budget, value: Any) -> int:
    return len(_need(value, (str, list, Mapping), "len"))


def to_string(value: Any, budget: Budget) -> str:
    """A string as it is; everything else as JSON."""
    if isinstance(value, str):
        budget.charge_text(len(value))
        return value
    return to_json(value, budget)


def to_json(value: Any, budget: Budget) -> str:
    budget.charge_walk(value, is_read=True)
    return msgspec.json.encode(value).decode()


def _str(budget: Budget, value: Any) -> str:
    return to_string(value, budget)


def _int(budget: Budget, value: Any) -> int:
    if isinstance(value, str):
        text = _text(value, "int", budget)
        try:
            return int(checked(int(text.strip()[:40], 10)))
        except ValueError:
            raise ExpressionError(f"no integer: {text[:40]!r}") from None
    if isinstance(value, bool):
        return int(value)
    return int(checked(math.trunc(_number(value, "int"))))


def _float(budget: Budget, value: Any) -> float:
    if isinstance(value, str):
        text = _text(value, "float", budget)
        try:
            return float(checked(float(text.strip()[:400])))
        except ValueError:
            raise ExpressionError(f"no number: {text[:40]!r}") from None
    return float(_number(value, "float"))


def _round(budget: Budget, value: Any, digits: Any = 0) -> Any:
    places = _number(digits, "round")
    if not isinstance(places, int) or abs(places) > 20:
        raise ExpressionError("round takes at most 20 digits")
    rounded = round(_number(value, "round"), places)
    return checked(rounded if places > 0 else int(rounded))


def _extreme(name: str, operator: type[ast.cmpop]) -> Callable[..., Any]:
    comes_first = COMPARISONS[operator]

    def pick(budget: Budget, *values: Any) -> Any:
        items = _items(values[0] if len(values) == 1 else list(values), name, budget)
        if not items:
            raise MissingMember(f"{name} of nothing")
        best = items[0]
        for item in items[1:]:
            if comes_first(item, best, budget):
                best = item
        return best

    return pick


def _sum(budget: Budget, values: Any) -> Any:
    total: Any = 0
    for item in _items(values, "sum", budget):
        total = BINARY[ast.Add](total, _number(item, "sum"), budget)
    return total


def _any(budget: Budget, values: Any) -> bool:
    return any(_items(values, "any", budget))


def _all(budget: Budget, values: Any) -> bool:
    return all(_items(values, "all", budget))


def _sorted(budget: Budget, values: Any, by: Any = None) -> list[Any]:
    items = _items(values, "sorted", budget)
    less = COMPARISONS[ast.Lt]

    def key_of(item: Any) -> Any:
        return item if by is None else element(item, _need(by, str, "sorted"), "an item")

    def order(left: Any, right: Any) -> int:
        one, other = key_of(left), key_of(right)
        return -1 if less(one, other, budget) else int(less(other, one, budget))

    return sorted(items, key=cmp_to_key(order))


def _reversed(budget: Budget, values: Any) -> list[Any]:
    return _items(values, "reversed", budget)[::-1]


def _unique(budget: Budget, values: Any) -> list[Any]:
    kept: list[Any] = []
    for item in _items(values, "unique", budget):
        if not any(equal(item, one, budget) for one in kept):
            kept.append(item)
    return kept


def _flatten(budget: Budget, values: Any) -> list[Any]:
    flat: list[Any] = []
    for item in _items(values, "flatten", budget):
        flat.extend(_items(item, "flatten", budget) if isinstance(item, list) else [item])
    return flat


def _keys(budget: Budget, value: Any) -> list[str]:
    found = list(_need(value, Mapping, "keys"))
    budget.charge_items(len(found))
    return found


def _values(budget: Budget, value: Any) -> list[Any]:
    return [value[key] for key in _keys(budget, value)]


def _merge(budget: Budget, *values: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for value in values:
        budget.charge_items(len(_need(value, Mapping, "merge")))
        merged.update(value)
    return merged


def _range(budget: Budget, *limits: Any) -> list[int]:
    if not all(isinstance(limit, int) and not isinstance(limit, bool) for limit in limits):
        raise ExpressionError("range takes integers")
    if len(limits) == 3 and limits[2] == 0:
        raise ExpressionError("range takes a step other than 0")
    numbers = range(*limits)
    if len(limits) < 3 and limits[-1] > 10**9:
        raise ExpressionError("range takes at most 1,000,000,000")
    budget.charge_items(len(numbers))
    return list(numbers)


def _split(budget: Budget, text: Any, by: Any = None) -> list[str]:
    parts = _text(text, "split", budget).split(
        None if by is None else _separator(by, "split", budget)
    )
    budget.charge_items(len(parts))
    return parts


def _separator(value: Any, name: str, budget: Budget) -> str:
    text = _text(value, name, budget)
    if not text:
        raise ExpressionError(f"{name} takes a separator of at least one character")
    return text


def _join(budget: Budget, values: Any, by: Any = "") -> str:
    texts = [to_string(item, budget) for item in _items(values, "join", budget)]
    separator = _text(by, "join", budget)
    budget.charge_text(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _replace(budget: Budget, text: Any, old: Any, new: Any) -> str:
    whole, searched = _text(text, "replace", budget), _separator(old, "replace", budget)
    replacement = _text(new, "replace", budget)
    budget.charge_text(len(whole) + whole.count(searched) * len(replacement))
    return whole.replace(searched, replacement)


def _per_text(name: str, change: Callable[[str], Any]) -> Callable[..., Any]:
    return lambda budget, text: change(_text(text, name, budget))


def _pair_of_texts(name: str, test: Callable[[str, str], bool]) -> Callable[..., bool]:
    return lambda budget, text, part: test(_text(text, name, budget), _text(part, name, budget))


def _parse_json(budget: Budget, text: Any) -> Any:
    raw = _text(text, "parse_json", budget)
    budget.charge(len(raw))
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ExpressionError(f"parse_json: {error}") from None


def _get(budget: Budget, value: Any, path: Any, otherwise: Any = None) -> Any:
    keys = path if isinstance(path, list) else _text(path, "get", budget).split(".")
    budget.charge_items(len(keys))
    for key in keys:
        is_number_in_text = isinstance(key, str) and isinstance(value, list) and key.isdecimal()
        try:
            value = element(value, int(key[:9]) if is_number_in_text else key, "the value")
        except ExpressionError:
            return otherwise
    return value


def _type(budget: Budget, value: Any) -> str:
    return kind_of(value).split()[-1]


def _sha256(budget: Budget, text: Any) -> str:
    return hashlib.sha256(_text(text, "sha256", budget).encode()).hexdigest()


def _to_base64(budget: Budget, text: Any) -> str:
    return base64.b64encode(_text(text, "base64", budget).encode()).decode()


def _from_base64(budget: Budget, text: Any) -> str:
    try:
        return base64.b64decode(_text(text, "from_base64", budget), validate=True).decode()
    except (binascii.Error, ValueError):
        raise ExpressionError("from_base64 takes base64 of UTF-8 text") from None


def _seconds(budget: Budget, text: Any) -> float:
    written = _text(text, "seconds", budget)
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        raise ExpressionError(f"no RFC 3339 time: {written[:40]!r}") from None
    if read.tzinfo is None:
        raise ExpressionError(f"the time needs a time zone: {written[:40]!r}")
    return read.timestamp()


def _time(budget: Budget, seconds: Any) -> str:
    try:
        read = datetime.fromtimestamp(_number(seconds, "time"), UTC)
    except (ValueError, OverflowError, OSError):
        raise ExpressionError("the time is out of range") from None
    return read.isoformat(timespec="milliseconds").replace("+00:00", "Z")


FUNCTIONS: Final[Mapping[str, Function]] = {
    "len": Function(_len, 1, 1, "how many characters, items or members"),
    "str": Function(_str, 1, 1, "a string as it is, any other value as JSON"),
    "int": Function(_int, 1, 1, "the integer of a number or a string; cuts the fraction off"),
    "float": Function(_float, 1, 1, "the number of a string"),
    "bool": Function(lambda budget, value: bool(value), 1, 1, "false for null, 0, and what is empty"),
    "round": Function(_round, 1, 2, "to an integer, or to a number of digits"),
    "floor": Function(lambda budget, value: checked(math.floor(_number(value, "floor"))), 1, 1, "the integer below"),
    "ceil": Function(lambda budget, value: checked(math.ceil(_number(value, "ceil"))), 1, 1, "the integer above"),
    "abs": Function(lambda budget, value: abs(_number(value, "abs")), 1, 1, "without its sign"),
    "min": Function(_extreme("min", ast.Lt), 1, 20, "the smallest of an array, or of the arguments"),
    "max": Function(_extreme("max", ast.Gt), 1, 20, "the largest of an array, or of the arguments"),
    "sum": Function(_sum, 1, 1, "of an array of numbers"),
    "any": Function(_any, 1, 1, "whether an item is true"),
    "all": Function(_all, 1, 1, "whether all items are true"),
    "sorted": Function(_sorted, 1, 2, "in order; of objects, by a member: sorted(users, \"name\")"),
    "reversed": Function(_reversed, 1, 1, "from the last to the first"),
    "unique": Function(_unique, 1, 1, "each item once"),
    "flatten": Function(_flatten, 1, 1, "the items of the arrays in an array"),
    "range": Function(_range, 1, 3, "the integers from 0, or from the first argument, to before the last"),
    "keys": Function(_keys, 1, 1, "the names of the members of an object"),
    "values": Function(_values, 1, 1, "the members of an object"),
    "merge": Function(_merge, 1, 20, "one object of several; the last has the last word"),
    "get": Function(_get, 2, 3, "what a path leads to, or the third argument: get(x, \"a.b.0\", 1)"),
    "lower": Function(_per_text("lower", str.lower), 1, 1, "in small letters"),
    "upper": Function(_per_text("upper", str.upper), 1, 1, "in capitals"),
    "trim": Function(_per_text("trim", str.strip), 1, 1, "without white space around it"),
    "lines": Function(_per_text("lines", str.splitlines), 1, 1, "an array of the lines"),
    "split": Function(_split, 1, 2, "an array of the parts between white space, or a separator"),
    "join": Function(_join, 1, 2, "one string of an array, with a separator"),
    "replace": Function(_replace, 3, 3, "replace(text, old, new), everywhere"),
    "starts_with": Function(_pair_of_texts("starts_with", str.startswith), 2, 2, "whether it begins with another"),
    "ends_with": Function(_pair_of_texts("ends_with", str.endswith), 2, 2, "whether it ends with another"),
    "json": Function(lambda budget, value: to_json(value, budget), 1, 1, "the JSON of a value, as a string"),
    "parse_json": Function(_parse_json, 1, 1, "the value of JSON in a string"),
    "type": Function(_type, 1, 1, "null, boolean, number, string, array or object"),
    "sha256": Function(_sha256, 1, 1, "the SHA-256 of a string, in hexadecimal digits"),
    "base64": Function(_to_base64, 1, 1, "a string in base64"),
    "from_base64": Function(_from_base64, 1, 1, "the string of base64"),
    "seconds": Function(_seconds, 1, 1, "an RFC 3339 time as seconds since 1970"),
    "time": Function(_time, 1, 1, "seconds since 1970 as an RFC 3339 time in UTC"),
}  # fmt: skip
"""`default(a, b)` is not among them: it does not evaluate `b` unless it must (`language`)."""
