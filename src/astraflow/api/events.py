"""Event streams: `GET /api/v1/events`, as Server-Sent Events.

1. The events of a run are numbered 1, 2, … without gaps. A client that reconnects with the last number that it saw
   misses none and sees none twice (P17). The stream ends after the terminal event; reconnecting after that one is a
   204, which tells an EventSource to stop.
2. Nothing is sent that is not committed: the events come from the scheduler's feed, which sees commits only.
3. The client pulls. One that does not read blocks its stream for up to `stall_s`, with about `PIECE_BYTES` in buffers;
   then it is disconnected, with an `overflow` event if it can still receive one. It lost nothing: it may reconnect.
4. The events of a tenant are removed by retention. A client that reconnects after an event that is gone gets
   `stream.reset` with the missing numbers, before the first event that is left.
5. When the client disconnects, everything that was made for it ends at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final

from msgspec import Raw

from astraflow.api.asgi import AsgiApp, Receive, Scope, Send
from astraflow.api.requests import Request, as_number
from astraflow.api.responses import (
    DROP,
    NO_CONTENT,
    PIECE_BYTES,
    encode,
    request_id_header,
)
from astraflow.api.routes import Endpoints, Header, Reply, Services, Timing, route
from astraflow.api.run_routes import bounded
from astraflow.core import errors
from astraflow.core.contract.events import (
    Event,
    EventScope,
    FollowEvents,
    StreamEnd,
    StreamMessage,
    StreamReset,
)
from astraflow.core.errors import AstraflowError, Refused, Unavailable
from astraflow.core.ids import RunId
from astraflow.core.security.policy import READ
from astraflow.core.timestamps import iso
from astraflow.observe.metrics import Gauge, Metrics
from astraflow.store.rows import TenantEvent

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
_PING: Final = b": ping\n\n"
_OVERFLOW: Final = b"event: overflow\ndata: %b\n\n" % encode(
    StreamEnd(
        code=errors.OVERLOADED.code,
        message="the stream was not read; reconnect with the last id that was seen",
    )
)
_NO_SCOPE: Final = EventScope()
_LAST_ID: Final = Header(
    "Last-Event-ID",
    "The last id that was seen: the stream goes on after it. It wins over `lastEventId`.",
    {"type": "integer", "minimum": 0},
)


def event_bytes(event: Event) -> bytes:
    """One event on the wire. JSON has no line ends, so one `data` line is enough."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.id, event.type.encode(), encode(event))


def _message_bytes(message: StreamMessage) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (message.type.encode(), encode(message))


def _tenant_event(row: TenantEvent) -> Event:
    return Event(
        id=row.number,
        type=row.type,
        occurred_at=iso(row.at),
        scope=_NO_SCOPE,
        body=Raw(row.body),
    )


class _TenantEncoder:
    """The events of a tenant on the wire. Where retention has removed some, `stream.reset` names the gap."""

    def __init__(self, after: int | None) -> None:
        """`after` None: from the next one on, whatever its number."""
        self._last = after

    def __call__(self, row: TenantEvent) -> bytes:
        last, self._last = self._last, row.number
        encoded = event_bytes(_tenant_event(row))
        if last is None or row.number == last + 1:
            return encoded
        gone = StreamReset(first=last + 1, last=row.number - 1, reason="retention")
        return _message_bytes(StreamMessage(type="stream.reset", body=gone)) + encoded


class EventEndpoints(Endpoints):
    """Opens streams, up to a limit."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._timing = services.timing
        self._metrics = services.metrics
        self._open = 0

    @route(
        "GET",
        "/api/v1/events",
        READ,
        "followEvents",
        "follow events as they happen, as Server-Sent Events",
        tag="events",
        text="Each `data` line is a `RunStreamEvent` or a `TenantStreamEvent`; `error` and `overflow` have a "
        "`StreamEnd`. With `runId`: the events of the run, numbered from 1 without gaps, from the first one if no "
        "last id is given. The stream ends after the terminal `run.status`; reconnecting after that one is a 204. "
        "Without `runId`: the events of the tenant, from now on. A comment is sent every 15 seconds. A client that "
        "does not read for 30 seconds is disconnected, and may reconnect.",
        query=FollowEvents,
        headers=(_LAST_ID,),
        replies={
            200: Reply("The stream.", None, "text/event-stream"),
            204: Reply("The run has ended, and its last event was seen."),
        },
    )
    async def open(self, request: Request[FollowEvents]) -> AsgiApp:
        after = _last_seen(request)
        if self._open >= self._services.settings.max_sse_readers:
            raise Unavailable(errors.OVERLOADED, "too many event streams are open")
        if not request.query.run_id:
            return await self._open_tenant(request.tenant, after)
        return await self._open_run(request, RunId(request.query.run_id), after)

    async def _open_run(
        self, request: Request[FollowEvents], run_id: RunId, after: int | None
    ) -> AsgiApp:
        tenant = request.tenant
        last, is_over = await self._scheduler.reader.last_event(tenant, run_id)
        _refuse_ahead(after, last)
        if is_over and after == last:
            return NO_CONTENT
        first = b""
        if after is None and request.query.snapshot:
            first, after = await self._snapshot(tenant, run_id)
        events = self._scheduler.reader.follow_run(tenant, run_id, after or 0)
        return self._stream(tenant, _encoded(events, event_bytes), first)

    async def _snapshot(self, tenant: str, run_id: RunId) -> tuple[bytes, int]:
        """The run as it is, and the number after which its events continue."""
        view = bounded(await self._scheduler.reader.view_run(tenant, run_id))
        # Of an ended run the terminal event follows, so that the client has a number to reconnect with.
        after = view.last_event if view.finished_at is None else view.last_event - 1
        return _message_bytes(StreamMessage(type="run.snapshot", body=view)), after

    async def _open_tenant(self, tenant: str, after: int | None) -> AsgiApp:
        if after is not None:
            _refuse_ahead(after, await self._scheduler.events.last(tenant))
        events = self._scheduler.events.follow(tenant, after)
        return self._stream(tenant, _encoded(events, _TenantEncoder(after)))

    def _stream(
        self, tenant: str, pieces: AsyncGenerator[bytes, None], first: bytes = b""
    ) -> AsgiApp:
        return _EventStream(self, self._metrics, self._timing, tenant, pieces, first)


class _EventStream:
    """A stream as a response."""

    farewell: Final = b"event: error\ndata: %b\n\n" % encode(
        StreamEnd(
            code=errors.AUTH_INVALID_TOKEN.code, message="the credential is not good any more"
        )
    )
    """What it ends with, if its credential ends."""

    def __init__(
        self,
        endpoints: EventEndpoints,
        metrics: Metrics,
        timing: Timing,
        tenant: str,
        pieces: AsyncGenerator[bytes, None],
        first: bytes,
    ) -> None:
        self._endpoints = endpoints
        self._metrics = metrics
        self._timing = timing
        self._tenant = tenant
        self._pieces = pieces
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with _OpenStream(self._endpoints, self._metrics.sse_readers, self._tenant):
            async with aclosing(self._pieces):
                reader = _StreamClient(scope, receive, send, self._timing)
                was_read = await reader.pump(self._pieces, self._first)
                # Also if it is 0: a tenant that has streams has a count of those that were dropped.
                self._metrics.sse_dropped.add(self._tenant, by=0 if was_read else 1)


class _OpenStream:
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


class _StreamClient:
    """The connection of one client."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, timing: Timing) -> None:
        extensions: dict[str, Any] = scope.get("extensions") or {}
        self._drop: Callable[[bytes], None] | None = extensions.get(DROP)
        self._request_id = request_id_header(scope)
        self._receive = receive
        self._send = send
        self._timing = timing

    async def pump(self, pieces: AsyncGenerator[bytes, None], first: bytes) -> bool:
        """Send all pieces. False: the client was disconnected because it did not read."""
        head = [*_HEAD, self._request_id]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})
        async with asyncio.TaskGroup() as group:
            gone = group.create_task(self._wait_until_gone())
            try:
                # Something is sent at once, so that the client sees that its stream is open.
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
        """Write a piece to the socket; False on a timeout."""
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
            # The head is sent already, so the reason becomes an event. The client may reconnect.
            body = encode(StreamEnd(code=error.code.code, message=error.message))
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


def _last_seen(request: Request[FollowEvents]) -> int | None:
    """The last number that the client saw. The header wins: a browser that reconnects repeats the first URL."""
    given = request.header(b"last-event-id")
    if given is None:
        return request.query.last_event_id
    return as_number(given, "Last-Event-ID")


def _refuse_ahead(after: int | None, last: int) -> None:
    if after is not None and after > last:
        raise Refused(
            errors.REQUEST_INVALID, f"Last-Event-ID is ahead of the stream, whose last is: {last}"
        )
