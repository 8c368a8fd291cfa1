"""The worker's end of the server: `/ws/worker` on the same port as everything else.

picows speaks the WebSocket under uvicorn: uvicorn reads the upgrade request and hands the transport over. The class
that picows has for this is not in its documentation, so its version is pinned and `tests/api/test_worker_socket.py` is
the contract that an update must keep.

What the scheduler needs of a socket is small (`scheduler.writer.Connection`), so that another library, or a socket in
memory, can take this one's place.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from picows import (
    WSCloseCode,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
)
from picows.picows import WSAutoPingStrategy, WSProtocol  # type: ignore[attr-defined]

from astraflow import errors
from astraflow.protocol import limits
from astraflow.protocol.codec import BadFrame

if TYPE_CHECKING:
    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.writer import Writer

__all__ = ["PATH", "SUBPROTOCOL", "frame_bytes", "socket_class"]

PATH: Final = b"/ws/worker"
SUBPROTOCOL: Final = "astraflow.v2"

CLOSE_WAIT_S: Final = 2.0
"""How long a peer has to answer a close before the connection is dropped."""

UPGRADE_TIMEOUT_S: Final = 10.0
READ_BUFFER_BYTES: Final = 64 * 1024

_log: Final = logging.getLogger("picows")
"""The library's own: who connects is said by us, when it is known who it is."""
_TEXT: Final = WSMsgType.TEXT
_CONTINUATION: Final = WSMsgType.CONTINUATION
_BINARY: Final = WSMsgType.BINARY
_CLOSE: Final = WSMsgType.CLOSE
_SHORT: Final = 126
_MEDIUM: Final = 1 << 16


def frame_bytes(text: bytes) -> bytes:
    """The header of one unmasked text frame; RFC 6455 §5.2."""
    size = len(text)
    if size < _SHORT:
        return bytes((0x81, size))
    if size < _MEDIUM:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


class _WorkerSocket(WSListener):
    """One connection of a worker, as the writer sees it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._writer: Writer | None = None
        self._conn = ""
        self._transport: WSTransport | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._is_closing = False

    # -- what picows calls ------------------------------------------------------------------

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        try:
            serving, self._conn = self._scheduler.connect(self)
        except errors.Unavailable:
            self.close(limits.CLOSE_TRY_LATER)
            return
        self._writer = serving.writer

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if kind == _TEXT and frame.fin:
            if self._writer is not None:
                self._writer.received(self._conn, frame.get_payload_as_bytes())
        elif kind in (_TEXT, _CONTINUATION):
            self._gather(frame)
        elif kind == _CLOSE:
            self._answer_close(transport, frame)
        elif kind == _BINARY:
            self._refuse(BadFrame(limits.CLOSE_PROTOCOL_ERROR, "a binary message"))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        if self._writer is not None:
            self._writer.closed(self._conn)

    def _gather(self, frame: WSFrame) -> None:
        """A message in fragments."""
        self._size += frame.payload_size
        if self._size > limits.MAX_FRAME_BYTES:
            self._refuse(BadFrame(limits.CLOSE_TOO_BIG, "the message is larger than allowed"))
            return
        self._parts.append(frame.get_payload_as_bytes())
        if frame.fin:
            raw = b"".join(self._parts)
            self._parts, self._size = [], 0
            if self._writer is not None:
                self._writer.received(self._conn, raw)

    def _refuse(self, error: BadFrame) -> None:
        self._parts, self._size = [], 0
        if self._writer is not None:
            self._writer.refuse(self._conn, error)

    def _answer_close(self, transport: WSTransport, frame: WSFrame) -> None:
        if not self._is_closing:
            transport.send_close(WSCloseCode.OK)
        transport.disconnect()

    # -- what the writer calls --------------------------------------------------------------

    def send(self, frames: list[bytes]) -> None:
        """All in one write: a system call costs more than making a frame."""
        transport = self._transport
        if transport is None or transport.is_disconnected or self._is_closing:
            return
        pieces: list[bytes] = []
        for text in frames:
            pieces.append(frame_bytes(text))
            pieces.append(text)
        transport.underlying_transport.write(b"".join(pieces))

    def close(self, code: int) -> None:
        transport = self._transport
        if transport is None or transport.is_disconnected or self._is_closing:
            return
        self._is_closing = True
        transport.send_close(WSCloseCode(code))
        # Closing at once could discard what the peer has not read yet.
        asyncio.get_running_loop().call_later(CLOSE_WAIT_S, transport.disconnect)


def socket_class(scheduler: Scheduler) -> type[asyncio.Protocol]:
    """What uvicorn makes for each upgraded connection (its `ws` setting)."""

    def listen(request: WSUpgradeRequest) -> WSUpgradeResponseWithListener | None:
        if request.path.partition(b"?")[0] != PATH:
            return None
        if not scheduler.is_ready():
            response = WSUpgradeResponse.create_error_response(
                503, b"not ready", {"Retry-After": "1"}
            )
            return WSUpgradeResponseWithListener(response, None)
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        names = {name.strip() for name in offered.split(",")}
        extra = {"Sec-WebSocket-Protocol": SUBPROTOCOL} if SUBPROTOCOL in names else None
        response = WSUpgradeResponse.create_101_response(extra)
        return WSUpgradeResponseWithListener(response, _WorkerSocket(scheduler))

    class WorkerProtocol(WSProtocol):  # type: ignore[misc]
        def __init__(self, **_: Any) -> None:
            super().__init__(
                None, None, False, listen, _log, True, UPGRADE_TIMEOUT_S,
                False, 20.0, 20.0, WSAutoPingStrategy.PING_WHEN_IDLE, True,
                limits.MAX_FRAME_BYTES, None, READ_BUFFER_BYTES,
            )  # fmt: skip

        def data_received(self, raw: bytes) -> None:
            """The upgrade request, which uvicorn has read; all else comes by way of the buffer."""
            buffer = self.get_buffer(len(raw))
            buffer[: len(raw)] = raw
            self.buffer_updated(len(raw))

    return WorkerProtocol
