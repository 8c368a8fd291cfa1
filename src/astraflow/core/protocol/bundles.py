"""Several frames in one message, between peers that both say `frames.bundled`.

A bundle is a JSON array: what the frames have in common, then a row `[id, corr, payload]` for each::

    [{"type": "biz.exec.result", "ts": …, "tenant": …, "sender": …, "seq": 17, "ack": …}, ["01J…", "01J….4", {…}], …]

Rule 1: it is another way to write frames, and no frame itself. The i-th row is the frame with the seq `seq + i`; all
        are of one type that has a seq; `ack` is of the first. Windows, acks, ids and refusals know nothing of it, and
        what is sent again may be written in another way.
Rule 2: a peer writes it only in a session whose accept names the feature, which it does if the register did.
Rule 3: a row whose payload is bad is that one frame with a bad payload. Whatever else is wrong makes a bad frame.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Raw

from astraflow.core.protocol import limits, scan
from astraflow.core.protocol.codec import (
    BadFrame,
    bulk_of,
    check_id,
    check_ts,
    decode,
    encode,
    encode_payload,
    read_payload,
)
from astraflow.core.protocol.wire import (
    AckInfo,
    Envelope,
    Name,
    Sender,
    Seq,
    Wire,
    is_sequenced,
)

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterator, Sequence

_OPENING: Final = ord("[")


class _Head(Wire, frozen=True):
    """What the frames of a bundle have in common."""

    type: Name
    ts: Name
    tenant: Name
    sender: Sender
    seq: Seq
    ack: AckInfo | None = None


_Row = tuple[Name, Name | None, Raw]
_Parts = Annotated[list[Raw], Meta(min_length=2, max_length=1 + limits.MAX_BUNDLE)]

_decode_parts: Final = msgspec.json.Decoder(_Parts).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode_row: Final = msgspec.json.Decoder(_Row).decode
_encode: Final = msgspec.json.Encoder().encode


def decode_message(raw: bytes, *, max_bytes: int = limits.MAX_FRAME_BYTES) -> Sequence[Envelope]:
    """The frames of one message: one, or those of a bundle.

    Raises:
        BadFrame: it is neither; the connection must end.
    """
    if not raw or raw[0] != _OPENING:
        return (decode(raw, max_bytes=max_bytes),)
    if len(raw) > max_bytes:
        raise BadFrame(limits.CLOSE_TOO_BIG, f"the frame is larger than allowed: {max_bytes} bytes")
    try:
        first, *rows = _decode_parts(raw)
        head = _decode_head(first)
        return list(_frames(head, bytes(first), rows))
    except msgspec.ValidationError as error:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, f"not a bundle of frames: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(limits.CLOSE_BAD_TEXT, "not JSON") from error


def _frames(head: _Head, text: bytes, rows: list[Raw]) -> Iterator[Envelope]:
    check_ts(head.ts)
    _check_text(text)
    if _encode(head) != text:  # exactly what we would write has no key twice
        repeated = scan.duplicate_key(text)
        if repeated is not None:
            raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, f"a key stands twice: {repeated[:64]}")
    if not is_sequenced(head.type) or head.seq + len(rows) - 1 > limits.SEQ_MAX:
        raise BadFrame(limits.CLOSE_PROTOCOL_ERROR, "only frames with a seq go in bundles")
    kind, ts, tenant, sender, ack = head.type, head.ts, head.tenant, head.sender, head.ack
    for seq, row in enumerate(rows, head.seq):
        # The array is as deep around the payload as a frame is.
        _check_text(bytes(row))
        frame_id, corr, payload = _decode_row(row)
        check_id(frame_id)
        read = read_payload(kind, payload)
        yield Envelope(kind, frame_id, ts, tenant, sender, read, corr, seq, ack)
        ack = None


def _check_text(text: bytes) -> None:
    problem = scan.problem_in(text, 0)
    if problem is not None:
        raise BadFrame(limits.CLOSE_BAD_TEXT, problem)


def encode_first(frames: deque[Envelope], ts: str, *, bundled: bool) -> tuple[bytes, int]:
    """A message with the first of these frames, and with those after it that fit the same bundle; how many it has."""
    first = frames[0]
    if not bundled or len(frames) == 1 or not _continues(first, frames[1], 1):
        return encode(first, ts), 1
    if bulk_of(first.payload) > limits.BUNDLE_BYTES:
        return encode(first, ts), 1
    rows: list[bytes] = []
    size = 0
    for place, frame in enumerate(islice(frames, limits.MAX_BUNDLE)):
        if place and not _continues(first, frame, place):
            break
        if size + bulk_of(frame.payload) > limits.BUNDLE_BYTES:
            break  # found before it is written: a large one is written once
        corr = b"null" if frame.corr is None else _encode(frame.corr)
        row = b'["%b",%b,%b]' % (frame.id.encode(), corr, encode_payload(frame.payload))
        size += len(row)
        if size > limits.BUNDLE_BYTES:
            break  # so that the receiver can turn to others
        rows.append(row)
    if len(rows) < 2:
        return encode(first, ts), 1
    assert first.seq is not None
    head = _Head(first.type, ts, first.tenant, first.sender, first.seq, first.ack)
    return b"[%b,%b]" % (_encode(head), b",".join(rows)), len(rows)


def _continues(first: Envelope, frame: Envelope, place: int) -> bool:
    """Whether a frame can stand at this place of the bundle that another one begins."""
    return (
        first.seq is not None
        and frame.seq == first.seq + place
        and frame.type == first.type
        and frame.ack is None
        and not frame.flags
        and not first.flags
    )
