"""A tenant's own stream of events: workers, packages, resources, the status of runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import Feed
from astraflow.store.rows import TenantEvent


class TenantEvents:
    """Events are numbered from 1 without gaps; only committed ones are given out."""

    def __init__(self, current: Current, feed: Feed) -> None:
        self._current = current
        self._feed = feed

    async def last(self, tenant: str) -> int:
        """The number of the last event."""
        last = self._current.writer.rows.head_of(tenant)
        await self._current.writer.barrier()
        return last

    async def follow(
        self, tenant: str, after: int | None
    ) -> AsyncGenerator[list[TenantEvent], None]:
        """Events beyond `after`; None: from now on."""
        start = self._current.writer.rows.head_of(tenant) if after is None else after
        async with aclosing(self._feed.events(tenant, start)) as batches:
            async for events in batches:
                yield events
