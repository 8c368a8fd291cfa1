"""Waiting, with a bound, for what nobody tells: processes that end, files that appear, answers that change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["LOOK_S", "WAIT_S", "is_seen", "until", "until_seen"]

WAIT_S = 90.0
"""For what must come about; never waited out unless something is broken. A first install fetches wheels."""
LOOK_S = 0.02

FoundT = TypeVar("FoundT")


def until(condition: Callable[[], FoundT | None], what: str, within_s: float = WAIT_S) -> FoundT:
    """Look until there is something, and return it."""
    ends_at = time.monotonic() + within_s
    while time.monotonic() < ends_at:
        if found := condition():
            return found
        time.sleep(LOOK_S)
    raise AssertionError(f"did not come about in {within_s} s: {what}")


async def until_seen(condition: Callable[[], object], within_s: float = WAIT_S) -> None:
    """As `until`, while the loop goes on.

    Raises:
        TimeoutError: it did not, in time.
    """
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  (nothing would set an event)
            await asyncio.sleep(LOOK_S)


async def is_seen(condition: Callable[[], object], within_s: float) -> bool:
    """As `until_seen`, with its outcome as the answer."""
    try:
        await until_seen(condition, within_s)
    except TimeoutError:
        return False
    return True
