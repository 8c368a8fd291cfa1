"""The simulator: whole faulty worlds, of which thousands must be tried at every change."""

from __future__ import annotations

from benchmarks.figures import Figure, cpu_seconds
from tests.sim.simulation import simulate

SEEDS = 300
CHUNK = 25
ROUNDS = 3
BUDGET = 2_000.0


def spent(first: int) -> float:
    """The CPU seconds of some seeds, at best: a slow while of the machine is not the simulator's."""
    seeds = range(first, first + CHUNK)
    return min(cpu_seconds(lambda: list(map(simulate, seeds))) for _ in range(ROUNDS))


def figures() -> list[Figure]:
    seconds = sum(map(spent, range(0, SEEDS, CHUNK)))
    name = f"seeds a CPU-minute, over {SEEDS}"
    return [Figure(name, SEEDS / seconds * 60, "", BUDGET, at_least=True)]
