"""HTTP/1.1 connections to other nodes.

Rule 1: a connection carries one exchange at a time. It is kept for the next one if the request was sent whole and the
        response came whole.
Rule 2: a response is read as fast as it is taken: with more than `AHEAD_BYTES` that nobody has taken, its connection is
        not read. A request is sent as fast as the other node reads it.
Rule 3: an exchange ends once: with the whole response, or with the first error. Who waits for it gets that error.
Rule 4: a request is as long as its head says, or its connection is closed: what follows would be taken for a request.

A client library for any server would do this, too. This one does not look through all connections for each request, so
that a request costs the same however many there are, and ends an exchange at once when somebody has a reason to.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import httptools

CONNECT_TIMEOUT_S: Final = 2.0
WRITE_TIMEOUT_S: Final = 30.0
MAX_IDLE: Final = 128
"""Connections to one node that are kept."""
IDLE_S: Final = 30.0
"""A connection that was not used for so long is not used again. Well below what a node allows its clients."""
AHEAD_BYTES: Final = 256 * 1024

_LAST_CHUNK: Final = b"0\r\n\r\n"

Headers = Sequence[tuple[bytes, bytes]]


class CannotConnect(Exception):
    """Nothing was sent to the other node."""


class ExchangeFailed(Exception):
    """No whole response came. The request may have been carried out."""


class NodeRequest(NamedTuple):
    """What is sent to another node."""

    method: str
    target: bytes
    headers: Headers
    """All that are sent: none is added but that of a body in chunks, which has no `content-length`."""
    body: bytes = b""
    """The whole of it, or how it begins."""
    rest: AsyncIterator[bytes] | None = None

    @property
    def head(self) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self.method.encode(), self.target)]
        lines += [name + b": " + value for name, value in self.headers]
        if self.length is None:
            lines.append(b"transfer-encoding: chunked")
        return b"\r\n".join((*lines, b"", b""))

    @property
    def length(self) -> int | None:
        return next((int(value) for name, value in self.headers if name == b"content-length"), None)


class NodeConnections:
    """Use from one loop."""

    def __init__(self, trust: ssl.SSLContext, at_once: int) -> None:
        self._trust = trust
        self._slots = asyncio.Semaphore(at_once)
        self._idle: dict[str, deque[_Connection]] = {}

    def close(self) -> None:
        """Close what is not used now; what is used is closed by its exchange."""
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()

    async def ask(self, url: str, request: NodeRequest) -> Exchange:
        """Begin to send a request. `Exchange.close` must follow. Raises: CannotConnect."""
        if self._slots.locked():
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await self._slots.acquire()
            except TimeoutError as error:
                raise CannotConnect("too many requests are passed on") from error
        else:
            await self._slots.acquire()
        with ExitStack() as undo:
            undo.callback(self._slots.release)
            connection = self._kept(url) or await self._connect(url)
            exchange = Exchange(self, url, connection, request)
            undo.pop_all()
        return exchange

    def _kept(self, url: str) -> _Connection | None:
        idle = self._idle.get(url)
        while idle:
            connection = idle.pop()
            if connection.is_fresh():
                return connection
            connection.abort()
        return None

    async def _connect(self, url: str) -> _Connection:
        try:
            parts = urlsplit(url)
            is_tls = parts.scheme == "https"
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    _Connection, parts.hostname or "", parts.port or (443 if is_tls else 80),
                    ssl=self._trust if is_tls else None,
                )  # fmt: skip
        except (OSError, ValueError) as error:
            raise CannotConnect(f"{url}: {type(error).__name__}: {error}") from error
        return connection

    def give_back(self, url: str, connection: _Connection, is_reusable: bool) -> None:
        """Called by an exchange as it ends, once."""
        self._slots.release()
        idle = self._idle.setdefault(url, deque())
        if not is_reusable:
            connection.abort()
            return
        connection.rest(idle)
        if len(idle) > MAX_IDLE:
            idle.popleft().abort()


class Exchange:
    """A request that is sent, and its response."""

    def __init__(
        self, pool: NodeConnections, url: str, connection: _Connection, request: NodeRequest
    ) -> None:
        self.status = 0
        """0: the head of the response is still to come."""
        self.headers: list[tuple[bytes, bytes]] = []
        """Of the response; names are in lower case."""
        self.is_whole = False
        self.is_sent = False
        self.has_no_body = request.method == "HEAD"
        self._pool = pool
        self._url = url
        self._connection = connection
        self._pieces: list[bytes] = []
        self._ahead = 0
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._may_reuse = True
        self._is_closed = False
        self._sending: asyncio.Task[None] | None = None
        connection.begin(self)
        self._start(request)

    def _start(self, request: NodeRequest) -> None:
        length = request.length
        begin = request.head
        begin += _chunk(request.body) if length is None else request.body
        left = None if length is None else length - len(request.body)
        if request.rest is None:
            self._connection.write(begin + (_LAST_CHUNK if left is None else b""))
            self._finish(left)
        else:
            self._connection.write(begin)
            self._sending = asyncio.create_task(self._send(request.rest, left))
            self._sending.add_done_callback(self._after_sending)

    def _finish(self, left: int | None) -> None:
        if left:
            self.abandon(ExchangeFailed("the body is not as long as its head says"))
        self.is_sent = True

    async def _send(self, rest: AsyncIterator[bytes], left: int | None) -> None:
        """Send what comes of a body."""
        try:
            async for piece in rest:
                if left is not None:
                    left -= len(piece)
                    if left < 0:
                        break
                self._connection.write(_chunk(piece) if left is None else piece)
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self._connection.writable.wait()
            if left is None:
                self._connection.write(_LAST_CHUNK)
            self._finish(left)
        except TimeoutError:
            self.abandon(ExchangeFailed("the other node does not read"))

    def _after_sending(self, sending: asyncio.Task[None]) -> None:
        """An error of where the body comes from is the error of the exchange."""
        if not sending.cancelled() and isinstance(error := sending.exception(), Exception):
            self.abandon(error)

    # -- for who has asked ---------------------------------------------------------------------

    async def head(self) -> None:
        """Wait for the head of the response. Raises: the error of the exchange."""
        while not self.status:
            await self._next()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body of the response, as it comes. Raises: the error of the exchange."""
        while True:
            if self._pieces:
                yield self._take()
            elif self.is_whole:
                return
            else:
                await self._next()

    async def read(self) -> bytes:
        """The whole body. Raises: the error of the exchange."""
        return b"".join([piece async for piece in self.pieces()])

    def abandon(self, error: Exception) -> None:
        """End it with an error, if it has not ended."""
        if self._error is None and not self.is_whole:
            self._error = error
            self._wake()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.abandon(ExchangeFailed("closed"))
        if self._sending is not None:
            self._sending.cancel()
        is_reusable = self._may_reuse and self.is_whole and self.is_sent and self._error is None
        self._pool.give_back(self._url, self._connection, is_reusable)

    def _take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        if self._ahead > AHEAD_BYTES:
            self._connection.resume()
        self._ahead = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _next(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- for its connection --------------------------------------------------------------------

    def began(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status, self.headers = status, headers
        self._wake()

    def got(self, piece: bytes) -> None:
        was_ahead = self._ahead > AHEAD_BYTES
        self._pieces.append(piece)
        self._ahead += len(piece)
        if not was_ahead and self._ahead > AHEAD_BYTES:
            self._connection.pause()
        self._wake()

    def ended(self, may_reuse: bool) -> None:
        """The response is whole."""
        self._may_reuse = may_reuse
        self.is_whole = self._error is None
        self._wake()


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._status = 0
        self._exchange: Exchange | None = None
        self._idle: deque[_Connection] | None = None
        """Where it waits to be used again."""
        self._idle_since = 0.0

    # -- for the pool and the exchange ---------------------------------------------------------

    def begin(self, exchange: Exchange) -> None:
        self._exchange, self._idle = exchange, None

    def rest(self, idle: deque[_Connection]) -> None:
        self._exchange = None
        if self._transport.is_closing():
            return
        self._transport.resume_reading()
        self._idle, self._idle_since = idle, asyncio.get_running_loop().time()
        idle.append(self)

    def is_fresh(self) -> bool:
        age = asyncio.get_running_loop().time() - self._idle_since
        return age < IDLE_S and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    def abort(self) -> None:
        self._exchange = self._idle = None
        self._transport.abort()

    # -- for the loop --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of uvloop is none by its class.
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        if self._exchange is None:
            self._transport.abort()  # nobody has asked for anything
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"what the other node says is not HTTP: {error}")
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        if self._idle is not None and self in self._idle:
            self._idle.remove(self)
        self._fail(f"the other node has closed the connection: {exc or 'end of data'}")

    def _fail(self, why: str) -> None:
        if self._exchange is not None:
            self._exchange.abandon(ExchangeFailed(why))

    # -- for the parser ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._exchange is None or self._exchange.is_whole:
            raise ValueError("a response that nobody has asked for")
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200 or self._exchange is None:
            return  # a remark before the response
        self._exchange.began(self._status, self._headers)
        if self._exchange.has_no_body:
            self._exchange.ended(may_reuse=False)  # the parser waits for one

    def on_body(self, body: bytes) -> None:
        if self._exchange is not None:
            self._exchange.got(body)

    def on_message_complete(self) -> None:
        if self._status >= 200 and self._exchange is not None:
            self._exchange.ended(self._parser.should_keep_alive())


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
