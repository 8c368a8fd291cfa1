"""Looks at large texts: leaving long strings out of a look changes nothing of what is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.protocol import limits, scan
from tests.tables import each_row

LONG = "x" * 20_000
DEEP = "[" * 63 + "]" * 63

marks = st.sampled_from(
    ['"', "\\", ":", ",", "{", "}", "[", "]", "1e999", "9" * 20, "é", "\0", "\n", "a", " "]
)
texts = st.lists(marks, max_size=12).map("".join) | st.builds(
    lambda around, times: around.join([LONG] * times), st.lists(marks, max_size=6).map("".join),
    st.integers(1, 3),
)  # fmt: skip
values = st.recursive(
    texts | st.integers(-(2**66), 2**66) | st.floats(allow_nan=False) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


def looks(text: bytes) -> list[object]:
    """What is found in a text, or how the look failed."""
    found: list[object] = [scan.problem_in(text, 1)]
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
        found.append(scan.has_duplicate_key(text))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found.append(type(error))
    return found


def without_brevity(look: Callable[[bytes], Any], text: bytes) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_brief", lambda text: text)
        return look(text)


@given(values, st.booleans())
def test_long_strings_change_nothing_of_what_is_found(value: Any, is_ascii: bool) -> None:
    for separators in ((",", ":"), (", ", " : ")):
        text = json.dumps([value, LONG], ensure_ascii=is_ascii, separators=separators).encode()
        assert looks(text) == without_brevity(looks, text)


@given(values, st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_nor_does_what_is_no_json(value: Any, at: int, other: bytes) -> None:
    text = json.dumps({"long": LONG, "value": value, "last": LONG}, ensure_ascii=False).encode()
    place = (at * len(text)) // 200
    changed = text[:place] + other + text[place + len(other) :]
    assert scan.problem_in(changed, 1) == without_brevity(
        lambda text: scan.problem_in(text, 1), changed
    )


@each_row(
    "text, problem",
    [
        (b'{"a":"%b","b":1e999}', "holds a number that is out of range"),
        (b'{"a":"%b","b":99999999999999999999}', "holds an integer beyond 64 bits"),
        (b'{"a":"%b\\u0000"}', "holds the character U+0000"),
        (b'{"a":"%b\xff"}', "not UTF-8"),
        (b'{"a":"%b","b":%%b}', "nested deeper than 64 levels"),
        (b'{"a":"%b\\\\","b":1e999}', "holds a number that is out of range"),
        (b'{"a":"%b\\"","b":"1e999"}', None),
        (b'{"a":"%b1e999 [[[ 99999999999999999999"}', None),
    ],
)
def test_what_stands_beside_a_long_string_is_found(text: bytes, problem: str | None) -> None:
    whole = text % LONG.encode()
    if b"%b" in whole:
        whole = whole % DEEP.encode()
    assert scan.problem_in(whole, 1) == problem


@each_row(
    "text, is_found",
    [
        (b'{"a":"%b","a":1}', True),
        (b'{"a":"%b","b":{"c":1,"c":2}}', True),
        (b'{"%b":1,"%b":2}', True),
        (b'{"%b":1,"%bx":2}', False),
        (b'{"a":"%b","b":"a:b:c"}', False),
        (b'{"a":"%b::","b":{"a":1}}', False),
        (b'{"a" : "%b", "b" : 1, "\\u0061" : 2}', True),
    ],
)
def test_a_key_that_stands_twice_beside_a_long_string_is_found(text: bytes, is_found: bool) -> None:
    count = text.count(b"%b")
    assert scan.has_duplicate_key(text % ((LONG.encode(),) * count)) is is_found


def test_a_text_of_many_short_strings_is_looked_at_as_it_is() -> None:
    text = json.dumps(["ab"] * 10_000).encode()
    assert scan._brief(text) is text


@each_row("inside", [b"\\" * 1_000, b'\\"' * 1_000, b'\\"' * 40 + b"x" * 20_000])
def test_escapes_end_no_string_too_early(inside: bytes) -> None:
    text = b'{"a":"%b","b":"%b"}' % (inside, LONG.encode())
    brief = scan._brief(text)
    assert brief in (text, b'{"a":"","b":""}')
    assert scan.problem_in(text[:-1] + b',"c":1e999}', 1) == "holds a number that is out of range"


def test_a_string_without_an_end_is_looked_at_as_it_is() -> None:
    text = b'{"a":"' + LONG.encode()
    assert scan._brief(text) is text


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


AWKWARD = ("", "[[{", '"]}', "\\", '\\"[', "}\\\\", "a: b, [c]", "\u20ac{")


@pytest.mark.parametrize("width", [1, 3, 200])
@pytest.mark.parametrize("depth", [1, 2, 40, 62, 63, 64, 65, 100])
def test_nesting_is_counted_outside_of_strings(depth: int, width: int) -> None:
    """Few and many pairs, lists and objects in turn, with strings that hold brackets, quotes and backslashes."""
    allowed = limits.MAX_DEPTH - 1
    value: Any = list(AWKWARD)
    for level in range(depth - 1):
        value = (
            {'x["': value, "y": AWKWARD[level % 8]} if level % 2 else [AWKWARD[level % 8], value]
        )
    around = [value, *([[], {}] * width)]
    for whole in (value, around, [[] for _ in range(width)] + [value], {"a": around}):
        is_deeper = depth_of(whole) > allowed
        for text in (
            json.dumps(whole),
            json.dumps(whole, indent=1),
            json.dumps(whole, ensure_ascii=False),
        ):
            found = scan.problem_in(text.encode(), 1)
            assert (found is not None and "nested" in found) == is_deeper, (depth_of(whole), width)


def test_brackets_that_do_not_match_are_left_to_the_decoder() -> None:
    for text in (b"]" * 200, b"[" * 60 + b"}" * 300, b'"' + b"[" * 200, b"[]" * 300 + b"]]]"):
        assert scan.problem_in(text, 1) is None
    assert scan.problem_in(b"[" * 200, 1) is not None
