"""When a shard is claimed by this process and when it is given back, where several processes share a store."""

from __future__ import annotations

import asyncio


class GivenBack(Exception):
    """Another process is to have the shard."""

    def __init__(self) -> None:
        super().__init__("the shard was given to another scheduler")


class ShardTurns:
    """The process says when (`scheduler.cluster_node`); the life cycle of the shard waits for it. Use from one loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Event()
        self._gave = asyncio.Event()

    def let_claim(self, is_due: bool) -> None:
        """Whether the shard is to be claimed now."""
        if is_due:
            self._turn.set()
        else:
            self._turn.clear()

    def give(self) -> None:
        """Give the shard back."""
        self._turn.clear()
        self._gave.set()

    async def wait(self) -> None:
        """Until the shard may be claimed."""
        await self._turn.wait()
        self._gave.clear()

    async def until_given(self) -> None:
        """Raises: GivenBack, when it is time."""
        await self._gave.wait()
        raise GivenBack
