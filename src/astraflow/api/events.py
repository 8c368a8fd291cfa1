"""The event stream: `GET /api/v1/events`, as Server-Sent Events, without a framework between an event and its bytes.

1. A run's events are numbered 1, 2, … without gaps. A reader that comes back with the last number that it saw misses
   none and sees none twice (P17). The stream ends after the terminal event; coming back at that one is
   answered with 204, which tells an EventSource to stop.
2. Nothing is sent that is not committed: the events come from the scheduler's feed, which sees commits only.
3. A reader pulls. One that does not read is waited for, for `stall_s` and with about `PIECE_BYTES` on the way; then its
   connection is ended, with an `overflow` event if it can still hear it. It lost nothing: it may come back.
4. A tenant's events are removed after their retention. A reader that comes back behind that is told `stream.reset` with
   the numbers that it missed, before the first event that is left.
5. A reader that goes away ends everything that was made for it, at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Raw

from astraflow.api.answers import DROP, NO_CONTENT, PIECE_BYTES, STALL_S, encode
from astraflow.api.requests import MAX_ID_CHARS, Call, as_number
from astraflow.api.routes import Parts
from astraflow.api.run_views import bounded
from astraflow.core import errors
from astraflow.core.errors import AstraflowError, Refused, Unavailable
from astraflow.core.runs.projections import Event
from astraflow.core.timestamps import iso
from astraflow.observe.metrics import Gauge
from astraflow.store.rows import TenantEvent

__all__ = ["EventEndpoints", "Timing", "event_bytes"]

_HEAD: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),  # proxies that gather answers would gather for ever
    (
        b"connection",
        b"close",
    ),  # the end of the stream is the end of the connection, for the simplest of readers
)
_PING: Final = b": ping\n\n"
_OVERFLOW: Final = (
    b'event: overflow\ndata: {"code":"E.OVERLOADED","message":"the stream was not read; come back '
    b'with the last id that was seen"}\n\n'
)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a stream is silent, and how long it waits for its reader."""

    ping_s: float = 15.0
    stall_s: float = STALL_S


def event_bytes(event: Event) -> bytes:
    """One event on the wire. JSON has no line ends, so one `data` line is enough."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (
        event["id"],
        event["type"].encode(),
        encode(event),
    )


def _tenant_event(row: TenantEvent) -> Event:
    return {
        "id": row.number,
        "type": row.type,
        "occurredAt": iso(row.at),
        "scope": {},
        "data": Raw(row.body),
    }


class _TenantEncoder:
    """A tenant's events on the wire. Their numbers have no gaps but where retention has removed some: that is said."""

    def __init__(self, after: int | None) -> None:
        """`after` None: from the next one on, whatever its number."""
        self._last = after

    def __call__(self, row: TenantEvent) -> bytes:
        last, self._last = self._last, row.number
        told = event_bytes(_tenant_event(row))
        if last is None or row.number == last + 1:
            return told
        gone = {"from": last + 1, "to": row.number - 1, "reason": "retention"}
        reset = {"type": "stream.reset", "scope": {}, "data": gone}
        return b"event: stream.reset\ndata: %b\n\n%b" % (encode(reset), told)


class EventEndpoints:
    """Opens streams, up to a limit."""

    def __init__(self, parts: Parts, timing: Timing) -> None:
        self._scheduler = parts.scheduler
        self._settings = parts.settings
        self._metrics = parts.metrics
        self._timing = timing
        self._open = 0

    async def open(self, call: Call) -> ASGIApp:
        after = _last_seen(call)
        run_id = call.text("runId", MAX_ID_CHARS)
        if self._open >= self._settings.max_sse_readers:
            raise Unavailable(errors.OVERLOADED, "too many event streams are open")
        if run_id is None:
            return await self._open_tenant(call, after)
        return await self._open_run(call, run_id, after)

    async def _open_run(self, call: Call, run_id: str, after: int | None) -> ASGIApp:
        last, is_over = await self._scheduler.reader.last_event(call.tenant, run_id)
        _refuse_ahead(after, last)
        if is_over and after == last:
            return NO_CONTENT
        first = b""
        if after is None and call.flag("snapshot", False):
            first, after = await self._snapshot(call.tenant, run_id)
        events = self._scheduler.reader.follow_run(call.tenant, run_id, after or 0)
        return self._stream(call.tenant, _encoded(events, event_bytes), first)

    async def _snapshot(self, tenant: str, run_id: str) -> tuple[bytes, int]:
        """The run as it is, without a number, and where its events go on."""
        view = bounded(await self._scheduler.reader.view_run(tenant, run_id))
        after = view["lastEvent"]
        if view["finishedAt"] is not None:
            after -= (
                1  # the terminal event follows, so that the reader has a number to come back with
            )
        event = {"type": "run.snapshot", "scope": {}, "data": view}
        return b"event: run.snapshot\ndata: %b\n\n" % encode(event), after

    async def _open_tenant(self, call: Call, after: int | None) -> ASGIApp:
        if after is not None:
            _refuse_ahead(after, await self._scheduler.events.last(call.tenant))
        events = self._scheduler.events.follow(call.tenant, after)
        return self._stream(call.tenant, _encoded(events, _TenantEncoder(after)))

    def _stream(
        self, tenant: str, pieces: AsyncGenerator[bytes, None], first: bytes = b""
    ) -> ASGIApp:
        readers = self._metrics.sse_readers

        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            with _Counted(self, readers, tenant):
                async with aclosing(pieces):
                    reader = _Reader(scope, receive, send, self._timing)
                    if not await reader.pump(pieces, first):
                        self._metrics.sse_dropped.add(tenant)

        return stream


class _Counted:
    """Counts an open stream for as long as it is open."""

    def __init__(self, endpoints: EventEndpoints, readers: Gauge, tenant: str) -> None:
        self._endpoints = endpoints
        self._readers = readers
        self._tenant = tenant

    def __enter__(self) -> None:
        self._endpoints._open += 1
        self._readers.add(self._tenant)

    def __exit__(self, *_: object) -> None:
        self._endpoints._open -= 1
        self._readers.add(self._tenant, by=-1)


class _Reader:
    """One client of a stream."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, timing: Timing) -> None:
        extensions: dict[str, Any] = scope.get("extensions") or {}
        self._drop: Callable[[bytes], None] | None = extensions.get(DROP)
        self._receive = receive
        self._send = send
        self._timing = timing

    async def pump(self, pieces: AsyncGenerator[bytes, None], first: bytes) -> bool:
        """Send all pieces. False: the reader was dropped because it did not read."""
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEAD]})
        async with asyncio.TaskGroup() as group:
            gone = group.create_task(self._wait_until_gone())
            try:
                # Something is sent at once, so that the client sees its stream open.
                if not await self._write(first or _PING):
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
                    if not upcoming.done() and not await self._write(_PING):
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
        """Hand a piece to the socket; False if it would not take it for too long."""
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


async def _encoded(
    batches: AsyncGenerator[list[Any], None], encode_one: Callable[[Any], bytes]
) -> AsyncGenerator[bytes, None]:
    """Batches of events as pieces of at most about `PIECE_BYTES`."""
    async with aclosing(batches):
        try:
            async for batch in batches:
                for piece in _pieces(map(encode_one, batch)):
                    yield piece
        except AstraflowError as error:
            # The head is sent: what is left is to say why the stream ends. The reader may come back.
            body = encode({"code": error.code.code, "message": error.message})
            yield b"event: error\ndata: %b\n\n" % body


def _pieces(lines: Iterable[bytes]) -> Iterable[bytes]:
    gathered: list[bytes] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _last_seen(call: Call) -> int | None:
    """The last number that the reader saw. The header wins: a browser that reconnects repeats the first URL."""
    given = call.header(b"last-event-id")
    if given is None:
        return call.number("lastEventId")
    return as_number(given, "Last-Event-ID")


def _refuse_ahead(after: int | None, last: int) -> None:
    if after is not None and after > last:
        raise Refused(
            errors.REQUEST_INVALID, f"Last-Event-ID is ahead of the stream, whose last is: {last}"
        )
