"""Requests of a client in one thread to an application in the loop of another. Nothing is sent over a network.

A response is read as it comes: an event stream that nobody reads makes the application wait, as a socket would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Final

from astraflow.api.asgi import AsgiApp, Message, Scope
from astraflow.lean_httpx import httpx

MAX_WAITING: Final = 256
"""Pieces of a response that wait for their reader."""


class LocalTransport(httpx.BaseTransport):
    """For `Client(…, transport=…)`. Use it from any thread but that of the loop."""

    def __init__(self, app: AsgiApp, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _Exchange(request.read(), self._loop)
        exchange.start(self._app, _scope(request))
        status, headers = exchange.head()
        return httpx.Response(status, headers=headers, stream=exchange)


class _Exchange(httpx.SyncByteStream):
    """One request and its response."""

    def __init__(self, body: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self._body = body
        self._loop = loop
        self._messages: SimpleQueue[Message | None] = SimpleQueue()
        self._has_room = asyncio.Event()
        self._is_left = asyncio.Event()
        self._has_sent = False
        self._running: Future[None] | None = None

    # -- in the loop ------------------------------------------------------------------------

    def start(self, app: AsgiApp, scope: Scope) -> None:
        self._running = asyncio.run_coroutine_threadsafe(self._run(app, scope), self._loop)

    async def _run(self, app: AsgiApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            self._messages.put(None)

    async def _receive(self) -> Message:
        if not self._has_sent:
            self._has_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._is_left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._messages.put(message)
        if self._messages.qsize() >= MAX_WAITING and not self._is_left.is_set():
            self._has_room.clear()
            await self._has_room.wait()

    # -- in the thread of the client ----------------------------------------------------------

    def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """The status and the headers. Raises: RemoteProtocolError, if the application has failed."""
        message = self._take()
        if message is None:
            raise self._failure()
        return message["status"], list(message.get("headers", ()))

    def __iter__(self) -> Iterator[bytes]:
        while (message := self._take()) is not None:
            body: bytes = message.get("body", b"")
            if body:
                yield body
            if not message.get("more_body", False):
                return
        raise self._failure()

    def _failure(self) -> httpx.RemoteProtocolError:
        """The application has ended before its response did."""
        assert self._running is not None, "it was started"
        wait([self._running])
        is_cancelled = self._running.cancelled()
        why = "it was cancelled" if is_cancelled else repr(self._running.exception())
        return httpx.RemoteProtocolError(f"the response has no end: {why}")

    def _take(self) -> Message | None:
        message = self._messages.get()
        if self._messages.qsize() < MAX_WAITING // 2 and not self._has_room.is_set():
            self._tell(self._has_room)
        return message

    def close(self) -> None:
        self._tell(self._is_left)
        self._tell(self._has_room)

    def _tell(self, event: asyncio.Event) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(event.set)


def _scope(request: httpx.Request) -> Scope:
    path, _, query = request.url.raw_path.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": path,
        "query_string": query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
        "extensions": {},
    }
