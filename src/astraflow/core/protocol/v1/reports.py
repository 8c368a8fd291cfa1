"""The payloads of a worker of protocol 1, made into those of protocol 2.

Seed 000 says less than protocol 2 asks for: an optional member may be null, a chunk has no index, an error no category,
and an artifact names its worker as the worker names itself. What is missing is added here; what is wrong stays wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from astraflow.core.protocol.v1.attempts import V1Attempt

Fields = dict[str, Any]

CATEGORY: Final = Raw(b'"USER_CODE"')
"""Of an error that names none."""
CHANNELS_COUNTED: Final = 64
"""Of one attempt; the chunks of further channels are numbered frame by frame."""
_KEPT: Final = frozenset(
    {"result", "payload", "details", "context", "metadata", "run_id", "task_id"}
)
"""Members whose null is a value: user data; and whose null is wrong: a report must not be taken for another task's."""
_NULL: Final = b"null"

_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def without_nulls(payload: Raw) -> Raw:
    """A payload without the members that are null."""
    return _cleaned(payload) if bytes(payload).find(_NULL) >= 0 else payload


def result_fields(fields: Fields, sender: str, instance: str) -> Fields:
    """`sender`: what the worker calls itself; `instance`: what it is known by."""
    error = _object(fields.get("error"))
    if error is not None and "category" not in error:
        fields = {**fields, "error": {**error, "category": CATEGORY}}
    return with_worker(fields, "artifacts", sender, instance)


def feedback_fields(fields: Fields, attempt: V1Attempt | None) -> Fields:
    """With an index for each chunk that has none: chunks are in order."""
    chunks = _list(fields.get("chunks"))
    if chunks is None:
        return fields
    counts = {} if attempt is None else attempt.chunk_counts
    here = dict(counts)
    numbered = [_numbered(chunk, here) for chunk in chunks]
    for channel, count in here.items():
        if channel in counts or len(counts) < CHANNELS_COUNTED:
            counts[channel] = count
    return {**fields, "chunks": numbered}


def with_worker(fields: Fields, name: str, before: str, after: str) -> Fields:
    """With another `worker_id` in each of these objects that has this one."""
    items = None if before == after else _list(fields.get(name))
    if items is None:
        return fields
    return {**fields, name: [_renamed(one, before, after) for one in items]}


def _renamed(item: Raw, before: str, after: str) -> object:
    fields = _object(item)
    if fields is None or _text(fields.get("worker_id")) != before:
        return item
    return {**fields, "worker_id": after}


def _numbered(chunk: Raw, counts: dict[str, int]) -> object:
    fields = _object(chunk)
    channel = None if fields is None else _text(fields.get("channel"))
    if fields is None or channel is None:
        return chunk
    index = counts.get(channel, 0)
    counts[channel] = index + 1
    return chunk if "index" in fields else {**fields, "index": index}


def _cleaned(value: Raw) -> Raw:
    text = bytes(value)
    if text.startswith(b"{"):
        members = _decode_fields(value).items()
        kept = {
            name: inner if name in _KEPT else _cleaned(inner)
            for name, inner in members
            if name in _KEPT or bytes(inner) != _NULL
        }
        return Raw(_encode(kept))
    if text.startswith(b"["):
        return Raw(_encode([_cleaned(inner) for inner in _decode_items(value)]))
    return value


def _object(value: Raw | None) -> dict[str, Raw] | None:
    is_one = value is not None and bytes(value).startswith(b"{")
    return _decode_fields(value) if value is not None and is_one else None


def _list(value: Raw | None) -> list[Raw] | None:
    is_one = value is not None and bytes(value).startswith(b"[")
    return _decode_items(value) if value is not None and is_one else None


def _text(value: Raw | None) -> str | None:
    found = None if value is None else _decode_any(value)
    return found if isinstance(found, str) else None
