"""The world: one heap of actions, one source of randomness, one true time.

Everything that happens is an action taken from the heap, in the order of (time, number), so the same
seed gives the same world in every process. Iteration over sets is forbidden here; dicts keep order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

__all__ = ["Violation", "World"]


class Violation(AssertionError):
    """An invariant of the world broke. `invariant` is its name in docs/promises.md (I1…I24)."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(invariant, message)  # as they are, so that it survives pickling
        self.invariant = invariant
        self.message = message

    def __str__(self) -> str:
        return f"{self.invariant}: {self.message}"


class World:
    """Time, chance, and what has been seen."""

    def __init__(self, seed: int, *, keep_transcript: bool = False) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now = 0.0
        self.steps = 0
        self.seen: dict[str, int] = {}
        self.transcript: list[str] | None = [] if keep_transcript else None
        self._digest = hashlib.blake2b(digest_size=16)
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._ids = 0

    def after(self, delay: float, act: Callable[..., None], *args: Any) -> None:
        """Do something later."""
        assert delay >= 0
        self._count += 1
        heappush(self._heap, (self.now + delay, self._count, act, args))

    def at(self, when: float, act: Callable[..., None], *args: Any) -> None:
        self.after(max(0.0, when - self.now), act, *args)

    def run_until(
        self, when: float, *, stop: Callable[[], bool] | None = None, every: int = 1
    ) -> None:
        """Let time pass, up to `when` or until `stop` says so; it is asked after so many steps each."""
        heap = self._heap
        while heap and heap[0][0] <= when:
            self.now, _, act, args = heappop(heap)
            self.steps += 1
            act(*args)
            if stop is not None and self.steps % every == 0 and stop():
                return
        self.now = max(self.now, when)

    def chance(self, probability: float) -> bool:
        return probability > 0 and self.rng.random() < probability

    def delay(self, mean: float) -> float:
        return self.rng.expovariate(1.0 / mean) if mean > 0 else 0.0

    def new_id(self) -> str:
        """An id never given before, in the shape of a ULID."""
        self._ids += 1
        return f"01S0M{self._ids:021d}"

    def sometimes(self, what: str) -> None:
        """Note that something worth seeing was seen (S1…S16)."""
        self.seen[what] = self.seen.get(what, 0) + 1

    def log(self, line: str) -> None:
        """A line of the transcript; its digest tells two runs of one seed apart."""
        self._digest.update(line.encode())
        if self.transcript is not None:
            self.transcript.append(f"{self.now:10.4f} {line}")

    def digest(self) -> str:
        return self._digest.hexdigest()
