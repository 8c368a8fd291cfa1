"""Rate limits: a bucket of tokens for each key, in bounded memory.

A bucket holds `burst` tokens and gets `per_second` back. What asks for a token and finds none is told how long to wait.
Only so many buckets are kept; the one that was asked longest ago is forgotten first, and begins full when it is asked
again: whoever uses that many keys gets little by it, because each key must have been left alone meanwhile.
"""

from __future__ import annotations

from typing import Final

MAX_KEYS: Final = 10_000


class KeyedRateLimit:
    """One limit over many keys. Takes the monotonic clock."""

    __slots__ = ("_buckets", "_burst", "_max_keys", "_per_second")

    def __init__(self, per_second: float, burst: float, max_keys: int = MAX_KEYS) -> None:
        assert per_second > 0 and burst >= 1 and max_keys > 0
        self._per_second = per_second
        self._burst = burst
        self._max_keys = max_keys
        self._buckets: dict[object, tuple[float, float]] = {}  # what is left, and when

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: object, now: float) -> float:
        """Take a token; 0.0 if there was one, else the seconds until there is."""
        left = self._left(key, now)
        self._put(key, left - 1.0 if left >= 1.0 else left, now)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._per_second

    def wait(self, key: object, now: float) -> float:
        """As `take`, but nothing is taken."""
        left = self._left(key, now)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._per_second

    def refill(self, key: object) -> None:
        """The key has its whole burst again."""
        self._buckets.pop(key, None)

    def _left(self, key: object, now: float) -> float:
        known = self._buckets.get(key)
        if known is None:
            return self._burst
        left, at = known
        return min(self._burst, left + (now - at) * self._per_second)

    def _put(self, key: object, left: float, now: float) -> None:
        self._buckets.pop(key, None)
        self._buckets[key] = (left, now)
        if len(self._buckets) > self._max_keys:
            del self._buckets[next(iter(self._buckets))]
