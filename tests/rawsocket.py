"""A WebSocket client that shares no code with the product: bytes in, bytes out (RFC 6455)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import secrets
import ssl
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

__all__ = ["RawSocket", "WireFrame", "frame", "hello", "masked", "new_id", "upgrade_request"]

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
WAIT_S = 20.0

WireFrame = tuple[int, bytes]
_ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id() -> str:
    return "0" + "".join(secrets.choice(_ULID) for _ in range(25))


def frame(worker: str, kind: str, payload: object, **more: Any) -> bytes:
    """A frame of the session layer, as an independent worker writes it. `more` goes into the envelope."""
    text = {
        "type": kind,
        "id": new_id(),
        "ts": "2026-01-15T10:00:00.000Z",
        "tenant": "default",
        "sender": {"role": "worker", "id": worker},
        "payload": payload,
        **more,
    }
    return json.dumps(text).encode()


def hello(worker: str, token: str, **changed: Any) -> dict[str, Any]:
    """The payload of a handshake."""
    about = {
        "worker_instance_id": worker,
        "incarnation": 1,
        "worker_name": worker,
        "version": "0",
        "hostname": "h",
        **changed,
    }
    return {"protocol": 2, "auth": {"mode": "token", "token": token}, "worker": about}


def upgrade_request(
    port: int, changed: Mapping[str, str | None] = MappingProxyType({}), path: str = "/ws/worker"
) -> bytes:
    """What asks for a WebSocket. `changed`: headers with other values, None for none."""
    headers: dict[str, str | None] = {
        "Host": f"127.0.0.1:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
    }
    headers |= changed
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode()


def masked(
    payload: bytes, opcode: int = TEXT, *, first: int | None = None, mask: bytes = bytes(4)
) -> bytes:
    """One frame of RFC 6455. `first`: another first byte than that of a whole message."""
    size = len(payload)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 1 << 16:
        length = b"\xfe" + struct.pack(">H", size)
    else:
        length = b"\xff" + struct.pack(">Q", size)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    body = (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")
    return bytes((0x80 | opcode if first is None else first,)) + length + mask + body


class RawSocket:
    """One connection. `status` is the HTTP status of the upgrade."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def open(
        cls,
        port: int,
        path: str = "/ws/worker",
        subprotocol: str | None = "astraflow.v2",
        tls: ssl.SSLContext | None = None,
    ) -> RawSocket:
        socket = cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls))
        asked = {"Sec-WebSocket-Protocol": subprotocol}
        socket._writer.write(upgrade_request(port, asked, path))
        head = await asyncio.wait_for(socket._reader.readuntil(b"\r\n\r\n"), WAIT_S)
        first, *rest = head.decode().split("\r\n")
        socket.status = int(first.split()[1])
        socket.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
        }
        return socket

    def send(self, payload: bytes, opcode: int = TEXT, *, fin: bool = True) -> None:
        first = (0x80 if fin else 0) | opcode
        self._writer.write(masked(payload, first=first, mask=os.urandom(4)))

    async def receive(self) -> WireFrame:
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
        received: dict[str, Any] = msgspec.json.decode(payload)
        return received

    async def next(self, kind: str) -> dict[str, Any]:
        """The next frame of a type; those before it are taken, too."""
        while (received := await self.receive_json())["type"] != kind:
            pass
        return received

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
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await self._writer.wait_closed()
