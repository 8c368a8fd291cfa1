"""Frames: reading, writing, refusing.

The budget: reading a dispatch of some 640 bytes takes at most 1.5 times as long as a bare msgspec
decode of it. What "bare" is must be said, or the ratio means nothing: one tagged union over all
frame types, with the constraints of our own models, the pattern of `id`, `ts` parsed into a
date-time with zone, and user data decoded, because a frame is not validated as long as nobody looked
at the numbers and strings in it. Not in it, but in our codec: repeated keys, depth, U+0000, integers
beyond 64 bits.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, codec, limits
from astraflow.core.protocol.frame_table import FRAME_TYPES
from astraflow.core.protocol.wire import AckInfo, Envelope, Sender
from benchmarks.figures import Figure, best_us, operation_figures

EXAMPLES = Path(__file__).resolve().parent.parent / "schemas" / "examples"
BUDGET = 1.5
TURNS = 3
NOW = "2026-01-15T10:00:00.000Z"
ULID = "01J8ZQ5T9GQ4X7V2N3M1K0HABC"
ID_PATTERN = (
    r"^(?:[0-7][0-9A-HJKMNP-TV-Z]{25}"
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})\Z"
)


def figures() -> list[Figure]:
    raw = _dispatch()
    ours, bare = partial(codec.decode, raw), partial(_bare_decoder().decode, raw)
    # In turns, because a shared machine is now fast and now slow.
    pairs = [(best_us(ours), best_us(bare)) for _ in range(TURNS)]
    ours_us, bare_us = min(each[0] for each in pairs), min(each[1] for each in pairs)
    return [
        Figure(f"decode a dispatch of {len(raw)} bytes", ours_us, "µs"),
        Figure("bare msgspec decode of it, to compare", bare_us, "µs"),
        Figure("the first as a multiple of the second", ours_us / bare_us, "times", BUDGET),
        *operation_figures(operations()),
    ]


def operations() -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for frame_type, example in (
        ("control.heartbeat", "full"),
        ("biz.exec.dispatch", "minimal"),
        ("biz.exec.result", "minimal"),
        ("biz.exec.result", "full"),
    ):
        raw = _frame(frame_type, example)
        envelope = codec.decode(raw)
        found[f"decode {frame_type} {example}"] = partial(codec.decode, raw)
        found[f"encode {frame_type} {example}"] = partial(codec.encode, envelope, NOW)
        found[f"json.loads {frame_type} {example}, to compare"] = partial(json.loads, raw)
    return found


def _dispatch() -> bytes:
    """A dispatch as a scheduler sends it."""
    parameters = (
        b'{"url":"https://example.com","method":"GET","retries":3,"timeout":2.5,"follow":1}'
    )
    payload = business.Dispatch(
        RunId("01J8ZQ5T9GQ4X7V2N3M1K0HRVN"),
        TaskId("01J8ZQ5T9GQ4X7V2N3M1K0HTSK"),
        2,
        0,
        "fetch",
        "core.http",
        business.PackageId("core", "1.0.0"),
        Raw(parameters),
        business.LeaseGrant(30_000, ULID),
        business.Constraints(60_000),
        "site-1",
    )
    sender, ack = Sender("scheduler", "scheduler-1"), AckInfo(False, 41, "0", 256)
    frame = Envelope(business.DISPATCH, ULID, "", "acme", sender, payload, payload.task_id, 17, ack)
    return codec.encode(frame, NOW)


def _bare_decoder() -> msgspec.json.Decoder[Any]:
    hints = typing.get_type_hints(Envelope, include_extras=True) | {
        "id": Annotated[str, Meta(max_length=limits.NAME_CHARS, pattern=ID_PATTERN)],
        "ts": Annotated[datetime, Meta(tz=True)],
    }
    frames = []
    for frame_type, row in FRAME_TYPES.items():
        hints["payload"] = _without_raw(row.payload)
        fields = [_field(field, hints) for field in msgspec.structs.fields(Envelope)[1:]]
        frames.append(
            _struct(row.payload.__name__ + "Frame", fields, tag_field="type", tag=frame_type)
        )
    return msgspec.json.Decoder(typing.Union[tuple(frames)])  # noqa: UP007 (made at run time)


@cache
def _without_raw(model: type[Struct]) -> type[Struct]:
    """The same model, with user data decoded instead of skipped."""
    hints = {
        name: _decoded(each)
        for name, each in typing.get_type_hints(model, include_extras=True).items()
    }
    fields = [_field(field, hints) for field in msgspec.structs.fields(model)]
    return _struct(model.__name__, fields, rename={"for_": "for"})


def _decoded(hint: Any) -> Any:
    if hint is Raw:
        return Any
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _without_raw(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return Annotated[(_decoded(inner[0]), *inner[1:])]
    if origin is tuple:
        return tuple[_decoded(inner[0]), ...]  # type: ignore[misc]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_decoded(each) for each in inner)]  # noqa: UP007
    return hint


def _field(field: msgspec.structs.FieldInfo, hints: dict[str, Any]) -> Any:
    if field.required:
        return (field.name, hints[field.name])
    if field.default_factory is not msgspec.NODEFAULT:
        default = msgspec.field(default_factory=field.default_factory)
    else:
        default = None if isinstance(field.default, Raw) else field.default
    return (field.name, hints[field.name], default)


def _struct(name: str, fields: list[Any], **how: Any) -> type[Struct]:
    return msgspec.defstruct(name, fields, frozen=True, forbid_unknown_fields=True, **how)


def _frame(frame_type: str, example: str) -> bytes:
    payload = json.loads((EXAMPLES / f"{frame_type}.json").read_text())["valid"][example]
    head: dict[str, Any] = {
        "type": frame_type,
        "id": ULID,
        "ts": NOW,
        "tenant": "acme",
        "sender": {"role": "worker", "id": "01890a5d-ac96-774b-bcce-b302099a8057"},
    }
    if frame_type.startswith("biz."):
        head |= {"corr": payload["task_id"], "seq": 17}
    return json.dumps({**head, "payload": payload}, separators=(",", ":")).encode()
