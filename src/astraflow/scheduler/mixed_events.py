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

from msgspec import Raw

from astraflow.core import errors
from astraflow.core.contract.events import Event, RunMissing, StreamReset
from astraflow.core.contract.streams import StreamItem, StreamPosition
from astraflow.core.ids import RunId
from astraflow.core.timestamps import iso
from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import TENANT_PAGE, Feed, Subscription
from astraflow.scheduler.fleet_loads import LOAD_S, FleetLoads
from astraflow.scheduler.run_events import RunEvents
from astraflow.scheduler.run_reader import RunReader
from astraflow.store.rows import FactSegment, TenantEvent
from astraflow.store.store import Store

READ_BYTES: Final = 256 * 1024
"""What is read of one run before the next has its turn."""


class MixedEvents:
    """Opens such sequences."""

    def __init__(self, store: Store, current: Current, feed: Feed, reader: RunReader) -> None:
        self._store = store
        self._current = current
        self._feed = feed
        self._reader = reader
        self._loads = FleetLoads(current)

    async def open(
        self,
        tenant: str,
        runs: Sequence[str],
        seen: StreamPosition,
        *,
        with_snapshots: bool,
        with_loads: bool,
    ) -> MixedFollower:
        """
        Raises:
            Refused: a position is ahead of what it is about.
        """
        head = self._current.writer.rows.head_of(tenant)
        await self._current.writer.barrier()
        after = head if seen.tenant is None else seen.tenant
        _refuse_ahead("the tenant", after, head)
        sources, missing = [], []
        for run_id in dict.fromkeys(map(RunId, runs)):
            try:
                source = await self._open_run(tenant, run_id, seen.runs.get(run_id), with_snapshots)
            except errors.NotFound:
                missing.append(run_id)
            else:
                sources.append(source)
        of_tenant = _TenantSource(self._store, tenant, after)
        loads = self._loads if with_loads else None
        return MixedFollower(self._feed, of_tenant, sources, missing, loads)

    async def _open_run(
        self, tenant: str, run_id: RunId, after: int | None, with_snapshot: bool
    ) -> _RunSource:
        is_over = False
        last, is_ended = await self._reader.last_event(tenant, run_id)
        if after is not None:
            _refuse_ahead(f"run {run_id}", after, last)
            is_over = is_ended and after == last
        source = _RunSource(self._feed, self._reader, tenant, run_id, after, with_snapshot)
        source.is_over = is_over
        return source


class MixedFollower:
    """One sequence, from its beginning or from a position on. `position` is where it begins."""

    def __init__(
        self,
        feed: Feed,
        tenant: _TenantSource,
        runs: list[_RunSource],
        missing: list[RunId],
        loads: FleetLoads | None,
    ) -> None:
        self._feed = feed
        self._tenant = tenant
        self._runs = {run.run_id: run for run in runs}
        self._missing = missing
        self._loads = None if loads is None else loads.follow(tenant.tenant)
        begun = {str(run.run_id): run.after for run in runs if run.after is not None}
        self.position = StreamPosition(tenant.after, begun)

    async def batches(self, interval_s: float = 0.0) -> AsyncGenerator[list[StreamItem], None]:
        """What happens, until serving ends. What is committed is taken at most every `interval_s`."""
        subscription: Subscription[FactSegment | TenantEvent] = Subscription()
        loop, taken_at = asyncio.get_running_loop(), float("-inf")
        with self._feed.subscribed(subscription, self._runs, self._tenant.tenant):
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
                if self._loads is not None and (changed := self._loads.take(loop.time())):
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

    def _unread(self) -> deque[_TenantSource | _RunSource]:
        return deque([self._tenant, *(run for run in self._runs.values() if not run.is_over)])

    def _items(self, fresh: Iterable[FactSegment | TenantEvent]) -> list[StreamItem]:
        items: list[StreamItem] = []
        for one in fresh:
            if isinstance(one, TenantEvent):
                items += self._tenant.take([one])
            else:
                items += self._runs[one.run_id].take([one])
        return items


class _TenantSource:
    """The events of the tenant."""

    def __init__(self, store: Store, tenant: str, after: int) -> None:
        self.tenant = tenant
        self.after = after
        self.is_behind = True
        self._store = store

    async def read(self) -> list[StreamItem]:
        """What is stored, a page of it."""
        stored = await self._store.tenant_events(self.tenant, self.after, TENANT_PAGE)
        self.is_behind = len(stored) == TENANT_PAGE
        return self.take(stored)

    def take(self, events: Iterable[TenantEvent]) -> list[StreamItem]:
        items: list[StreamItem] = []
        for event in events:
            if event.number <= self.after:
                continue
            if event.number > self.after + 1:
                gone = StreamReset(first=self.after + 1, last=event.number - 1, reason="retention")
                items.append(StreamItem(type="stream.reset", body=gone))
            self.after = event.number
            items.append(
                StreamItem(
                    id=event.number,
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
        run_id: RunId,
        after: int | None,
        with_snapshot: bool,
    ) -> None:
        self.run_id = run_id
        self.after = after
        self.is_over = False
        self.is_behind = True
        self._feed = feed
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
        stored = await self._feed.read(self.run_id, self._events.after, READ_BYTES)
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


def _refuse_ahead(what: str, after: int, last: int) -> None:
    if after > last:
        raise errors.Refused(
            errors.REQUEST_INVALID,
            f"the position is ahead of {what}, whose last event is: {last}",
        )
