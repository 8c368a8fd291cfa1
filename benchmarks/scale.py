"""The whole, when there is much of it: many tasks, many workers, many chunks, and a start after the worst moment."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop

from astraflow.bench.processes import (
    BenchClient,
    System,
    fan_out,
    running,
    wide,
)
from astraflow.bench.system import timed
from astraflow.clock import SystemClock
from benchmarks.figures import Figure
from benchmarks.light_workers import all_online, light_worker
from benchmarks.usage import cpu_s, rss_mib

WAITING = 100_000
RESTARTED = 10_000
MILLION = 1_000_000
PER_RUN = 50_000
WORKERS = 1_000
WORKERS_S = 20.0
CHUNKS = 40_000
LARGE = 50_000


async def waiting(system: System) -> list[Figure]:
    """Memory of a scheduler that has nothing to do, and of one whose tasks have nowhere to go."""
    assert system.scheduler is not None
    pid = system.scheduler.pid
    idle = rss_mib(pid)
    client = BenchClient(system.port)
    for _ in range(WAITING // 10_000):
        await client.submit(wide(10_000))
    full = rss_mib(pid)
    await client.close()
    return [
        Figure("scheduler, idle", idle, "MiB", 90),
        Figure("scheduler with 100,000 waiting tasks", full, "MiB", 200),
        Figure("of it, a task", (full - idle) * 1024**2 / WAITING, "bytes", 2_048),
    ]


async def restart(system: System) -> list[Figure]:
    """From the start of the process to the first dispatch, with so many active tasks."""
    client = BenchClient(system.port)
    run_ids = [await client.submit(wide(1_000)) for _ in range(RESTARTED // 1_000)]
    await client.close()
    system.kill_scheduler()
    system.start_worker("--max-parallel", "64")
    started = perf_counter()
    system.start_scheduler()
    listening = perf_counter() - started
    client = BenchClient(system.port)
    while True:
        views = await client.request("GET", f"/api/v1/runs/{run_ids[0]}?nodes=false")
        if views["status"] != "queued":
            break
    first = perf_counter() - started
    await client.close()
    return [
        Figure("restart with 10,000 active tasks, to serving", listening, "s", 2),
        Figure("the same, to the first dispatch", first, "s"),
    ]


def distinct(count: int) -> bytes:
    """Nodes that wait for nothing, each with a label and a parameter of its own."""
    request = msgspec.json.decode(wide(count))
    for number, node in enumerate(request["workflow"]["nodes"]):
        node.update(label=f"Step {number}", parameters={"n": number})
    return msgspec.json.encode(request)


async def million(system: System) -> list[Figure]:
    """Memory of a scheduler with a million waiting tasks that all differ, before and after a restart."""
    assert system.scheduler is not None
    idle = rss_mib(system.scheduler.pid)
    client = BenchClient(system.port)
    for _ in range(MILLION // PER_RUN):
        await client.submit(distinct(PER_RUN))
    await client.close()
    full = rss_mib(system.scheduler.pid)
    system.kill_scheduler()
    started = perf_counter()
    system.start_scheduler()
    serving = perf_counter() - started
    return [
        Figure("scheduler with 1,000,000 waiting tasks that differ", full, "MiB", 1_024),
        Figure("of it, a task", (full - idle) * 1024**2 / MILLION, "bytes"),
        Figure("restart with them, to serving", serving, "s", 5),
        Figure("the same, processor time", system.scheduler_cpu_s(), "s CPU"),
        Figure("scheduler after it", rss_mib(system.scheduler.pid), "MiB", 1_024),
    ]


async def finished(system: System) -> list[Figure]:
    """What a scheduler and a worker keep when large runs have ended."""
    assert system.scheduler is not None
    idle = rss_mib(system.scheduler.pid)
    client = BenchClient(system.port)
    found: list[Figure] = []
    for runs, width in ((40, 5_000), (4, 50_000)):
        for _ in range(runs):
            await timed(client, fan_out(width - 2))
        name = f"after {runs * width:,} finished nodes in runs of {width:,}"
        kept = rss_mib(system.scheduler.pid)
        found.append(Figure(f"scheduler {name}", kept, "MiB", 200))
        found.append(Figure("more than idle", kept - idle, "MiB"))
    await client.close()
    return [*found, Figure("worker after them", rss_mib(system.workers[0].pid), "MiB", 100)]


async def connected(system: System) -> list[Figure]:
    """What it costs to keep a thousand workers that do nothing."""
    assert system.scheduler is not None
    clock = SystemClock()
    idle = rss_mib(system.scheduler.pid)
    workers = [
        asyncio.create_task(light_worker(system.port, number, 1, clock))
        for number in range(WORKERS)
    ]
    client = BenchClient(system.port)
    await all_online(client, WORKERS)
    before, started = cpu_s(system.scheduler.pid), perf_counter()
    await asyncio.sleep(WORKERS_S)
    used = (cpu_s(system.scheduler.pid) - before) / (perf_counter() - started)
    session_kib = (rss_mib(system.scheduler.pid) - idle) * 1024 / WORKERS
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await client.close()
    return [
        Figure("1,000 connected workers", used * 100, "% core", 25),
        Figure("of the scheduler's memory, a session", session_kib, "KiB", 40),
    ]


async def chunks(system: System) -> list[Figure]:
    """Streamed chunks through to one reader, while small runs go on beside."""
    client = BenchClient(system.port)
    text = "word " * (CHUNKS // 8)
    request = wide(8, type="core.stream", parameters={"text": text, "delayMs": 0})
    seen = 0
    run_id = await client.submit(request)
    started = perf_counter()
    async with client.stream(f"?runId={run_id}") as events:
        async for kind, _ in events:
            seen += kind == "node.result.delta"
    spent = perf_counter() - started
    await client.close()
    return [
        Figure("chunks through to a reader", seen / spent, "a second", 20_000, at_least=True),
        Figure("of those that were made", seen / CHUNKS * 100, "%"),
    ]


async def large(system: System) -> list[Figure]:
    """One run of 50,000 nodes, with 200 small ones beside it, and those alone."""
    client = BenchClient(system.port)

    async def small() -> float:
        async with client.stream() as events:
            started = perf_counter()
            run_ids = set(await asyncio.gather(*(client.submit(fan_out(8)) for _ in range(200))))
            await client.ended(run_ids, events)
            return perf_counter() - started

    alone = min([await small() for _ in range(3)])
    request = fan_out(LARGE - 2)
    async with client.stream() as events:
        started = perf_counter()
        run_id = await client.submit(request)
        accepted = perf_counter() - started
        beside = await small()
        await client.ended({run_id}, events)
        spent = perf_counter() - started
    await client.close()
    return [
        Figure("one run of 50,000 nodes", LARGE / spent, "nodes/s"),
        Figure("its acceptance", accepted, "s"),
        Figure("200 small runs beside it, of their time alone", beside / alone, "times", 3),
        Figure("200 small runs alone", alone, "s"),
    ]


def figures() -> list[Figure]:
    found: list[Figure] = []
    for part in (waiting, restart, million, connected):
        with tempfile.TemporaryDirectory() as folder:
            system = System(Path(folder))
            system.start_scheduler()
            try:
                found += uvloop.run(part(system))
            finally:
                system.stop()
    with running() as system:
        found += uvloop.run(finished(system))
    with running() as system:
        found += uvloop.run(chunks(system))
        found += uvloop.run(large(system))
    return found
