"""Streams of bytes become frames, however they are cut, or the stream is broken."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.ids import TaskId
from astraflow.worker.hosts import frames
from tests.tables import each_row

HELLO = frames.HostHello(7, ("core.noop",))


@given(st.lists(st.binary(max_size=20), max_size=6), st.lists(st.integers(0, 200), max_size=5))
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = frames.Splitter()
    found: list[bytes] = []
    for begin, end in pairwise(edges):
        found += splitter.feed(stream[begin:end])
    assert found == bodies


def test_a_length_beyond_the_limit_breaks_the_stream_before_it_is_read() -> None:
    splitter = frames.Splitter()
    assert splitter.feed(b"\0\0") == []
    with pytest.raises(frames.BrokenStream, match="16777216 bytes"):
        frames.Splitter().feed(b"\1\0\0\0")


def test_what_was_encoded_is_decoded() -> None:
    (raw,) = frames.Splitter().feed(frames.encode(HELLO))  # type: ignore[arg-type]  # a host's frame
    assert frames.decode(raw) == HELLO


DEEP = b'{"type":"result","task_id":"t","attempt":1,"status":"SUCCEEDED","result":' + b"[" * 100_000


@each_row("raw", [b"", b"{", b"nonsense", b'{"type": "\xff"}', DEEP])
def test_what_is_no_json_breaks_the_stream(raw: bytes) -> None:
    with pytest.raises(frames.BrokenStream):
        frames.decode(raw)
    assert frames.about(raw) is None


def test_json_that_is_no_frame_may_still_tell_whose_it_is() -> None:
    raw = b'{"type":"result","task_id":"t","attempt":3,"status":"PERHAPS"}'
    with pytest.raises(msgspec.ValidationError):
        frames.decode(raw)
    assert frames.about(raw) == frames.About(TaskId("t"), 3, "result")
    assert frames.about(b"[1]") is None
