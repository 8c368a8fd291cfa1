"""The feed: committed facts and events, for followers of a run or a tenant.

Rule 1: a follower sees only what is committed. It first reads the store, then the segments that were committed since it
        subscribed; the two overlap, and the numbers of the events show where, so that no event is missed or repeated
        (P17).
Rule 2: what was committed lately is read from a tape instead of the store (`tapes`).
Rule 3: a follower pulls. The buffer of a slow one holds at most `BUFFER_BYTES`; past that it reads the store again, so
        that it loses nothing and delays nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from astraflow.core.ids import RunId
from astraflow.scheduler.tapes import Tapes
from astraflow.store.rows import FactSegment, TenantEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astraflow.core.runs.run import RunRecord
    from astraflow.store.store import Store

_T = TypeVar("_T")
_Item = TypeVar("_Item", bound=FactSegment | TenantEvent)

BUFFER_BYTES: Final = 1024**2
"""What is kept in memory for one follower; a fan-out of a thousand results is less."""

READ_BYTES: Final = 1024**2
TENANT_PAGE: Final = 500
EVENT_BYTES: Final = 200
"""What an event of a tenant or a segment of a run takes, beside its body."""


class Subscription(Generic[_Item]):
    """What was committed for one follower and not yet taken by it: of one run, of a tenant, or of several of them."""

    __slots__ = ("_buffer", "_size", "_wake", "has_overflown", "is_over")

    def __init__(self) -> None:
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
        if self._size > BUFFER_BYTES:
            self.has_overflown = True
            self._buffer.clear()
            self._size = 0

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
        self._is_over = False

    @property
    def followers(self) -> int:
        return sum(map(len, self._runs.values())) + sum(map(len, self._tenants.values()))

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

    def end(self) -> None:
        """Nothing more will be published: let every follower go, and those who come before the next `begin`. Another
        scheduler may commit meanwhile, of which nobody would tell them."""
        self._is_over = True
        self.tapes.clear()
        for subscriptions in (*self._runs.values(), *self._tenants.values()):
            for subscription in subscriptions:
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
        subscription.is_over = self._is_over
        runs = tuple(run_ids)
        for run_id in runs:
            self._runs.setdefault(run_id, []).append(subscription)
        if tenant is not None:
            self._tenants.setdefault(tenant, []).append(subscription)
        try:
            yield subscription
        finally:
            for run_id in runs:
                _remove(self._runs, run_id, subscription)
            if tenant is not None:
                _remove(self._tenants, tenant, subscription)


def _remove(of: dict[str, list[_T]], key: str, one: _T) -> None:
    left = [other for other in of[key] if other is not one]
    if left:
        of[key] = left
    else:
        del of[key]
