"""How costs grow: payloads, workers, readers, finished runs, retention, keys. Nothing may be more than linear.

A cost is processor time of the scheduler and of the worker, a node; beside it the time on the wall. The sizes of one
curve are measured in turns, and each is given as a ratio to the smallest.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
import uvloop

from astraflow.bench import bare_loop
from astraflow.bench.processes import BenchClient, System, fan_out, running
from astraflow.bench.system import timed
from benchmarks import keys, stored_growth
from benchmarks.costs import Cost, cost, middle, of_cost, pids_of
from benchmarks.figures import Figure
from benchmarks.light_workers import all_online
from benchmarks.own_processes import line_of, own_process

ROUNDS = 3
BARE_WIDTH, BARE_STEPS = 5_000, 100

PAYLOADS = {1_000: 2_000, 64_000: 200, 1_000_000: 24}
"""Bytes of a payload, and how many nodes echo it."""
BYTES_BUDGET = 1.5
"""Times what a byte of a payload of 64 KB costs."""
WORKERS = {1: 64, 16: 4, 1_000: 1}
"""Light workers, and the slots of each."""
WORKER_NODES = 3_000
WORKERS_BUDGET = 4.0
"""Times the cost of a node with one worker: a frame for each node, where one worker gets many in one turn."""
READERS = (0, 50, 1_000)
READER_NODES = 1_000
READERS_BUDGET = 1.5
"""Times what one of 50 readers costs a node."""


# -- payloads -------------------------------------------------------------------------------


def echoes(size: int, count: int) -> bytes:
    """One node makes a payload, and each of `count` nodes returns it."""
    request: dict[str, Any] = msgspec.json.decode(fan_out(count))
    first, *between = request["workflow"]["nodes"][:-1]
    first.update(type="core.echo", parameters={"value": "x" * size})
    for node in between:
        node.update(
            type="core.echo", parameters={"value": f"=nodes['{first['id']}'].results.value"}
        )
    return msgspec.json.encode(request)


async def payloads(system: System) -> list[Figure]:
    pids = pids_of(system)
    client = BenchClient(system.port)
    costs: dict[int, list[Cost]] = {size: [] for size in PAYLOADS}
    for _ in range(ROUNDS):
        for size, count in PAYLOADS.items():
            costs[size].append(await cost(pids, count, timed(client, echoes(size, count))))
    await client.close()
    found: list[Figure] = []
    each: dict[int, Cost] = {}
    for size, several in costs.items():
        one = middle(several)
        name = f"payload of {size:,} bytes"
        found += of_cost(name, one)
        each[size] = Cost(one.scheduler / size, one.worker / size, one.wall / size)
        if size == min(PAYLOADS):
            continue
        base = each[min(PAYLOADS)]
        of = f"a byte, of {min(PAYLOADS):,} bytes"
        found += [
            Figure(f"{name}: scheduler, {of}", each[size].scheduler / base.scheduler, "times", 1),
            Figure(f"{name}: worker, {of}", each[size].worker / base.worker, "times", 1),
        ]
    # In small ones a node costs more than its bytes do: what bytes cost is seen between the two large ones.
    _, large, largest = PAYLOADS
    for of_part in ("scheduler", "worker"):
        times = getattr(each[largest], of_part) / getattr(each[large], of_part)
        name = f"payload of {largest:,} bytes: {of_part}, a byte, of {large:,} bytes"
        found.append(Figure(name, times, "times", BYTES_BUDGET))
    return found


# -- workers and readers --------------------------------------------------------------------


async def workers(system: System) -> list[Figure]:
    assert system.scheduler is not None
    client = BenchClient(system.port)
    found: list[Figure] = []
    costs: dict[int, Cost] = {}
    for count, slots in WORKERS.items():
        async with own_process("light_workers", system.port, count, slots) as process:
            await all_online(client, count)
            pids = (system.scheduler.pid, process.pid)
            await timed(client, fan_out(50))
            several = [
                await cost(pids, WORKER_NODES, timed(client, fan_out(WORKER_NODES)))
                for _ in range(ROUNDS)
            ]
        costs[count] = middle(several)
        found += of_cost(f"{count:,} light workers of {slots} slots", costs[count])
        await _none_online(client)
    base = costs[min(costs)].scheduler
    for count in sorted(costs)[1:]:
        times = costs[count].scheduler / base
        name = f"{count:,} light workers: scheduler, of one"
        found.append(Figure(name, times, "times", WORKERS_BUDGET))
    await client.close()
    return found


async def _none_online(client: BenchClient) -> None:
    """Workers of one size must not be chosen for the next."""
    while True:
        page = await client.request("GET", "/api/v1/workers?limit=200&status=online")
        if not page["items"]:
            return
        await asyncio.sleep(0.2)


async def _followed(system: System, worker: subprocess.Popen[str], readers: int) -> Cost:
    """A run with so many readers, who all have begun to read before the worker goes on."""
    assert system.scheduler is not None
    client = BenchClient(system.port)
    worker.send_signal(signal.SIGSTOP)
    async with client.stream() as events:
        run_id = await client.submit(fan_out(READER_NODES))
        async with own_process("readers", system.port, run_id, readers) as reading:
            assert await line_of(reading) == "attached"
            worker.send_signal(signal.SIGCONT)
            ended = asyncio.gather(client.ended({run_id}, events), line_of(reading))
            measured = await cost((system.scheduler.pid, worker.pid), READER_NODES, ended)
    await client.close()
    return measured


async def readers(system: System) -> list[Figure]:
    costs: dict[int, list[Cost]] = {count: [] for count in READERS}
    async with own_process("light_workers", system.port, 1, 64) as worker:
        client = BenchClient(system.port)
        await all_online(client, 1)
        await timed(client, fan_out(READER_NODES))
        await client.close()
        for _ in range(ROUNDS):
            for count in READERS:
                costs[count].append(await _followed(system, worker, count))
    found: list[Figure] = []
    base = middle(costs[0]).scheduler
    each: dict[int, float] = {}
    for count, several in costs.items():
        one = middle(several)
        found += of_cost(f"{count:,} readers of a run", one)
        if count:
            each[count] = (one.scheduler - base) / count
            name = f"{count:,} readers: scheduler, a node for each reader"
            found.append(Figure(name, each[count], "µs CPU"))
    times = each[1_000] / each[50]
    return [*found, Figure("the same, 1,000 of 50", times, "times", READERS_BUDGET)]


# -- all ------------------------------------------------------------------------------------

Part = Callable[[System], Coroutine[Any, Any, list[Figure]]]


_SETTINGS = {
    "ASTRA_SCHEDULER_MAX_SSE_READERS": "2000",
    "ASTRA_SCHEDULER_LOG_LEVEL": "error",  # light workers go without a word
}


def _without_worker(part: Part) -> list[Figure]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        system = System(Path(folder), _SETTINGS)
        system.start_scheduler()
        stack.callback(system.stop)
        return uvloop.run(part(system))


def _with_worker(part: Part) -> list[Figure]:
    with running() as system:
        return uvloop.run(part(system))


def figures(nodes: int = stored_growth.NODES) -> list[Figure]:
    """All curves; `nodes` are those of the finished runs."""
    parts: dict[str, Callable[[], list[Figure]]] = {
        "payloads": lambda: _with_worker(payloads),
        "workers": lambda: _without_worker(workers),
        "readers": lambda: _without_worker(readers),
        "finished runs": lambda: stored_growth.figures(nodes),
        "keys": keys.growth,
    }
    bare: list[float] = []
    found: list[Figure] = []
    for name, measured in parts.items():
        bare.append(bare_loop.measure(BARE_WIDTH, BARE_STEPS)[0])
        started = perf_counter()
        found += measured()
        print(f"{name}: {perf_counter() - started:.0f} s", flush=True)
    return [*found, Figure("the bare loop between them, median", median(bare), "nodes/s")]
