"""The worker's WebSocket: one connection to the scheduler at a time.

The send buffer for a scheduler that does not read is bounded; above the bound the worker stops reading, and finally
closes the connection. Of several pings only the last is answered (RFC 6455 §5.5.3 allows it).
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from picows import (
    WSCloseCode,
    WSError,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    ws_connect,
)

from astraflow.core.protocol import limits
from astraflow.core.protocol.websocket import masked_text

SUBPROTOCOL: Final = "astraflow.v2"
CONNECT_TIMEOUT_S: Final = 10.0
CLOSE_WAIT_S: Final = 2.0
SMALL_BYTES: Final = 4096

_log: Final = logging.getLogger("picows")
_TEXT: Final = WSMsgType.TEXT
_CONTINUATION: Final = WSMsgType.CONTINUATION
_CLOSE: Final = WSMsgType.CLOSE
_PING: Final = WSMsgType.PING
_PONG: Final = WSMsgType.PONG


class Socket(Protocol):
    """An open connection."""

    def send(self, frames: list[bytes]) -> None: ...

    def room(self) -> int:
        """How many bytes may still wait to be written; at 0 or less nothing is sent, and `drained` tells of more."""

    def close(self, code: int) -> None: ...


class Listener(Protocol):
    """The receiver of a connection's events."""

    def received(self, socket: Socket, raw: bytes) -> None: ...
    def closed(self, socket: Socket, code: int | None) -> None: ...

    def drained(self, socket: Socket) -> None:
        """There is room again."""


OpenSocket = Callable[[str, Listener], Awaitable[Socket]]
"""Opens a connection to an address. Raises: OSError."""


class _Connection(WSListener):
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._transport: WSTransport | None = None
        self._parts: list[bytes] | None = None
        self._parts_count = 0
        self._size = 0
        self._code: int | None = None
        self._is_closing = False
        self._pong: bytes | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    @property
    def was_opened(self) -> bool:
        return self._transport is not None

    # -- what picows calls ------------------------------------------------------------------

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        transport.underlying_transport.set_write_buffer_limits(limits.MAX_OWED_BYTES)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.close(limits.CLOSE_PROTOCOL_ERROR)
        elif kind == _TEXT and frame.fin and self._parts is None:
            self._listener.received(self, frame.get_payload_as_bytes())
        elif kind in (_TEXT, _CONTINUATION):
            self._gather(frame)
        elif kind == _CLOSE:
            self._code = frame.get_close_code().value
            if not self._is_closing:
                transport.send_close(WSCloseCode.OK)
            transport.disconnect()
        elif kind == _PING:
            if self._pong is None:
                asyncio.get_running_loop().call_soon(self._answer_ping)
            self._pong = frame.get_payload_as_bytes()
        elif kind != _PONG:
            self.close(limits.CLOSE_PROTOCOL_ERROR)

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._cancel_timer()
        self._listener.closed(self, self._code)

    def pause_writing(self) -> None:
        assert self._transport is not None
        later = asyncio.get_running_loop().call_later
        self._unread_timer = later(limits.UNREAD_TIMEOUT_S, self.close, limits.CLOSE_POLICY)
        self._transport.underlying_transport.pause_reading()

    def resume_writing(self) -> None:
        assert self._transport is not None
        self._cancel_timer()
        self._transport.underlying_transport.resume_reading()
        self._listener.drained(self)

    def _gather(self, frame: WSFrame) -> None:
        """A part of a message."""
        if (frame.msg_type == _TEXT) == (self._parts is not None):
            self.close(
                limits.CLOSE_PROTOCOL_ERROR
            )  # a message inside of another, or a part of none
            return
        if self._parts is None:
            self._parts, self._parts_count, self._size = [], 0, 0
        self._parts_count += 1
        self._size += frame.payload_size
        if self._size > limits.MAX_FRAME_BYTES:
            self.close(limits.CLOSE_TOO_BIG)
        elif self._parts_count > limits.MAX_FRAGMENTS:
            self.close(limits.CLOSE_POLICY)
        else:
            self._parts.append(frame.get_payload_as_bytes())
            if frame.fin:
                raw, self._parts = b"".join(self._parts), None
                self._listener.received(self, raw)

    def _answer_ping(self) -> None:
        pong, self._pong = self._pong, None
        transport = self._transport
        if pong is None or transport is None or transport.is_disconnected or self._is_closing:
            return
        if self.room() > 0:
            transport.send_pong(pong)

    def _cancel_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # -- what the link calls ----------------------------------------------------------------

    def room(self) -> int:
        assert self._transport is not None
        waiting = self._transport.underlying_transport.get_write_buffer_size()
        return limits.MAX_OWED_BYTES - waiting

    def send(self, frames: list[bytes]) -> None:
        transport = self._transport
        if transport is None or transport.is_disconnected or self._is_closing:
            return
        if len(frames) == 1:
            transport.send(_TEXT, frames[0])
            return
        # Small ones in one write: a system call costs more than making them. Large ones are masked faster by picows.
        small: list[bytes] = []
        for text in frames:
            if len(text) <= SMALL_BYTES:
                small.append(masked_text(text, os.urandom(4)))
                continue
            transport.underlying_transport.write(b"".join(small))
            small.clear()
            transport.send(_TEXT, text)
        transport.underlying_transport.write(b"".join(small))

    def close(self, code: int) -> None:
        transport = self._transport
        if transport is None or transport.is_disconnected or self._is_closing:
            return
        self._is_closing = True
        transport.send_close(WSCloseCode(code))
        end = transport.underlying_transport.abort
        asyncio.get_running_loop().call_later(CLOSE_WAIT_S, end)


def connecting(tls: Callable[[], ssl.SSLContext] | None = None) -> OpenSocket:
    """What opens connections, over TLS with a context that is made for each: a renewed certificate is used at the next
    one."""

    async def open_socket(url: str, listener: Listener) -> Socket:
        context = tls() if tls is not None and url.startswith("wss:") else None
        return await connect(url, listener, context)

    return open_socket


async def connect(url: str, listener: Listener, tls: ssl.SSLContext | None = None) -> Socket:
    """Open a connection.

    Raises:
        OSError: nobody listens there, or what answers does not speak this.
    """
    connection = _Connection(listener)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await ws_connect(
                lambda: connection,
                url,
                logger_name=_log,
                enable_auto_pong=False,
                max_frame_size=limits.MAX_FRAME_BYTES,
                extra_headers={"Sec-WebSocket-Protocol": SUBPROTOCOL},
                ssl_context=tls,
            )
    except (WSError, TimeoutError) as error:
        raise ConnectionError(f"cannot connect to {url}: {error}") from error
    if not connection.was_opened:
        # picows calls a connection that was lost before its handshake a success, and tells nobody that it is over.
        raise ConnectionError(f"cannot connect to {url}: closed before it was open")
    return connection
