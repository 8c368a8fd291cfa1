"""The world of a loop: the same chance, log and digest as the core's, with the time of a virtual loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sim.loop import VirtualLoop
from tests.sim.world import World

__all__ = ["LoopWorld"]


class LoopWorld(World):
    """Actions are timers of the loop."""

    def __init__(self, loop: VirtualLoop, seed: int, *, keep_transcript: bool = False) -> None:
        self.loop = loop
        super().__init__(seed, keep_transcript=keep_transcript)

    @property
    def now(self) -> float:
        return self.loop.time()

    @now.setter
    def now(self, value: float) -> None:
        assert value == 0.0, "the loop has the time"

    def after(self, delay: float, act: Callable[..., None], *args: Any) -> None:
        self.loop.call_later(delay, act, *args)
