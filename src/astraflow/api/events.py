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

from msgspec import UNSET, Raw, structs

from astraflow.api.asgi import AsgiApp
from astraflow.api.event_streams import (
    COMMENT_PING,
    EVENT_PING,
    EventStream,
    OpenStreams,
    error_bytes,
)
from astraflow.api.requests import Request, as_number
from astraflow.api.responses import NO_CONTENT, encode
from astraflow.api.routes import Endpoints, Header, Reply, Services, route
from astraflow.api.run_routes import bounded
from astraflow.api.shown_segments import ShownSegments, event_bytes, pieces_of
from astraflow.api.stream_batches import batch_bytes, batch_pieces
from astraflow.api.stream_grants import RunOpening, StreamOpening, TenantOpening
from astraflow.core import errors
from astraflow.core.cluster.lanes import lane_of_name
from astraflow.core.contract.events import (
    MAX_LANE_POSITION_CHARS,
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
    LanePosition,
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
)
_LAST_POSITION: Final = Header(
    "Last-Event-ID", "The last id that was seen. It wins over `lastEventId`."
)


def _message_bytes(message: StreamMessage) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (message.type.encode(), encode(message))


def _tenant_event(row: TenantEvent) -> Event:
    return Event(
        id=row.number,
        lane=lane_of_name(row.tenant) or UNSET,
        type=row.type,
        occurred_at=iso(row.at),
        scope=_NO_SCOPE,
        body=Raw(row.body),
    )


class _TenantEncoder:
    """The events of a tenant on the wire. Where retention has removed some, `stream.reset` names the gap. The id of an
    event is the position in all lanes: with one lane, its number."""

    def __init__(self, opening: TenantOpening) -> None:
        self._lasts = dict(opening.after)
        self._has_several = len(opening.after) > 1
        # From now on: the first event of a lane may have any number.
        self._new = set(opening.after) if opening.is_from_now else set()

    def __call__(self, row: TenantEvent) -> bytes:
        lane = lane_of_name(row.tenant)
        last, self._lasts[lane] = self._lasts[lane], row.number
        position = str(LanePosition.of(self._lasts)) if self._has_several else str(row.number)
        encoded = event_bytes(_tenant_event(row), position)
        is_new = lane in self._new
        self._new.discard(lane)
        if is_new or row.number == last + 1:
            return encoded
        gone = StreamReset(first=last + 1, last=row.number - 1, lane=lane, reason="retention")
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
        "Without `runId`: the events of the tenant, from now on. Their ids are numbers, too; those of a tenant with "
        "several lanes have the last number of each lane, as `0:512,1:77`. A comment is sent every "
        "15 seconds. A client that "
        "does not read for 30 seconds is disconnected, and may reconnect.",
        query=FollowEvents,
        headers=(_LAST_ID,),
        replies={
            200: Reply("The stream.", None, "text/event-stream"),
            204: Reply("The run has ended, and its last event was seen."),
        },
    )
    async def open(self, request: Request[FollowEvents]) -> AsgiApp:
        given = _last_seen(request)
        self._streams.check_room()
        run_id = request.query.run_id
        if not run_id:
            return self.follow(await self._open_tenant(request.tenant, _position_in_lanes(given)))
        after = None if given is None else as_number(given, "Last-Event-ID")
        opening = await self._open_run(request, RunId(run_id), after)
        return NO_CONTENT if opening is None else self.follow(opening)

    async def _open_run(
        self, request: Request[FollowEvents], run_id: RunId, after: int | None
    ) -> RunOpening | None:
        """None: its last event was seen."""
        tenant = request.tenant
        last, is_over = await self._scheduler.reader.last_event(tenant, run_id)
        _refuse_ahead(after, last)
        if is_over and after == last:
            return None
        first = b""
        if after is None and request.query.snapshot:
            first, after = await self._snapshot(tenant, run_id)
        return RunOpening(tenant, run_id, after or 0, first)

    async def _snapshot(self, tenant: str, run_id: RunId) -> tuple[bytes, int]:
        """The run as it is, and the number after which its events continue."""
        view, _ = await self._scheduler.reader.snapshot(tenant, run_id)
        bounded(view)
        # Of an ended run the terminal event follows, so that the client has a number to reconnect with.
        after = view.last_event if view.finished_at is None else view.last_event - 1
        return _message_bytes(StreamMessage(type="run.snapshot", body=view)), after

    async def _open_tenant(self, tenant: str, seen: LanePosition | None) -> TenantOpening:
        heads = await self._scheduler.events.heads(tenant)
        after = heads if seen is None else seen
        _refuse_ahead(after.home, heads.home)
        for lane, at in after.others.items():
            _refuse_ahead(at, heads.others.get(lane, 0))
        return TenantOpening(
            tenant, after.after(self._scheduler.events.feeds.lanes_of(tenant)), seen is None
        )

    def follow(self, opening: StreamOpening) -> EventStream:
        """The stream, whoever has opened it. Raises: Unavailable."""
        self._streams.check_room()
        if not isinstance(opening, RunOpening):
            # Whoever has opened it may not have known of a lane that is new.
            lanes = self._scheduler.events.feeds.lanes_of(opening.tenant)
            new = {lane: 0 for lane in lanes if lane not in opening.after}
            if new:
                opening = structs.replace(opening, after={**opening.after, **new})
        tenant, first, ping = opening.tenant, b"", COMMENT_PING
        if isinstance(opening, RunOpening):
            reader = self._scheduler.reader
            batches = reader.follow_segments(tenant, opening.run_id, opening.after)
            pieces, first = self._shown.follow(batches), opening.first
        elif isinstance(opening, TenantOpening):
            events = self._scheduler.events.follow(tenant, opening.after)
            pieces = _encoded(events, _TenantEncoder(opening))
        else:
            follower = self._scheduler.mixed_events.follow(opening)
            # The position is sent at once: a client that is cut off before the first event resumes here, too.
            first, ping = batch_bytes(follower.position, []), EVENT_PING
            pieces = batch_pieces(follower, opening.interval_s)
        return EventStream(self._streams, opening, pieces, first, ping)

    @route(
        "GET",
        "/api/v1/stream",
        READ,
        "followStream",
        "follow the tenant and any number of runs on one connection, as Server-Sent Events",
        tag="events",
        text="Each message `batch` has a `StreamBatch` as its `data`, and as its id the position of the stream: the "
        "last event of the tenant (of each of its lanes, if it has several) and of each run. To follow other runs, "
        "connect again with these `runs` and with the last id: nothing is missed and nothing comes twice. The events "
        "of the tenant begin now if no last id is given, those of a run with its first one. The stream does not end "
        "when runs do. A run that does not exist is `run.missing`. When nothing happens, an event `ping` without an id "
        "is sent every 15 seconds. A client that does not read for 30 seconds is disconnected, and may reconnect.",
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
        opening = await self._scheduler.mixed_events.open(
            tenant,
            runs,
            _position_of(request),
            with_snapshots=query.snapshot,
            with_loads=query.worker_load,
            interval_s=query.coalesce_ms / 1000,
        )
        return self.follow(opening)


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


def _last_seen(request: Request[FollowEvents]) -> str | None:
    """The last id that the client saw. The header wins: a browser that reconnects repeats the first URL."""
    given = request.header(b"last-event-id")
    return request.query.last_event_id if given is None else given


def _position_in_lanes(given: str | None) -> LanePosition | None:
    """The last id of the stream of a tenant. Raises: Refused."""
    if given is None:
        return None
    position = LanePosition.read(given) if len(given) <= MAX_LANE_POSITION_CHARS else None
    return LanePosition(as_number(given, "Last-Event-ID")) if position is None else position


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
