"""A thread pool for handlers that are plain functions; it grows as needed and keeps idle threads.

Not an executor of the standard library: that waits for its threads at exit, and a handler that ignores its cancel must
not keep a host alive.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Threads:
    """Runs calls in threads. A call must not raise."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle = 0
        self._count = 0
        self._lock = threading.Lock()

    def run(self, call: Callable[[], None]) -> None:
        """Have a thread make the call; beyond the limit it waits for one that is free."""
        with self._lock:
            is_new = self._idle == 0 and self._count < self._limit
            if is_new:
                self._count += 1
            else:
                self._idle -= 1  # below zero: that many calls wait
        self._calls.put(call)
        if is_new:
            threading.Thread(target=self._work, name=f"handler-{self._count}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()
            with self._lock:
                self._idle += 1
