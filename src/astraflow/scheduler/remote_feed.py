"""What the owner of a shard commits, for followers at a node that does not own it.

Rule 1: one internal stream for each shard that somebody here follows something of. It carries the runs and the streams
        of lanes that are followed here, and nothing else; what is followed is told to the owner as it changes.
Rule 2: subscribed first, read afterwards. A key is *placed* once the owner has confirmed it. Then its followers read
        the store again, and only from then on what comes of it is published: what was committed before the owner knew
        of the key is in the store by then, what is committed later comes.
Rule 3: when the stream breaks, or another node becomes the owner, nothing is placed any more. Followers wait, and
        Rule 2 begins anew with the next owner. So a reader sees each event once, in order, whoever commits it (I33).
Rule 4: while the shard is served here, the writer publishes, and this does nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from astraflow.scheduler.feed import Feed, FeedKey
from astraflow.scheduler.feed_frames import (
    MAX_CHANGES,
    BadFeed,
    FeedChange,
    FeedGap,
    Frame,
    Published,
)

_log: Final = logging.getLogger(__name__)

RETRY_S: Final = 0.25
"""Before the next try, as often as a node looks who owns what."""
LINGER_S: Final = 5.0
"""So long a stream stays open that nobody needs: who reads one run after the other does not open one for each."""


class LinkLost(Exception):
    """The owner cannot be reached, or is another one by now."""


class FeedLink(Protocol):
    """An internal stream that is open."""

    async def follow(self, change: FeedChange) -> None:
        """When this returns, the owner publishes for what was added. Raises: LinkLost."""

    def frames(self) -> AsyncIterator[Frame]:
        """Raises: LinkLost, BadFeed."""

    async def until_moved(self) -> None:
        """Returns when another node is known as the owner."""


Dial = Callable[[int], AbstractAsyncContextManager[FeedLink]]
"""Opens an internal stream to the owner of a shard. Raises: LinkLost."""


class RemoteFeed:
    """The source of the feed of one shard. Use from one loop."""

    def __init__(self, shard: int, feed: Feed, dial: Dial) -> None:
        self._shard = shard
        self._feed = feed
        self._dial = dial
        self._changed = asyncio.Event()
        self._dirty: dict[FeedKey, None] = {}
        """Keys that may be followed by others than the owner knows of."""
        self._placed: set[FeedKey] = set()
        self._is_needed = True
        """Whether the shard may be served elsewhere."""
        self._running: asyncio.Task[None] | None = None

    # -- as the source of a feed --------------------------------------------------------------

    def note(self, key: FeedKey) -> None:
        if not self._is_needed:
            return
        self._dirty[key] = None
        self._changed.set()
        self._start()

    def begin(self) -> None:
        self._is_needed = True
        self._start()

    def pause(self) -> None:
        self._is_needed = False
        self._placed.clear()
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def close(self) -> None:
        self.pause()

    # -- the stream ---------------------------------------------------------------------------

    def _start(self) -> None:
        if self._running is None and self._feed.followers:
            self._running = asyncio.get_running_loop().create_task(self._run())
            self._running.add_done_callback(self._ended)

    def _ended(self, running: asyncio.Task[None]) -> None:
        """It ends by itself when nobody needs it. After a bug, followers must not wait for ever."""
        if running.cancelled() or running.exception() is None:
            return
        _log.error("the feed of shard %d failed", self._shard, exc_info=running.exception())
        if self._running is running:
            self._running = None
            self._placed.clear()
            asyncio.get_running_loop().call_later(RETRY_S, self._start_again)

    def _start_again(self) -> None:
        if self._is_needed:
            self._start()

    async def _run(self) -> None:
        while self._feed.followers:
            try:
                async with self._dial(self._shard) as link:
                    await self._hold(link)
            except (LinkLost, BadFeed) as error:
                _log.info("the feed of shard %d is looked for again: %s", self._shard, error)
            finally:
                if self._running is asyncio.current_task():
                    self._placed.clear()
            if self._feed.followers:
                await asyncio.sleep(RETRY_S)
        self._running = None

    async def _hold(self, link: FeedLink) -> None:
        """Until the stream ends, or nobody needs it. Raises: LinkLost, BadFeed."""
        self._placed.clear()
        self._dirty = dict.fromkeys(self._feed.keys())
        self._changed.set()
        parts = (self._read(link), self._follow(link), link.until_moved())
        tasks = [asyncio.create_task(one) for one in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _follow(self, link: FeedLink) -> None:
        """Keep the owner informed. Returns when nothing has been followed for a while."""
        while True:
            self._changed.clear()
            change = self._next_change()
            if change.add or change.drop:
                await link.follow(change)
                self._place(change)
                continue
            try:
                async with asyncio.timeout(None if self._placed else LINGER_S):
                    await self._changed.wait()
            except TimeoutError:
                return

    def _next_change(self) -> FeedChange:
        change = FeedChange([], [])
        while self._dirty and len(change.add) + len(change.drop) < MAX_CHANGES:
            key, _ = self._dirty.popitem()
            is_wanted, is_placed = self._feed.has(key), key in self._placed
            if is_wanted and not is_placed:
                change.add.append(key)
            elif is_placed and not is_wanted:
                change.drop.append(key)
        # Not when it is confirmed: whoever follows it meanwhile must have it placed anew.
        self._placed.difference_update(change.drop)
        return change

    def _place(self, change: FeedChange) -> None:
        """The owner publishes for these now. What it has committed before is in the store (Rule 2)."""
        self._placed.update(change.add)
        self._feed.reread(change.add)

    async def _read(self, link: FeedLink) -> None:
        async for frame in link.frames():
            if isinstance(frame, Published):
                self._publish(frame)
            elif isinstance(frame, FeedGap):
                self._feed.reread(self._placed)

    def _publish(self, frame: Published) -> None:
        placed: Any = self._placed
        self._feed.publish(
            [one for one in frame.segments if ("run", one.run_id) in placed],
            [one for one in frame.events if ("events", one.tenant) in placed],
        )
