"""The envelope: what every frame of a session has in common.

PROTOCOL §1: one JSON object per text message; required `type id ts tenant sender payload`,
optional `corr seq ack flags`, no other key. The models of the wire refuse unknown fields, which is
the rule for the envelope. In payloads unknown fields are ignored: the codec takes them away before
it decodes again, so that the common case pays nothing for the tolerance.

`ts` is empty in envelopes that the core makes, because the core has no wall clock: the codec
stamps it when the frame is encoded. `payload` holds the typed model of its `type`, or an
`Unreadable`, or (for `ext.*`) the raw bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta, Raw

from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import limits
from astraflow.core.timestamps import parse_iso

if TYPE_CHECKING:
    from astraflow.core.errors import Code

Name = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS)]
"""An id, name, version or code."""
RunName = Annotated[RunId, Meta(min_length=1, max_length=limits.NAME_CHARS)]
TaskName = Annotated[TaskId, Meta(min_length=1, max_length=limits.NAME_CHARS)]
SessionName = Annotated[SessionId, Meta(min_length=1, max_length=limits.NAME_CHARS)]
Text = Annotated[str, Meta(max_length=limits.TEXT_CHARS)]
"""A reason, message or stack."""
Time = Name
"""RFC 3339, within 1970-01-01 … 9999-12-30 UTC. A model that has one calls `check_time` for it when it is made."""
InstanceId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}\Z")]
"""Of a worker: it stands in paths of requests."""
Int = Annotated[int, Meta(ge=limits.INT_MIN, le=limits.INT_MAX)]
"""PROTOCOL §1: integers beyond ±2^53 are refused in protocol fields."""
Count = Annotated[int, Meta(ge=0, le=limits.INT_MAX)]
Seq = Annotated[int, Meta(ge=0, le=limits.SEQ_MAX)]
Bitmap = Annotated[str, Meta(max_length=limits.MAX_WINDOW // 4)]
Flag = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS)]

NOT_A_TIME = "not an RFC 3339 time with zone, from 1970-01-01 to 9999-12-30 UTC"
NOT_A_RESOURCE_ID = "not printable, or with an empty, . or .. part"
_NO_PARTS = frozenset({"", ".", ".."})
EMPTY_OBJECT = Raw(b"{}")
NULL = Raw(b"null")


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all that goes over the wire."""


class MachineAmounts(Wire, frozen=True):
    """Processors, bytes of memory and graphics cards: what a worker has, or a node asks for."""

    cpu: Annotated[float, Meta(ge=0, le=limits.MAX_CPU)] = 0.0
    memory_bytes: Count = 0
    gpu: Annotated[int, Meta(ge=0, le=limits.MAX_CPU)] = 0


def is_resource_id(text: str) -> bool:
    """An id is never used as a path here, but others may do so, and it stands in the path of a request: it has no
    parts that lead elsewhere, and nothing that cannot be seen."""
    is_sized = 0 < len(text) <= limits.NAME_CHARS
    return is_sized and text.isprintable() and not _NO_PARTS.intersection(text.split("/"))


def check_resource_id(text: str) -> None:
    """Raises: ValueError, as `check_time`."""
    if not is_resource_id(text):
        raise ValueError(f"{NOT_A_RESOURCE_ID}: `resource_id`")


def check_time(field: str, text: str | None) -> None:
    """Refuse a payload whose time cannot be kept, shown and sent on.

    Raises:
        ValueError: which the decoder turns into its own refusal, with the place.
    """
    if text is not None and parse_iso(text) is None:
        raise ValueError(f"{NOT_A_TIME}: `{field}`")


class FrameType(NamedTuple):
    """One frame type, declared once: the codec, the directions that peers enforce and the reference follow from it."""

    name: str
    payload: type[Wire]
    receiver: Literal["scheduler", "worker", "both"]
    """Who may receive it; the other side refuses it."""
    authored: str | None = None
    """The field that the author of a workflow wrote: it is carried as it was written, repeated keys included."""


class Sender(Wire, frozen=True):
    """Who sent the frame. The id of a worker is its instance id."""

    role: Name
    id: Name


class AckInfo(Wire, frozen=True):
    """`request` asks for `control.ack {for: id}`; the rest is a window ack that rides along.

    With `window`, `seq` is None before the first committed frame; without it, the last window told stands. Numbers that
    make no sense are left to the window, which ignores them.
    """

    request: bool = False
    seq: Int | None = None
    bitmap: Bitmap = "0"
    window: Int | None = None

    @property
    def is_window_ack(self) -> bool:
        return self.window is not None or self.seq is not None


class WindowInfo(AckInfo, frozen=True, omit_defaults=False):
    """A window ack that rides along, as we write it: every field is there, for the simplest of readers."""


class Envelope(Wire, frozen=True):
    """One frame."""

    type: Name
    id: Name
    ts: Name
    tenant: Name
    sender: Sender
    payload: object
    corr: Name | None = None
    seq: Seq | None = None
    ack: AckInfo | None = None
    flags: Annotated[tuple[Flag, ...], Meta(max_length=limits.MAX_FLAGS)] = ()


class RawEnvelope(Envelope, frozen=True):
    """An envelope whose payload is not read yet."""

    payload: Raw


class OutgoingHead(Wire, frozen=True):
    """An envelope without its payload, in the order in which we write it."""

    type: str
    id: str
    ts: str
    tenant: str
    sender: object
    corr: str | None = None
    seq: int | None = None
    ack: AckInfo | None = None
    flags: tuple[str, ...] = ()


class AttemptRef(Wire, frozen=True):
    """One attempt of one task."""

    task_id: TaskName
    attempt: Annotated[int, Meta(ge=1, le=limits.INT_MAX)]


class Unreadable(msgspec.Struct, frozen=True):
    """Stands in for a payload that does not fit its type, or whose type is unknown.

    The envelope is good, so its seq is consumed and the session lives on; `task_id` and `attempt`
    are what the payload names, if it does, because that attempt fails.
    """

    code: Code
    pointer: str
    message: str
    task_id: TaskId | None = None
    attempt: int | None = None


def is_sequenced(frame_type: str) -> bool:
    """PROTOCOL §1: "Sequenced: `biz.*`, `ext.*`, `control.drain`" and no other."""
    return frame_type.startswith(("biz.", "ext.")) or frame_type == "control.drain"
