"""The events of a tenant and of several runs as one sequence.

1. Each of them is followed as it would be alone: committed events only, in order, without a gap (P17).
2. The follower pulls. What is committed meanwhile for all of them waits in one buffer of at most `BUFFER_BYTES`; past
   that each is read from the store again, one page of one of them at a time.
3. A run that does not exist does not end the others: `run.missing` says so.
4. The load of workers is asked of the engine while somebody listens, and has no number: nobody else pays for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, lane_name
from astraflow.core.contract.events import Event, RunMissing, StreamReset
from astraflow.core.contract.streams import LanePosition, StreamItem, StreamPosition
from astraflow.core.ids import RunId
from astraflow.core.timestamps import iso
from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import TENANT_PAGE, Feed, FeedKey, Subscription
from astraflow.scheduler.fleet_loads import LOAD_S, FleetLoads, FollowedLoads
from astraflow.scheduler.other_shards import OtherShards
from astraflow.scheduler.run_events import RunEvents
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.tenant_events import LaneFeeds, TenantEvents
from astraflow.store.rows import FactSegment, TenantEvent
from astraflow.store.store import Store

READ_BYTES: Final = 256 * 1024
"""What is read of one run before the next has its turn."""


class OpenedRun(msgspec.Struct, frozen=True):
    """A run of such a sequence, as it was when the sequence was opened."""

    run_id: RunId
    lane: int
    after: int | None
    """None: from its beginning."""
    is_over: bool


class MixedOpening(msgspec.Struct, frozen=True, tag="mixed"):
    """Where a sequence begins. Any node can follow it."""

    tenant: str
    after: dict[int, int]
    """By lane of the tenant."""
    runs: list[OpenedRun]
    missing: list[RunId]
    with_snapshots: bool
    with_loads: bool
    interval_s: float


class MixedEvents:
    """Opens such sequences."""

    def __init__(
        self,
        store: Store,
        current: Current,
        reader: RunReader,
        events: TenantEvents,
        others: OtherShards,
    ) -> None:
        self._store = store
        self._events = events
        self._feeds = events.feeds
        self._reader = reader
        self._loads = FleetLoads(current, others)
        self.loads_of = self._loads.ask

    async def open(
        self,
        tenant: str,
        runs: Sequence[str],
        seen: StreamPosition,
        *,
        with_snapshots: bool,
        with_loads: bool,
        interval_s: float = 0.0,
    ) -> MixedOpening:
        """
        Raises:
            Refused: a position is ahead of what it is about.
        """
        heads = await self._events.heads(tenant)
        after = heads if seen.tenant is None else LanePosition(seen.tenant, seen.lanes)
        refuse_ahead("the tenant", after, heads)
        opened, missing = [], []
        for run_id in dict.fromkeys(map(RunId, runs)):
            try:
                opened.append(await self._open_run(tenant, run_id, seen.runs.get(run_id)))
            except errors.NotFound:
                missing.append(run_id)
        lanes = self._feeds.lanes_of(tenant)
        return MixedOpening(
            tenant, after.after(lanes), opened, missing, with_snapshots, with_loads, interval_s
        )

    async def _open_run(self, tenant: str, run_id: RunId, after: int | None) -> OpenedRun:
        last, is_ended = await self._reader.last_event(tenant, run_id)
        lane = HOME_LANE
        if len(self._feeds.lanes_of(tenant)) > 1:
            lane = (await self._reader.get_row(tenant, run_id)).lane
        if after is not None:
            _refuse_ahead(f"run {run_id}", after, last)
        return OpenedRun(run_id, lane, after, after is not None and is_ended and after == last)

    def follow(self, opening: MixedOpening) -> MixedFollower:
        """Raises: Unavailable."""
        tenant = opening.tenant
        sources = [
            _RunSource(
                self._feeds.of(tenant, one.lane), self._reader, tenant, one, opening.with_snapshots
            )
            for one in opening.runs
        ]
        lanes = [
            _LaneSource(self._store, self._feeds.of(tenant, lane), tenant, lane, after)
            for lane, after in opening.after.items()
        ]
        loads = self._loads.follow(tenant) if opening.with_loads else None
        return MixedFollower(self._feeds, lanes, sources, opening.missing, loads)


class MixedFollower:
    """One sequence, from its beginning or from a position on. `position` is where it begins."""

    def __init__(
        self,
        feeds: LaneFeeds,
        lanes: list[_LaneSource],
        runs: list[_RunSource],
        missing: list[RunId],
        loads: FollowedLoads | None,
    ) -> None:
        self._feeds = feeds
        self._lanes = {lane.name: lane for lane in lanes}
        self._runs = {run.run_id: run for run in runs}
        self._missing = missing
        self._loads = loads
        begun = {str(run.run_id): run.after for run in runs if run.after is not None}
        tenant = LanePosition.of({one.lane: one.after for one in lanes})
        self.position = StreamPosition(tenant.home, begun, tenant.others)

    async def batches(self, interval_s: float = 0.0) -> AsyncGenerator[list[StreamItem], None]:
        """What happens, until serving ends. What is committed is taken at most every `interval_s`."""
        subscription: Subscription[FactSegment | TenantEvent] = Subscription()
        loop, taken_at = asyncio.get_running_loop(), float("-inf")
        sources: list[_LaneSource | _RunSource] = [*self._lanes.values(), *self._runs.values()]
        wanted = [(source.feed, source.key) for source in sources]
        with self._feeds.subscribed(subscription, wanted):
            if self._missing:
                yield [_missing(run_id) for run_id in self._missing]
            behind = self._unread()
            while not subscription.is_over:
                while behind and not subscription.is_over:
                    source = behind.popleft()
                    items = await source.read()
                    if source.is_behind:
                        behind.append(source)
                    if items:
                        yield items
                await asyncio.sleep(max(0.0, taken_at + interval_s - loop.time()))
                if self._loads is not None and (changed := await self._loads.take(loop.time())):
                    yield [StreamItem(type="worker.load", body=changed)]
                try:
                    async with asyncio.timeout(None if self._loads is None else LOAD_S):
                        fresh = await subscription.take()
                except TimeoutError:
                    continue
                taken_at = loop.time()
                if subscription.read_again():
                    behind = self._unread()
                elif items := self._items(fresh):
                    yield items

    def _unread(self) -> deque[_LaneSource | _RunSource]:
        return deque(
            [*self._lanes.values(), *(run for run in self._runs.values() if not run.is_over)]
        )

    def _items(self, fresh: Iterable[FactSegment | TenantEvent]) -> list[StreamItem]:
        items: list[StreamItem] = []
        for one in fresh:
            if isinstance(one, TenantEvent):
                items += self._lanes[one.tenant].take([one])
            else:
                items += self._runs[one.run_id].take([one])
        return items


class _LaneSource:
    """The events of one lane of the tenant."""

    def __init__(self, store: Store, feed: Feed, tenant: str, lane: int, after: int) -> None:
        self.lane = lane
        self.name = lane_name(tenant, lane)
        self.feed = feed
        self.key: FeedKey = ("events", self.name)
        self.after = after
        self.is_behind = True
        self._store = store

    async def read(self) -> list[StreamItem]:
        """What is stored, a page of it."""
        stored = await self._store.tenant_events(self.name, self.after, TENANT_PAGE)
        self.is_behind = len(stored) == TENANT_PAGE
        return self.take(stored)

    def take(self, events: Iterable[TenantEvent]) -> list[StreamItem]:
        items: list[StreamItem] = []
        for event in events:
            if event.number <= self.after:
                continue
            if event.number > self.after + 1:
                gone = StreamReset(
                    first=self.after + 1,
                    last=event.number - 1,
                    lane=self.lane,
                    reason="retention",
                )
                items.append(StreamItem(type="stream.reset", body=gone))
            self.after = event.number
            items.append(
                StreamItem(
                    id=event.number,
                    lane=self.lane,
                    type=event.type,
                    occurred_at=iso(event.at),
                    body=Raw(event.body),
                )
            )
        return items


class _RunSource:
    """The events of one run."""

    def __init__(
        self,
        feed: Feed,
        reader: RunReader,
        tenant: str,
        opened: OpenedRun,
        with_snapshot: bool,
    ) -> None:
        self.run_id = opened.run_id
        self.feed = feed
        self.key: FeedKey = ("run", opened.run_id)
        self.after = after = opened.after
        self.is_over = opened.is_over
        self.is_behind = True
        self._reader = reader
        self._tenant = tenant
        self._with_snapshot = with_snapshot and after is None
        self._events: RunEvents | None = None

    async def read(self) -> list[StreamItem]:
        """What is stored, a page of it; at first a snapshot, if one is wanted."""
        if self._events is None:
            try:
                return await self._begin()
            except errors.NotFound:
                self.is_over, self.is_behind = True, False  # retention has just removed it
                return [_missing(self.run_id)]
        stored = await self.feed.read(self.run_id, self._events.after, READ_BYTES)
        items = self.take(stored)
        self.is_behind = bool(stored) and not self.is_over
        return items

    async def _begin(self) -> list[StreamItem]:
        if not self._with_snapshot:
            self._events = await self._reader.open_events(
                self._tenant, self.run_id, self.after or 0
            )
            return []
        snapshot, self._events = await self._reader.snapshot(self._tenant, self.run_id)
        self.is_over = self._events.is_over = snapshot.finished_at is not None
        self.is_behind = not self.is_over
        return [
            StreamItem(
                run_id=self.run_id, id=snapshot.last_event, type="run.snapshot", body=snapshot
            )
        ]

    def take(self, segments: Iterable[FactSegment]) -> list[StreamItem]:
        events = self._events
        if events is None or self.is_over:
            return []
        unseen = [one for one in segments if one.last > events.after]
        items = [_item(self.run_id, event) for event in events.take(unseen)]
        self.is_over = events.is_over
        return items


def _item(run_id: RunId, event: Event) -> StreamItem:
    return StreamItem(
        run_id=run_id,
        id=event.id,
        type=event.type,
        occurred_at=event.occurred_at,
        scope=event.scope,
        body=event.body,
    )


def _missing(run_id: RunId) -> StreamItem:
    return StreamItem(type="run.missing", body=RunMissing(run_id=run_id))


def refuse_ahead(what: str, after: LanePosition, heads: LanePosition) -> None:
    """Raises: Refused, if a position in the stream of a tenant is ahead of it."""
    _refuse_ahead(what, after.home, heads.home)
    for lane, at in after.others.items():
        _refuse_ahead(f"lane {lane} of {what}", at, heads.others.get(lane, 0))


def _refuse_ahead(what: str, after: int, last: int) -> None:
    if after > last:
        raise errors.Refused(
            errors.REQUEST_INVALID,
            f"the position is ahead of {what}, whose last event is: {last}",
        )
