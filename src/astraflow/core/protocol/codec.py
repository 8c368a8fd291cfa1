"""From bytes to envelopes and back.

Reading goes one of two ways that give the same answer. The quick way takes a frame as our own peers
write it: the payload is the last member, so the text is cut in two there, the envelope and the
payload are decoded straight into their models, and a few scans prove that nothing else is hidden in
it. If anything is unusual (other spacing, unknown fields, escapes in the envelope, something wrong)
the slow way decides, which checks one rule after the other and says what is wrong.

Why the cut is sound: if `head + "}"` is an object and `tail` is a value, then
`head + ',"payload":' + tail + "}"` is an object with exactly those members. Why counting commas
finds repeated keys: the members that were decoded account for so many, and a repeated one, or a
comma inside of a string, can only add to them. Repeated keys are refused in payloads too; only what a
workflow says (`parameters` of a dispatch) is carried as it was written.

PROTOCOL §1: a bad *frame* ends the connection (`BadFrame`); a bad *payload* does not, so that its
seq can be consumed: the payload becomes an `Unreadable`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, cast

import msgspec
from msgspec import Raw

from astraflow.core import errors
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business, limits, scan
from astraflow.core.protocol.frame_table import FRAME_TYPES
from astraflow.core.protocol.shapes import Shape, known_only, shape_of
from astraflow.core.protocol.wire import (
    NOT_A_RESOURCE_ID,
    NOT_A_TIME,
    Envelope,
    OutgoingHead,
    RawEnvelope,
    Unreadable,
    Wire,
)
from astraflow.core.timestamps import parse_iso


class BadFrame(errors.RemoteProtocolError):
    """The message is not a frame. Answer with `control.reset` and close with `close_code`."""

    def __init__(self, close_code: int, reason: str, *, pointer: str | None = None) -> None:
        super().__init__(errors.PROTOCOL_BAD_FRAME, reason, pointer=pointer)
        self.close_code = close_code
        self.reason = reason


class Unsendable(errors.LocalProtocolError):
    """The receiver would refuse this frame: send a failure in its place."""


_DECODE_PAYLOAD: Final = {
    name: msgspec.json.Decoder(row.payload).decode for name, row in FRAME_TYPES.items()
}
_SHAPES: Final[dict[str, Shape]] = {
    name: shape_of(row.payload) for name, row in FRAME_TYPES.items()
}
# What these models accept needs no second look: no part of it was skipped.
_FULLY_TYPED: Final = frozenset(name for name, shape in _SHAPES.items() if not shape.has_raw)


_decode_envelope: Final = msgspec.json.Decoder(Envelope).decode
_decode_raw_envelope: Final = msgspec.json.Decoder(RawEnvelope).decode
_decode_any: Final = msgspec.json.Decoder().decode
_skim: Final = msgspec.json.Decoder(Raw).decode
_encode: Final = msgspec.json.Encoder().encode
_set: Final = msgspec.structs.force_setattr
_problem_in: Final = scan.problem_in
_has_duplicate_key: Final = scan.has_duplicate_key
# What a workflow says goes to its worker as it was written.
_AS_AUTHORED: Final = {
    name: row.authored for name, row in FRAME_TYPES.items() if row.authored is not None
}
_NUMBERS_ROUGHLY: Final = scan.NUMBERS_ROUGHLY
_SUSPECT: Final = scan.SUSPECT

_is_id: Final = re.compile(
    r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
).fullmatch
_parse_time: Final = datetime.fromisoformat

_FIRST_DAY: Final = "1970"
_AFTER_LAST_DAY: Final = "9999-12-31"

_Dispatch: Final = business.Dispatch
_Result: Final = business.Result
_PAYLOAD_KEY: Final = b',"payload":'
_NO_PAYLOAD: Final = b',"payload":0}'
_AFTER_KEY: Final = len(_PAYLOAD_KEY)
_CLOSING: Final = ord("}")
_BACKSLASH: Final = ord("\\")
_COMMA: Final = b","
# `type id ts tenant sender`, and the two of the sender.
_HEAD_COMMAS: Final = 4 + 1
_SEQUENCED_COMMAS: Final = _HEAD_COMMAS + 2
# Depth of a payload's own text, and of a field of it.
_PAYLOAD_LEVEL: Final = 1
_FIELD_LEVEL: Final = 2
# Nesting n deep takes n openings and n closings.
_SHORT_FIELD: Final = 2 * (limits.MAX_DEPTH - _FIELD_LEVEL)


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
    head = raw[:cut]
    tail = raw[cut + _AFTER_KEY : -1]
    try:
        envelope = _decode_envelope(head + _NO_PAYLOAD)
        payload = _DECODE_PAYLOAD[envelope.type](tail)
        ts = envelope.ts
        _parse_time(ts)
    except (KeyError, ValueError, msgspec.DecodeError, RecursionError):
        return _decode_slowly(raw)
    # What parses and has these marks is `YYYY-MM-DDThh:mm:ss.sssZ` and nothing else; of such the order of the text
    # is the order of time.
    if ts[7:20:3] != "-T::." or ts[23:] != "Z" or not _FIRST_DAY <= ts < _AFTER_LAST_DAY:
        return _decode_slowly(raw)
    if _is_id(envelope.id) is None:
        return _decode_slowly(raw)
    commas = head.count(_COMMA)
    if envelope.seq is not None and envelope.corr is not None and envelope.ack is None:
        # The shape of most frames, without the call.
        is_whole = commas == _SEQUENCED_COMMAS and not envelope.flags
    else:
        is_whole = commas == _commas_of(envelope)
    if not is_whole and commas != _commas_written_out(envelope, head):
        return _decode_slowly(raw)
    is_scanned = _BACKSLASH in raw
    if is_scanned and (_BACKSLASH in head or not _is_sound_text(tail)):
        return _decode_slowly(raw)
    if type(payload) is _Dispatch and not payload.resource_refs:
        # The one that must be quick; only its user data was skipped. The first look of
        # `problem_in` is taken here, without the call.
        is_sound = is_scanned
        if not is_scanned:
            given = bytes(payload.parameters)
            is_sound = (
                len(given) < _SHORT_FIELD
                and given.isascii()
                and given.translate(_NUMBERS_ROUGHLY).find(_SUSPECT) < 0
            ) or _problem_in(given, _FIELD_LEVEL) is None
        # Exactly what we would write has no key twice.
        is_sound = is_sound and _encode(payload) == tail
    else:
        is_sound = _is_sound(payload, envelope.type, tail, is_scanned)
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
        OutgoingHead(
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


encode_payload: Final = _encode


def check_outgoing(
    frame_type: str, payload: object, *, max_bytes: int = limits.MAX_FRAME_BYTES
) -> None:
    """Run the receiver's check on a payload before its frame gets a seq.

    PROTOCOL §1: "the **sender** runs the receiver's frame check before a frame gets a seq. A result
    that fails it becomes FAILED `E.RESULT.INVALID` / `E.RESULT.TOO_LARGE`".

    Raises:
        Unsendable: with one of those two codes.
    """
    given = _only_unknown(payload)
    # Half a frame leaves room enough for all that can stand beside it.
    if given is not None and 2 * len(given) <= max_bytes and _is_sound_value(frame_type, given):
        return
    try:
        text = _encode(payload)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unsendable(errors.RESULT_INVALID, f"cannot be written as JSON: {error}") from error
    allowed = max_bytes - limits.ENVELOPE_ROOM_BYTES
    if len(text) > allowed:
        raise Unsendable(
            errors.RESULT_TOO_LARGE, f"{len(text)} bytes, more than a frame may carry: {allowed}"
        )
    problem = _problem_in(text, _PAYLOAD_LEVEL)
    if problem is not None:
        raise Unsendable(errors.RESULT_INVALID, problem)
    try:
        read = _read_payload(frame_type, Raw(text))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unsendable(errors.RESULT_INVALID, f"not JSON: {error}") from error
    if isinstance(read, Unreadable):
        raise Unsendable(errors.RESULT_INVALID, read.message, pointer=read.pointer)


def bulk_of(payload: object) -> int:
    """How many bytes of user data a dispatch or a result has: most of what a large frame is made of."""
    kind = type(payload)
    if kind is _Dispatch:
        return len(cast("business.Dispatch", payload).parameters)
    return len(cast("business.Result", payload).result) if kind is _Result else 0


def _is_sound_value(frame_type: str, given: bytes) -> bool:
    try:
        _skim(given)
        if _problem_in(given, _FIELD_LEVEL) is not None:
            return False
        return frame_type in _AS_AUTHORED or not _has_duplicate_key(given)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _only_unknown(payload: object) -> bytes | None:
    """The one field of a plain dispatch or result that we did not make ourselves; None if there may be more.

    Most frames are such: the rest of them is numbers and names that the plan, or the dispatch that is answered,
    has brought through a check before.
    """
    kind = type(payload)
    if kind is _Dispatch:
        dispatch = cast("business.Dispatch", payload)
        if not dispatch.resource_refs and dispatch.secrets is None and dispatch.affinity is None:
            return bytes(dispatch.parameters)
    elif kind is _Result:
        result = cast("business.Result", payload)
        if result.error is None and not result.artifacts and not result.metrics:
            return bytes(result.result)
    return None


def _commas_of(envelope: Envelope) -> int:
    """How many commas the head of this envelope has, written without repeated keys."""
    commas = _HEAD_COMMAS
    if envelope.corr is not None:
        commas += 1
    if envelope.seq is not None:
        commas += 1
    ack = envelope.ack
    if ack is not None:
        commas += ack.request + (ack.seq is not None) + (ack.window is not None)
        if ack.bitmap != "0":
            commas += 1
    return commas + len(envelope.flags)


def _commas_written_out(envelope: Envelope, head: bytes) -> int:
    """The same, with the members that are written out although they have their default.

    `"flags":` with its colon can only be a key: inside of a string its quotes would be escaped.
    """
    commas = _commas_of(envelope)
    if not envelope.flags and head.find(b'"flags":') >= 0:
        commas += 1
    if envelope.corr is None and head.find(b'"corr":') >= 0:
        commas += 1
    ack = envelope.ack
    # Two acks may have so many members between them as one; and a `seq` that is null may be the envelope's own.
    at = head.find(b'"ack":')
    if ack is not None and head.count(b'"ack":') == 1:
        if not ack.request and head.find(b'"request":') >= 0:
            commas += 1
        if ack.bitmap == "0" and head.find(b'"bitmap":') >= 0:
            commas += 1
        if ack.seq is None and head.find(b'"seq":null', at, head.find(b"}", at)) >= 0:
            commas += 1
    return commas


def _is_sound(payload: Wire, frame_type: str, tail: bytes, is_scanned: bool) -> bool:
    """Whether a payload that fits its type hides nothing in what was skipped. `is_scanned`: its text is sound."""
    if frame_type in _FULLY_TYPED:
        # Exactly what we would write has no key twice.
        return _encode(payload) == tail or not _has_duplicate_key(tail)
    return (is_scanned or _is_sound_text(tail)) and not _has_duplicate_key(tail)


def _is_sound_text(tail: bytes) -> bool:
    return _problem_in(tail, _PAYLOAD_LEVEL) is None


def _decode_slowly(raw: bytes) -> Envelope:
    problem = _problem_in(raw, 0)
    if problem is not None:
        raise BadFrame(limits.CLOSE_BAD_TEXT, problem)
    try:
        read = _decode_raw_envelope(raw)
    except msgspec.ValidationError as error:
        reason, pointer = _explain(error, "")
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, reason, pointer=pointer) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFrame(limits.CLOSE_BAD_TEXT, "not JSON") from error
    is_control = read.type.startswith("control.")
    repeated = scan.duplicate_key(raw, opaque=None if is_control else "payload")
    if repeated is not None:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, _twice(repeated))
    check_id(read.id)
    check_ts(read.ts)
    payload = _read_payload(read.type, read.payload)
    return Envelope(
        read.type, read.id, read.ts, read.tenant, read.sender, payload,
        read.corr, read.seq, read.ack, read.flags,
    )  # fmt: skip


def check_id(text: str) -> None:
    """Raises: BadFrame."""
    if _is_id(text) is None:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "not a ULID or UUID", pointer="/id")


def check_ts(text: str) -> None:
    """Raises: BadFrame."""
    if parse_iso(text) is None:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, NOT_A_TIME, pointer="/ts")


def read_payload(frame_type: str, text: Raw) -> object:
    """The payload of a frame whose text has no other problem: its model, an `Unreadable`, or the text of an `ext.*`."""
    decode_payload = _DECODE_PAYLOAD.get(frame_type)
    try:
        payload = None if decode_payload is None else decode_payload(text)
    except msgspec.ValidationError:
        payload = None
    if payload is None:
        return _read_payload(frame_type, text)
    given = _only_unknown(payload)
    is_ours = given is not None and _encode(payload) == bytes(text)
    if is_ours and (frame_type in _AS_AUTHORED or not _has_duplicate_key(given or b"")):
        return payload
    return _read_payload(frame_type, text)


def _read_payload(frame_type: str, text: Raw) -> object:
    """The model of the payload, an `Unreadable`, or for `ext.*` the text itself."""
    opaque = _AS_AUTHORED.get(frame_type)
    if opaque is not None or _has_duplicate_key(bytes(text)):
        repeated = scan.duplicate_key(bytes(text), opaque=opaque)
        if repeated is not None:
            message = _twice(repeated)
            return _unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload", message, _decode_any(text))
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


def _twice(key: str) -> str:
    return f"a key stands twice: {key[:64]}"


def _unreadable(code: errors.Code, pointer: str, message: str, value: object) -> Unreadable:
    task_id = attempt = None
    if isinstance(value, dict):
        named, number = value.get("task_id"), value.get("attempt")
        if isinstance(named, str) and 0 < len(named) <= limits.NAME_CHARS:
            task_id = TaskId(named)
        if type(number) is int and 0 < number <= limits.INT_MAX:
            attempt = number
    return Unreadable(code, pointer, message, task_id, attempt)


_ERROR_PATH: Final = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_PATH_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_NAMED: Final = re.compile(
    r"^(?:Object (?:missing required|contains unknown) field|"
    rf"{re.escape(NOT_A_TIME)}:|{re.escape(NOT_A_RESOURCE_ID)}:) `(.*)`$"
)


def _explain(error: msgspec.ValidationError, root: str) -> tuple[str, str]:
    """What msgspec says, as a sentence of ours and a JSON pointer."""
    match = _ERROR_PATH.match(str(error))
    assert match is not None
    reason: str = match["reason"]
    steps = [name or index for name, index in _PATH_STEP.findall(match["path"] or "")]
    field = _NAMED.match(reason)
    if field is not None:
        steps.append(field[1][: limits.NAME_CHARS])
    escaped = (step.replace("~", "~0").replace("/", "~1") for step in steps)
    return reason[:1].lower() + reason[1 : limits.NAME_CHARS], root + "".join(
        "/" + step for step in escaped
    )
