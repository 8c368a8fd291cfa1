"""The whole, from a client's side: fan-out, chain, single runs, many runs."""

from __future__ import annotations

import asyncio
from statistics import median
from time import perf_counter

import msgspec

from astraflow.bench.processes import BenchClient, chain, fan_out

WARM_SINGLES = 20


class Sizes(msgspec.Struct, frozen=True):
    """How much of each is done."""

    width: int = 5_000
    steps: int = 200
    singles: int = 300
    many: int = 200
    rounds: int = 3


class Measured(msgspec.Struct, frozen=True):
    """What was found: the best of the rounds, except for single runs, which are told by their shares."""

    fan_out_nodes_per_s: float
    chain_ms_per_step: float
    single_p50_ms: float
    single_p99_ms: float
    many_runs_per_s: float


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


async def measure(port: int, sizes: Sizes) -> Measured:
    """Measure a scheduler that listens here and has a worker."""
    client = BenchClient(port)
    try:
        await timed(client, fan_out(50))  # the host is started, code is warm
        rounds = range(sizes.rounds)
        fan = min([await timed(client, fan_out(sizes.width)) for _ in rounds])
        step = min([await timed(client, chain(sizes.steps)) for _ in rounds])
        one = sorted(await singles(client, sizes.singles))
        runs = max([await many(client, sizes.many) for _ in rounds])
    finally:
        await client.close()
    return Measured(
        fan_out_nodes_per_s=(sizes.width + 2) / fan,
        chain_ms_per_step=step / sizes.steps * 1000,
        single_p50_ms=median(one),
        single_p99_ms=one[int(len(one) * 0.99)],
        many_runs_per_s=runs,
    )
