"""What nodes tell one another on an internal stream: frames of a length and a MessagePack value.

The owner of a shard sends `Published`, `FeedGap` and `Alive`; the node that follows sends `FeedChange`, each in a
request of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from astraflow.scheduler.feed import BUFFER_BYTES, FeedKey
from astraflow.store.rows import FactSegment, TenantEvent

NODE_BUFFER_BYTES: Final = 4 * BUFFER_BYTES
"""What waits for one node: it stands for all of its readers."""
MAX_FRAME_BYTES: Final = 4 * NODE_BUFFER_BYTES
"""A frame has what was in the buffer of a node, and names beside it. A longer one is no frame."""
MAX_CHANGES: Final = 1_000
"""Keys of one change: a node with many readers sends several."""
_LENGTH_BYTES: Final = 4


class Published(msgspec.Struct, frozen=True, tag="published", array_like=True):
    """This is committed."""

    segments: list[FactSegment] = []
    events: list[TenantEvent] = []


class FeedGap(msgspec.Struct, frozen=True, tag="gap", array_like=True):
    """More was committed than could wait for this node: it reads the store again."""


class Alive(msgspec.Struct, frozen=True, tag="alive", array_like=True):
    """Nothing was committed for a while."""


class FeedChange(msgspec.Struct, frozen=True):
    """What a node follows from now on, and what it does not follow any more."""

    add: Annotated[list[FeedKey], msgspec.Meta(max_length=MAX_CHANGES)] = []
    drop: Annotated[list[FeedKey], msgspec.Meta(max_length=MAX_CHANGES)] = []


Frame = Published | FeedGap | Alive

_encode: Final = msgspec.msgpack.Encoder().encode
_frame: Final = msgspec.msgpack.Decoder(Frame)
_change: Final = msgspec.msgpack.Decoder(FeedChange)


class BadFeed(Exception):
    """What came is no frame."""


def frame_bytes(frame: Frame) -> bytes:
    body = _encode(frame)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def published(items: Iterable[FactSegment | TenantEvent]) -> Published:
    """A frame of what was committed, each kind in its order."""
    frame = Published([], [])
    for one in items:
        if isinstance(one, FactSegment):
            frame.segments.append(one)
        else:
            frame.events.append(one)
    return frame


def change_bytes(change: FeedChange) -> bytes:
    return _encode(change)


def read_change(body: bytes) -> FeedChange:
    """Raises: BadFeed."""
    try:
        return _change.decode(body)
    except msgspec.DecodeError as error:
        raise BadFeed(str(error)) from error


class FeedFrameReader:
    """Bytes in, frames out."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Raises: BadFeed."""
        rest = self._rest
        rest += piece
        while len(rest) >= _LENGTH_BYTES:
            length = int.from_bytes(rest[:_LENGTH_BYTES], "big")
            if length > MAX_FRAME_BYTES:
                raise BadFeed(f"a frame of {length} bytes")
            end = _LENGTH_BYTES + length
            if len(rest) < end:
                return
            body = bytes(rest[_LENGTH_BYTES:end])
            del rest[:end]
            try:
                frame = _frame.decode(body)
            except msgspec.DecodeError as error:
                raise BadFeed(str(error)) from error
            yield frame
