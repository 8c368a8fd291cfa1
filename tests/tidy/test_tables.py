"""A table that is walked in one test hides no row."""

from __future__ import annotations

import pytest

from tests.tables import each_row


def test_every_row_is_tried_and_all_that_fail_are_reported() -> None:
    seen = []

    @each_row("number, word", [(1, "one"), (2, "wrong"), (3, "three"), (4, "bad")])
    def check(number: int, word: str, names: dict[int, str]) -> None:
        seen.append(number)
        assert names[number] == word

    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows failed") as failed:
        check(names={1: "one", 2: "two", 3: "three", 4: "four"})
    assert seen == [1, 2, 3, 4]
    noted = [error.__notes__ for error in failed.value.exceptions]
    assert noted == [["row: (2, 'wrong')"], ["row: (4, 'bad')"]]


def test_a_row_that_raises_nothing_where_it_should_is_reported() -> None:
    @each_row("text", ["1", "x"])
    def check(text: str) -> None:
        with pytest.raises(ValueError):
            int(text)

    with pytest.raises(BaseExceptionGroup, match="1 of 2 rows failed"):
        check()


def test_a_table_without_a_row_is_refused() -> None:
    with pytest.raises(AssertionError, match="tests nothing"):
        each_row("text", [])
