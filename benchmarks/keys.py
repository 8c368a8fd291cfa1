"""A run whose nodes all differ in what they need: 50,000 concurrency keys, beside the same run without them."""

from __future__ import annotations

import asyncio
from time import perf_counter

import msgspec
import uvloop

from astraflow.bench import bare_loop
from astraflow.bench.processes import BenchClient, running, wide
from benchmarks.figures import Figure

NODES = 50_000
ASKED_EVERY_S = 0.02
BARE_WIDTH, BARE_STEPS = 5_000, 200


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
