"""The whole: a scheduler, a worker and its host as processes, measured from a client, beside the bare loop."""

from __future__ import annotations

import asyncio
from statistics import median
from time import perf_counter

import uvloop

from benchmarks import bare_loop
from benchmarks.figures import Figure
from benchmarks.processes import Client, chain, fan_out, rss_mib, running

WIDTH = 5_000
STEPS = 200
SINGLES = 300
MANY = 200
ROUNDS = 3


async def timed(client: Client, request: bytes) -> float:
    """Seconds from the acceptance of a run to its end, as its tenant sees it."""
    async with client.stream() as events:
        run_id = await client.submit(request)
        started = perf_counter()
        await client.ended({run_id}, events)
        return perf_counter() - started


async def singles(client: Client) -> list[float]:
    """Milliseconds from the submission of one node to its result, one after the other."""
    times = []
    for number in range(SINGLES + 20):
        request = chain(1)
        started = perf_counter()
        run_id = await client.submit(request)
        async with client.stream(f"?runId={run_id}") as events:
            async for kind, _ in events:
                if kind == "node.result.snapshot":
                    break
        if number >= 20:
            times.append((perf_counter() - started) * 1000)
    return times


async def many(client: Client) -> float:
    """Runs a second, of many small ones submitted at once."""
    requests = [fan_out(8) for _ in range(MANY)]
    async with client.stream() as events:
        started = perf_counter()
        wanted: set[str] = set()
        submitted = asyncio.gather(*(client.submit(request) for request in requests))
        wanted.update(await submitted)
        await client.ended(wanted, events)
        return MANY / (perf_counter() - started)


async def _measure(port: int) -> dict[str, float]:
    client = Client(port)
    await timed(client, fan_out(50))  # the host is started, code is warm
    fan = min([await timed(client, fan_out(WIDTH)) for _ in range(ROUNDS)])
    step = min([await timed(client, chain(STEPS)) for _ in range(ROUNDS)])
    one = sorted(await singles(client))
    runs = max([await many(client) for _ in range(ROUNDS)])
    client.close()
    return {
        "fan_out": (WIDTH + 2) / fan,
        "chain": step / STEPS * 1000,
        "single_p50": median(one),
        "single_p99": one[int(len(one) * 0.99)],
        "many": runs,
    }


def figures() -> list[Figure]:
    bare = [bare_loop.measure(WIDTH, STEPS) for _ in range(2)]
    with running() as system:
        found = uvloop.run(_measure(system.port))
        assert system.scheduler is not None
        scheduler_mib = rss_mib(system.scheduler.pid)
        worker_mib = rss_mib(system.workers[0].pid)
    bare += [bare_loop.measure(WIDTH, STEPS)]
    bare_fan = median(one for one, _ in bare)
    bare_step = median(one for _, one in bare)
    return [
        Figure("fan-out 1→5,000→1", found["fan_out"], "nodes/s", 8_000, at_least=True),
        Figure("of the bare loop", found["fan_out"] / bare_fan, "times", 0.4, at_least=True),
        Figure("the bare loop", bare_fan, "nodes/s"),
        Figure("chain of 200", found["chain"], "ms/step", 1.3),
        Figure("of the bare loop", found["chain"] / bare_step, "times", 2.2),
        Figure("the bare loop", bare_step, "ms/step"),
        Figure("one node, submission to result seen, median", found["single_p50"], "ms", 2.5),
        Figure("the same, 99 of 100", found["single_p99"], "ms", 10),
        Figure("200 runs of 1→8→1 at once", found["many"], "runs/s", 400, at_least=True),
        Figure("scheduler after it", scheduler_mib, "MiB"),
        Figure("worker after it", worker_mib, "MiB"),
    ]
