"""The relay: a node passes the connection of a worker on to the node that owns its lane, as bytes.

Rule 1: a connection is passed on once. The owner is asked at a path for nodes, and told with a signature who is at the
        other end (`relayed_worker`). It serves the worker itself, or closes with 1013.
Rule 2: after its first message nothing that a worker says is looked at here. Pings and closing codes are frames like
        any other: the far end answers them.
Rule 3: an end that does not take what is written to it stops the reading of the other one, so that little more than
        `AHEAD_BYTES` wait in each direction; after a timeout it is disconnected. Of one end no more than `TURN_BYTES`
        are passed on in one turn of the loop.
Rule 4: when one end is gone, the other is closed after what it is still owed. To a worker that is a broken connection,
        as when its scheduler is gone: it comes back.
Rule 5: nobody waits for an owner that is none any more, and may be frozen: it is disconnected.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from astraflow.api.hop import WATCH_EVERY_S
from astraflow.api.node_connections import AHEAD_BYTES, CONNECT_TIMEOUT_S
from astraflow.api.relayed_worker import (
    RELAY_PATH,
    LaneOwner,
    RelayedWorker,
    relay_headers,
    relayed_worker,
)
from astraflow.core.protocol import limits
from astraflow.core.protocol.websocket import close_bytes

if TYPE_CHECKING:
    from astraflow.api.node_signatures import NodeSignatures
    from astraflow.observe.metrics import Metrics

MAX_RELAYED: Final = limits.MAX_CONNECTIONS // 2
"""Each has two sockets here: together as many as an owner has with workers of its own."""
TURN_BYTES: Final = limits.TURN_FRAMES * limits.TURN_BYTES
"""As much as would be handled of a worker that is served here."""
MAX_ANSWER_BYTES: Final = 16 * 1024
"""The head of the owner's answer."""
SHOWN_BYTES: Final = 40
"""Of an answer that is another one than was asked for, in the log."""
CLOSE_WAIT_S: Final = 2.0
"""For an end to take what it is still owed; then it is disconnected."""
UNREAD_S: Final = limits.UNREAD_TIMEOUT_S
KEY_BYTES: Final = 16

_SWITCHES: Final = b"HTTP/1.1 101 "
_log: Final = logging.getLogger(__name__)


class WorkerRelays:
    """The connections that are passed on. Use from one loop."""

    def __init__(
        self,
        signatures: NodeSignatures,
        trust: ssl.SSLContext,
        is_owner: Callable[[LaneOwner], bool],
        metrics: Metrics,
    ) -> None:
        """`is_owner`: whether a node still is known as the owner."""
        self._signatures = signatures
        self._trust = trust
        self._is_owner = is_owner
        self._relays: dict[LaneOwner, set[_Relay]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._is_full = False  # which was said
        metrics.relayed_workers.follow(lambda: {(): float(self.count)})

    @property
    def count(self) -> int:
        return sum(map(len, self._relays.values()))

    def worker_of(self, headers: Mapping[bytes, bytes]) -> RelayedWorker | None:
        """Whose connection it is that another node passes on; None, if it is no node that asks."""
        return relayed_worker(self._signatures, headers)

    def begin(
        self,
        owner: LaneOwner,
        transport: asyncio.Transport,
        worker: RelayedWorker,
        subprotocol: bytes | None,
        first: bytes,
    ) -> bool:
        """Pass on a connection whose upgrade was answered, beginning with the bytes `first`. False: it is not taken."""
        if worker.certificate is not None and not owner.is_private:
            # Who overhears what is signed could sign in with it.
            _log.warning(
                "a worker with a certificate is not passed on without TLS to %s", owner.url
            )
            return False
        if self._is_closed or not self._has_room():
            return False
        relay = _Relay(owner, self._forget)
        self._relays.setdefault(owner, set()).add(relay)
        relay.begin(transport, self._trust, self._upgrade(owner, worker, subprotocol), first)
        if self._timer is None:
            self._watch()
        return True

    def close(self) -> None:
        """The node ends: its workers connect to another one."""
        self._is_closed = True
        for relays in list(self._relays.values()):
            for relay in list(relays):
                relay.finish()

    def _upgrade(self, owner: LaneOwner, worker: RelayedWorker, subprotocol: bytes | None) -> bytes:
        """The request for a WebSocket of the owner, for this worker."""
        headers = [
            (b"host", urlsplit(owner.url).netloc.encode()),
            (b"upgrade", b"websocket"),
            (b"connection", b"Upgrade"),
            (b"sec-websocket-version", b"13"),
            (b"sec-websocket-key", base64.b64encode(os.urandom(KEY_BYTES))),
            *relay_headers(self._signatures, worker),
        ]
        if subprotocol is not None:
            headers.append((b"sec-websocket-protocol", subprotocol))
        lines = [b"GET %b HTTP/1.1" % RELAY_PATH, *(b"%b: %b" % pair for pair in headers)]
        return b"\r\n".join((*lines, b"", b""))

    def _has_room(self) -> bool:
        if self.count < MAX_RELAYED:
            return True
        if not self._is_full:
            _log.warning("%d workers are passed on: no more are taken", self.count)
        self._is_full = True
        return False

    def _watch(self) -> None:
        for owner in [one for one in self._relays if not self._is_owner(one)]:
            for relay in list(self._relays[owner]):
                relay.owner_end.abort()
        later = asyncio.get_running_loop().call_later
        self._timer = later(WATCH_EVERY_S, self._watch) if self._relays else None

    def _forget(self, relay: _Relay) -> None:
        relays = self._relays.get(relay.owner, set())
        relays.discard(relay)
        self._is_full = False
        if not relays:
            self._relays.pop(relay.owner, None)
            if not self._relays and self._timer is not None:
                self._timer.cancel()
                self._timer = None


class _Relay:
    """One connection that is passed on."""

    def __init__(self, owner: LaneOwner, forget: Callable[[_Relay], None]) -> None:
        self.owner = owner
        self.worker_end = _RelayEnd(self)
        self.owner_end = _OwnerEnd(self)
        self._forget = forget
        self._opening: asyncio.Task[None]

    def begin(
        self, transport: asyncio.Transport, trust: ssl.SSLContext, request: bytes, first: bytes
    ) -> None:
        transport.set_protocol(self.worker_end)
        self.worker_end.connection_made(transport)
        transport.pause_reading()  # until the owner takes it
        self._opening = asyncio.create_task(self._open(trust, request, first))

    async def _open(self, trust: ssl.SSLContext, request: bytes, first: bytes) -> None:
        """Connect to the owner, and let the worker speak to it."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._connect(trust)
                self.owner_end.write(request)
                problem = await self.owner_end.answered
            if problem:
                raise ConnectionError(problem)
        except (OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            _log.info("a worker cannot be passed on to %s: %s", self.owner.url, why)
            self.owner_end.finish()
            self.worker_end.refuse()
            return
        self.owner_end.write(first)
        self.worker_end.other = self.owner_end
        self.worker_end.look()

    async def _connect(self, trust: ssl.SSLContext) -> None:
        """Raises: OSError, ValueError."""
        parts = urlsplit(self.owner.url)
        is_private = self.owner.is_private
        await asyncio.get_running_loop().create_connection(
            lambda: self.owner_end,
            parts.hostname or "",
            parts.port or (443 if is_private else 80),
            ssl=trust if is_private else None,
        )

    def finish(self) -> None:
        """Close both ends."""
        self._opening.cancel()
        self.worker_end.finish()
        self.owner_end.finish()

    def lost(self, end: _RelayEnd) -> None:
        """An end is gone. Without an answer of the owner it is the worker that is told."""
        if end is self.worker_end or self.owner_end.other is not None:
            self.finish()
        if self.worker_end.is_gone and self.owner_end.is_gone:
            self._forget(self)


class _RelayEnd(asyncio.Protocol):
    """One end of a relayed connection."""

    def __init__(self, relay: _Relay) -> None:
        self.other: _RelayEnd | None = None
        """Where to write what comes; None: nowhere."""
        self.is_full = False
        """Whether it takes nothing more now."""
        self._relay = relay
        self._transport: asyncio.Transport | None = None
        self._turn_bytes = 0
        self._is_turn_set = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_ending = False
        self._is_lost = False

    @property
    def is_gone(self) -> bool:
        return self._transport is None or self._is_lost

    # -- for the loop --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # which uvloop's is not by its class
        self._transport.set_write_buffer_limits(AHEAD_BYTES)

    def data_received(self, raw: bytes) -> None:
        if self.other is None:
            return
        self.other.write(raw)
        self._turn_bytes += len(raw)
        if not self._is_turn_set:
            self._is_turn_set = True
            asyncio.get_running_loop().call_soon(self._next_turn)
        if self._turn_bytes >= TURN_BYTES:
            self.look()

    def _next_turn(self) -> None:
        self._is_turn_set = False
        was_over, self._turn_bytes = self._turn_bytes >= TURN_BYTES, 0
        if was_over:
            self.look()

    def pause_writing(self) -> None:
        self.is_full = True
        if not self._is_ending:
            self._set_timer(UNREAD_S)
        if self.other is not None:
            self.other.look()

    def resume_writing(self) -> None:
        self.is_full = False
        if not self._is_ending:
            self._cancel_timer()
        if self.other is not None:
            self.other.look()

    def eof_received(self) -> None:
        self._relay.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._cancel_timer()
        self._relay.lost(self)

    # -- for the relay -------------------------------------------------------------------------

    def write(self, raw: bytes) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(raw)

    def look(self) -> None:
        """Whether there is a reason not to read."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        is_other_full = self.other is not None and self.other.is_full
        if is_other_full or self._turn_bytes >= TURN_BYTES:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def refuse(self) -> None:
        """Tell the worker to try later. What it still sends is dropped."""
        if not (self._is_ending or self._is_lost):
            self.write(close_bytes(limits.CLOSE_TRY_LATER))
            self.look()
            self._set_timer(CLOSE_WAIT_S)

    def finish(self) -> None:
        """Close it after what was written."""
        if self._is_ending or self._transport is None:
            return
        self._is_ending = True
        self._transport.close()
        if not self._is_lost:
            self._set_timer(CLOSE_WAIT_S)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _set_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _OwnerEnd(_RelayEnd):
    """The end to the owner. At first comes the answer to the request for a WebSocket."""

    def __init__(self, relay: _Relay) -> None:
        super().__init__(relay)
        self.answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """What is wrong with the answer; empty: nothing."""
        self._head = b""

    def data_received(self, raw: bytes) -> None:
        if self.answered.done():
            super().data_received(raw)
            return
        self._head += raw
        head, is_whole, rest = self._head.partition(b"\r\n\r\n")
        if is_whole and head.startswith(_SWITCHES):
            self.other = self._relay.worker_end
            self._answer("")
            if rest:
                super().data_received(rest)
        elif is_whole or len(head) > MAX_ANSWER_BYTES:
            line = head[:SHOWN_BYTES].partition(b"\r")[0].decode("latin-1")
            self._answer(f"it answers {line!r}")

    def eof_received(self) -> None:
        if self.other is not None:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._answer(f"it has closed the connection: {exc or 'end of data'}")

    def _answer(self, problem: str) -> None:
        if not self.answered.done():
            self.answered.set_result(problem)
