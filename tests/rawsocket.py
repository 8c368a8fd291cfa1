"""A WebSocket client that shares no code with the product: bytes in, bytes out (RFC 6455)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import struct
from typing import Any

import msgspec

__all__ = ["Frame", "RawSocket", "envelope"]

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
WAIT_S = 20.0

Frame = tuple[int, bytes]


def envelope(frame_type: str, payload: object, **more: Any) -> bytes:
    """A frame of the session layer, as an independent worker writes it."""
    return msgspec.json.encode(
        {
            "type": frame_type,
            "id": "01J8ZK2Q3W4E5R6T7Y8V"
            + base64.b32encode(os.urandom(4))
            .decode()[:6]
            .translate(str.maketrans("ILOU234567", "0123ABCDEF")),
            "ts": "2026-01-15T10:00:00.000Z",
            "tenant": "default",
            "sender": {"role": "worker", "id": "w-1"},
            "payload": payload,
            **more,
        }
    )


class RawSocket:
    """One connection. `status` is the HTTP status of the upgrade."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def open(
        cls, port: int, path: str = "/ws/worker", subprotocol: str | None = "astraflow.v2"
    ) -> RawSocket:
        socket = cls(*await asyncio.open_connection("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        if subprotocol is not None:
            lines.append(f"Sec-WebSocket-Protocol: {subprotocol}")
        socket._writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await asyncio.wait_for(socket._reader.readuntil(b"\r\n\r\n"), WAIT_S)
        first, *rest = head.decode().split("\r\n")
        socket.status = int(first.split()[1])
        socket.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
        }
        return socket

    def send(self, payload: bytes, opcode: int = TEXT, *, fin: bool = True) -> None:
        size = len(payload)
        if size < 126:
            length = bytes((0x80 | size,))
        elif size < 1 << 16:
            length = b"\xfe" + struct.pack(">H", size)
        else:
            length = b"\xff" + struct.pack(">Q", size)
        mask = os.urandom(4)
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        masked = (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")
        self._writer.write(bytes(((0x80 if fin else 0) | opcode,)) + length + mask + masked)

    async def receive(self) -> Frame:
        """The next frame; (CLOSE, b"") when the peer is gone."""
        try:
            first, second = await asyncio.wait_for(self._reader.readexactly(2), WAIT_S)
            size = second & 0x7F
            if size >= 126:
                width = 2 if size == 126 else 8
                size = int.from_bytes(await self._reader.readexactly(width), "big")
            return first & 0x0F, await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return CLOSE, b""

    async def receive_json(self) -> dict[str, Any]:
        opcode, payload = await self.receive()
        assert opcode == TEXT, (opcode, payload)
        frame: dict[str, Any] = msgspec.json.decode(payload)
        return frame

    async def until_close(self) -> tuple[list[dict[str, Any]], int | None]:
        """What comes until the peer closes, and the code it gives."""
        frames: list[dict[str, Any]] = []
        while True:
            opcode, payload = await self.receive()
            if opcode == CLOSE:
                return frames, int.from_bytes(payload[:2], "big") if payload else None
            if opcode == TEXT:
                frames.append(msgspec.json.decode(payload))

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
