"""The whole, from a client's side: fan-out, chain, single runs, many runs, in turns with the bare loop."""

from __future__ import annotations

import asyncio
from statistics import median
from time import perf_counter

import msgspec
import uvloop

from astraflow.bench import bare_loop
from astraflow.bench.processes import BenchClient, System, chain, fan_out

WARM_SINGLES = 20


class Sizes(msgspec.Struct, frozen=True):
    """How much of each is done in a turn, and how many turns there are."""

    width: int = 5_000
    steps: int = 200
    singles: int = 100
    many: int = 200
    turns: int = 5


class Turn(msgspec.Struct, frozen=True):
    """What one turn found, of the system and of the bare loop beside it."""

    fan_out_nodes_per_s: float
    scheduler_us_per_node: float
    """Processor time in the fan-out."""
    chain_ms_per_step: float
    singles_ms: list[float]
    many_runs_per_s: float
    bare_fan_out_nodes_per_s: float
    bare_chain_ms_per_step: float


class Measured(msgspec.Struct, frozen=True):
    """The medians of the turns; of single runs the share of all."""

    fan_out_nodes_per_s: float
    scheduler_us_per_node: float
    chain_ms_per_step: float
    single_p50_ms: float
    single_p99_ms: float
    many_runs_per_s: float
    bare_fan_out_nodes_per_s: float
    bare_chain_ms_per_step: float
    fan_out_ratio: float
    """Of the bare loop, turn by turn."""
    chain_ratio: float


async def timed(client: BenchClient, request: bytes) -> float:
    """Seconds from the acceptance of a run to its end, as its tenant sees it."""
    async with client.stream() as events:
        run_id = await client.submit(request)
        started = perf_counter()
        await client.ended({run_id}, events)
        return perf_counter() - started


async def singles(client: BenchClient, count: int) -> list[float]:
    """Milliseconds from the submission of one node to its result, one after the other."""
    times = []
    for number in range(count + WARM_SINGLES):
        request = chain(1)
        started = perf_counter()
        run_id = await client.submit(request)
        async with client.stream(f"?runId={run_id}") as events:
            async for kind, _ in events:
                if kind == "node.result.snapshot":
                    break
        if number >= WARM_SINGLES:
            times.append((perf_counter() - started) * 1000)
    return times


async def many(client: BenchClient, count: int) -> float:
    """Runs a second, of many small ones submitted at once."""
    requests = [fan_out(8) for _ in range(count)]
    async with client.stream() as events:
        started = perf_counter()
        run_ids = set(await asyncio.gather(*(client.submit(request) for request in requests)))
        await client.ended(run_ids, events)
        return count / (perf_counter() - started)


def measure(system: System, sizes: Sizes) -> Measured:
    """Measure a system that has a worker, and the bare loop, in turns: the machine is not always as fast."""
    uvloop.run(_warm(system, sizes))
    turns = []
    for _ in range(sizes.turns):
        bare = bare_loop.measure(sizes.width, sizes.steps)
        turns.append(uvloop.run(_turn(system, sizes, bare)))
    one = sorted(time for turn in turns for time in turn.singles_ms)

    def of(name: str) -> float:
        values: list[float] = [getattr(turn, name) for turn in turns]
        return median(values)

    return Measured(
        fan_out_nodes_per_s=of("fan_out_nodes_per_s"),
        scheduler_us_per_node=of("scheduler_us_per_node"),
        chain_ms_per_step=of("chain_ms_per_step"),
        single_p50_ms=median(one),
        single_p99_ms=one[int(len(one) * 0.99)],
        many_runs_per_s=of("many_runs_per_s"),
        bare_fan_out_nodes_per_s=of("bare_fan_out_nodes_per_s"),
        bare_chain_ms_per_step=of("bare_chain_ms_per_step"),
        fan_out_ratio=median(
            turn.fan_out_nodes_per_s / turn.bare_fan_out_nodes_per_s for turn in turns
        ),
        chain_ratio=median(turn.chain_ms_per_step / turn.bare_chain_ms_per_step for turn in turns),
    )


async def _warm(system: System, sizes: Sizes) -> None:
    """The host is started, and code is run for the first time."""
    client = BenchClient(system.port)
    await timed(client, fan_out(sizes.width))
    await client.close()


async def _turn(system: System, sizes: Sizes, bare: tuple[float, float]) -> Turn:
    client = BenchClient(system.port)
    try:
        before = system.scheduler_cpu_s()
        fan = await timed(client, fan_out(sizes.width))
        used = system.scheduler_cpu_s() - before
        step = await timed(client, chain(sizes.steps))
        one = await singles(client, sizes.singles)
        runs = await many(client, sizes.many)
    finally:
        await client.close()
    nodes = sizes.width + 2
    return Turn(nodes / fan, used / nodes * 1e6, step / sizes.steps * 1e3, one, runs, *bare)
