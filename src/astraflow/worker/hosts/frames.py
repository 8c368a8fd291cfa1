"""The frames between a worker and its hosts (`schemas/biz/host.*`): four bytes of length, then JSON.

A host runs the code of others, so nothing that it writes is believed: a stream that is no frames ends the host, a frame
that is none of ours or of no attempt in that host is counted and dropped.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Raw

from astraflow.protocol import business, limits
from astraflow.protocol.business import Artifact, Chunk, TaskError
from astraflow.protocol.wire import EMPTY_OBJECT, NULL, Count, Name, Text

__all__ = [
    "FRAME_BYTES",
    "About",
    "Answer",
    "BrokenStream",
    "CancelAttempt",
    "Feedback",
    "FromHost",
    "Hello",
    "LoadFailed",
    "Next",
    "Outcome",
    "Splitter",
    "Start",
    "Stop",
    "about",
    "decode",
    "encode",
]

FRAME_BYTES: Final = 8 * 1024 * 1024
"""The largest frame, either way: a result of four MiB with all that comes with it."""
_LENGTH_BYTES: Final = 4


class BrokenStream(Exception):
    """What a host wrote cannot be frames."""


class _Frame(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="type"):
    pass


# -- to the host ----------------------------------------------------------------------------


class Start(_Frame, frozen=True, tag="start"):
    """Run an attempt."""

    task_id: str
    attempt: int
    run_id: str
    node_id: str
    node_type: str
    parameters: Raw
    failures: int = 0
    timeout_ms: int | None = None
    resource_refs: tuple[business.ResourceRef, ...] = ()
    secrets: dict[str, str] | None = None
    traceparent: str | None = None
    chain_index: int | None = None


class CancelAttempt(_Frame, frozen=True, tag="cancel"):
    """Ask an attempt to end."""

    task_id: str
    attempt: int
    reason: str = ""


class Answer(_Frame, frozen=True, tag="answer"):
    """The answer to a `next`."""

    task_id: str
    attempt: int
    request_id: str
    result: Raw = NULL
    error: TaskError | None = None


class Stop(_Frame, frozen=True, tag="stop"):
    """End: there is no work left."""


# -- from the host --------------------------------------------------------------------------

Attempt = Annotated[int, Meta(ge=1, le=limits.INT_MAX)]
Chunks = Annotated[tuple[Chunk, ...], Meta(max_length=limits.MAX_CHUNKS)]
Artifacts = Annotated[tuple[Artifact, ...], Meta(max_length=limits.MAX_ARTIFACTS)]


class Hello(_Frame, frozen=True, tag="hello"):
    """The package is loaded."""

    pid: Annotated[int, Meta(ge=1)]
    node_types: tuple[str, ...]


class LoadFailed(_Frame, frozen=True, tag="broken"):
    """The package cannot be loaded; the host ends."""

    error: TaskError


class Outcome(_Frame, frozen=True, tag="result"):
    """How an attempt ended."""

    task_id: Name
    attempt: Attempt
    status: Literal["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]
    result: Raw = EMPTY_OBJECT
    artifacts: Artifacts = ()
    metrics: dict[Name, float] = {}
    error: TaskError | None = None


class Feedback(_Frame, frozen=True, tag="feedback"):
    """What a running attempt says."""

    task_id: Name
    attempt: Attempt
    stage: Name | None = None
    progress: Annotated[float, Meta(ge=0, le=1)] | None = None
    message: Text | None = None
    chunks: Chunks = ()
    dropped: Count = 0


class Next(_Frame, frozen=True, tag="next"):
    """A middleware calls the rest of its chain."""

    task_id: Name
    attempt: Attempt
    request_id: Name
    chain_index: Count
    payload: Raw = NULL
    timeout_ms: Count | None = None


FromHost = Hello | LoadFailed | Outcome | Feedback | Next


class About(msgspec.Struct, frozen=True):
    """As much of a frame as tells whose it is."""

    task_id: str
    attempt: int
    type: str
    request_id: str = ""


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(FromHost)
_about: Final = msgspec.json.Decoder(About)


def encode(frame: _Frame) -> bytes:
    """A frame with its length."""
    raw = _encoder.encode(frame)
    return len(raw).to_bytes(_LENGTH_BYTES, "big") + raw


def decode(raw: bytes) -> FromHost:
    """Read what a host said.

    Raises:
        msgspec.ValidationError: it is JSON, but none of the frames of a host.
        BrokenStream: it is no JSON.
    """
    try:
        frame: FromHost = _decoder.decode(raw)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BrokenStream(str(problem)) from problem
    return frame


def about(raw: bytes) -> About | None:
    """Whose frame it is that could not be read, if it says so."""
    try:
        return _about.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Splitter:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_unread",)

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, read: bytes) -> list[bytes]:
        """The frames that are now whole.

        Raises:
            BrokenStream: a frame announces more bytes than any may have.
        """
        unread = self._unread + read if self._unread else read
        frames: list[bytes] = []
        at = 0
        end = len(unread)
        while end - at >= _LENGTH_BYTES:
            begin = at + _LENGTH_BYTES
            length = int.from_bytes(unread[at:begin], "big")
            if length > FRAME_BYTES:
                raise BrokenStream(f"a frame of {length} bytes, allowed are {FRAME_BYTES}")
            if end - begin < length:
                break
            at = begin + length
            frames.append(unread[begin:at])
        self._unread = unread[at:]
        return frames
