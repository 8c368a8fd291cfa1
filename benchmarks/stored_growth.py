"""A store with millions of finished nodes beside an empty one, in turns; then retention beside load."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import uvloop

from astraflow.bench.processes import BenchClient, System, chain, fan_out
from astraflow.bench.system import singles, timed
from benchmarks.costs import Cost, cost, middle, of_cost, pids_of
from benchmarks.figures import Figure
from benchmarks.finished_runs import fill
from benchmarks.usage import rss_mib

NODES = 5_000_000
FILL_S = 120.0
"""What is not written by then is left out; the figures say how much it was."""
ROUNDS = 5
WIDTH, STEPS, SINGLES, LISTS = 2_000, 100, 40, 20
TEMPLATES = (8, 5_000)
"""The widths of the fan-outs that are copied: half of the nodes are in small runs."""
BUDGET = 1.3
"""Times the same in an empty store."""
RESTART_BUDGET_S = 2.0
BESIDE_BUDGET = 1.5
"""Times a fan-out without retention."""
_KEPT = "1000000000"
_KEEP_ALL = {
    "ASTRA_SCHEDULER_RETENTION_RUNS": _KEPT,
    "ASTRA_SCHEDULER_RETENTION_BYTES": str(1024**4),
    "ASTRA_WORKER_LOG_LEVEL": "error",  # its scheduler is killed now and then
}


@contextmanager
def _started(name: str) -> Iterator[System]:
    with tempfile.TemporaryDirectory(prefix=name) as folder:
        system = System(Path(folder), _KEEP_ALL)
        system.start_scheduler()
        system.start_worker("--max-parallel", "64")
        try:
            yield system
        finally:
            system.stop()


def _file(system: System) -> Path:
    return system.folder / "astraflow.db"


async def _templates(system: System) -> dict[str, int]:
    """Execute what is copied: the ids of runs, and their nodes."""
    client = BenchClient(system.port)
    found: dict[str, int] = {}
    async with client.stream() as events:
        for width in TEMPLATES:
            run_id = await client.submit(fan_out(width))
            await client.ended({run_id}, events)
            found[run_id] = width + 2
    await client.close()
    return found


class Turns:
    """What was measured of one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.fan: list[Cost] = []
        self.chain: list[Cost] = []
        self.single_ms: list[float] = []
        self.list_ms: list[float] = []

    async def take(self) -> None:
        client = BenchClient(self.system.port)
        await self.take_fan(client)
        pids = pids_of(self.system)
        self.chain.append(await cost(pids, STEPS, timed(client, chain(STEPS))))
        self.single_ms += await singles(client, SINGLES)
        for _ in range(LISTS):
            started = perf_counter()
            await client.request("GET", "/api/v1/runs?limit=50")
            self.list_ms.append((perf_counter() - started) * 1e3)
        await client.close()

    async def take_fan(self, client: BenchClient) -> None:
        pids = pids_of(self.system)
        self.fan.append(await cost(pids, WIDTH, timed(client, fan_out(WIDTH))))


def _restart_s(system: System) -> float:
    system.kill_scheduler()
    started = perf_counter()
    system.start_scheduler()
    return perf_counter() - started


async def _warm(system: System) -> None:
    client = BenchClient(system.port)
    await timed(client, fan_out(WIDTH))
    await client.close()


def _compared(empty: Turns, full: Turns, restarts: tuple[float, float]) -> list[Figure]:
    fan = middle(full.fan)
    steps = middle(full.chain)
    single, listing = median(full.single_ms), median(full.list_ms)
    of = "of an empty store"
    return [
        *of_cost(f"fan-out of {WIDTH:,}, full store", fan),
        Figure(
            f"the same: scheduler, {of}",
            fan.scheduler / middle(empty.fan).scheduler,
            "times",
            BUDGET,
        ),
        *of_cost(f"chain of {STEPS}, full store", steps),
        Figure(
            f"the same: on the wall, {of}", steps.wall / middle(empty.chain).wall, "times", BUDGET
        ),
        Figure("single run, full store", single, "ms"),
        Figure(f"the same, {of}", single / median(empty.single_ms), "times", BUDGET),
        Figure("list of 50 runs, full store", listing, "ms"),
        Figure(f"the same, {of}", listing / median(empty.list_ms), "times", BUDGET),
        Figure("restart to serving, empty store", restarts[0], "s"),
        Figure("restart to serving, full store", restarts[1], "s", RESTART_BUDGET_S),
    ]


def _stored_runs(system: System) -> int:
    uri = f"{_file(system).as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    return int(count)


async def _fans(one: Turns) -> None:
    client = BenchClient(one.system.port)
    for _ in range(ROUNDS):
        await one.take_fan(client)
    await client.close()


def _retention(calm: Turns) -> list[Figure]:
    """Fan-outs while the sweeper removes all finished runs, beside those of the same system before."""
    full = calm.system
    full.kill_scheduler()
    full.settings["ASTRA_SCHEDULER_RETENTION_RUNS"] = "1"
    full.start_scheduler()
    uvloop.run(_warm(full))
    busy = Turns(full)
    before, started = _stored_runs(full), perf_counter()
    uvloop.run(_fans(busy))
    after = _stored_runs(full)
    removed = (before - after) / (perf_counter() - started)
    found, base = middle(busy.fan), middle(calm.fan)
    return [
        *of_cost(f"fan-out of {WIDTH:,} beside retention", found),
        Figure("the same: on the wall, of without", found.wall / base.wall, "times", BESIDE_BUDGET),
        Figure("runs that retention removed meanwhile", removed, "a second"),
        Figure("runs left when it was measured", after, "runs"),
    ]


def figures(nodes: int = NODES) -> list[Figure]:
    with _started("empty") as empty, _started("full") as full:
        templates = uvloop.run(_templates(full))
        full.kill_scheduler()
        started = perf_counter()
        written, runs = asyncio.run(fill(_file(full), templates, nodes, FILL_S))
        filling = perf_counter() - started
        full.start_scheduler()
        for system in (empty, full):
            uvloop.run(_warm(system))
        turns = Turns(empty), Turns(full)
        for _ in range(ROUNDS):
            for one in turns:
                uvloop.run(one.take())
        restarts = [(_restart_s(empty), _restart_s(full)) for _ in range(3)]
        restart = median(one for one, _ in restarts), median(one for _, one in restarts)
        assert full.scheduler is not None
        return [
            Figure("finished nodes in the full store", written, "nodes"),
            Figure("in so many runs", runs, "runs"),
            Figure("its file", _file(full).stat().st_size / 1024**2, "MiB"),
            Figure("writing them", filling, "s"),
            *_compared(*turns, restart),
            Figure("scheduler, full store, after a restart", rss_mib(full.scheduler.pid), "MiB"),
            *_retention(turns[1]),
        ]
