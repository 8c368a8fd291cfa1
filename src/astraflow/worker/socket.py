"""The worker's own socket: one connection to the scheduler at a time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
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

from astraflow.protocol import limits

__all__ = ["Connect", "Listener", "Socket", "connect"]

SUBPROTOCOL: Final = "astraflow.v2"
CONNECT_TIMEOUT_S: Final = 10.0
CLOSE_WAIT_S: Final = 2.0
SMALL_BYTES: Final = 4096

_log: Final = logging.getLogger("picows")
_TEXT: Final = WSMsgType.TEXT
_CONTINUATION: Final = WSMsgType.CONTINUATION
_CLOSE: Final = WSMsgType.CLOSE
_SHORT: Final = 126
_MEDIUM: Final = 1 << 16


def masked(text: bytes) -> bytes:
    """One text frame of a client, RFC 6455 §5.2 and §5.3: the key is new for every frame."""
    size = len(text)
    if size < _SHORT:
        head = bytes((0x81, 0x80 | size))
    elif size < _MEDIUM:
        head = b"\x81\xfe" + size.to_bytes(2, "big")
    else:
        head = b"\x81\xff" + size.to_bytes(8, "big")
    key = os.urandom(4)
    stream = int.from_bytes((key * (size // 4 + 1))[:size], "big")
    return head + key + (int.from_bytes(text, "big") ^ stream).to_bytes(size, "big")


class Socket(Protocol):
    """An open connection."""

    def send(self, frames: list[bytes]) -> None: ...
    def close(self, code: int) -> None: ...


class Listener(Protocol):
    """Whom a connection tells."""

    def received(self, socket: Socket, raw: bytes) -> None: ...
    def closed(self, socket: Socket, code: int | None) -> None: ...


Connect = Callable[[str, Listener], "asyncio.Future[Socket]"]


class _Connection(WSListener):
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._transport: WSTransport | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._code: int | None = None
        self._is_closing = False

    @property
    def was_opened(self) -> bool:
        return self._transport is not None

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if kind == _TEXT and frame.fin:
            self._listener.received(self, frame.get_payload_as_bytes())
        elif kind in (_TEXT, _CONTINUATION):
            self._size += frame.payload_size
            self._parts.append(frame.get_payload_as_bytes())
            if self._size > limits.MAX_FRAME_BYTES:
                self.close(limits.CLOSE_TOO_BIG)
            elif frame.fin:
                raw, self._parts, self._size = b"".join(self._parts), [], 0
                self._listener.received(self, raw)
        elif kind == _CLOSE:
            self._code = frame.get_close_code().value
            if not self._is_closing:
                transport.send_close(WSCloseCode.OK)
            transport.disconnect()

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._listener.closed(self, self._code)

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
                small.append(masked(text))
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
        asyncio.get_running_loop().call_later(CLOSE_WAIT_S, transport.disconnect)


async def connect(url: str, listener: Listener) -> Socket:
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
                enable_auto_pong=True,
                max_frame_size=limits.MAX_FRAME_BYTES,
                extra_headers={"Sec-WebSocket-Protocol": SUBPROTOCOL},
            )
    except (WSError, TimeoutError) as error:
        raise ConnectionError(f"cannot connect to {url}: {error}") from error
    if not connection.was_opened:
        # picows calls a connection that was lost before its handshake a success, and tells nobody that it is over.
        raise ConnectionError(f"cannot connect to {url}: closed before it was open")
    return connection
