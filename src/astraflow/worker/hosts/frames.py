"""The frames between a worker and its hosts (`schemas/host/`): four bytes of length, then JSON.

A host runs package code, so its output is not trusted: an invalid stream ends the host; an unknown frame, or a frame of
an attempt that is not in that host, is counted and dropped.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Raw

from astraflow.core.ids import TaskId
from astraflow.core.protocol import business, limits
from astraflow.core.protocol.business import AttemptError, FeedbackChunk, ResultArtifact
from astraflow.core.protocol.wire import EMPTY_OBJECT, NULL, Count, Name, TaskName, Text

FRAME_BYTES: Final = 8 * 1024 * 1024
"""The largest frame, either way: a result of four MiB with all that comes with it."""
_LENGTH_BYTES: Final = 4


class BrokenStream(Exception):
    """The output of a host is not a stream of frames."""


class _Frame(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="type"):
    pass


# -- to the host ----------------------------------------------------------------------------


class Handle(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource that an attempt leases. Times are wall-clock milliseconds."""

    resource_id: str
    type: str
    scope: str
    token: str
    state: str = "ready"
    path: str | None = None
    """Where the file is; none for an object, which the host finds by its token."""
    metadata: Raw = EMPTY_OBJECT
    size_bytes: int = 0
    checksum: str | None = None
    created_at: int = 0
    expires_at: int = 0
    in_use_count: int = 0
    run_id: str | None = None
    node_id: str | None = None


class _ToAttempt(_Frame, frozen=True):
    task_id: TaskId
    attempt: int


class HostStart(_ToAttempt, frozen=True, tag="start"):
    """Run an attempt."""

    run_id: str
    node_id: str
    node_type: str
    parameters: Raw
    data_dir: str
    """Where this attempt alone may write; the host makes the folder when the handler asks for it."""
    failures: int = 0
    timeout_ms: int | None = None
    resource_refs: tuple[business.RequiredResource, ...] = ()
    secrets: dict[str, str] | None = None
    traceparent: str | None = None
    chain_index: int | None = None
    leased: tuple[Handle, ...] = ()
    host_node_id: str | None = None
    middleware_chain: tuple[str, ...] = ()
    host: business.WrappedHost | None = None


class HostCancel(_ToAttempt, frozen=True, tag="cancel"):
    """Ask an attempt to end."""

    reason: str = ""


class HostAnswer(_ToAttempt, frozen=True, tag="answer"):
    """The answer to a `next`."""

    request_id: str
    result: Raw = NULL
    error: AttemptError | None = None


class HostLeased(_ToAttempt, frozen=True, tag="leased"):
    """The answer to a `lease`."""

    request_id: str
    handle: Handle | None = None
    error: AttemptError | None = None


class HostClose(_Frame, frozen=True, tag="close"):
    """Close an object that is kept in the host, and say so."""

    token: str


class HostStop(_Frame, frozen=True, tag="stop"):
    """End: there is no work left."""


# -- from the host --------------------------------------------------------------------------

Attempt = Annotated[int, Meta(ge=1, le=limits.INT_MAX)]
Chunks = Annotated[tuple[FeedbackChunk, ...], Meta(max_length=limits.MAX_CHUNKS)]
Artifacts = Annotated[tuple[ResultArtifact, ...], Meta(max_length=limits.MAX_ARTIFACTS)]


class _OfAttempt(_Frame, frozen=True):
    task_id: TaskName
    attempt: Attempt


class HostHello(_Frame, frozen=True, tag="hello"):
    """The package is loaded."""

    pid: Annotated[int, Meta(ge=1)]
    node_types: tuple[str, ...]


class HostBroken(_Frame, frozen=True, tag="broken"):
    """The package cannot be loaded; the host ends."""

    error: AttemptError


class HostResult(_OfAttempt, frozen=True, tag="result"):
    """How an attempt ended."""

    status: Literal["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]
    result: Raw = EMPTY_OBJECT
    artifacts: Artifacts = ()
    metrics: business.Gauges = {}
    error: AttemptError | None = None
    folder: bool = True
    """Whether the attempt may have made its folder."""


class HostFeedback(_OfAttempt, frozen=True, tag="feedback"):
    """What a running attempt says."""

    stage: Name | None = None
    progress: Annotated[float, Meta(ge=0, le=1)] | None = None
    message: Text | None = None
    chunks: Chunks = ()
    metrics: business.Gauges = {}
    dropped: Count = 0


class HostNext(_OfAttempt, frozen=True, tag="next"):
    """A middleware calls the rest of its chain."""

    request_id: Name
    chain_index: Count
    payload: Raw = NULL
    timeout_ms: Count | None = None


Token = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
"""One registration of a resource: the name of its folder, or of its object in the host."""


class HostRegister(_OfAttempt, frozen=True, tag="register"):
    """The attempt has made a resource: a file in a folder of the worker, or an object that the host keeps."""

    resource_id: Name
    kind: Literal["file", "memory"]
    resource_type: Name
    token: Token
    scope: Name | None = None
    metadata: Raw = EMPTY_OBJECT
    size_bytes: Count = 0
    ttl_s: Annotated[float, Meta(gt=0)] | None = None
    expires_at: Count | None = None
    name: Name = "file"
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    mtime_ns: Annotated[int, Meta(ge=0)] = 0
    shares: Token | None = None
    """An earlier registration of the same object: it takes its room once."""


class HostLease(_OfAttempt, frozen=True, tag="lease"):
    """The attempt wants to use a resource that did not come with it."""

    request_id: Name
    resource_id: Name


class HostUse(_OfAttempt, frozen=True, tag="use"):
    """What else an attempt does with resources. Nothing answers; what is wrong becomes the failure of the attempt."""

    action: Literal["touch", "release", "evict", "release_scope", "gc"]
    resource_id: Name | None = None
    scope: Name | None = None
    expires_at: Count | None = None
    reason: Text = ""


class HostClosed(_Frame, frozen=True, tag="closed"):
    """An object is closed, or its `close` has failed: it is dropped either way."""

    token: Token
    error: Text | None = None


ToHost = HostStart | HostCancel | HostAnswer | HostLeased | HostClose | HostStop
FromHost = (
    HostHello
    | HostBroken
    | HostResult
    | HostFeedback
    | HostNext
    | HostRegister
    | HostLease
    | HostUse
    | HostClosed
)


class About(msgspec.Struct, frozen=True):
    """The part of a frame that names its attempt."""

    task_id: TaskId
    attempt: int
    type: str
    request_id: str = ""


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(FromHost)
_about: Final = msgspec.json.Decoder(About)


def encode(frame: ToHost) -> bytes:
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

    __slots__ = ("_held", "_parts", "_wanted")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a frame that is not whole: joined once
        self._held = 0  # how many bytes they have
        self._wanted = 0  # and how many it takes to go on

    def feed(self, read: bytes) -> list[bytes]:
        """The frames that are now whole.

        Raises:
            BrokenStream: a frame announces more bytes than any may have.
        """
        self._parts.append(read)
        self._held += len(read)
        if self._held < self._wanted:
            return []
        unread = b"".join(self._parts)
        frames: list[bytes] = []
        at, end = 0, len(unread)
        self._wanted = _LENGTH_BYTES
        while end - at >= _LENGTH_BYTES:
            begin = at + _LENGTH_BYTES
            length = int.from_bytes(unread[at:begin], "big")
            if length > FRAME_BYTES:
                raise BrokenStream(f"a frame of {length} bytes, allowed are {FRAME_BYTES}")
            if end - begin < length:
                self._wanted = _LENGTH_BYTES + length
                break
            at = begin + length
            frames.append(unread[begin:at])
        self._parts = [unread[at:]] if at < end else []
        self._held = end - at
        return frames
