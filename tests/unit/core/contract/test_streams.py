from __future__ import annotations

import pytest

from astraflow.core.contract.streams import LanePosition, StreamPosition


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


def test_the_position_of_a_tenant_with_several_lanes_has_a_number_for_each() -> None:
    text = "0:512,1:77,01JCQ6Z0M3V8R6T2XK9D4HB7WN:45"
    position = StreamPosition.read(text)
    assert position == StreamPosition(512, {"01JCQ6Z0M3V8R6T2XK9D4HB7WN": 45}, {1: 77})
    assert str(position) == text
    assert str(StreamPosition(17, {"A": 1}, {})) == "17,A:1"


def test_a_number_from_before_there_were_lanes_is_that_of_the_first() -> None:
    assert LanePosition.read("512") == LanePosition(512)
    assert LanePosition(512).after([0, 1, 2]) == {0: 512, 1: 0, 2: 0}
    assert str(LanePosition.of({0: 512})) == "512"


def test_the_position_in_lanes_is_read_as_it_is_written() -> None:
    for text in ("0", "17", "0:512,1:77", "0:0,3:1,12:999999999999999"):
        found = LanePosition.read(text)
        assert found is not None
        assert str(found) == text
    for text in ("", "x", "1:1", "0:", "0:1,1", "0:1,A:2", "0:1,12345:1", "-1", "9" * 16, "1,2"):
        assert LanePosition.read(text) is None, text
