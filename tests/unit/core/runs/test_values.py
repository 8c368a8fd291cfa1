"""What tasks are given: a large result is decoded once for those that read it one after the other."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core.expressions.stored_value import StoredValue
from astraflow.core.runs import values

LARGE = msgspec.Raw(msgspec.json.encode({"value": "x" * values.LARGE_BYTES}))


def test_a_large_result_is_decoded_once_for_all_that_read_it_in_a_row() -> None:
    decoded: list[msgspec.Raw] = []

    def decode(raw: msgspec.Raw) -> object:
        decoded.append(raw)
        return msgspec.json.decode(raw)

    last = values._LastRead(decode)
    other = msgspec.Raw(bytes(LARGE))
    assert last.read(LARGE) is last.read(LARGE)
    assert last.read(other) == last.read(LARGE)
    assert decoded == [LARGE, other, LARGE]


@pytest.mark.parametrize("size", [0, values.LARGEST_BYTES])
def test_a_small_result_and_one_that_would_take_much_memory_are_decoded_for_each(size: int) -> None:
    raw = msgspec.Raw(b'{"value":["%b"]}' % (b"x" * size))
    assert values._plain.read(raw) is not values._plain.read(raw)


def test_what_is_stored_by_reference_is_read_as_such_in_a_large_result() -> None:
    ref = {"resourceRef": {"resourceId": "r1", "type": "astraflow.value"}}
    raw = msgspec.Raw(msgspec.json.encode({"far": ref, "near": "x" * values.LARGE_BYTES}))
    assert isinstance(values._readable.read(raw)["far"], StoredValue)
    assert values._plain.read(raw)["far"] == ref
