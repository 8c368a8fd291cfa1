"""Event streams: `GET /api/v1/events` and `GET /api/v1/stream`, as Server-Sent Events.

1. The events of a run are numbered 1, 2, … without gaps. A client that reconnects with the last number that it saw
   misses none and sees none twice (P17). The stream ends after the terminal event; reconnecting after that one is a
   204, which tells an EventSource to stop.
2. Nothing is sent that is not committed: the events come from the scheduler's feed, which sees commits only.
3. The client pulls. One that does not read blocks its stream for up to `stall_s`, with about `PIECE_BYTES` in buffers;
   then it is disconnected, with an `overflow` event if it can still receive one. It lost nothing: it may reconnect.
4. The events of a tenant are removed by retention. A client that reconnects after an event that is gone gets
   `stream.reset` with the missing numbers, before the first event that is left.
5. When the client disconnects, everything that was made for it ends at once.
6. A mixed stream carries a tenant and many runs. Its id is the position in all of them (`contract.streams`), so that it
   can be resumed, with the same runs or with others, without anything that the server would have to remember.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

from msgspec import Raw

from astraflow.api.asgi import AsgiApp
from astraflow.api.event_streams import EVENT_PING, EventStream, OpenStreams, error_bytes
from astraflow.api.requests import Request, as_number
from astraflow.api.responses import NO_CONTENT, encode
from astraflow.api.routes import Endpoints, Header, Reply, Services, route
from astraflow.api.run_routes import bounded
from astraflow.api.shown_segments import ShownSegments, event_bytes, pieces_of
from astraflow.api.stream_batches import batch_bytes, batch_pieces
from astraflow.core import errors
from astraflow.core.contract.events import (
    Event,
    EventScope,
    FollowEvents,
    StreamMessage,
    StreamReset,
)
from astraflow.core.contract.streams import (
    MAX_POSITION_CHARS,
    MAX_STREAM_RUNS,
    FollowStream,
    StreamBatch,
    StreamPosition,
)
from astraflow.core.errors import AstraflowError, Refused
from astraflow.core.ids import RunId
from astraflow.core.security.policy import READ
from astraflow.core.timestamps import iso
from astraflow.store.rows import TenantEvent

_NO_SCOPE: Final = EventScope()
_LAST_ID: Final = Header(
    "Last-Event-ID",
    "The last id that was seen: the stream goes on after it. It wins over `lastEventId`.",
    {"type": "integer", "minimum": 0},
)
_LAST_POSITION: Final = Header(
    "Last-Event-ID", "The last id that was seen. It wins over `lastEventId`."
)


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
        limit = services.settings.max_sse_readers
        self._streams = OpenStreams(services.metrics, services.timing, limit)
        self._shown = ShownSegments()

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
        self._streams.check_room()
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
        batches = self._scheduler.reader.follow_segments(tenant, run_id, after or 0)
        return self._stream(tenant, self._shown.follow(batches), first)

    async def _snapshot(self, tenant: str, run_id: RunId) -> tuple[bytes, int]:
        """The run as it is, and the number after which its events continue."""
        view, _ = await self._scheduler.reader.snapshot(tenant, run_id)
        bounded(view)
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
        return EventStream(self._streams, tenant, pieces, first)

    @route(
        "GET",
        "/api/v1/stream",
        READ,
        "followStream",
        "follow the tenant and any number of runs on one connection, as Server-Sent Events",
        tag="events",
        text="Each message `batch` has a `StreamBatch` as its `data`, and as its id the position of the stream: the "
        "last event of the tenant and of each run. To follow other runs, connect again with these `runs` and with the "
        "last id: nothing is missed and nothing comes twice. The events of the tenant begin now if no last id is "
        "given, those of a run with its first one. The stream does not end when runs do. A run that does not exist is "
        "`run.missing`. When nothing happens, an event `ping` without an id is sent every 15 seconds. A client that "
        "does not read for 30 seconds is disconnected, and may reconnect.",
        query=FollowStream,
        headers=(_LAST_POSITION,),
        replies={200: Reply("The stream.", StreamBatch, "text/event-stream")},
    )
    async def open_mixed(self, request: Request[FollowStream]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        runs = [one for one in query.runs.split(",") if one]
        if len(runs) > MAX_STREAM_RUNS:
            raise Refused(
                errors.REQUEST_INVALID,
                f"a stream has {MAX_STREAM_RUNS} runs at the most",
                detail={"parameter": "runs"},
            )
        self._streams.check_room()
        follower = await self._scheduler.mixed_events.open(
            tenant,
            runs,
            _position_of(request),
            with_snapshots=query.snapshot,
            with_loads=query.worker_load,
        )
        # The position is sent at once: a client that is cut off before the first event resumes here, too.
        first = batch_bytes(follower.position, [])
        pieces = batch_pieces(follower, query.coalesce_ms / 1000)
        return EventStream(self._streams, tenant, pieces, first, EVENT_PING)


async def _encoded(
    batches: AsyncGenerator[list[Any], None], encode_one: Callable[[Any], bytes]
) -> AsyncGenerator[bytes, None]:
    """Batches of events as pieces of at most about `PIECE_BYTES`."""
    async with aclosing(batches):
        try:
            async for batch in batches:
                for piece in pieces_of(map(encode_one, batch)):
                    yield piece
        except AstraflowError as error:
            yield error_bytes(error)


def _last_seen(request: Request[FollowEvents]) -> int | None:
    """The last number that the client saw. The header wins: a browser that reconnects repeats the first URL."""
    given = request.header(b"last-event-id")
    if given is None:
        return request.query.last_event_id
    return as_number(given, "Last-Event-ID")


def _position_of(request: Request[FollowStream]) -> StreamPosition:
    """Where the stream goes on. The header wins, as in `_last_seen`."""
    given = request.header(b"last-event-id")
    text = request.query.last_event_id if given is None else given
    if not text:
        return StreamPosition()
    position = StreamPosition.read(text) if len(text) <= MAX_POSITION_CHARS else None
    if position is None:
        raise Refused(errors.REQUEST_INVALID, "Last-Event-ID must be the id of a batch")
    return position


def _refuse_ahead(after: int | None, last: int) -> None:
    if after is not None and after > last:
        raise Refused(
            errors.REQUEST_INVALID, f"Last-Event-ID is ahead of the stream, whose last is: {last}"
        )
