"""Waiting for what nobody tells: processes that end, files that appear."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["LOOK_S", "is_seen", "until"]

LOOK_S = 0.02


async def until(condition: Callable[[], object], within_s: float) -> None:
    """Look until it holds.

    Raises:
        TimeoutError: it did not, in time.
    """
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  (nothing would set an event)
            await asyncio.sleep(LOOK_S)


async def is_seen(condition: Callable[[], object], within_s: float) -> bool:
    """As `until`, with its outcome as the answer."""
    try:
        await until(condition, within_s)
    except TimeoutError:
        return False
    return True
