"""A figure: what was measured, and what it may be at most (or must be at least)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import msgspec

__all__ = ["Figure", "best_us", "cpu_seconds", "operation_figures", "reference_ms"]

ROUNDS = 5
ROUND_SECONDS = 0.2


class Figure(msgspec.Struct, omit_defaults=True):
    """One measured number. Without a budget it is for comparison only."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    at_least: bool = False
    """Whether the budget is a floor; else it is a ceiling."""

    @property
    def verdict(self) -> str:
        if self.budget is None:
            return ""
        is_kept = self.value >= self.budget if self.at_least else self.value <= self.budget
        return "OK" if is_kept else "over"

    def line(self) -> str:
        bound = ""
        if self.budget is not None:
            bound = (
                f"  {'at least' if self.at_least else 'at most'} {self.budget:,g}: {self.verdict}"
            )
        return f"{self.value:14,.2f} {self.unit:<8} {self.name}{bound}"


def cpu_seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """The CPU time of so many calls, by this process alone."""
    start = time.process_time()
    for _ in range(repeats):
        work()
    return time.process_time() - start


def best_us(operation: Callable[[], object]) -> float:
    """Microseconds of one operation: the best of some rounds, each long enough to be timed."""
    repeats = 1
    while (spent := cpu_seconds(operation, repeats)) < ROUND_SECONDS / 4:
        repeats *= 2
    repeats = max(1, int(repeats * ROUND_SECONDS / spent))
    gc.collect()
    return min(cpu_seconds(operation, repeats) for _ in range(ROUNDS)) / repeats * 1e6


def reference_ms() -> float:
    """How fast the machine is at this moment: the best of three of a million additions."""

    def add() -> None:
        total = 0
        for number in range(1_000_000):
            total += number

    return min(cpu_seconds(add) for _ in range(3)) * 1e3


def operation_figures(operations: dict[str, Callable[[], object]]) -> list[Figure]:
    """The time of each of some operations, without budgets."""
    return [Figure(name, best_us(operation), "µs") for name, operation in operations.items()]
