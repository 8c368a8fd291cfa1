"""The wall clock, used only after it has kept step with the monotonic clock.

What is removed by its age is gone for good, and a wall clock may be wrong: set by hand, by a bad time server, by a
machine that wakes up. So age is measured with a wall clock that has kept step with the monotonic clock for an hour. A
clock that steps is believed after it has kept its new time for an hour; until then the time it had before goes on.
"""

from __future__ import annotations

from typing import Final

from astraflow.clock import Clock

CONFIRM_S: Final = 3_600.0
TOLERANCE_MS: Final = 300_000.0
"""What is no step: a clock that is slewed drifts by less in many days."""


class ConfirmedTime:
    """Ask it now and then: a step that came and went between two questions did no harm."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen_ms: float | None = None
        self._seen_since = 0.0
        self._confirmed_ms: float | None = None

    def wall_ms(self) -> int:
        """The time by which things may be removed; 0, when nothing is old, until the clock has proved itself."""
        now = self._clock.now()
        ahead_ms = self._clock.wall_ms() - now * 1000
        if self._seen_ms is None or abs(ahead_ms - self._seen_ms) > TOLERANCE_MS:
            self._seen_ms, self._seen_since = ahead_ms, now
        elif now - self._seen_since >= CONFIRM_S:
            self._confirmed_ms = self._seen_ms
        return 0 if self._confirmed_ms is None else int(self._confirmed_ms + now * 1000)
