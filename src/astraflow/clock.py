"""The two clocks of a machine. The only module that reads them; everything else is given a `Clock`.

Leases, timeouts and waits use `now`, which only goes forward; `wall_ms` is for people, tokens and calendars (R13).
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a shell asks for the time, so that it runs on a virtual clock too."""

    def now(self) -> float:
        """Monotonic seconds, from an unspecified start."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may step either way."""


class SystemClock:
    """The clocks of this machine."""

    __slots__ = ()

    now = staticmethod(
        time.monotonic
    )  # the function itself: it is called several times for every frame

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
