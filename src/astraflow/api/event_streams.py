"""An event stream as a response: bytes that are made one piece after another, for a client that may not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Final

from astraflow.api.asgi import Receive, Scope, Send
from astraflow.api.responses import DROP, encode, request_id_header
from astraflow.api.routes import Timing
from astraflow.core import errors
from astraflow.core.contract.events import StreamEnd
from astraflow.core.errors import AstraflowError, Unavailable
from astraflow.observe.metrics import Metrics

_HEAD: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),  # a proxy that buffers responses would buffer for ever
    (
        b"connection",
        b"close",
    ),  # the end of the stream is the end of the connection, for the simplest of clients
)
COMMENT_PING: Final = b": ping\n\n"
"""Keeps proxies from closing a stream in which nothing happens."""
EVENT_PING: Final = b"event: ping\ndata: {}\n\n"
"""The same as an event. An `EventSource` shows no comments, so that its page cannot see that a peer is gone."""
_OVERFLOW: Final = b"event: overflow\ndata: %b\n\n" % encode(
    StreamEnd(
        code=errors.OVERLOADED.code,
        message="the stream was not read; reconnect with the last id that was seen",
    )
)


class OpenStreams:
    """The streams that are open, up to a limit."""

    def __init__(self, metrics: Metrics, timing: Timing, limit: int) -> None:
        self.metrics = metrics
        self.timing = timing
        self._limit = limit
        self._count = 0

    def check_room(self) -> None:
        """Raises: Unavailable."""
        if self._count >= self._limit:
            raise Unavailable(errors.OVERLOADED, "too many event streams are open")

    def opened(self, tenant: str) -> None:
        self._count += 1
        self.metrics.sse_readers.add(tenant)

    def closed(self, tenant: str) -> None:
        self._count -= 1
        self.metrics.sse_readers.add(tenant, by=-1)


def error_bytes(error: AstraflowError) -> bytes:
    """Why a stream ends whose head is sent already. The client may reconnect."""
    body = encode(StreamEnd(code=error.code.code, message=error.message))
    return b"event: error\ndata: %b\n\n" % body


class EventStream:
    """A stream as a response."""

    farewell: Final = b"event: error\ndata: %b\n\n" % encode(
        StreamEnd(
            code=errors.AUTH_INVALID_TOKEN.code, message="the credential is not good any more"
        )
    )
    """What it ends with, if its credential ends."""

    def __init__(
        self,
        streams: OpenStreams,
        tenant: str,
        pieces: AsyncGenerator[bytes, None],
        first: bytes = b"",
        ping: bytes = COMMENT_PING,
    ) -> None:
        self._streams = streams
        self._tenant = tenant
        self._pieces = pieces
        self._first = first
        self._ping = ping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.opened(self._tenant)
        try:
            async with aclosing(self._pieces):
                reader = _StreamClient(scope, receive, send, self._streams.timing, self._ping)
                was_read = await reader.pump(self._pieces, self._first)
                # Also if it is 0: a tenant that has streams has a count of those that were dropped.
                self._streams.metrics.sse_dropped.add(self._tenant, by=0 if was_read else 1)
        finally:
            self._streams.closed(self._tenant)


class _StreamClient:
    """The connection of one client."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, timing: Timing, ping: bytes
    ) -> None:
        extensions: dict[str, Any] = scope.get("extensions") or {}
        self._drop: Callable[[bytes], None] | None = extensions.get(DROP)
        self._request_id = request_id_header(scope)
        self._receive = receive
        self._send = send
        self._timing = timing
        self._ping = ping

    async def pump(self, pieces: AsyncGenerator[bytes, None], first: bytes) -> bool:
        """Send all pieces. False: the client was disconnected because it did not read."""
        head = [*_HEAD, self._request_id]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})
        async with asyncio.TaskGroup() as group:
            gone = group.create_task(self._wait_until_gone())
            try:
                # Something is sent at once, so that the client sees that its stream is open.
                if not await self._write(first or self._ping):
                    return await self._give_up(gone)
                return await self._pump(pieces, group, gone)
            finally:
                gone.cancel()

    async def _pump(
        self,
        pieces: AsyncGenerator[bytes, None],
        group: asyncio.TaskGroup,
        gone: asyncio.Task[None],
    ) -> bool:
        while True:
            upcoming = group.create_task(_next(pieces))
            try:
                while not upcoming.done():
                    await asyncio.wait(
                        (upcoming, gone),
                        timeout=self._timing.ping_s,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if gone.done():
                        return True
                    if not upcoming.done() and not await self._write(self._ping):
                        return await self._give_up(gone)
                piece = upcoming.result()
            finally:
                upcoming.cancel()
            if piece is None:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
                return True
            if not await self._write(piece):
                return await self._give_up(gone)
            if gone.done():
                return True

    async def _write(self, piece: bytes) -> bool:
        """Write a piece to the socket; False on a timeout."""
        try:
            async with asyncio.timeout(self._timing.stall_s):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        except TimeoutError:
            return False
        return True

    async def _give_up(self, gone: asyncio.Task[None]) -> bool:
        if self._drop is not None:
            self._drop(_OVERFLOW)
            await gone
        return False

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)
