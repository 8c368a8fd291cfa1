"""An LRU cache with a limit in bytes: the least recently used value is evicted first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ByteCache(Generic[_Key, _Value]):
    """Holds at most `max_bytes`, by the sizes that the caller gives. A value above `largest` is not cached, so that one
    value does not evict all others."""

    def __init__(self, max_bytes: int, largest: int) -> None:
        self._max_bytes = max_bytes
        self._largest = largest
        self._values: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def find(self, key: _Key) -> _Value | None:
        entry = self._values.get(key)
        if entry is None:
            return None
        self._values.move_to_end(key)
        return entry[0]

    def put(self, key: _Key, value: _Value, size: int) -> None:
        """Cache a value. If two callers made the value of a key at the same time, the first one stays."""
        if key in self._values or size > self._largest:
            return
        self._values[key] = (value, size)
        self.bytes += size
        while self.bytes > self._max_bytes:
            _, (_, dropped) = self._values.popitem(last=False)
            self.bytes -= dropped
