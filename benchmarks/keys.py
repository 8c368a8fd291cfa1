"""A run whose nodes all differ in what they need: 50,000 concurrency keys, beside the same run without them, and what a
node costs with 500 to 50,000 of them."""

from __future__ import annotations

import asyncio
from time import perf_counter

import msgspec
import uvloop

from astraflow.bench import bare_loop
from astraflow.bench.processes import BenchClient, System, running, wide
from astraflow.bench.system import timed
from benchmarks.costs import Cost, cost, middle, of_cost, pids_of
from benchmarks.figures import Figure

NODES = 50_000
ASKED_EVERY_S = 0.02
BARE_WIDTH, BARE_STEPS = 5_000, 200
GROWTH = {500: 10, 5_000: 2, 50_000: 1}
"""Keys, and how many runs with so many nodes are measured at once."""
GROWTH_ROUNDS = 3
GROWTH_BUDGET = 1.5


def keyed(count: int) -> bytes:
    request = msgspec.json.decode(wide(count))
    for number, node in enumerate(request["workflow"]["nodes"]):
        node["concurrencyKey"] = f"key-{number}"
    return msgspec.json.encode(request)


async def health(port: int, found: list[float], is_over: asyncio.Event) -> None:
    """How long `/healthz` takes to be answered, all the while."""
    client = BenchClient(port)
    while not is_over.is_set():
        started = perf_counter()
        await client.request("GET", "/healthz")
        found.append(perf_counter() - started)
        await asyncio.sleep(ASKED_EVERY_S)
    await client.close()


async def run_once(port: int, request: bytes) -> tuple[float, list[float]]:
    """Seconds from its acceptance to its end, and of each answer of `/healthz` meanwhile."""
    client = BenchClient(port)
    async with client.stream() as events:
        run_id = await client.submit(request)
        times: list[float] = []
        started, is_over = perf_counter(), asyncio.Event()
        asking = asyncio.create_task(health(port, times, is_over))
        await client.ended({run_id}, events)
        spent = perf_counter() - started
        is_over.set()
        await asking
    await client.close()
    return spent, times


async def _costs(system: System) -> dict[int, list[Cost]]:
    """What a node costs in runs with so many keys, in turns; small runs one after the other."""
    client = BenchClient(system.port)
    pids = pids_of(system)
    await timed(client, keyed(500))
    costs: dict[int, list[Cost]] = {count: [] for count in GROWTH}
    for _ in range(GROWTH_ROUNDS):
        for count, runs in GROWTH.items():

            async def work(count: int = count, runs: int = runs) -> None:
                for _ in range(runs):
                    await timed(client, keyed(count))

            costs[count].append(await cost(pids, count * runs, work()))
    await client.close()
    return costs


def growth() -> list[Figure]:
    """The cost of a node by the number of keys."""
    with running() as system:
        costs = uvloop.run(_costs(system))
    found: list[Figure] = []
    base = middle(costs[min(costs)])
    for count, several in costs.items():
        one = middle(several)
        name = f"{count:,} concurrency keys"
        found += of_cost(name, one)
        if count != min(costs):
            times = one.scheduler / base.scheduler
            found.append(
                Figure(f"{name}: scheduler, of {min(costs)}", times, "times", GROWTH_BUDGET)
            )
    return found


def figures() -> list[Figure]:
    bare = bare_loop.measure(BARE_WIDTH, BARE_STEPS)[0]
    with running() as system:
        plain, _ = uvloop.run(run_once(system.port, wide(NODES)))
        spent, times = uvloop.run(run_once(system.port, keyed(NODES)))
    times.sort()
    return [
        Figure("50,000 nodes, each with a key of its own", NODES / spent, "nodes/s", 3_000, True),
        Figure("of the same without keys", plain / spent, "times", 0.7, at_least=True),
        Figure("the same without keys", NODES / plain, "nodes/s"),
        Figure("/healthz meanwhile, 99 of 100", times[len(times) * 99 // 100] * 1e3, "ms", 50),
        Figure("/healthz meanwhile, at most", times[-1] * 1e3, "ms"),
        Figure("the bare loop", bare, "nodes/s"),
    ]
