"""A server that takes uploads: it reads them in pieces and keeps their digests."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Put", "Receiver"]

PIECE_BYTES = 64 * 1024


@dataclass
class Put:
    """One request as it came."""

    method: str
    path: str
    mime: str | None
    authorization: str | None
    size: int
    sha256: str


class Receiver:
    """Answers 200, or first what it was told to; held, it waits before it reads a body."""

    def __init__(self, answers: list[int] | None = None, *, is_held: bool = False) -> None:
        self.received: list[Put] = []
        self.arrived = asyncio.Event()
        self.let_go = asyncio.Event()
        self._answers = list(answers or ())
        self._serving: set[asyncio.Task[None] | None] = set()
        if not is_held:
            self.let_go.set()

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.let_go.set()
        self._server.close()
        await self._server.wait_closed()
        await asyncio.gather(*filter(None, self._serving), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        try:
            await self._take(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        self.arrived.set()
        await self.let_go.wait()
        size, left, digest = 0, int(fields["content-length"]), hashlib.sha256()
        while left:
            piece = await reader.read(min(PIECE_BYTES, left))
            assert piece, "the upload ended early"
            left -= len(piece)
            size += len(piece)
            digest.update(piece)
        mime, authorization = fields.get("content-type"), fields.get("authorization")
        self.received.append(Put(method, path, mime, authorization, size, digest.hexdigest()))
        status = self._answers.pop(0) if self._answers else 200
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
