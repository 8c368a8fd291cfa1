"""Timers of the engine: what is to be looked at, and when. A timer that comes too late is harmless:
whoever handles it first finds out whether there is still something to do."""

from __future__ import annotations

from heapq import heappop, heappush

import msgspec

from astraflow.dispatch.demand import Demand
from astraflow.dispatch.wishes import WishKey

__all__ = [
    "CleanupDue",
    "DeadlineDue",
    "PinDue",
    "StopDue",
    "TimeoutDue",
    "Timer",
    "Timers",
    "WishDue",
]


class Timer(msgspec.Struct, frozen=True):
    """The base of all timers."""


class TimeoutDue(Timer, frozen=True):
    """An attempt should have been ended by its worker by now."""

    task_id: str
    attempt: int


class StopDue(Timer, frozen=True):
    """A stop should have been reported by now."""

    task_id: str
    attempt: int


class DeadlineDue(Timer, frozen=True):
    """A run should have ended by now."""

    run_id: str


class PinDue(Timer, frozen=True):
    """A lost worker that holds a resource should have come back by now."""

    demand: Demand
    due: float
    """Of the newest watch: one that was set before the worker came back in between does not count."""


class CleanupDue(Timer, frozen=True):
    """A worker should have let go by now of what an ended run left there."""

    tenant: str
    worker_id: str
    scope: str


class WishDue(Timer, frozen=True):
    """An install that failed may be tried again."""

    key: WishKey


class Timers:
    """A heap of timers; equal times keep the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, when: float, timer: Timer) -> None:
        self._count += 1
        heappush(self._heap, (when, self._count, timer))

    def due(self, now: float) -> list[Timer]:
        """Take out what is due, in order."""
        over = []
        while self._heap and self._heap[0][0] <= now:
            over.append(heappop(self._heap)[2])
        return over

    def deadline(self) -> float | None:
        return self._heap[0][0] if self._heap else None
