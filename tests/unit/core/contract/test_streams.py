from __future__ import annotations

import pytest

from astraflow.core.contract.streams import StreamPosition


@pytest.mark.parametrize("text", ["0", "17", "17,A:45", "17,A:45,B:0"])
def test_a_position_reads_as_it_is_written(text: str) -> None:
    position = StreamPosition.read(text)
    assert position is not None
    assert str(position) == text


@pytest.mark.parametrize(
    "text", ["", "x", "1,", "1,A", "1,A:", "1,:1", "1,A:x", "1\n", "1,A:1\n", "1" * 16, "1,A:1,"]
)
def test_what_is_no_position_is_none(text: str) -> None:
    assert StreamPosition.read(text) is None


def test_the_last_place_of_a_run_counts_that_is_named_twice() -> None:
    assert StreamPosition.read("1,A:1,A:2") == StreamPosition(1, {"A": 2})


def test_a_position_without_a_tenant_begins_at_its_first_event() -> None:
    assert str(StreamPosition()) == "0"
