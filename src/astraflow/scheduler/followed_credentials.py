"""The credentials of streams that are served here while another node owns their shard.

The owner has checked the credential when the stream was opened. From then on the node that serves the stream knows as
much of it as the owner of any other shard knows of a token of the site: all of it is in the store.

Rule 1: tokens are read again when the value of the site has changed that differs after each change of a token, within a
        second after a revocation. A read that failed is tried again.
Rule 2: an expiry ends a stream within `LOOK_S`, and so does the suspension of a tenant within `READ_S`.
Rule 3: a stream here does not count as a use of its token, which only an owner may write. A session of a browser that
        does nothing else runs out while its stream is open, and its stream ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.store.identity import TOKENS_CHANGE

if TYPE_CHECKING:
    from astraflow.clock import Clock
    from astraflow.scheduler.cluster_node import ClusterNode
    from astraflow.scheduler.service import Scheduler

_log: Final = logging.getLogger(__name__)

LOOK_S: Final = 0.25
READ_S: Final = 1.0


class FollowedCredentials:
    """Use from the loop of the node."""

    def __init__(self, node: ClusterNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._read: dict[Scheduler, str | None] = {}
        """The last change of tokens that a scheduler has read."""
        self._read_tenants_at = float("-inf")

    async def run(self) -> None:
        """Endless."""
        was_there = True
        while True:
            try:
                await self._look()
                was_there = True
            except errors.AstraflowError as error:
                if was_there:
                    _log.warning("credentials could not be read: %s", error.message)
                was_there = False
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        followed = [
            one
            for one in self._node.all_schedulers()
            if not one.is_serving and one.credentials.has_open
        ]
        for scheduler in followed:
            scheduler.credentials.enforce()
        now = self._clock.now()
        if followed and now - self._read_tenants_at >= READ_S:
            self._read_tenants_at = now
            for scheduler in followed:
                await scheduler.credentials.read_suspensions()
        change = self._node.seen.changes.get(TOKENS_CHANGE)
        self._read = {one: self._read[one] for one in followed if one in self._read}
        for scheduler in followed:
            if self._read.get(scheduler, "") != change:
                await scheduler.credentials.refresh()
                self._read[scheduler] = change
