"""The contract of the worker's socket: what an update of the library under it must keep."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from astraflow.api.listener import listen
from astraflow.api.process import serve
from astraflow.config import SchedulerSettings, Secret
from astraflow.core.protocol.limits import MAX_FRAME_BYTES
from astraflow.scheduler.writer import Writer
from tests.rawsocket import BINARY, CLOSE, PING, PONG, TEXT, RawSocket, frame, hello, new_id

TOKEN = "a token for tests"
HELLO = hello("w-1", TOKEN)
OFFER = {
    "capabilities": {"concurrency": {"max_parallel": 1}, "runtimes": ["python"], "features": []}
}


@contextlib.asynccontextmanager
async def served(tmp_path: Path) -> AsyncIterator[int]:
    """A whole scheduler; its port."""
    settings = SchedulerSettings(data_dir=tmp_path, database_url="memory://")
    sock = listen("127.0.0.1", 0)
    ready, stop = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(
            serve(
                settings,
                sock,
                token=Secret(TOKEN),
                secret=Secret("x" * 32),
                on_ready=lambda url: ready.set(),
                stop=stop,
            )
        )
        await ready.wait()
        try:
            yield sock.getsockname()[1]
        finally:
            stop.set()


@contextlib.asynccontextmanager
async def connected(port: int, **more: Any) -> Any:
    socket = await RawSocket.open(port, **more)
    try:
        yield socket
    finally:
        await socket.close()


async def enter(socket: RawSocket) -> dict[str, Any]:
    """Open a session; returns the accept."""
    socket.send(frame("w-1", "control.handshake", HELLO, ack={"request": True}))
    assert (await socket.receive_json())["type"] == "control.ack"
    socket.send(frame("w-1", "control.register", OFFER, ack={"request": True}))
    assert (await socket.receive_json())["type"] == "control.ack"
    accept = await socket.receive_json()
    assert accept["type"] == "control.session.accept"
    return accept


async def test_a_worker_that_knows_nothing_of_us_but_the_text_opens_a_session(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as port, connected(port) as socket:
        assert socket.status == 101
        assert socket.headers["sec-websocket-protocol"] == "astraflow.v2"
        accept = await enter(socket)
        assert accept["payload"]["heartbeat_interval_ms"] == 5000
        heartbeat = frame("w-1", "control.heartbeat", {"healthy": True, "attempts": []})
        socket.send(heartbeat)
        answer = await socket.receive_json()
        assert answer["type"] == "control.ack"
        assert answer["payload"]["for"] in heartbeat.decode()


async def test_without_a_subprotocol_none_is_named(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port, subprotocol=None) as socket:
        assert socket.status == 101
        assert "sec-websocket-protocol" not in socket.headers
        await enter(socket)


async def test_there_is_no_other_socket(tmp_path: Path) -> None:
    async with served(tmp_path) as port:
        for path in ("/ws", "/ws/worker/x", "/api/v1/runs"):
            async with connected(port, path=path) as socket:
                assert socket.status == 404, path


async def test_a_message_in_fragments_with_a_ping_between_is_one_message(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket:
        raw = frame("w-1", "control.handshake", HELLO, ack={"request": True})
        socket.send(raw[:10], TEXT, fin=False)
        socket.send(b"beat", PING)
        socket.send(raw[10:20], 0x0, fin=False)
        socket.send(raw[20:], 0x0)
        assert await socket.receive() == (PONG, b"beat")
        assert (await socket.receive_json())["type"] == "control.ack"


async def test_a_large_message_arrives_whole(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket:
        await enter(socket)
        result = {
            "run_id": "r",
            "task_id": "r.0",
            "attempt": 1,
            "status": "SUCCEEDED",
            "result": {"text": "x" * (3 * 1024 * 1024)},
        }
        ack = {"request": True}
        socket.send(frame("w-1", "biz.exec.result", result, corr="r.0", seq=0, ack=ack))
        answer = await socket.receive_json()
        while answer["payload"].get("ack_seq") is None:  # it says first that it has arrived
            answer = await socket.receive_json()
        assert answer["payload"]["ack_seq"] == 0


async def test_what_is_not_a_frame_ends_the_connection_with_its_code(tmp_path: Path) -> None:
    async with served(tmp_path) as port:
        cases: list[tuple[bytes, int, int]] = [
            (b"{}", BINARY, 1002),
            (b"not json", TEXT, 1007),
            (b"[]", TEXT, 1002),
            (b'{"type":"\xff"}', TEXT, 1007),
            (b'{"type":"control.ack","nonsense":1}', TEXT, 1002),
        ]
        for raw, opcode, code in cases:
            async with connected(port) as socket:
                socket.send(raw, opcode)
                frames, closed = await socket.until_close()
                assert closed == code, raw
                assert [frame["payload"]["code"] for frame in frames] == ["E.PROTOCOL.BAD_FRAME"], (
                    raw
                )


async def test_the_frames_of_bundles_count_one_by_one_for_the_turn_of_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of full bundles: between two turns of the loop no more than one of them is handled."""
    received = Writer.received
    handled: list[int] = []  # since the last turn

    def counted(self: Writer, conn: str, raw: bytes) -> int:
        count = received(self, conn, raw)
        handled[-1] += count
        return count

    async def watch() -> None:
        while True:
            handled.append(0)
            await asyncio.sleep(0)

    monkeypatch.setattr(Writer, "received", counted)
    async with served(tmp_path) as port, connected(port) as socket:
        handled.append(0)
        await enter(socket)
        unknown = {"run_id": "r", "task_id": "r.0", "attempt": 1, "progress": 0.5}
        bundles = []
        for number in range(8):
            head = json.loads(frame("w-1", "biz.exec.feedback", {}, seq=64 * number))
            common = {name: head[name] for name in ("type", "ts", "tenant", "sender", "seq")}
            frames = [[new_id(), None, unknown] for _ in range(64)]
            bundles.append(json.dumps([common, *frames]).encode())
        watching = asyncio.create_task(watch())
        for raw in bundles:
            socket.send(raw)
        heartbeat = frame("w-1", "control.heartbeat", {"healthy": True, "attempts": []})
        socket.send(heartbeat)
        while (answer := await socket.receive_json())["payload"].get("for") is None or (
            answer["payload"]["for"] not in heartbeat.decode()
        ):
            pass
        watching.cancel()
    assert sum(handled) >= 8 * 64
    assert max(handled) <= 64 + 1


async def test_a_message_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    async with served(tmp_path) as port:
        async with connected(port) as socket:
            socket.send(b"x" * (MAX_FRAME_BYTES + 1))
            _, closed = await socket.until_close()
            assert closed == 1009
        async with connected(port) as socket:
            socket.send(b"x" * (MAX_FRAME_BYTES // 2), TEXT, fin=False)
            socket.send(b"x" * (MAX_FRAME_BYTES // 2), 0x0, fin=False)
            socket.send(b"xx", 0x0)
            _, closed = await socket.until_close()
            assert closed == 1009


async def test_a_bad_token_is_told_and_closed(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket:
        hello = {**HELLO, "auth": {"mode": "token", "token": "wrong"}}
        socket.send(frame("w-1", "control.handshake", hello, ack={"request": True}))
        frames, closed = await socket.until_close()
        assert frames[-1]["payload"]["code"] == "E.AUTH.INVALID_TOKEN"
        assert closed == 1008


async def test_a_close_of_the_worker_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as port, connected(port) as socket:
        await enter(socket)
        socket.send((1000).to_bytes(2, "big"), CLOSE)
        opcode, payload = await socket.receive()
        assert (opcode, payload[:2]) == (CLOSE, (1000).to_bytes(2, "big"))


async def test_a_scheduler_that_stops_tells_its_workers_to_come_back(tmp_path: Path) -> None:
    sockets: list[RawSocket] = []

    async def test(port: int) -> None:
        socket = await RawSocket.open(port)
        sockets.append(socket)
        await enter(socket)

    settings = SchedulerSettings(data_dir=tmp_path, database_url="memory://")
    sock = listen("127.0.0.1", 0)
    ready, stop = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(
        serve(
            settings, sock, token=Secret(TOKEN), secret=Secret("x" * 32),
            on_ready=lambda url: ready.set(), stop=stop,
        )
    )  # fmt: skip
    await ready.wait()
    await test(sock.getsockname()[1])
    stop.set()
    _, closed = await sockets[0].until_close()
    assert closed == 1013
    await sockets[0].close()
    await serving
