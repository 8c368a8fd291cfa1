"""From bytes to envelopes and back.

Reading goes one of two ways that give the same answer. The quick way takes a frame as our own peers
write it: the payload is the last member, so the text is cut in two there, the envelope and the
payload are decoded straight into their models, and a few scans prove that nothing else is hidden in
it. If anything is unusual (other spacing, unknown fields, escapes in the envelope, something wrong)
the slow way decides, which checks one rule after the other and says what is wrong.

Why the cut is sound: if `head + "}"` is an object and `tail` is a value, then
`head + ',"payload":' + tail + "}"` is an object with exactly those members. Why counting quotes
finds repeated keys: every key and every string of the head has two, and a repeated key or an
escaped quote can only add to the number that the decoded members account for.

PROTOCOL §1: a bad *frame* ends the connection (`BadFrame`); a bad *payload* does not, so that its
seq can be consumed: the payload becomes an `Unreadable`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Raw

from astraflow import errors
from astraflow.protocol import business, control, limits, scan
from astraflow.protocol.shapes import Shape, known_only, shape_of
from astraflow.protocol.wire import AckInfo, Envelope, Unreadable, Wire

__all__ = [
    "BadFrame",
    "Unsendable",
    "check_outgoing",
    "decode",
    "encode",
]


class BadFrame(errors.RemoteProtocolError):
    """The message is not a frame. Answer with `control.reset` and close with `close_code`."""

    def __init__(self, close_code: int, reason: str, *, pointer: str | None = None) -> None:
        super().__init__(errors.PROTOCOL_BAD_FRAME, reason, pointer=pointer)
        self.close_code = close_code
        self.reason = reason


class Unsendable(errors.LocalProtocolError):
    """The receiver would refuse this frame: send a failure in its place."""


_MODELS: Final[dict[str, type[Wire]]] = {**control.TYPES, **business.TYPES}
_DECODE_PAYLOAD: Final = {
    name: msgspec.json.Decoder(model).decode for name, model in _MODELS.items()
}
_SHAPES: Final[dict[str, Shape]] = {name: shape_of(model) for name, model in _MODELS.items()}
# What these models accept needs no second look: no part of it was skipped.
_FULLY_TYPED: Final = frozenset(name for name, shape in _SHAPES.items() if not shape.has_raw)


class _RawEnvelope(Envelope, frozen=True):
    payload: Raw


_decode_envelope: Final = msgspec.json.Decoder(Envelope).decode
_decode_raw_envelope: Final = msgspec.json.Decoder(_RawEnvelope).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_set: Final = msgspec.structs.force_setattr

_is_id: Final = re.compile(
    r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
).fullmatch
_is_rfc3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_parse_time: Final = datetime.fromisoformat

_PAYLOAD_KEY: Final = b',"payload":'
_NO_PAYLOAD: Final = b',"payload":0}'
_AFTER_KEY: Final = len(_PAYLOAD_KEY)
_CLOSING: Final = ord("}")
_BACKSLASH: Final = ord("\\")
# `type id ts tenant sender role id`, of which all but `sender` are strings: 7 keys, 6 values.
_HEAD_QUOTES: Final = 2 * (7 + 6)
# Depth of a payload's own text, and of a field of it.
_PAYLOAD_LEVEL: Final = 1
_FIELD_LEVEL: Final = 2


def decode(raw: bytes, *, max_bytes: int = limits.MAX_FRAME_BYTES) -> Envelope:
    """Read one message.

    Raises:
        BadFrame: it is not a frame; the connection must end.
    """
    if len(raw) > max_bytes:
        raise BadFrame(limits.CLOSE_TOO_BIG, f"the frame is larger than allowed: {max_bytes} bytes")
    cut = raw.find(_PAYLOAD_KEY)
    if cut < 0 or raw[-1] != _CLOSING:
        return _decode_slowly(raw)
    try:
        envelope = _decode_envelope(raw[:cut] + _NO_PAYLOAD)
        tail = raw[cut + _AFTER_KEY : -1]
        payload = _DECODE_PAYLOAD[envelope.type](tail)
        _parse_time(envelope.ts)
    except (KeyError, ValueError, msgspec.DecodeError, RecursionError):
        return _decode_slowly(raw)
    ts = envelope.ts
    # What parses, has this length and these marks is `YYYY-MM-DDThh:mm:ss.sssZ` and nothing else.
    if len(ts) != 24 or ts[7:20:3] != "-T::." or ts[-1] != "Z":
        return _decode_slowly(raw)
    if _is_id(envelope.id) is None:
        return _decode_slowly(raw)
    quotes = raw.count(b'"', 0, cut)
    if quotes != _quotes_of(envelope) and quotes != _quotes_written_out(envelope, raw[:cut]):
        return _decode_slowly(raw)
    if _BACKSLASH in raw and (raw.find(b"\\", 0, cut) >= 0 or not _is_sound_text(tail)):
        return _decode_slowly(raw)
    if type(payload) is business.Dispatch and not payload.resource_refs:
        is_sound = scan.problem_in(bytes(payload.parameters), _FIELD_LEVEL) is None
    else:
        is_sound = _is_sound(envelope.type, payload, tail)
    if not is_sound:
        return _decode_slowly(raw)
    _set(envelope, "payload", payload)
    return envelope


def encode(envelope: Envelope, ts: str) -> bytes:
    """Write one frame, stamped with the time `ts` (RFC 3339 with zone).

    The payload goes last, which is what the quick way of `decode` looks for.
    """
    payload = envelope.payload
    head = _encode(
        _OutgoingHead(
            envelope.type,
            envelope.id,
            ts,
            envelope.tenant,
            envelope.sender,
            envelope.corr,
            envelope.seq,
            envelope.ack,
            envelope.flags,
        )
    )
    return b"".join((head[:-1], _PAYLOAD_KEY, _encode(payload), b"}"))


def check_outgoing(
    frame_type: str, payload: object, *, max_bytes: int = limits.MAX_FRAME_BYTES
) -> bytes:
    """Run the receiver's check on a payload before its frame gets a seq; returns its encoding.

    PROTOCOL §1: "the **sender** runs the receiver's frame check before a frame gets a seq. A result
    that fails it becomes FAILED `E.RESULT.INVALID` / `E.RESULT.TOO_LARGE`".

    Raises:
        Unsendable: with one of those two codes.
    """
    try:
        text = _encode(payload)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unsendable(errors.RESULT_INVALID, f"cannot be written as JSON: {error}") from error
    allowed = max_bytes - limits.ENVELOPE_ROOM_BYTES
    if len(text) > allowed:
        raise Unsendable(
            errors.RESULT_TOO_LARGE, f"{len(text)} bytes, more than a frame may carry: {allowed}"
        )
    problem = scan.problem_in(text, _PAYLOAD_LEVEL)
    if problem is not None:
        raise Unsendable(errors.RESULT_INVALID, problem)
    try:
        read = _read_payload(frame_type, Raw(text))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unsendable(errors.RESULT_INVALID, f"not JSON: {error}") from error
    if isinstance(read, Unreadable):
        raise Unsendable(errors.RESULT_INVALID, read.message, pointer=read.pointer)
    return text


class _OutgoingHead(Wire, frozen=True):
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


def _quotes_of(envelope: Envelope) -> int:
    """How many quotes the head of this envelope has, written without repeated keys."""
    quotes = _HEAD_QUOTES
    if envelope.corr is not None:
        quotes += 4
    if envelope.seq is not None:
        quotes += 2
    ack = envelope.ack
    if ack is not None:
        quotes += 2 + 2 * (ack.request + (ack.seq is not None) + (ack.window is not None))
        if ack.bitmap != "0":
            quotes += 4
    if envelope.flags:
        quotes += 2 + 2 * len(envelope.flags)
    return quotes


def _quotes_written_out(envelope: Envelope, head: bytes) -> int:
    """The same, with the members that are written out although they have their default.

    `"flags":` with its colon can only be a key: inside of a string its quotes would be escaped.
    """
    quotes = _quotes_of(envelope)
    if not envelope.flags and head.find(b'"flags":') >= 0:
        quotes += 2
    if envelope.corr is None and head.find(b'"corr":') >= 0:
        quotes += 2
    ack = envelope.ack
    if ack is not None:
        if not ack.request and head.find(b'"request":') >= 0:
            quotes += 2
        if ack.bitmap == "0" and head.find(b'"bitmap":') >= 0:
            quotes += 4
    return quotes


def _is_sound_text(tail: bytes) -> bool:
    return scan.problem_in(tail, _PAYLOAD_LEVEL) is None


def _is_sound(frame_type: str, payload: Wire, tail: bytes) -> bool:
    """Whether a payload that fits its type hides nothing in what was skipped."""
    if frame_type.startswith("control."):
        # Exactly what we would write has no key twice.
        return bool(_encode(payload) == tail)
    return frame_type in _FULLY_TYPED or _is_sound_text(tail)


def _decode_slowly(raw: bytes) -> Envelope:
    problem = scan.problem_in(raw, 0)
    if problem is not None:
        raise BadFrame(limits.CLOSE_BAD_TEXT, problem)
    try:
        read = _decode_raw_envelope(raw)
    except msgspec.ValidationError as error:
        reason, pointer = _explain(error, "")
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, reason, pointer=pointer) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFrame(limits.CLOSE_BAD_TEXT, "not JSON") from error
    repeated = scan.duplicate_key(raw, payload_too=read.type.startswith("control."))
    if repeated is not None:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, f"a key stands twice: {repeated[:64]}")
    if not _is_id(read.id):
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "not a ULID or UUID", pointer="/id")
    if not _is_timestamp(read.ts):
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "not an RFC 3339 time with zone", pointer="/ts")
    payload = _read_payload(read.type, read.payload)
    return Envelope(
        read.type, read.id, read.ts, read.tenant, read.sender, payload,
        read.corr, read.seq, read.ack, read.flags,
    )  # fmt: skip


def _read_payload(frame_type: str, text: Raw) -> object:
    """The model of the payload, an `Unreadable`, or for `ext.*` the text itself."""
    if frame_type.startswith("ext."):
        return text.copy()
    decoder = _DECODE_PAYLOAD.get(frame_type)
    if decoder is None:
        return _unreadable(
            errors.CMD_UNKNOWN, "/type", f"unknown frame type: {frame_type}", _decode_any(text)
        )
    try:
        return decoder(text)
    except msgspec.ValidationError:
        value = _decode_any(text)
    known = known_only(value, _SHAPES[frame_type])
    try:
        return decoder(_encode(known))
    except msgspec.ValidationError as error:
        reason, pointer = _explain(error, "/payload")
        return _unreadable(errors.PROTOCOL_BAD_PAYLOAD, pointer, reason, value)


def _unreadable(code: errors.Code, pointer: str, message: str, value: object) -> Unreadable:
    task_id = attempt = None
    if isinstance(value, dict):
        named, number = value.get("task_id"), value.get("attempt")
        if isinstance(named, str) and 0 < len(named) <= limits.NAME_CHARS:
            task_id = named
        if type(number) is int and 0 < number <= limits.INT_MAX:
            attempt = number
    return Unreadable(code, pointer, message, task_id, attempt)


def _is_time(ts: str) -> bool:
    try:
        return _parse_time(ts).tzinfo is not None
    except ValueError:
        return False


def _is_timestamp(ts: str) -> bool:
    # The grammar is RFC 3339's, the ranges (no 30 February, no hour 25) are the calendar's. A leap
    # second has no place in it; none has been announced since 2016 and none is to come.
    return _is_rfc3339(ts) is not None and _is_time(ts.upper())


_ERROR_PATH: Final = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_PATH_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_MISSING: Final = re.compile(r"^Object (?:missing required|contains unknown) field `(.*)`$")


def _explain(error: msgspec.ValidationError, root: str) -> tuple[str, str]:
    """What msgspec says, as a sentence of ours and a JSON pointer."""
    match = _ERROR_PATH.match(str(error))
    assert match is not None
    reason: str = match["reason"]
    steps = [name or index for name, index in _PATH_STEP.findall(match["path"] or "")]
    field = _MISSING.match(reason)
    if field is not None:
        steps.append(field[1][: limits.NAME_CHARS])
    escaped = (step.replace("~", "~0").replace("/", "~1") for step in steps)
    return reason[:1].lower() + reason[1 : limits.NAME_CHARS], root + "".join(
        "/" + step for step in escaped
    )
