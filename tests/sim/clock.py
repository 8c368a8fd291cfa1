"""Clocks of simulated machines: monotonic time that drifts, wall time that jumps (R13)."""

from __future__ import annotations

from tests.sim.world import World

__all__ = ["Clock"]


class Clock:
    """The clocks of one machine."""

    __slots__ = ("_boot", "_rate", "_wall_offset", "world")

    def __init__(self, world: World, rate: float, boot: float) -> None:
        self.world = world
        self._rate = rate
        self._boot = boot
        self._wall_offset = 0.0

    def now(self) -> float:
        """Monotonic seconds, at this machine's own rate."""
        return self._boot + self.world.now * self._rate

    def wall_ms(self) -> int:
        return int((1_700_000_000 + self.world.now + self._wall_offset) * 1000)

    def true_time(self, local: float) -> float:
        """The world's time at which this machine's monotonic clock shows `local`."""
        return (local - self._boot) / self._rate

    def jump(self, seconds: float) -> None:
        """Step the wall clock. Nothing but display may notice."""
        self._wall_offset += seconds
