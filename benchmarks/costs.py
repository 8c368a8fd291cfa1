"""What work costs a scheduler and a worker, a node."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import msgspec

from astraflow.bench.processes import System
from benchmarks.figures import Figure
from benchmarks.usage import cpu_s


class Cost(msgspec.Struct, frozen=True):
    """Microseconds a node."""

    scheduler: float
    worker: float
    wall: float


async def cost(pids: tuple[int, int], nodes: int, work: Awaitable[Any]) -> Cost:
    """What some work costs the scheduler and the worker."""
    before, started = [cpu_s(pid) for pid in pids], perf_counter()
    await work
    wall = perf_counter() - started
    scheduler, worker = (cpu_s(pid) - one for pid, one in zip(pids, before, strict=True))
    return Cost(*(seconds / nodes * 1e6 for seconds in (scheduler, worker, wall)))


def middle(costs: Sequence[Cost]) -> Cost:
    """The median of each."""
    return Cost(*map(median, zip(*map(msgspec.structs.astuple, costs), strict=True)))


def of_cost(name: str, found: Cost) -> list[Figure]:
    return [
        Figure(f"{name}: scheduler, a node", found.scheduler, "µs CPU"),
        Figure(f"{name}: worker, a node", found.worker, "µs CPU"),
        Figure(f"{name}: on the wall, a node", found.wall, "µs"),
    ]


def pids_of(system: System) -> tuple[int, int]:
    """The processes of the scheduler and of its first worker."""
    assert system.scheduler is not None
    return system.scheduler.pid, system.workers[0].pid
