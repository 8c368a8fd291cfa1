"""A tenant's own stream of events: workers, packages, resources, the status of runs.

Rule 1: events are numbered from 1 without gaps, in each lane of the tenant by itself; only committed ones are given
        out.
Rule 2: the events of several lanes are merged as they come. The order within a lane is kept; between lanes there is
        none.
Rule 3: when the tenant gets a further lane, its streams end (`Feed.end_events`): who comes back follows all of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, lane_name, lane_of_name
from astraflow.core.contract.streams import LanePosition
from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import TENANT_PAGE, Feed, FeedKey, Subscription
from astraflow.scheduler.other_shards import OtherShards
from astraflow.store.rows import TenantEvent
from astraflow.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


class LaneFeeds:
    """The feeds that the lanes of a tenant are published in."""

    def __init__(self, feed: Feed, others: OtherShards) -> None:
        """`feed`: of the shard that this is asked in."""
        self._feed = feed
        self._others = others

    def lanes_of(self, tenant: str) -> Sequence[int]:
        return self._others.lanes_of(tenant)

    def of(self, tenant: str, lane: int) -> Feed:
        """Raises: Unavailable."""
        if len(self._others.lanes_of(tenant)) <= 1:
            return self._feed
        found = self._others.feed_of(tenant, lane)
        if found is None:
            raise errors.Unavailable(errors.SHARD_UNREACHABLE, f"lane {lane} is not known yet")
        return found

    @contextmanager
    def subscribed(
        self, subscription: Subscription[Any], wanted: Iterable[tuple[Feed, FeedKey]]
    ) -> Iterator[None]:
        """What is committed of these is put into the subscription."""
        by_feed: dict[Feed, list[FeedKey]] = {}
        for feed, key in wanted:
            by_feed.setdefault(feed, []).append(key)
        with ExitStack() as stack:
            for feed, keys in by_feed.items():
                feed.add(subscription, keys)
                stack.callback(feed.remove, subscription, keys)
            yield


class TenantEvents:
    """Use from the scheduler's loop."""

    def __init__(self, store: Store, current: Current, feeds: LaneFeeds) -> None:
        self._store = store
        self._current = current
        self.feeds = feeds

    async def heads(self, tenant: str) -> LanePosition:
        """The number of the last event of each lane."""
        lasts = {HOME_LANE: self._current.writer.rows.head_of(tenant)}
        for lane in self.feeds.lanes_of(tenant):
            if lane != HOME_LANE:
                lasts[lane] = await self._store.last_tenant_event(lane_name(tenant, lane))
        await self._current.writer.barrier()
        return LanePosition.of(lasts)

    async def follow(
        self, tenant: str, after: Mapping[int, int]
    ) -> AsyncGenerator[list[TenantEvent], None]:
        """Events of these lanes beyond these numbers."""
        if set(after) == {HOME_LANE}:
            home = self.feeds.of(tenant, HOME_LANE)
            async with aclosing(home.events(tenant, after[HOME_LANE])) as batches:
                async for events in batches:
                    yield events
            return
        async with aclosing(self._follow_several(tenant, dict(after))) as batches:
            async for events in batches:
                yield events

    async def _follow_several(
        self, tenant: str, after: dict[int, int]
    ) -> AsyncGenerator[list[TenantEvent], None]:
        subscription: Subscription[TenantEvent] = Subscription()
        wanted: list[tuple[Feed, FeedKey]] = [
            (self.feeds.of(tenant, lane), ("events", lane_name(tenant, lane))) for lane in after
        ]
        with self.feeds.subscribed(subscription, wanted):
            unread = list(after)
            while not subscription.is_over:
                while unread:
                    lane = unread.pop(0)
                    name = lane_name(tenant, lane)
                    stored = await self._store.tenant_events(name, after[lane], TENANT_PAGE)
                    if len(stored) == TENANT_PAGE:
                        unread.append(lane)
                    if stored:
                        after[lane] = stored[-1].number
                        yield stored
                fresh = _unseen(await subscription.take(), after)
                if subscription.read_again():
                    unread = list(after)
                elif fresh:
                    yield fresh


def _unseen(events: Iterable[TenantEvent], after: dict[int, int]) -> list[TenantEvent]:
    """Those beyond `after`, which then counts them."""
    unseen = []
    for event in events:
        lane = lane_of_name(event.tenant)
        if event.number > after[lane]:
            after[lane] = event.number
            unseen.append(event)
    return unseen
