"""An event stream as a response: bytes that are made one piece after another, for a client that may not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

from astraflow.api.asgi import Receive, Scope, Send
from astraflow.api.responses import DROP, Response, encode, request_id_header
from astraflow.api.routes import Timing
from astraflow.api.stream_grants import GRANT, GRANT_TYPE, StreamOpening, encode_grant
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
        opening: StreamOpening,
        pieces: AsyncGenerator[bytes, None],
        first: bytes = b"",
        ping: bytes = COMMENT_PING,
    ) -> None:
        self._streams = streams
        self._opening = opening
        self._tenant = opening.tenant
        self._pieces = pieces
        self._first = first
        self._ping = ping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get(GRANT):
            await self._pieces.aclose()
            grant = Response(encode_grant(self._opening), media_type=GRANT_TYPE)
            await grant(scope, receive, send)
            return
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
    """The connection of one client.

    One task waits for the next piece and sends it. It is cancelled when the client is gone, or when a ping cannot be
    sent: a task for each piece, to wait for it and for the client at once, would cost more than the piece.
    """

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
        self._loop = asyncio.get_running_loop()
        self._sender: asyncio.Task[Any] | None = None
        """Who sends, while it may be stopped."""
        self._is_stopped = False
        self._is_stalled = False
        self._is_writing = False
        self._since = self._loop.time()
        """When it began to write, or ended, whichever was last."""
        self._timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None

    async def pump(self, pieces: AsyncGenerator[bytes, None], first: bytes) -> bool:
        """Send all pieces. False: the client was disconnected because it did not read."""
        head = [*_HEAD, self._request_id]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})
        gone = asyncio.create_task(self._wait_until_gone())
        try:
            await self._send_until_stopped(pieces, first, gone)
            return not self._is_stalled or await self._give_up(gone)
        finally:
            gone.cancel()

    async def _send_until_stopped(
        self, pieces: AsyncGenerator[bytes, None], first: bytes, gone: asyncio.Task[None]
    ) -> None:
        sender = self._sender = asyncio.current_task()
        assert sender is not None
        gone.add_done_callback(self._stop)
        self._look_later()
        try:
            # Something is sent at once, so that the client sees that its stream is open.
            await self._write(first or self._ping)
            async for piece in pieces:
                await self._write(piece)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if not self._is_stopped or sender.uncancel():
                raise  # somebody else wants it, too
        finally:
            self._sender = None
            if self._timer is not None:
                self._timer.cancel()
            if self._pinging is not None:
                self._pinging.cancel()

    def _stop(self, _: object = None) -> None:
        if self._sender is not None:
            self._is_stopped = True
            self._sender.cancel()
            self._sender = None

    async def _write(self, piece: bytes) -> None:
        self._is_writing = True
        self._since = self._loop.time()
        try:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            self._is_writing = False
        self._since = self._loop.time()

    def _look_later(self) -> None:
        """Look at the client when it may be time for a ping, or for the end of one that does not read. One timer for
        the whole stream: a timeout for each piece would cost more than the piece."""
        timing = self._timing
        due = self._since + (timing.stall_s if self._is_writing else timing.ping_s)
        delay = min(max(due - self._loop.time(), 0.0), timing.stall_s)
        self._timer = self._loop.call_later(delay, self._look)

    def _look(self) -> None:
        waited = self._loop.time() - self._since
        if self._is_writing and waited >= self._timing.stall_s:
            self._is_stalled = True
            self._stop()
            return
        if not self._is_writing and waited >= self._timing.ping_s:
            self._pinging = self._loop.create_task(self._write(self._ping))
            self._is_writing = True  # from here on: the task has not begun
            self._since = self._loop.time()
        self._look_later()

    async def _give_up(self, gone: asyncio.Task[None]) -> bool:
        if self._drop is not None:
            self._drop(_OVERFLOW)
            await gone
        return False

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
