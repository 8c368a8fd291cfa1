"""Peers that break RFC 6455 or the rules of a session, or die in the middle: they are told, and nobody else minds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.hostile.foreign import Foreign, echo
from tests.processes.system import System, running
from tests.rawsocket import BINARY, CLOSE, PING, PONG, TEXT, frame, masked, upgrade_request

CONTINUATION = 0x0
FIRST_BYTES = 64 * 1024
MAX_BYTES = 4 * 1024**2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder: Path = tmp_path_factory.mktemp("liars")
    with running(folder, heartbeat_ms=20_000) as server:
        yield server


def upgrade(
    port: int, changed: Mapping[str, str | None] = MappingProxyType({})
) -> tuple[socket.socket, bytes]:
    """Ask for an upgrade; returns the connection and the first line of the answer."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    sock.sendall(upgrade_request(port, changed))
    head = b""
    while b"\r\n\r\n" not in head:
        more = sock.recv(1)
        assert more, head
        head += more
    return sock, head.partition(b"\r\n")[0]


def said_to(port: int, *pieces: bytes) -> tuple[list[dict[str, Any]], int | None]:
    """Send these bytes; returns the messages that come until the end, and the code of the close."""
    sock, line = upgrade(port)
    messages: list[dict[str, Any]] = []
    with sock, sock.makefile("rb") as stream:
        assert b" 101 " in line
        with contextlib.suppress(OSError):  # it may be closed before all is sent
            for piece in pieces:
                sock.sendall(piece)
        while head := stream.read(2):
            size = head[1] & 0x7F
            if size >= 126:
                size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
            payload = stream.read(size)
            if head[0] & 0x0F == CLOSE:
                return messages, int.from_bytes(payload[:2], "big")
            if head[0] & 0x0F == TEXT:
                messages.append(json.loads(payload))
    return messages, None


BREACHES: dict[str, tuple[tuple[bytes, ...], int]] = {
    "rsv1": ((masked(b"{}", first=0xC1),), 1002),
    "rsv2": ((masked(b"{}", first=0xA1),), 1002),
    "rsv3": ((masked(b"", first=0x99),), 1002),
    "opcode 3": ((masked(b"", first=0x83),), 1002),
    "opcode 11": ((masked(b"", first=0x8B),), 1002),
    "binary": ((masked(b"{}", BINARY),), 1002),
    "a continuation of nothing": ((masked(b"{}", CONTINUATION),), 1002),
    "a message inside of another": ((masked(b"{", first=0x01), masked(b"}", TEXT)), 1002),
    "a first part inside of another": ((masked(b"{", first=0x01), masked(b"}", first=0x01)), 1002),
    "no mask": ((b"\x81\x02{}",), 1002),
    "a ping in fragments": ((masked(b"", first=0x09),), 1002),
    "a ping of 126 bytes": ((masked(b"x" * 126, PING),), 1002),
    "half a close code": ((masked(b"\x03", CLOSE),), 1002),
    "too large for a stranger": ((masked(b"x" * (FIRST_BYTES + 1)),), 1009),
    "too large, announced": ((b"\x81\xff" + (2**40).to_bytes(8, "big") + bytes(4),), 1009),
    "too large in parts": (
        (masked(b"x" * 40_000, first=0x01), masked(b"x" * 40_000, first=0x00)), 1009,
    ),
    "empty parts without end": ((masked(b"", first=0x01), masked(b"", first=0x00) * 5_000), 1008),
}  # fmt: skip


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_of_the_standard_is_told_and_closed(server: System, breach: str) -> None:
    pieces, code = BREACHES[breach]
    messages, closed = said_to(server.port, *pieces)
    assert [(one["type"], one["payload"]["code"]) for one in messages] == [
        ("control.reset", "E.PROTOCOL.BAD_FRAME")
    ]
    assert closed == code


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Sec-WebSocket-Version": "8"}, 426),
        ({"Sec-WebSocket-Version": None}, 426),
        ({"Sec-WebSocket-Version": "13, 8"}, 426),
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Key": "short"}, 400),
    ],
)
def test_another_version_or_no_key_is_refused(
    server: System, changed: dict[str, str | None], status: int
) -> None:
    sock, line = upgrade(server.port, changed)
    with sock:
        assert int(line.split()[1]) == status


async def test_a_worker_is_told_of_a_frame_that_is_too_large(server: System) -> None:
    async with Foreign(server.port, "large") as worker:
        await worker.enter()
        worker.send_raw(b"x" * (MAX_BYTES + 1))
        while await worker.step() is not None:
            pass
        assert [one["code"] for one in worker.errors] == ["E.PROTOCOL.BAD_FRAME"]


def test_pings_are_answered_and_an_unasked_pong_is_not(server: System) -> None:
    sock, _ = upgrade(server.port)
    with sock:
        sock.sendall(masked(b"unasked", PONG) + masked(b"first", PING))
        assert sock.recv(100) == b"\x8a\x05first"
        sock.sendall(masked(b"", PING))
        assert sock.recv(100) == b"\x8a\x00"


async def test_liars_and_those_who_die_leave_no_trace_with_others(tmp_path: Path) -> None:
    # A server of its own: a worker of another test that has not been seen to go would be given the run.
    with running(tmp_path, heartbeat_ms=20_000) as server:
        await _lie_beside_an_honest_one(server)
        server.rest.read_everything()


async def _lie_beside_an_honest_one(server: System) -> None:
    run = {"run_id": "r", "task_id": "r.0", "attempt": 1, "status": "SUCCEEDED"}
    async with Foreign(server.port, "honest") as honest, Foreign(server.port, "liar") as liar:
        await honest.enter()
        for lie in (
            {"tenant": "other"},
            {"sender": {"role": "worker", "id": "honest"}},
            {"sender": {"role": "scheduler", "id": "liar"}},
        ):
            await liar.enter(register={"packages": []})
            liar.say("control.heartbeat", {"attempts": []}, **lie)
            while await liar.step() is not None:
                pass
            assert liar.errors.pop()["code"] == "E.SESSION.DENIED", lie
        await liar.enter(register={"packages": []})
        liar.tell("biz.exec.result", run, "r.0")
        await liar.until_acked()
        # Dies in the middle of a frame, and before and after each step of an opening.
        for cut in (1, 5, 100):
            sock, _ = upgrade(server.port)
            sock.sendall(masked(frame("dead", "control.handshake", {}))[:cut])
            sock.close()
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        await honest.until(lambda: honest.done == 1)
        await honest.until_acked()
        assert await asyncio.to_thread(server.rest.run_status, run_id) == "succeeded"
        assert honest.errors == []
        assert len(honest.accepts) == 1
