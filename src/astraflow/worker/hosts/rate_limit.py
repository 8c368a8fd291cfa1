"""A rate limit for untrusted senders."""

from __future__ import annotations

import math


class RateLimit:
    """A token bucket that holds one second of the rate, and a total."""

    __slots__ = ("_at", "_now", "_rate", "_total")

    def __init__(self, rate: float, now: float, total: float = math.inf) -> None:
        self._rate = rate
        self._total = total
        self._now = rate
        self._at = now

    def take(self, size: int, now: float) -> bool:
        """Whether so much more is allowed; it is then taken."""
        self._now = min(self._rate, self._now + (now - self._at) * self._rate)
        self._at = now
        if size > self._now or size > self._total:
            return False
        self._now -= size
        self._total -= size
        return True
