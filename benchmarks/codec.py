"""Frames: reading, writing, refusing."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from astraflow.protocol import codec

EXAMPLES = Path(__file__).resolve().parent.parent / "schemas" / "examples" / "valid"
NOW = "2026-01-15T10:00:00.000Z"


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


def _frame(frame_type: str, example: str) -> bytes:
    payload = json.loads((EXAMPLES / frame_type / f"{example}.json").read_text())
    head = {
        "type": frame_type,
        "id": "01J8ZQ5T9GQ4X7V2N3M1K0HABC",
        "ts": NOW,
        "tenant": "acme",
        "sender": {"role": "worker", "id": "01890a5d-ac96-774b-bcce-b302099a8057"},
    }
    if frame_type.startswith("biz."):
        head |= {"corr": payload["task_id"], "seq": 17}
    return json.dumps({**head, "payload": payload}, separators=(",", ":")).encode()
