"""The whole, when there is much of it: many tasks, many workers, many chunks, and a start after the worst moment."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter

import uvloop

from astraflow.bench.processes import (
    TOKEN,
    BenchClient,
    System,
    fan_out,
    running,
    wide,
)
from astraflow.clock import SystemClock
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.protocol import control
from astraflow.core.protocol.wire import Envelope
from astraflow.core.protocol.worker_events import Credential, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.ulids import Ulids
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from astraflow.worker.socket import connect
from benchmarks.figures import Figure
from benchmarks.usage import cpu_s, rss_mib

WAITING = 100_000
RESTARTED = 10_000
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
        Figure("scheduler with 100,000 waiting tasks", full, "MiB", 300),
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


class _NoHosts:
    """An idle worker is sent nothing, so that it runs nothing."""

    def start(self, *_: object) -> None: ...
    def cancel(self, *_: object) -> None: ...
    def kill(self, *_: object) -> None: ...
    def answer(self, *_: object) -> None: ...
    def refence(self, *_: object) -> None: ...


def _refuse(envelope: Envelope) -> None:
    raise AssertionError(f"nothing is sent to an idle worker: {envelope}")


async def _idle_worker(port: int, number: int, clock: SystemClock) -> None:
    session = WorkerSession(
        WorkerIdentity("default", f"idle-{number}", 1, "idle", "0", "here"),
        Credential("token", TOKEN),
        ids=Ulids(clock),
        rng=Random(number),
    )
    offer = RegisterOffer(control.Capabilities(control.Concurrency(1), ("python",)))
    agent = Agent(session, HeldAttempts(1), lambda: offer)

    link = AgentRunner(agent, Schedulers([f"ws://127.0.0.1:{port}/ws/worker"]), connect, clock)
    await link.run(_NoHosts(), _refuse)


async def connected(system: System) -> list[Figure]:
    """What it costs to keep a thousand workers that do nothing."""
    assert system.scheduler is not None
    clock = SystemClock()
    workers = [
        asyncio.create_task(_idle_worker(system.port, number, clock)) for number in range(WORKERS)
    ]
    client = BenchClient(system.port)
    online = 0
    while online < WORKERS:
        await asyncio.sleep(0.5)
        online, cursor = 0, ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = await client.request("GET", f"/api/v1/workers?limit=200{more}")
            online += sum(one["status"] == "online" for one in page["items"])
            cursor = page["nextCursor"]
    before, started = cpu_s(system.scheduler.pid), perf_counter()
    await asyncio.sleep(WORKERS_S)
    used = (cpu_s(system.scheduler.pid) - before) / (perf_counter() - started)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await client.close()
    return [Figure("1,000 connected workers", used * 100, "% core", 25)]


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
    for part in (waiting, restart, connected):
        with tempfile.TemporaryDirectory() as folder:
            system = System(Path(folder))
            system.start_scheduler()
            try:
                found += uvloop.run(part(system))
            finally:
                system.stop()
    with running() as system:
        found += uvloop.run(chunks(system))
        found += uvloop.run(large(system))
    return found
