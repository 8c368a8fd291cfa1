"""The worker's socket, against ends that are no scheduler."""

from __future__ import annotations

import asyncio

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


def test_a_connection_that_is_closed_before_its_handshake_is_refused_at_once() -> None:
    """As a proxy does whose scheduler is gone: it takes the connection, and drops it."""

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async def attempt() -> None:
        server = await asyncio.start_server(drop, "127.0.0.1", 0)
        async with server, asyncio.timeout(WITHIN_S):
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectionError, match="closed before it was open"):
                await connect(f"ws://127.0.0.1:{port}/ws/worker", Deaf())

    asyncio.run(attempt())
