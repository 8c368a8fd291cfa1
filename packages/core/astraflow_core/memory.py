"""What middlewares remember between attempts, within bounds. Not durable, and of this process alone."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

__all__ = ["CachedResults", "CallWindows"]

MAX_ENTRIES = 10_000
MAX_BYTES = 64 * 1024 * 1024


class CachedResults:
    """Results as JSON, each until its time. The one that was used longest ago gives way to a new one."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str, now: float) -> str | None:
        found = self._kept.get(key)
        if found is None:
            return None
        text, until = found
        if until <= now:
            self._remove(key)
            return None
        self._kept.move_to_end(key)
        return text

    def keep(self, key: str, text: str, until: float) -> None:
        if key in self._kept:
            self._remove(key)
        self._kept[key] = (text, until)
        self._bytes += len(text)
        while len(self._kept) > self._max_entries or self._bytes > self._max_bytes:
            self._remove(next(iter(self._kept)))

    def _remove(self, key: str) -> None:
        text, _ = self._kept.pop(key)
        self._bytes -= len(text)


class CallWindows:
    """When the last calls of each key begin: a call is given the first time at which it is within its limit."""

    def __init__(self, max_keys: int = MAX_ENTRIES) -> None:
        self._max_keys = max_keys
        self._begun: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._begun)

    def reserve(
        self, key: Hashable, count: int, per_s: float, now: float, max_wait_s: float | None
    ) -> float | None:
        """How long the call has to wait; None, and nothing is reserved, if that is longer than it may."""
        begun = self._begun.setdefault(key, deque())
        self._begun.move_to_end(key)
        while len(begun) > count:
            begun.popleft()
        at = now if len(begun) < count else max(now, begun[0] + per_s)
        if max_wait_s is not None and at - now > max_wait_s:
            return None
        begun.append(at)
        while len(self._begun) > self._max_keys:
            self._begun.popitem(last=False)
        return at - now
