"""The WebSocket endpoint for workers: `/ws/worker` on the same port as everything else.

uvicorn reads the upgrade request and hands the transport over. `protocol.websocket` splits the bytes into frames. What
the scheduler needs of a socket is small (`scheduler.connections.Connection`), so that tests can use one in memory.

Rule 1: only `TURN_FRAMES` frames of one connection are handled in one turn of the loop; the rest waits, unread, until
        all other connections have had their turn.
Rule 2: a peer that does not read is not read either, and is closed after a timeout. Its write buffer has a limit; of
        several pings only the last is answered (RFC 6455 §5.5.3 allows it).
Rule 3: before the handshake a peer may send little.
Rule 4: where several schedulers share a store, the first frame says whose the worker is. One of another scheduler is
        told where that is (`E.SESSION.MOVED`), or its connection is passed on to there (`worker_relay`).
Rule 5: a worker of protocol 1 is translated here (`v1_edge`). The subprotocol says which protocol a worker speaks, or
        without one its first message (PROTOCOL §2).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from astraflow.api.relayed_worker import RELAY_PATH, LaneOwner, RelayedWorker
from astraflow.api.v1_edge import V1Edge
from astraflow.core import errors
from astraflow.core.protocol import limits
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.moved import claimed_place
from astraflow.core.protocol.v1.frames import is_v1_opening
from astraflow.core.protocol.websocket import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    close_bytes,
    masked_text,
    text_head,
)
from astraflow.core.security.policy import SITE_TENANT
from astraflow.observe.request_ids import request_id_of
from astraflow.tls.contexts import peer_certificate

if TYPE_CHECKING:
    from astraflow.api.worker_relay import WorkerRelays
    from astraflow.core.security.certificates import PeerCertificate
    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.writer import Writer

PATH: Final = b"/ws/worker"
SUBPROTOCOL: Final = b"astraflow.v2"
SUBPROTOCOL_1: Final = b"astraflow.v1"
VERSION: Final = b"13"

CLOSE_WAIT_S: Final = 2.0
"""The timeout for the reply to a close frame; then the connection is aborted."""

FIRST_MESSAGE_S: Final = limits.HANDSHAKE_TIMEOUT_S
"""Where the first message says whose a worker is, its timeout: the gateway, which has one for the rest of the
handshake, does not know the connection before."""

_log: Final = logging.getLogger(__name__)
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16


class _WorkerSocket(asyncio.Protocol):
    """One connection of a worker, as the writer sees it."""

    def __init__(self, places: WorkerPlaces) -> None:
        self._places = places
        self._loop = asyncio.get_running_loop()
        self._writer: Writer | None = None
        self._conn = ""
        self._transport: asyncio.Transport | None = None
        self._reader: FrameReader | None = None
        self._owed_bytes = limits.MAX_OWED_FIRST_BYTES
        self._share = limits.TURN_FRAMES
        self._is_turn_set = False
        self._has_backlog = False
        self._is_read = True
        self._is_closing = False
        self._pong: bytes | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._place_timer: asyncio.TimerHandle | None = None
        self._relayed: RelayedWorker | None = None  # another node passes the connection on
        self._edge: V1Edge | None = None
        self._is_v1: bool | None = None  # not known before the first message, without a subprotocol

    # -- what asyncio calls -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # which uvloop's is not by its class
        self._transport.set_write_buffer_limits(self._owed_bytes)

    def data_received(self, raw: bytes) -> None:
        if self._reader is None:
            self._upgrade(raw)
            return
        self._reader.feed(raw)
        if not self._has_backlog:
            self._read()

    def pause_writing(self) -> None:
        self._unread_timer = self._loop.call_later(limits.UNREAD_TIMEOUT_S, self._give_up)
        self._look()

    def resume_writing(self) -> None:
        self._cancel_timer()
        self._look()
        if self._writer is not None:
            self._writer.drained(self._conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self._cancel_place_timer()
        self._is_closing = True
        self._has_backlog = False
        if self._edge is not None:
            self._edge.close()
        if self._writer is not None:
            self._writer.closed(self._conn)

    def _certificate(self) -> PeerCertificate | None:
        """What TLS has verified of the worker, here or at the node that passes its connection on."""
        if self._relayed is not None:
            return self._relayed.certificate
        assert self._transport is not None
        return peer_certificate(self._transport.get_extra_info("ssl_object"))

    # -- the upgrade ------------------------------------------------------------------------

    def _upgrade(self, raw: bytes) -> None:
        """The whole request, as uvicorn has read it; the peer sends nothing more before the response."""
        assert self._transport is not None
        line, headers = _headers_of(raw)
        request_id = b"X-Request-Id: " + request_id_of(headers.items()).encode()
        refusal = self._refusal(line, headers, request_id)
        if refusal is not None:
            self._is_closing = True
            self._transport.write(refusal)
            self._transport.close()
            return
        accept = base64.b64encode(_sha1(headers[b"sec-websocket-key"] + _GUID))
        response = [
            b"HTTP/1.1 101 Switching Protocols",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Accept: " + accept,
            request_id,
        ]
        offered = headers.get(b"sec-websocket-protocol", b"").split(b",")
        for subprotocol in (SUBPROTOCOL, SUBPROTOCOL_1):
            if subprotocol in {name.strip() for name in offered}:
                response.append(b"Sec-WebSocket-Protocol: " + subprotocol)
                self._is_v1 = subprotocol is SUBPROTOCOL_1
                break
        self._transport.write(b"\r\n".join([*response, b"", b""]))
        self._reader = FrameReader(limits.MAX_FIRST_BYTES, is_masked=True)
        scheduler = self._places.scheduler
        if scheduler is not None:
            self._connect(scheduler)
        else:
            later = self._loop.call_later
            self._place_timer = later(FIRST_MESSAGE_S, self.close, limits.CLOSE_POLICY)

    def _connect(self, scheduler: Scheduler) -> None:
        try:
            serving, self._conn = scheduler.connect(self, self._certificate())
        except errors.Unavailable:
            self.close(limits.CLOSE_TRY_LATER)
            return
        self._writer = serving.writer
        if self._is_v1:
            self._edge = V1Edge(self._writer, self._conn, self._put)

    def _find_place(self, first: bytes) -> None:
        """Connect to the scheduler of the worker's lane, or say where it is.

        Raises: _BelongsElsewhere, if the connection is to be passed on.
        """
        self._cancel_place_timer()
        tenant, lane = claimed_place(first)
        tenant = tenant or SITE_TENANT
        found = self._places.find(tenant, lane)
        if found is None or (isinstance(found, LaneOwner) and self._relayed is not None):
            self.close(limits.CLOSE_TRY_LATER)  # what another node passes on is not passed on again
        elif isinstance(found, LaneOwner):
            # Protocol 1 has no word for it.
            is_v1 = self._is_v1 or is_v1_opening(first)
            answer = None if is_v1 else self._places.answer(found, tenant, self._certificate())
            if answer is None:
                raise _BelongsElsewhere(found, first)
            self._put([answer])
            self.close(limits.CLOSE_POLICY)
        else:
            self._connect(found)

    def _pass_on(self, owner: LaneOwner, first: bytes) -> None:
        """Have the connection passed on to the node that owns the lane. It is not ours from then on."""
        transport, reader, relays = self._transport, self._reader, self._places.relays
        assert transport is not None
        assert reader is not None
        assert relays is not None, "who knows other nodes can pass on to them"
        self._answer_ping()
        self._cancel_timer()
        chosen = {None: None, True: SUBPROTOCOL_1, False: SUBPROTOCOL}[self._is_v1]
        worker = RelayedWorker(self.peer(), self._certificate())
        begun = masked_text(first, os.urandom(4)) + reader.take_rest()
        if relays.begin(owner, transport, worker, chosen, begun):
            self._is_closing = True
        else:
            self.close(limits.CLOSE_TRY_LATER)

    def _cancel_place_timer(self) -> None:
        if self._place_timer is not None:
            self._place_timer.cancel()
            self._place_timer = None

    def _refusal(self, line: bytes, headers: dict[bytes, bytes], request_id: bytes) -> bytes | None:
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0]
        if path == RELAY_PATH and self._places.relays is not None:
            self._relayed = self._places.relays.worker_of(headers)
            if self._relayed is None:
                text = b"only a node of the site may ask this"
                return _refuse_upgrade(b"403 Forbidden", text, request_id)
        elif path.partition(b"?")[0] != PATH:
            return _refuse_upgrade(b"404 Not Found", b"there is no such socket", request_id)
        if not self._places.is_ready():
            more = (request_id, b"Retry-After: 1")
            return _refuse_upgrade(b"503 Service Unavailable", b"not ready", *more)
        if headers.get(b"sec-websocket-version") != VERSION:
            more = (request_id, b"Sec-WebSocket-Version: " + VERSION)
            return _refuse_upgrade(b"426 Upgrade Required", b"this is version 13", *more)
        if method != b"GET" or not _is_key(headers.get(b"sec-websocket-key", b"")):
            return _refuse_upgrade(b"400 Bad Request", b"this is no WebSocket request", request_id)
        return None

    # -- reading ----------------------------------------------------------------------------

    def _read(self) -> None:
        """Handle what has arrived, up to the share of this turn."""
        if not self._is_turn_set:
            self._is_turn_set = True
            self._loop.call_soon(self._next_turn)
        reader = self._reader
        assert reader is not None
        self._has_backlog = False
        try:
            while (frame := reader.next()) is not None:
                self._share -= 1 + len(frame[1]) // limits.TURN_BYTES
                self._on_frame(*frame)
                if self._share <= 0:
                    self._has_backlog = True
                    break
        except BadFrame as error:
            self._refuse(error)
        except _BelongsElsewhere as found:
            self._pass_on(found.owner, found.first)
            return
        self._look()

    def _next_turn(self) -> None:
        self._is_turn_set = False
        self._share = limits.TURN_FRAMES
        if self._pong is not None:
            self._answer_ping()
        if self._has_backlog:
            self._read()

    def _answer_ping(self) -> None:
        pong, self._pong = self._pong, None
        if pong is not None and not self._is_closing and self.room() > 0:
            self._write(bytes((0x80 | PONG, len(pong))) + pong)

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if kind == CLOSE:
            self._on_close()
        elif self._is_closing:
            return  # it does not count any more
        elif kind == TEXT:
            if self._writer is None:
                self._find_place(payload)
            if self._writer is not None:
                self._on_text(self._writer, payload)
        elif kind == PING:
            self._pong = payload

    def _on_text(self, writer: Writer, payload: bytes) -> None:
        if self._is_v1 is None:
            self._is_v1 = is_v1_opening(payload)
            if self._is_v1:
                self._edge = V1Edge(writer, self._conn, self._put)
        if self._edge is None:
            self._share -= writer.received(self._conn, payload) - 1
        else:
            self._edge.received(payload)

    def _on_close(self) -> None:
        assert self._transport is not None
        if not self._is_closing:
            self._is_closing = True
            self._write(close_bytes(limits.CLOSE_NORMAL))
        self._transport.close()

    def _refuse(self, error: BadFrame) -> None:
        """Send the reason and close. What the peer still sends is read and dropped, or it would not read the reason."""
        self._reader = _Deaf(limits.MAX_FIRST_BYTES, is_masked=True)
        if self._writer is not None and not self._is_closing:
            self._writer.refuse(self._conn, error)

    def _look(self) -> None:
        """Whether there is a reason not to read."""
        assert self._transport is not None
        is_read = self._unread_timer is None and not self._has_backlog
        if is_read != self._is_read and not self._transport.is_closing():
            self._is_read = is_read
            if is_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _give_up(self) -> None:
        _log.warning(
            "a worker does not read what it is sent: closing the connection",
            extra={"conn": self._conn},
        )
        self.close(limits.CLOSE_POLICY)

    def _cancel_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # -- what the writer calls --------------------------------------------------------------

    def send(self, frames: list[bytes]) -> None:
        """All in one write: a system call costs more than making a frame."""
        if self._is_closing:
            return
        self._put(frames if self._edge is None else self._edge.translate(frames))

    def _put(self, frames: list[bytes]) -> None:
        if self._is_closing or not frames:
            return
        pieces: list[bytes] = []
        for text in frames:
            pieces.append(text_head(len(text)))
            pieces.append(text)
        self._write(b"".join(pieces))

    def room(self) -> int:
        """How many bytes may still wait to be sent."""
        assert self._transport is not None
        return self._owed_bytes - self._transport.get_write_buffer_size()

    def peer(self) -> str:
        """The address at the other end, where the worker is."""
        if self._relayed is not None:
            return self._relayed.address
        assert self._transport is not None
        address = self._transport.get_extra_info("peername")
        return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address or "")

    def admit(self) -> None:
        """It is known who this is: more is allowed."""
        assert self._transport is not None and self._reader is not None
        self._reader.limit = limits.MAX_FRAME_BYTES
        self._owed_bytes = limits.MAX_OWED_BYTES
        self._transport.set_write_buffer_limits(self._owed_bytes)

    def close(self, code: int) -> None:
        if self._is_closing:
            return
        self._write(close_bytes(code))
        self._is_closing = True
        # Closing at once could discard what the peer has not read yet.
        assert self._transport is not None
        self._loop.call_later(CLOSE_WAIT_S, self._transport.abort)

    def _write(self, raw: bytes) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(raw)


class _BelongsElsewhere(Exception):
    """The connection is to be passed on to another node."""

    def __init__(self, owner: LaneOwner, first: bytes) -> None:
        super().__init__(owner.url)
        self.owner = owner
        self.first = first


class _Deaf(FrameReader):
    """After a refusal nothing that comes is looked at."""

    __slots__ = ()

    def feed(self, raw: bytes) -> None:
        pass


def _headers_of(raw: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    line, *rest = raw.split(b"\r\n")
    headers: dict[bytes, bytes] = {}
    for one in rest:
        name, _, value = one.partition(b":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = headers[name] + b"," + value if name in headers else value
    return line, headers


def _sha1(text: bytes) -> bytes:
    """As RFC 6455 §4.2.2 has it: it proves that the response is to this request, and no more."""
    return hashlib.sha1(text, usedforsecurity=False).digest()


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except ValueError:
        return False


def _refuse_upgrade(status: bytes, text: bytes, *more: bytes) -> bytes:
    head = [
        b"HTTP/1.1 " + status,
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: %d" % len(text),
        b"Connection: close",
        *more,
    ]
    return b"\r\n".join([*head, b"", text])


class WorkerPlaces(Protocol):
    """Where the workers of a tenant belong."""

    @property
    def scheduler(self) -> Scheduler | None:
        """The one scheduler of all tenants, if there is one."""

    @property
    def relays(self) -> WorkerRelays | None:
        """What passes connections on, where there are other nodes."""

    def is_ready(self) -> bool: ...

    def find(self, tenant: str, lane: int) -> Scheduler | LaneOwner | None:
        """The scheduler of a lane of a tenant, or the node that has it; None if nobody knows now."""

    def answer(
        self, owner: LaneOwner, tenant: str, certificate: PeerCertificate | None
    ) -> bytes | None:
        """The frame for a worker that belongs to another node; None: its connection is passed on."""


class OnePlace:
    """A scheduler that serves all tenants."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.relays = None
        self.is_ready = scheduler.is_ready

    def find(self, tenant: str, lane: int) -> Scheduler:
        return self.scheduler

    def answer(
        self, owner: LaneOwner, tenant: str, certificate: PeerCertificate | None
    ) -> bytes | None:
        raise AssertionError("there is no other node")


def socket_class(places: WorkerPlaces) -> type[asyncio.Protocol]:
    """What uvicorn makes for each upgraded connection (its `ws` setting)."""

    class WorkerSocket(_WorkerSocket):
        def __init__(self, **_: Any) -> None:
            super().__init__(places)

    return WorkerSocket
