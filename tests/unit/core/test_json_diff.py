from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.json_diff import ValueDiff, differences, is_equal
from tests.tables import each_row

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def brief(found: list[ValueDiff]) -> list[tuple[Any, ...]]:
    return [(one.pointer, one.kind, one.before, one.after) for one in found]


def test_differences_are_named_by_pointers_in_the_order_of_the_values() -> None:
    before: Any = {"a": {"x/y": 1, "m~n": [1, 2, 3]}, "gone": None, "same": [{}], "kind": []}
    after = {"a": {"x/y": 2, "m~n": [1, 5]}, "same": [{}], "kind": {}, "new": False}
    found, has_more = differences(before, after, "/root")
    assert not has_more
    assert brief(found) == [
        ("/root/a/x~1y", "changed", 1, 2),
        ("/root/a/m~0n/1", "changed", 2, 5),
        ("/root/a/m~0n/2", "removed", 3, None),
        ("/root/gone", "removed", None, None),
        ("/root/kind", "changed", [], {}),
        ("/root/new", "added", None, False),
    ]


@each_row(
    "one, other, is_same",
    [
        (1, 1.0, True),
        (0, False, False),
        (1, True, False),
        ("1", 1, False),
        (None, False, False),
        (None, {}, False),
        ({}, [], False),
        (2**70, 2**70, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, is_same: bool) -> None:
    assert is_equal(one, other) is is_equal(other, one) is is_same


def test_the_number_of_differences_is_bounded_and_says_so() -> None:
    found, has_more = differences([0] * 10, [1] * 10, limit=3)
    assert (len(found), has_more) == (3, True)
    assert differences([0] * 3, [1] * 3, limit=3)[1] is False


def test_deep_values_are_compared_without_recursion() -> None:
    one: Any = 1
    other: Any = 2
    for _ in range(20_000):
        one, other = [one], [other]
    found, _ = differences(one, other)
    assert found[0].pointer == "/0" * 20_000


@given(VALUES, VALUES)
def test_equal_means_no_difference_and_the_other_way_round(one: Any, other: Any) -> None:
    assert is_equal(one, one)
    there, back = differences(one, other)[0], differences(other, one)[0]
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    as_seen = {(item.pointer, turned[item.kind]) for item in there}
    assert {(item.pointer, item.kind) for item in back} == as_seen
