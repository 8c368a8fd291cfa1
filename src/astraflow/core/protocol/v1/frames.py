"""The frames of protocol 1: their names, the envelope, and the payloads that the adapter itself reads.

The payloads of reports (`result`, `feedback`, …) are those of `biz.*` without `attempt`, which `seq` stands for: the
adapter adds it, and the codec of protocol 2 judges them. Unknown fields are ignored everywhere, in the envelope too.
An optional field that is null is as one that is absent.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Raw

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import control, limits, scan
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.wire import NOT_A_TIME, Count, Flag, Int, Name, Seq, TaskName, Text
from astraflow.core.timestamps import parse_iso

HANDSHAKE: Final = "handshake"
REGISTER: Final = "register"
ACK: Final = "ack"
HEARTBEAT: Final = "heartbeat"
DISPATCH: Final = "cmd.dispatch"
DRAIN: Final = "cmd.drain"
FEEDBACK: Final = "feedback"
RESULT: Final = "result"
ERROR: Final = "error"
COMMAND_ERROR: Final = "command.error"
PKG_INSTALL: Final = "pkg.install"
PKG_UNINSTALL: Final = "pkg.uninstall"
PKG_EVENT: Final = "pkg.event"
NEXT_REQUEST: Final = "middleware.next_request"
NEXT_RESPONSE: Final = "middleware.next_response"

V1_TYPES: Final = frozenset(
    {
        *(HANDSHAKE, REGISTER, ACK, HEARTBEAT, DISPATCH, DRAIN, FEEDBACK, RESULT, ERROR),
        *(COMMAND_ERROR, PKG_INSTALL, PKG_UNINSTALL, PKG_EVENT, NEXT_REQUEST, NEXT_RESPONSE),
    }
)

DEFAULT_TIMEOUT_S: Final = 3600.0
"""PROTOCOL §8: "a node timeout is mandatory (default 1 h)": a lease of a worker that is alive never ends by itself."""
TIMEOUT_SLACK_S: Final = 15.0
"""For the worker to report its own timeout first."""
PROTOCOL: Final = 1


class V1Sender(msgspec.Struct, frozen=True):
    """Who sent the frame."""

    role: Name
    id: Name


class V1AckRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the sender wants an `ack` of its own."""

    request: bool | None = False


class V1Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """One frame. The payload is read by its type."""

    type: Name
    id: Name
    ts: Name
    tenant: Name
    sender: V1Sender
    payload: Raw
    corr: Name | None = None
    seq: Seq | None = None
    ack: V1AckRequest | None = None
    flags: Annotated[tuple[Flag, ...], Meta(max_length=limits.MAX_FLAGS)] | None = ()

    @property
    def asks(self) -> bool:
        return self.ack is not None and self.ack.request is True


class V1Auth(msgspec.Struct, frozen=True):
    """How the worker proves who it is."""

    mode: Name = "token"
    token: control.Token | None = None
    fingerprint: Name | None = None


class V1Worker(msgspec.Struct, frozen=True):
    """What a worker says of itself. What is missing follows from `sender.id`."""

    worker_instance_id: Name | None = None
    incarnation: Count = 0
    worker_name: Name | None = None
    version: Name = "1"
    hostname: Name = "-"


class V1Handshake(msgspec.Struct, frozen=True):
    """The first frame; in an open session it presents a new token."""

    protocol: Int
    auth: V1Auth
    worker: V1Worker = V1Worker()
    worker_id: Name | None = None
    worker_name: Name | None = None


class V1Concurrency(msgspec.Struct, frozen=True):
    max_parallel: control.Positive = 1
    per_node_limits: Annotated[dict[Name, Count], Meta(max_length=limits.MAX_PACKAGES)] = (
        msgspec.field(default_factory=dict)
    )


class V1Capabilities(msgspec.Struct, frozen=True):
    concurrency: V1Concurrency = V1Concurrency()
    runtimes: control.Names | None = None
    features: control.Names = ()


class V1Package(msgspec.Struct, frozen=True):
    name: Name
    version: Name
    status: Name = "installed"
    manifest_sha256: Annotated[str, Meta(max_length=limits.NAME_CHARS)] | None = None


class V1TaskRef(msgspec.Struct, frozen=True):
    task_id: TaskName


class V1Register(msgspec.Struct, frozen=True):
    """What a worker can do. With `inflight` only those tasks are rebound, without it all that are leased to it."""

    capabilities: V1Capabilities = V1Capabilities()
    payload_types: control.Names = ()
    packages: Annotated[tuple[V1Package, ...], Meta(max_length=limits.MAX_PACKAGES)] = ()
    labels: control.Labels = msgspec.field(default_factory=dict)
    inflight: Annotated[tuple[V1TaskRef, ...], Meta(max_length=limits.MAX_INVENTORY)] | None = None


class V1Problem(msgspec.Struct, frozen=True):
    """Why a command was not taken."""

    code: Name
    message: Text = ""


class V1Ack(msgspec.Struct, frozen=True, rename={"for_": "for"}):
    """The command `for` was taken, or not: then `ok` is false, or `error` says why."""

    for_: Name
    ok: bool = True
    error: V1Problem | Name | None = None


class V1Error(msgspec.Struct, frozen=True, rename={"for_": "for"}):
    """Something could not be used: the frame `for`, or the command of the task `corr`."""

    code: Name
    message: Text = ""
    for_: Name | None = None


class LeasedAttempt(NamedTuple):
    """An attempt that is leased to a worker and that the worker has acknowledged."""

    run_id: RunId
    task_id: TaskId
    attempt: int
    has_timeout: bool
    """Whether its node has a timeout, which the engine keeps."""


class _Opening(msgspec.Struct, frozen=True):
    type: str


_decode_opening: Final = msgspec.json.Decoder(_Opening).decode
_decode_envelope: Final = msgspec.json.Decoder(V1Envelope).decode
_encode: Final = msgspec.json.Encoder().encode


def is_v1_opening(raw: bytes) -> bool:
    """Whether the first frame of a connection without a subprotocol is of protocol 1. What cannot be read is not."""
    try:
        return _decode_opening(raw).type in V1_TYPES
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def decode_v1(raw: bytes, *, max_bytes: int = limits.MAX_FRAME_BYTES) -> V1Envelope:
    """Read one message.

    Raises:
        BadFrame: it is not a frame; the connection must end.
    """
    if len(raw) > max_bytes:
        raise BadFrame(limits.CLOSE_TOO_BIG, f"the frame is larger than allowed: {max_bytes} bytes")
    problem = scan.problem_in(raw, 0)
    if problem is not None:
        raise BadFrame(limits.CLOSE_BAD_TEXT, problem)
    try:
        frame = _decode_envelope(raw)
        is_repeated = scan.has_duplicate_key(raw)
    except msgspec.ValidationError as error:
        reason = str(error)[: limits.NAME_CHARS]
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, reason) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFrame(limits.CLOSE_BAD_TEXT, "not JSON") from error
    if is_repeated:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "a key stands twice")
    if parse_iso(frame.ts) is None:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, NOT_A_TIME, pointer="/ts")
    return frame


def encode_v1(frame: V1Envelope) -> bytes:
    return _encode(frame)
