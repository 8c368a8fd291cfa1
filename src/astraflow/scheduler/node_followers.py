"""Other nodes that follow a shard which is served here: each has one stream for all of its readers.

1. A node is told what is committed of the keys that it follows, after the commit, from the moment on at which a change
   that adds them was answered.
2. What waits for a node is bounded. Past that it is told that something was lost, and reads the store again.
3. Its stream ends when the shard is not served here any more: the node looks for the next owner.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.scheduler.feed import Feed, FeedKey, Subscription
from astraflow.scheduler.feed_frames import (
    NODE_BUFFER_BYTES,
    Alive,
    FeedChange,
    FeedGap,
    frame_bytes,
    published,
)

if TYPE_CHECKING:
    from astraflow.observe.metrics import Metrics
    from astraflow.store.rows import FactSegment, TenantEvent

ALIVE_S: Final = 2.0
"""So often something is sent: a node whose owner is silent for longer looks for another one."""
MAX_STREAMS: Final = 500
"""Internal streams of all nodes and shards that are open here at once. 16 nodes follow 16 shards with half of it."""
MAX_KEYS: Final = 200_000
"""What one node follows of one shard: its readers at their limit, with a hundred runs each, are half of it."""


class NodeFollower:
    """One stream of another node."""

    def __init__(self, feed: Feed, shard: int) -> None:
        self.follower_id = secrets.token_hex(8)
        self.shard = shard
        self._feed = feed
        self._keys: set[FeedKey] = set()
        self._subscription: Subscription[FactSegment | TenantEvent] = Subscription(
            NODE_BUFFER_BYTES, is_of_node=True
        )

    def change(self, change: FeedChange) -> None:
        """From now on it is told of these. Raises: Unavailable."""
        dropped = [key for key in dict.fromkeys(change.drop) if key in self._keys]
        self._feed.remove(self._subscription, dropped)
        self._keys.difference_update(dropped)
        added = [key for key in dict.fromkeys(change.add) if key not in self._keys]
        if len(self._keys) + len(added) > MAX_KEYS:
            raise errors.Unavailable(errors.OVERLOADED, "a node follows too many runs")
        self._feed.add(self._subscription, added)
        self._keys.update(added)

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """What it is told, until the shard is not served here any more."""
        subscription = self._subscription
        yield frame_bytes(Alive())
        while not subscription.is_over:
            try:
                async with asyncio.timeout(ALIVE_S):
                    items = await subscription.take()
            except TimeoutError:
                yield frame_bytes(Alive())
                continue
            if subscription.read_again():
                yield frame_bytes(FeedGap())
            elif items:
                yield frame_bytes(published(items))

    def close(self) -> None:
        self._subscription.end()
        self._feed.remove(self._subscription, list(self._keys))
        self._keys.clear()


class NodeFollowers:
    """By id. Use from one loop."""

    def __init__(self, metrics: Metrics) -> None:
        self._followers: dict[str, NodeFollower] = {}
        metrics.node_feeds.follow(lambda: {(): float(len(self._followers))})

    def open(self, feed: Feed, shard: int) -> NodeFollower:
        """The feed must be that of a shard that is served here. Raises: Unavailable."""
        if len(self._followers) >= MAX_STREAMS:
            raise errors.Unavailable(errors.OVERLOADED, "too many nodes follow this one")
        follower = NodeFollower(feed, shard)
        self._followers[follower.follower_id] = follower
        return follower

    def find(self, follower_id: str, shard: int) -> NodeFollower | None:
        found = self._followers.get(follower_id)
        return found if found is not None and found.shard == shard else None

    def close(self, follower: NodeFollower) -> None:
        del self._followers[follower.follower_id]
        follower.close()
