"""The adapter for protocol 1 and a gateway behind it, fed with whatever a socket could bring.

An input is lines: each is a message of the worker, or `@4.5`: so many seconds pass. What is checked: no exception but
`BadFrame`, the `check()` of both after every line, that the gateway can read what the adapter says, and that every
message for the worker is a frame of protocol 1.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from astraflow.core import errors
from astraflow.core.protocol import business, codec
from astraflow.core.protocol.v1 import frames
from tests.unit.core.protocol.test_v1 import HELD, HELLO, OldPair, dispatch_of, frame

__all__ = ["old_conversations", "run_v1_adapter"]

MAX_LINES: Final = 60
MAX_STEP_S: Final = 20.0


def run_v1_adapter(raw: bytes) -> None:
    """A scheduler survives its old workers."""
    pair = OldPair(HELD)
    for line in raw.split(b"\n")[:MAX_LINES]:
        if pair.closed_with is not None:
            break
        if line.startswith(b"@"):
            pair.later(_seconds(line[1:]))
        else:
            with suppress(codec.BadFrame):
                pair.adapter.from_worker(line, pair.now, "2026-01-15T10:00:00.000Z")
            pair.settle()
            with suppress(errors.Unavailable):  # documented: no session yet
                pair.command(business.DISPATCH, dispatch_of("r", f"r.{len(pair.got)}"), "r.2")
        pair.gateway.check()
    for got in pair.got:
        assert got["type"] in frames.V1_TYPES, got


def _seconds(text: bytes) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), MAX_STEP_S) if seconds == seconds else 0.0


def old_conversations() -> list[bytes]:
    about: dict[str, Any] = {"corr": "r.2", "seq": 1}
    said = [
        frame("handshake", HELLO, "h"),
        frame("register", {"packages": [{"name": "core", "version": "1.0.0"}]}, "r"),
        frame("heartbeat", {"healthy": True}, "b"),
        frame("ack", {"for": "20000000000000000000000004", "ok": True}, "a"),
        frame("feedback", {"stage": "running"}, "f", **about),
        frame("result", {"run_id": "r", "status": "SUCCEEDED"}, "res", **about),
        frame("result", {"run_id": "r", "status": "SUCCEEDED"}, "gap", corr="r.2", seq=9),
        frame("command.error", {"code": "E.BUSY"}, "c", corr="r.3", seq=2),
        frame("error", {"for": "20000000000000000000000005", "code": "E.BUSY"}, "e"),
        frame("pkg.event", {"name": "p", "version": "1", "status": "installed"}, "p"),
        frame("middleware.next_request", {"request_id": "q", "chain_index": 0}, "n", **about),
    ]
    lines = [json.dumps(one).encode() for one in said]
    return [b"\n".join(lines), b"\n".join([*lines[:3], b"@1", *lines[3:6], b"@6", lines[2]])]
