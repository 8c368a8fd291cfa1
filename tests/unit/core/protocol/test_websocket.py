"""WebSocket frames out of a stream of bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.protocol import limits
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.websocket import (
    CLOSE,
    NOTHING,
    PING,
    PONG,
    TEXT,
    FrameReader,
    close_bytes,
    masked_text,
    text_head,
)
from tests.tables import each_row

KEY = b"\x01\xfe\x30\x7f"


def written(first: int, payload: bytes, *, is_masked: bool = True) -> bytes:
    """A frame as RFC 6455 §5.2 has it."""
    size = len(payload)
    bit = 0x80 if is_masked else 0
    if size < 126:
        head = bytes((first, bit | size))
    elif size < 65_536:
        head = bytes((first, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, bit | 127)) + size.to_bytes(8, "big")
    if not is_masked:
        return head + payload
    return head + KEY + bytes(one ^ KEY[at % 4] for at, one in enumerate(payload))


def read_all(reader: FrameReader, raw: bytes, piece: int = 1 << 20) -> list[tuple[int, bytes]]:
    frames = []
    for start in range(0, len(raw), piece):
        reader.feed(raw[start : start + piece])
        while (frame := reader.next()) is not None:
            frames.append(frame)
    return frames


def refused(raw: bytes, limit: int = 1000, *, is_masked: bool = True) -> int:
    with pytest.raises(BadFrame) as caught:
        read_all(FrameReader(limit, is_masked=is_masked), raw)
    return caught.value.close_code


@given(
    texts=st.lists(st.binary(max_size=300), max_size=8),
    piece=st.integers(1, 700),
    is_masked=st.booleans(),
)
def test_messages_are_read_however_the_bytes_arrive(
    texts: list[bytes], piece: int, is_masked: bool
) -> None:
    raw = b"".join(written(0x81, text, is_masked=is_masked) for text in texts)
    reader = FrameReader(1000, is_masked=is_masked)
    assert read_all(reader, raw, piece) == [(TEXT, text) for text in texts]


@each_row("size", [0, 125, 126, 65_535, 65_536, 200_000])
def test_every_length_is_read_and_written(size: int) -> None:
    text = b"x" * size
    assert read_all(FrameReader(size, is_masked=True), written(0x81, text), 50_000) == [
        (TEXT, text)
    ]
    assert read_all(FrameReader(size, is_masked=False), text_head(size) + text) == [(TEXT, text)]


def test_what_was_read_is_let_go() -> None:
    reader = FrameReader(limits.MAX_FRAME_BYTES, is_masked=True)
    frame = written(0x81, b"x" * 1000)
    for _ in range(1000):
        reader.feed(frame + frame[:10])
        assert reader.next() == (TEXT, b"x" * 1000)
        reader.feed(frame[10:])
        assert reader.next() == (TEXT, b"x" * 1000)
    assert len(reader._buffer) < 200_000


def test_a_message_in_parts_may_have_control_frames_between() -> None:
    raw = (
        written(0x01, b"ab")
        + written(0x89, b"beat")
        + written(0x00, b"")
        + written(0x8A, b"")
        + written(0x80, b"cd")
        + written(0x81, b"next")
    )
    assert read_all(FrameReader(100, is_masked=True), raw) == [
        (NOTHING, b""),
        (PING, b"beat"),
        (NOTHING, b""),
        (PONG, b""),
        (TEXT, b"abcd"),
        (TEXT, b"next"),
    ]


def test_a_close_is_given_with_its_code() -> None:
    for raw, code in (
        (written(0x88, b"\x03\xe8bye"), 1000),
        (written(0x88, b""), 1005),
    ):
        assert read_all(FrameReader(100, is_masked=True), raw) == [(CLOSE, code.to_bytes(2, "big"))]
    assert read_all(FrameReader(100, is_masked=False), close_bytes(1008)) == [(CLOSE, b"\x03\xf0")]


@each_row(
    "raw",
    [
        written(0xC1, b"{}"),
        written(0xA1, b"{}"),
        written(0x91, b"{}"),
        written(0x83, b""),
        written(0x8F, b""),
        written(0x82, b"{}"),
        written(0x80, b"{}"),
        written(0x00, b"{}"),
        written(0x01, b"{") + written(0x81, b"}"),
        written(0x01, b"{") + written(0x01, b"}"),
        written(0x09, b""),
        written(0x89, b"x" * 126),
        written(0x88, b"x"),
        written(0x81, b"{}", is_masked=False),
    ],
)
def test_what_the_standard_forbids_is_refused(raw: bytes) -> None:
    assert refused(raw) == limits.CLOSE_PROTOCOL_ERROR


def test_a_mask_of_a_server_is_refused() -> None:
    assert refused(written(0x81, b"{}"), is_masked=False) == limits.CLOSE_PROTOCOL_ERROR


def test_a_size_is_refused_when_it_is_announced() -> None:
    assert refused(written(0x81, b"x" * 1001)[:4]) == limits.CLOSE_TOO_BIG
    assert refused(b"\x81\xff" + b"\xff" * 8) == limits.CLOSE_TOO_BIG
    assert refused(written(0x01, b"x" * 600) + written(0x00, b"x" * 600)[:4]) == (
        limits.CLOSE_TOO_BIG
    )


def test_parts_have_a_bound() -> None:
    raw = written(0x01, b"") + written(0x00, b"") * limits.MAX_FRAGMENTS
    assert refused(raw) == limits.CLOSE_POLICY
    whole = written(0x01, b"") + written(0x00, b"") * (limits.MAX_FRAGMENTS - 2)
    frames = read_all(FrameReader(10, is_masked=True), whole + written(0x80, b"x"))
    assert frames[-1] == (TEXT, b"x")


@given(texts=st.lists(st.binary(max_size=300), max_size=8), key=st.binary(min_size=4, max_size=4))
def test_what_a_client_masks_is_read_back(texts: list[bytes], key: bytes) -> None:
    raw = b"".join(masked_text(text, key) for text in texts)
    assert read_all(FrameReader(1000, is_masked=True), raw) == [(TEXT, text) for text in texts]


@each_row("size", [0, 125, 126, 65_535, 65_536, 200_000])
def test_a_masked_text_of_any_size_is_as_the_standard_has_it(size: int) -> None:
    payload = bytes(at % 251 for at in range(size))
    assert masked_text(payload, KEY) == written(0x81, payload)


def test_the_rest_is_what_came_after_the_last_message_to_the_byte() -> None:
    first, rest = written(0x81, b"first"), written(0x81, b"second")[:-1]
    for piece in (1, 3, 1000):
        reader = FrameReader(1000, is_masked=True)
        whole = first + rest
        for at in range(0, len(whole), piece):
            reader.feed(whole[at : at + piece])
        assert reader.next() == (TEXT, b"first")
        assert reader.take_rest() == rest
        assert reader.take_rest() == b""
        assert reader.next() is None


def test_a_message_that_has_begun_is_no_rest() -> None:
    reader = FrameReader(1000, is_masked=True)
    reader.feed(written(0x01, b"a part"))
    assert reader.next() == (NOTHING, b"")
    with pytest.raises(AssertionError):
        reader.take_rest()
