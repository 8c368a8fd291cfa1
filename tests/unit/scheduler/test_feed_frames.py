"""Frames between nodes: whatever the pieces that they arrive in, and nothing else."""

from __future__ import annotations

import pytest

from astraflow.core.ids import RunId
from astraflow.scheduler.feed import FeedKey
from astraflow.scheduler.feed_frames import (
    Alive,
    BadFeed,
    FeedChange,
    FeedFrameReader,
    FeedGap,
    Frame,
    change_bytes,
    frame_bytes,
    published,
    read_change,
)
from astraflow.store.rows import FactSegment, TenantEvent

SEGMENT = FactSegment(RunId("a"), 1, 3, b"{}\n{}")
EVENT = TenantEvent("acme/1", 7, 12, "run.status", b"{}")


def test_frames_are_read_from_any_pieces() -> None:
    frames: list[Frame] = [Alive(), published([SEGMENT, EVENT, SEGMENT]), FeedGap(), published([])]
    raw = b"".join(map(frame_bytes, frames))
    for size in (1, 2, 5, 17, len(raw)):
        reader = FeedFrameReader()
        pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
        assert [frame for piece in pieces for frame in reader.feed(piece)] == frames


def test_each_kind_keeps_its_order() -> None:
    frame = published([EVENT, SEGMENT, EVENT])
    assert (frame.segments, frame.events) == ([SEGMENT], [EVENT, EVENT])


def test_what_is_no_frame_is_refused() -> None:
    for raw in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x01\xc1", b"\x00\x00\x00\x02\x91\xc0"):
        with pytest.raises(BadFeed):
            list(FeedFrameReader().feed(raw))


def test_a_change_has_a_bound() -> None:
    change = FeedChange([("run", "a"), ("events", "acme")], [("run", "b")])
    assert read_change(change_bytes(change)) == change
    many: list[FeedKey] = [("run", str(number)) for number in range(1_001)]
    for bad in (change_bytes(FeedChange(many)), b"", b"\xc1"):
        with pytest.raises(BadFeed):
            read_change(bad)
