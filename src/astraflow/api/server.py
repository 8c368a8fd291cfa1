"""uvicorn with limits.

uvicorn lacks four things that are added here: a limit on the size of a request's head, a timeout for it, a way to
disconnect a client that does not read its response, and one write for the head of a response with the beginning of its
body. A request that is not HTTP gets a problem document.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from functools import partial
from typing import Any, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from astraflow.api.responses import DROP, HAS_BODY, PROBLEM, encode, problem_body
from astraflow.core import errors
from astraflow.core.errors import Code
from astraflow.observe.request_ids import new_request_id

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers; browsers and proxies stay below a quarter of it."""

MAX_HEADERS: Final = 128
MAX_CONNECTIONS: Final = 10_000
"""Of HTTP; as many as there may be of workers. More are disconnected at once."""

HEAD_WAIT_S: Final = 10.0
"""The timeout for the head of a request, from the connection or its first byte on."""

KEEP_ALIVE_S: Final = 75
"""Longer than the idle timeout of load balancers, so that they close the connection and not we."""

DROP_WAIT_S: Final = 5.0
"""How long a client that did not read has to receive the reason, before its connection is aborted."""

SHUTDOWN_S: Final = 5
"""The timeout for open requests when the server stops; the scheduler ends event streams before that."""

BACKLOG: Final = 2_048
CONTINUE: Final = b"HTTP/1.1 100"
"""What an answer begins with that is no response yet."""
JOINED_BYTES: Final = 64 * 1024
"""A body that is larger is not copied to stand behind its head."""


class FirstWrite:
    """A transport for one response. It writes the head together with all that follows in the same turn of the loop: a
    system call costs as much as the rest of a small response."""

    __slots__ = ("_is_begun", "_is_over", "_loop", "_parts", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0
        self._is_begun = False
        self._is_over = False

    def write(self, data: bytes) -> None:
        if self._is_over or (not self._is_begun and data.startswith(CONTINUE)):
            self._transport.write(data)
            return
        if not self._is_begun:
            self._is_begun = True
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > JOINED_BYTES:
            self.flush()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def flush(self) -> None:
        """Write what was held back: the turn is over, or the response is complete. From now on nothing is."""
        self._is_over = True
        parts, self._parts = self._parts, []
        if not parts or self._transport.is_closing():
            return
        if self._size > JOINED_BYTES:
            self._transport.writelines(parts)
        else:
            self._transport.write(b"".join(parts))


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._head_timer is None:
            self._await_head()
        self.scope["extensions"] = {DROP: self._drop, HAS_BODY: self._has_body}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._head_arrived()
        if self.transport.is_closing():
            return
        if not self.url.startswith(b"/") and self._names_another_host():
            self._refuse(errors.REQUEST_INVALID, "the target names another host than the header")
            return
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:  # else it is an upgrade
            first = FirstWrite(self.transport, self.loop)
            self.cycle.transport = cast("asyncio.Transport", first)
            self.cycle.on_response = partial(self._on_response, first)

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(errors.REQUEST_INVALID, "this is not HTTP")

    def _names_another_host(self) -> bool:
        """Of a target in absolute form: whether it is not that of the header, by which the application judges."""
        _, is_absolute, rest = self.url.partition(b"://")
        authority = re.split(rb"[/?#]", rest, maxsplit=1)[0].lower()
        hosts = [value.lower() for name, value in self.headers if name == b"host"]
        return bool(is_absolute) and hosts != [authority]

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refuse(errors.REQUEST_TOO_LARGE, "the head of the request is larger than allowed")

    def _refuse(self, code: Code, message: str) -> None:
        if self.transport.is_closing():
            return  # the rest of a request that was refused
        request_id = new_request_id()
        body = encode(problem_body(code, message, request_id=request_id))
        reason = "Bad Request" if code.http == 400 else "Content Too Large"
        lines = (
            f"HTTP/1.1 {code.http} {reason}",
            f"content-type: {PROBLEM.decode()}",
            f"content-length: {len(body)}",
            f"x-request-id: {request_id}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*lines, "", "")).encode() + body)
        self.transport.close()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_WAIT_S, self._head_overdue)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_overdue(self) -> None:
        self._head_timer = None
        self.transport.abort()

    def _on_response(self, first: FirstWrite) -> None:
        first.flush()
        self.on_response_complete()

    def _has_body(self) -> bool:
        return not self.cycle.more_body  # of the last request: those before it have arrived

    def _drop(self, last: bytes) -> None:
        """End a response whose client does not read: send a last chunk, in case it reads again, and disconnect."""
        cast("FirstWrite", self.cycle.transport).flush()
        if not last or self.transport.is_closing():
            self.transport.abort()
            return
        self.transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last))
        self.transport.close()
        self.loop.call_later(DROP_WAIT_S, self.transport.abort)


def server_config(
    app: Any,
    host: str,
    port: int,
    *,
    sockets: type | None = None,
    tls: ssl.SSLContext | None = None,
) -> uvicorn.Config:
    """How uvicorn serves the application. `sockets`: the WebSocket protocol (`worker_socket.socket_class`), if any."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=HttpProtocol,
        ws=sockets if sockets is not None else "none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
        backlog=BACKLOG,
    )
    if tls is not None:
        # uvicorn makes a context of files; ours can be changed while it serves.
        config.load()
        config.ssl = tls
    return config
