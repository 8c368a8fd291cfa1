"""The simulator: whole faulty worlds, of which thousands must be tried at every change."""

from __future__ import annotations

from benchmarks.figures import Figure, cpu_seconds
from tests.sim.simulation import simulate

SEEDS = 300
CHUNK = 50
BUDGET = 2_000.0


def figures() -> list[Figure]:
    """The rate over all seeds; and the best of its parts, because the machine is shared."""
    times = []
    for first in range(0, SEEDS, CHUNK):
        times.append(
            cpu_seconds(lambda first=first: list(map(simulate, range(first, first + CHUNK))))
        )
    return [
        Figure("seeds a CPU-minute", SEEDS / sum(times) * 60, "", BUDGET, at_least=True),
        Figure(f"the same, the best {CHUNK} of {SEEDS}", CHUNK / min(times) * 60, ""),
    ]
