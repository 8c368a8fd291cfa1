"""The worker's socket, against ends that are no scheduler."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from astraflow.worker.socket import Socket, connect

WITHIN_S = 5.0
"""Well below the timeout of a connection: what is closed must be noticed, not waited for."""


class Deaf:
    """A listener that nobody may tell anything."""

    def received(self, socket: Socket, raw: bytes) -> None:
        raise AssertionError("nothing was sent")

    def closed(self, socket: Socket, code: int | None) -> None:
        raise AssertionError("it was never open")

    def drained(self, socket: Socket) -> None:
        raise AssertionError("it was never full")


async def test_a_connection_that_is_closed_before_its_handshake_is_refused_at_once() -> None:
    """As a proxy does whose scheduler is gone: it takes the connection, and drops it."""

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    server = await asyncio.start_server(drop, "127.0.0.1", 0)
    async with server, asyncio.timeout(WITHIN_S):
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionError, match="closed before it was open"):
            await connect(f"ws://127.0.0.1:{port}/ws/worker", Deaf())


class Noting:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.codes: list[int | None] = []
        self.is_drained = asyncio.Event()
        self.is_closed = asyncio.Event()

    def received(self, socket: Socket, raw: bytes) -> None:
        self.texts.append(raw)

    def closed(self, socket: Socket, code: int | None) -> None:
        self.codes.append(code)
        self.is_closed.set()

    def drained(self, socket: Socket) -> None:
        self.is_drained.set()


def part(first: int, size: int) -> bytes:
    """A large part of a message."""
    return bytes((first, 127)) + size.to_bytes(8, "big") + b"x" * size


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def opened(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The scheduler's half of an upgrade."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    key = next(
        line.split()[1] for line in head.split("\r\n") if "sec-websocket-key" in line.lower()
    )
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    accept = base64.b64encode(digest).decode()
    writer.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
    )


async def next_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """What the worker sends, without its mask."""
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    key = await reader.readexactly(4)
    raw = await reader.readexactly(size)
    return first & 0x0F, bytes(one ^ key[at % 4] for at, one in enumerate(raw[:125]))


@asynccontextmanager
async def met_by(talk: Talk) -> AsyncIterator[tuple[Socket, Noting]]:
    """A connection to a scheduler that talks so; both ends are closed at the end."""
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await opened(reader, writer)
            await talk(reader, writer)
        finally:
            writer.close()
            done.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(20):
        listener = Noting()
        port = server.sockets[0].getsockname()[1]
        yield await connect(f"ws://127.0.0.1:{port}/ws/worker", listener), listener
        await done.wait()
        await listener.is_closed.wait()


async def test_of_many_pings_the_last_is_answered() -> None:
    pongs: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(b"\x89\x04%04d" % number for number in range(5000)))
        while not pongs or pongs[-1] != b"4999":
            opcode, payload = await next_frame(reader)
            assert opcode == 0xA
            pongs.append(payload)

    async with met_by(talk):
        pass
    assert len(pongs) < 1000


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"\xc1\x02{}", 1002),
        (b"\xa1\x02{}", 1002),
        (b"\x91\x02{}", 1002),
        (b"\x82\x02{}", 1002),
        (b"\x80\x02{}", 1002),
        (b"\x01\x01{\x81\x01}", 1002),
        (b"\x01\x00" + b"\x00\x00" * 5000, 1008),
        (part(0x01, 3 << 20) + part(0x00, 2 << 20), 1009),
    ],
)  # fmt: skip
async def test_what_the_standard_or_a_limit_forbids_ends_the_connection(
    raw: bytes, code: int
) -> None:
    closes: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        opcode, payload = await next_frame(reader)
        assert opcode == 0x8
        closes.append(int.from_bytes(payload[:2], "big"))

    async with met_by(talk) as (_, listener):
        pass
    assert listener.texts == []
    assert closes == [code]


async def test_a_message_in_parts_is_one() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x01\x02ab\x89\x00\x00\x00\x80\x02cd\x81\x01e\x88\x02\x03\xe8")
        while (await next_frame(reader))[0] != 0x8:
            pass

    async with met_by(talk) as (_, listener):
        pass
    assert listener.texts == [b"abcd", b"e"]


async def test_a_scheduler_that_does_not_read_is_owed_no_more_than_a_bound() -> None:
    reads, has_read = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reads.wait()
        while not has_read.is_set():
            await reader.read(1 << 20)

    async with met_by(talk) as (socket, listener):
        text = b"x" * (1 << 20)
        sent = 0
        while socket.room() > 0:
            socket.send([text])
            sent += 1
            assert sent < 64, "there is always room"
        assert not listener.is_drained.is_set()
        reads.set()
        await listener.is_drained.wait()
        assert socket.room() > 0
        has_read.set()
