"""The one timer of a shell around a core object that says by `deadline` when it must be woken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from astraflow.clock import Clock


class WakeupTimer:
    """Fires once, at the earliest time that it was set to. Use from one running loop."""

    __slots__ = ("_at", "_clock", "_fire", "_handle", "_loop")

    def __init__(self, clock: Clock, fire: Callable[[], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._at = 0.0

    @property
    def at(self) -> float | None:
        """When it fires, if it is set."""
        return self._at if self._handle is not None else None

    def set(self, deadline: float | None) -> None:
        """Fire at the deadline at the latest. One that is set to an earlier time stays: whoever it wakes finds out that
        there is nothing to do yet, which is cheaper than a new timer for every turn."""
        if deadline is None or (self._handle is not None and self._at <= deadline):
            return
        self.cancel()
        self._at = deadline
        self._handle = self._loop.call_later(max(0.0, deadline - self._clock.now()), self._on_time)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _on_time(self) -> None:
        self._handle = None
        self._fire()
