"""Amounts of what a machine has: what a node asks for, what a worker has, what is in use.

Processors are counted in thousandths, so that sums are exact: a worker that gave back all that it lent has all again.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MAX_CPU: Final = 1_000_000
"""More processors, or graphics cards, than any machine has."""
MILLI: Final = 1_000


class Amounts(Struct, frozen=True, gc=False, omit_defaults=True):
    """Processors (in thousandths), bytes of memory, and graphics cards."""

    milli_cpu: int = 0
    memory_bytes: int = 0
    gpu: int = 0

    @classmethod
    def of(cls, cpu: float, memory_bytes: int, gpu: int) -> Amounts:
        """The amounts for a number of processors as people write it."""
        return cls(max(round(cpu * MILLI), 1 if cpu > 0 else 0), memory_bytes, gpu)

    @property
    def cpu(self) -> float:
        return self.milli_cpu / MILLI

    def __bool__(self) -> bool:
        return bool(self.milli_cpu or self.memory_bytes or self.gpu)

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.milli_cpu + other.milli_cpu,
            self.memory_bytes + other.memory_bytes,
            self.gpu + other.gpu,
        )

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.milli_cpu - other.milli_cpu,
            self.memory_bytes - other.memory_bytes,
            self.gpu - other.gpu,
        )

    def fits_in(self, free: Amounts) -> bool:
        """Whether so much can be had. Where nothing is asked for, nothing need be free."""
        return (
            (not self.milli_cpu or self.milli_cpu <= free.milli_cpu)
            and (not self.memory_bytes or self.memory_bytes <= free.memory_bytes)
            and (not self.gpu or self.gpu <= free.gpu)
        )

    def describe(self, like: Amounts | None = None) -> str:
        """For people: what it has, or what `like` asks for of it."""
        asked = like or self
        parts = []
        if asked.milli_cpu:
            parts.append(f"{self.cpu:g} cpu")
        if asked.memory_bytes:
            parts.append(f"{self.memory_bytes} bytes of memory")
        if asked.gpu:
            parts.append(f"{self.gpu} gpu")
        return ", ".join(parts) or "nothing"


NOTHING: Final = Amounts()
