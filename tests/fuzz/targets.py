"""What is fuzzed, and the contract: accepted, or one of the documented errors; nothing else.

A target takes bytes. It returns when they are accepted or refused as documented, and lets every
other exception through, asserts included: that is a finding.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import codec, websocket
from astraflow.core.protocol.wire import Unreadable
from astraflow.core.workflow.catalog import StaticCatalog
from astraflow.core.workflow.core_manifest import core_manifest
from astraflow.core.workflow.decoding import decode_definition, decode_manifest
from astraflow.core.workflow.manifest_rules import validate_manifest
from astraflow.core.workflow.planner import plan_workflow
from astraflow.core.workflow.problems import InvalidDocument
from astraflow.packages.archive import check_archive, check_contents
from astraflow.packages.building import build_archive
from tests.fuzz import old_workers, sessions

__all__ = ["TARGETS", "Target", "kept"]

ROOT: Final = Path(__file__).resolve().parent.parent.parent
EXAMPLES: Final = ROOT / "schemas" / "examples"
KEPT: Final = Path(__file__).resolve().parent / "corpus"
A: Final = "6f0a2f0e-7c2e-4d0f-9a51-2f4c1d1f0a0a"
B: Final = "6f0a2f0e-7c2e-4d0f-9a51-2f4c1d1f0a0b"
OPENING_LINES: Final = 4
NOW: Final = "2026-01-15T10:00:00.000Z"


class Target(NamedTuple):
    """One entry point: what to call, and inputs to begin with."""

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def kept(name: str) -> list[bytes]:
    """Inputs that once were a finding, or that are worth keeping."""
    return [path.read_bytes() for path in sorted((KEPT / name).glob("*")) if path.is_file()]


def run_codec(raw: bytes) -> None:
    """The two ways of reading agree, and what is read can be written and read again."""
    try:
        envelope = codec.decode(raw)
    except codec.BadFrame:
        return
    assert _same(envelope, codec._decode_slowly(raw)), "the quick way and the slow way differ"
    if isinstance(envelope.payload, Unreadable):
        return
    written = codec.encode(envelope, envelope.ts)
    assert _same(codec.decode(written), envelope), "what was written reads differently"


def run_websocket(raw: bytes) -> None:
    """Frames are cut or refused, and how the bytes were split on their way makes no difference."""
    size = 1 + (raw[0] if raw else 0) % 7
    whole = _cut([raw])
    pieces = _cut([raw[at : at + size] for at in range(0, len(raw), size)])
    assert whole == pieces, "the pieces were cut differently"


def _cut(pieces: list[bytes]) -> tuple[list[tuple[int, bytes]], int | None]:
    reader = websocket.FrameReader(1_000, is_masked=True)
    found: list[tuple[int, bytes]] = []
    for piece in pieces:
        reader.feed(piece)
        try:
            while (frame := reader.next()) is not None:
                found.append(frame)
        except codec.BadFrame as refused:
            return found, refused.close_code
    return found, None


def _websocket_seeds() -> list[bytes]:
    text = b"\x81\x85\1\2\3\4" + bytes(a ^ b for a, b in zip(b"hello", b"\1\2\3\4\1", strict=True))
    part = b"\x01\x82\0\0\0\0ab"
    rest = b"\x80\x82\0\0\0\0cd"
    ping, close = b"\x89\x80\0\0\0\0", b"\x88\x82\0\0\0\0\x03\xe8"
    long = b"\x81\xfe\x01\0\0\0\0\0" + b"x" * 256
    return [text, part + ping + rest, text + close, long, part + rest + text]


def run_definition(raw: bytes) -> None:
    """A definition is planned, or refused with all its problems."""
    try:
        plan = plan_workflow(decode_definition(raw), _catalog())
    except InvalidDocument as error:
        _check_problems(error)
        return
    assert plan.nodes, "a plan has nodes"


def run_manifest(raw: bytes) -> None:
    """A manifest that has no problems makes a catalog, or says why not."""
    try:
        manifest = decode_manifest(raw)
        if not validate_manifest(manifest):
            StaticCatalog([manifest])
    except InvalidDocument as error:
        _check_problems(error)


def run_archive(raw: bytes) -> None:
    """An archive is checked and its contents are counted, or it is refused as a package that is not valid."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.cwx"
        path.write_bytes(raw)
        try:
            check_contents(check_archive(path))
        except errors.AstraflowError as error:
            assert error.code in (errors.PKG_INVALID, errors.PKG_PERMISSION), error


def _check_problems(error: InvalidDocument) -> None:
    assert error.problems, "a refusal says what is wrong"
    msgspec.json.encode([str(problem) for problem in error.problems])


def _same(one: Any, other: Any) -> bool:
    return bool(msgspec.json.encode(one) == msgspec.json.encode(other))


@cache
def _catalog() -> StaticCatalog:
    return StaticCatalog([core_manifest()])


def _frame(frame_type: str, payload: Any, seq: int | None = None) -> bytes:
    head: dict[str, object] = {
        "type": frame_type,
        "id": "01J8ZQ5T9GQ4X7V2N3M1K0HABC",
        "ts": NOW,
        "tenant": "acme",
        "sender": {"role": "worker", "id": "w-1"},
    }
    if seq is not None:
        head["seq"] = seq
    return msgspec.json.encode({**head, "payload": payload})


def frames() -> list[bytes]:
    """Every example of the wire, as a frame."""
    found = [msgspec.json.encode(value) for value in _values(EXAMPLES / "envelope.json")]
    for area in ("control", "biz"):
        for path in sorted(EXAMPLES.glob(f"{area}.*.json")):
            seq = 0 if area == "biz" else None
            found += [_frame(path.stem, value, seq) for value in _values(path)]
    return found


def _values(path: Path) -> list[Any]:
    examples = json.loads(path.read_text())
    return [*examples["valid"].values(), *examples["invalid"].values()]


def worker_inputs() -> list[bytes]:
    """A whole conversation, and every frame that a scheduler sends, after the opening."""
    whole, _ = sessions.conversation()
    by_scheduler = [raw.replace(b'"role":"worker"', b'"role":"scheduler"') for raw in frames()]
    return [whole, *_after_the_opening(whole, by_scheduler)]


def gateway_inputs() -> list[bytes]:
    """A whole conversation, and every frame that a worker sends, after the opening."""
    _, whole = sessions.conversation()
    return [whole, *_after_the_opening(whole, frames())]


def _after_the_opening(whole: bytes, frames_then: list[bytes]) -> list[bytes]:
    opening = whole.split(b"\n")[:OPENING_LINES]
    lines = [raw.replace(b"\n", b" ") for raw in frames_then]
    return [b"\n".join([*opening, *lines[at : at + 5]]) for at in range(0, len(lines), 5)]


def definitions() -> list[bytes]:
    """The published examples, and small ones of our own."""
    chain = {
        "id": "6f0a2f0e-7c2e-4d0f-9a51-2f4c1d1f0a01",
        "nodes": [
            {"id": A, "type": "core.echo", "parameters": {"value": 1}},
            {
                "id": B,
                "type": "core.template",
                "parameters": {"template": "{{x}}", "values": {"x": "=inputs.x"}},
                "retry": {"maxAttempts": 3, "backoff": {"initialSeconds": 1, "factor": 2}},
                "timeoutSeconds": 5,
                "concurrencyKey": "k",
                "affinity": {"key": "k", "mode": "sticky"},
            },
        ],
        "edges": [
            {"source": {"node": A, "port": "value"}, "target": {"node": B, "port": "values"}},
            {"source": {"node": A}, "target": {"node": B}},
        ],
    }
    return [msgspec.json.encode(chain), *_examples("workflow")]


@cache
def _archives() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        built = [
            build_archive(ROOT / "packages" / name, Path(folder))
            for name in ("llm", "crawlerx_playwright")
        ]
        return tuple(one.path.read_bytes() for one in built)


def archives() -> list[bytes]:
    """Packages of our own."""
    return list(_archives())


def manifests() -> list[bytes]:
    """The published examples, and our own package."""
    return [core_manifest().raw, *_examples("manifest")]


def _examples(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(EXAMPLES.glob(f"*/{name}/*.json"))]


TARGETS: Final[dict[str, Target]] = {
    "codec": Target(run_codec, frames),
    "websocket": Target(run_websocket, _websocket_seeds),
    "worker_session": Target(sessions.run_worker_session, worker_inputs),
    "gateway": Target(sessions.run_gateway, gateway_inputs),
    "v1_adapter": Target(old_workers.run_v1_adapter, old_workers.old_conversations),
    "definition": Target(run_definition, definitions),
    "manifest": Target(run_manifest, manifests),
    "archive": Target(run_archive, archives),
}
