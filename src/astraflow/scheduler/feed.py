"""The feed: committed facts and events, for followers of a run or a tenant.

Rule 1: a follower sees only what is committed. It first reads the store, then the segments that were committed since it
        subscribed; the two overlap, and the numbers of the events show where, so that no event is missed or repeated
        (P17).
Rule 2: what was committed lately is read from a tape instead of the store (`tapes`).
Rule 3: a follower pulls. The buffer of a slow one holds at most `BUFFER_BYTES`; past that it reads the store again, so
        that it loses nothing and delays nobody.
Rule 4: where several nodes share a store, the feed of a shard lives as long as its process. While the shard is served
        here the writer publishes; meanwhile, or afterwards, a source has what the owner publishes (`remote_feed`).
        Whenever the publisher changes, followers read the store again, and nothing is published before that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from astraflow.core.ids import RunId
from astraflow.scheduler.tapes import Tapes
from astraflow.store.rows import FactSegment, TenantEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astraflow.core.runs.run import RunRecord
    from astraflow.store.store import Store

_Item = TypeVar("_Item", bound=FactSegment | TenantEvent)

BUFFER_BYTES: Final = 1024**2
"""What is kept in memory for one follower; a fan-out of a thousand results is less."""

READ_BYTES: Final = 1024**2
TENANT_PAGE: Final = 500
EVENT_BYTES: Final = 200
"""What an event of a tenant or a segment of a run takes, beside its body."""

FeedKey = tuple[Literal["run", "events"], str]
"""What can be followed: a run, or the stream of a lane by its name."""


class FeedSource(Protocol):
    """Where a feed gets what another process commits."""

    def note(self, key: FeedKey) -> None:
        """The first follower of this has come, or the last one has left."""

    def begin(self) -> None:
        """The shard is not served here any more."""

    def pause(self) -> None:
        """The shard is served here: nothing may be published for the source any more."""

    def close(self) -> None:
        """The process ends."""


class Subscription(Generic[_Item]):
    """What was committed for one follower and not yet taken by it: of one run, of a tenant, or of several of them."""

    __slots__ = ("_buffer", "_limit", "_size", "_wake", "has_overflown", "is_of_node", "is_over")

    def __init__(self, limit: int = BUFFER_BYTES, *, is_of_node: bool = False) -> None:
        """`is_of_node`: another node follows, which must find the next owner when this one ends."""
        self._limit = limit
        self.is_of_node = is_of_node
        self._buffer: deque[_Item] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self.has_overflown = False
        self.is_over = False

    def put(self, item: _Item) -> None:
        self._wake.set()
        if self.has_overflown:
            return
        self._buffer.append(item)
        self._size += EVENT_BYTES + len(item.body)
        if self._size > self._limit:
            self._drop()

    def _drop(self) -> None:
        self.has_overflown = True
        self._buffer.clear()
        self._size = 0

    def reread(self) -> None:
        """Something may have been committed of which nobody told: the follower reads the store."""
        self._drop()
        self._wake.set()

    def end(self) -> None:
        """The scheduler stops serving: the follower must reconnect."""
        self.is_over = True
        self._wake.set()

    async def take(self) -> list[_Item]:
        """Wait for what is committed next; empty if the buffer has overflown or serving is over."""
        await self._wake.wait()
        self._wake.clear()
        taken = list(self._buffer)
        self._buffer.clear()
        self._size = 0
        return taken

    def read_again(self) -> bool:
        """Whether the store must be read, because the buffer has overflown."""
        was, self.has_overflown = self.has_overflown, False
        return was


class Feed:
    """Publishes committed segments and tenant events to their followers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: dict[str, list[Subscription[Any]]] = {}
        self._tenants: dict[str, list[Subscription[Any]]] = {}
        self.tapes = Tapes()
        self.source: FeedSource | None = None
        """None: nobody else writes what is published here."""
        self._is_over = False

    @property
    def followers(self) -> int:
        return sum(map(len, self._runs.values())) + sum(map(len, self._tenants.values()))

    def has(self, key: FeedKey) -> bool:
        """Whether somebody follows this."""
        return key[1] in self._of_kind(key)

    def keys(self) -> list[FeedKey]:
        """What is followed."""
        runs: list[FeedKey] = [("run", run_id) for run_id in self._runs]
        return [*runs, *(("events", name) for name in self._tenants)]

    def _of_kind(self, key: FeedKey) -> dict[str, list[Subscription[Any]]]:
        return self._runs if key[0] == "run" else self._tenants

    def _all(self) -> list[Subscription[Any]]:
        found = (*self._runs.values(), *self._tenants.values())
        return [one for subscriptions in found for one in subscriptions]

    def reread(self, keys: Iterable[FeedKey] | None = None) -> None:
        """Have the followers of these read the store; None: all."""
        some = None if keys is None else [self._of_kind(key).get(key[1], []) for key in keys]
        found = self._all() if some is None else [one for of_key in some for one in of_key]
        for subscription in dict.fromkeys(found):
            subscription.reread()

    def publish(
        self,
        segments: Iterable[FactSegment],
        events: Iterable[TenantEvent],
        accepted: Iterable[RunRecord] = (),
    ) -> None:
        """These are committed, and with them the first segments of the runs that were accepted."""
        for run in accepted:
            self.tapes.begin(run)
        runs, add = self._runs, self.tapes.add
        for segment in segments:
            add(segment)
            for subscription in runs.get(segment.run_id, ()):
                subscription.put(segment)
        if self._tenants:
            for event in events:
                for listener in self._tenants.get(event.tenant, ()):
                    listener.put(event)

    def begin(self) -> None:
        """What is committed from now on will be published."""
        self._is_over = False
        if self.source is not None:
            self.source.pause()
            self.reread()

    def pause(self) -> None:
        """Nothing more will be published by the writer of this process. Followers wait for the source, if there is one:
        another scheduler may commit meanwhile, of which nobody else would tell them."""
        if self.source is None:
            self.end()
            return
        self.tapes.clear()
        for subscription in self._all():
            if subscription.is_of_node:
                subscription.end()
        self.source.begin()

    def end(self) -> None:
        """Nothing more will be published: let every follower go, and those who come before the next `begin`."""
        self._is_over = True
        self.tapes.clear()
        if self.source is not None:
            self.source.close()
        for subscription in self._all():
            subscription.end()

    def end_events(self, name: str) -> None:
        """Let those go who follow the stream of a lane: they come back for other lanes."""
        for subscription in self._tenants.get(name, ()):
            subscription.end()

    async def read(self, run_id: RunId, after: int, max_bytes: int) -> list[FactSegment]:
        """Segments of a run beyond event `after`, in order, about as many as `max_bytes`; none: there are no more."""
        held = self.tapes.find(run_id, after)
        return await self._store.read_segments(run_id, after, max_bytes) if held is None else held

    async def segments(self, run_id: RunId, after: int) -> AsyncGenerator[list[FactSegment], None]:
        """Segments of a run beyond event `after`, in order, as they are committed. Endless: the caller
        knows the last event of a run when it sees it. Ends early only when serving ends."""
        with self.subscribed(Subscription[FactSegment](), (run_id,)) as subscription:
            reads_store = True
            while not subscription.is_over:
                while reads_store:
                    stored = await self.read(run_id, after, READ_BYTES)
                    reads_store = bool(stored)
                    if stored:
                        after = stored[-1].last
                        yield stored
                fresh = [segment for segment in await subscription.take() if segment.last > after]
                reads_store = subscription.read_again()
                if fresh and not reads_store:
                    after = fresh[-1].last
                    yield fresh

    async def events(self, tenant: str, after: int) -> AsyncGenerator[list[TenantEvent], None]:
        """Events of a tenant's stream beyond `after`, in order, for as long as serving goes on."""
        with self.subscribed(Subscription[TenantEvent](), (), tenant) as listener:
            reads_store = True
            while not listener.is_over:
                while reads_store:
                    stored = await self._store.tenant_events(tenant, after, TENANT_PAGE)
                    reads_store = len(stored) == TENANT_PAGE
                    if stored:
                        after = stored[-1].number
                        yield stored
                fresh = [event for event in await listener.take() if event.number > after]
                reads_store = listener.read_again()
                if fresh and not reads_store:
                    after = fresh[-1].number
                    yield fresh

    @contextmanager
    def subscribed(
        self, subscription: Subscription[Any], run_ids: Iterable[RunId], tenant: str | None = None
    ) -> Iterator[Subscription[Any]]:
        """What is committed for these runs and for the tenant is put into the subscription, in order."""
        keys: list[FeedKey] = [("run", run_id) for run_id in run_ids]
        if tenant is not None:
            keys.append(("events", tenant))
        self.add(subscription, keys)
        try:
            yield subscription
        finally:
            self.remove(subscription, keys)

    def add(self, subscription: Subscription[Any], keys: Sequence[FeedKey]) -> None:
        """What is committed of these from now on is put into the subscription."""
        subscription.is_over = subscription.is_over or self._is_over
        for key in keys:
            of_kind = self._of_kind(key)
            known = of_kind.get(key[1])
            if known is not None:
                known.append(subscription)
                continue
            of_kind[key[1]] = [subscription]
            if self.source is not None:
                self.source.note(key)

    def remove(self, subscription: Subscription[Any], keys: Sequence[FeedKey]) -> None:
        for key in keys:
            of_kind = self._of_kind(key)
            left = [other for other in of_kind[key[1]] if other is not subscription]
            if left:
                of_kind[key[1]] = left
                continue
            del of_kind[key[1]]
            if self.source is not None:
                self.source.note(key)
