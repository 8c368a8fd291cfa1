"""One scheduler under the load of a large site: thousands of workers, a million waiting tasks, a thousand readers.

Workers, readers and whoever fills the queue are processes of their own; this one submits, waits and reads clocks. How
much of a core the busiest of them took is a figure, too: near 100 % it is the generator that was measured. Each step
has a limit of time; what was found before a step that takes longer is kept.
"""

from __future__ import annotations

import asyncio
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from subprocess import Popen
from time import perf_counter
from typing import Any, Literal

import msgspec
import uvloop

from astraflow.bench.processes import TOKEN, BenchClient, System, fan_out, wide
from astraflow.bench.system import timed
from benchmarks.figures import Figure
from benchmarks.file_limits import SPARE, TooFewFiles, raise_file_limit
from benchmarks.own_processes import line_of, own_process, tell
from benchmarks.tenants import TENANT
from benchmarks.usage import cpu_s, rss_mib
from tests.processes.postgres import database, postgres_server

__all__ = ["Sizes", "figures"]

StoreKind = Literal["sqlite", "postgresql"]
METRICS_TOKEN = f"{TOKEN}, for its metrics"
WORKER_RUNGS = (0.2, 0.6, 1.0)
OTHER_RUNGS = (0.1, 0.5, 1.0)
"""Parts of the whole that are measured, too: a curve of each."""
SESSIONS_A_PROCESS = 625
READERS_A_PROCESS = 250
FAN_OUT_TURNS = 3
PER_RUN = 50_000
"""The largest run that is accepted."""
OWN_STREAMS = 10
"""Of the process that submits and waits, beside those of the readers."""
LOOK_S = 0.1
PROBE_S = 0.02
"""Between two submissions beside the filling of the queue."""
WORKERS_BUDGET = {1_000: 25.0}
"""% of a core, by connected workers (docs/performance.md)."""
SESSION_KIB = 40
WAITING_BUDGET = {100_000: 200.0, 1_000_000: 1_024.0}
"""MiB, by waiting tasks."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    workers: int = 5_000
    tasks: int = 1_000_000
    readers: int = 1_000
    width: int = 3_000
    """Nodes of a fan-out."""
    runs: int = 60
    """Whose ends the readers see, and that are timed."""
    watched_s: float = 20.0
    """How long a scheduler that has nothing to do is watched."""
    step_s: float = 300.0
    """A step that takes longer ends the benchmark."""
    store: StoreKind = "sqlite"


class Load:
    """One scheduler, and what loads it."""

    def __init__(self, system: System, sizes: Sizes) -> None:
        assert system.scheduler is not None
        self.sizes = sizes
        self.port = system.port
        self.pid = system.scheduler.pid
        self.client = BenchClient(system.port)
        self.found: list[Figure] = []
        self._sessions = AsyncExitStack()
        self._opened: list[Popen[str]] = []  # the processes of the sessions
        self._connected = 0
        self._waiting = 0
        self._crowd_token = ""
        self._idle_mib = rss_mib(self.pid)
        self._empty_mib = 0.0  # before tasks waited
        self._alone_cpu = 0.0  # of runs that nobody follows

    async def run(self) -> list[Figure]:
        """Step by step, until all are done or one takes too long."""
        sizes = self.sizes
        steps: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        for count in _rungs(sizes.workers, WORKER_RUNGS):
            steps[f"{count:,} workers"] = partial(self._workers, count)
        steps["no readers"] = self._without_readers
        for count in _rungs(sizes.readers, OTHER_RUNGS):
            steps[f"{count:,} readers"] = partial(self._readers, count)
        for count in _rungs(sizes.tasks, OTHER_RUNGS):
            steps[f"{count:,} waiting tasks"] = partial(self._queue, count)
        self._add("scheduler, idle", self._idle_mib, "MiB")
        async with self._sessions:
            for name, step in steps.items():
                try:
                    async with asyncio.timeout(sizes.step_s):
                        with self._used(name):
                            await step()
                except TimeoutError:
                    self._add(f"{name}: STOPPED, not done in", sizes.step_s, "s")
                    break
        await self.client.close()
        return self.found

    def _add(self, name: str, value: float, unit: str, budget: float | None = None) -> None:
        self.found.append(Figure(name, value, unit, budget))

    @contextmanager
    def _used(self, name: str) -> Iterator[None]:
        """Note what the scheduler uses in a step."""
        before, started = cpu_s(self.pid), perf_counter()
        yield
        share = (cpu_s(self.pid) - before) / (perf_counter() - started)
        self._add(f"{name}, the whole step: scheduler", share * 100, "% core")
        self._add(f"{name}, at the end: scheduler", rss_mib(self.pid), "MiB")

    @contextmanager
    def _generated(self, name: str, processes: list[Popen[str]]) -> Iterator[None]:
        """Note what the busiest of these processes uses meanwhile. One that has ended is not waited for yet, so that
        its time can be read."""
        before, started = [cpu_s(one.pid) for one in processes], perf_counter()
        yield
        spent = perf_counter() - started
        used = [cpu_s(one.pid) - cpu for one, cpu in zip(processes, before, strict=True)]
        self._add(f"{name}: busiest of the generator", max(used) / spent * 100, "% core")

    # -- workers --------------------------------------------------------------------------------

    async def _workers(self, count: int) -> None:
        """Open sessions until there are so many, watch them do nothing, and give them something to do."""
        name, before = f"{count:,} workers", self._connected
        opening = await self._prepare(count)
        started = perf_counter()
        for process in opening:
            tell(process, "go")
        while True:
            if self._metric("astraflow_sessions") >= count:
                break
            await asyncio.sleep(LOOK_S)
        taken = perf_counter() - started
        self._add(f"{name}: sessions accepted", (count - before) / taken, "a second")
        mib = rss_mib(self.pid)
        each_kib = (mib - self._idle_mib) * 1024 / count
        self._add(f"{name}: memory of a session", each_kib, "KiB", SESSION_KIB)
        cpu, started = cpu_s(self.pid), perf_counter()
        await asyncio.sleep(self.sizes.watched_s)
        share = (cpu_s(self.pid) - cpu) / (perf_counter() - started)
        self._add(f"{name}: idle", share * 100, "% core", WORKERS_BUDGET.get(count))
        await self._fan_out(name)

    async def _prepare(self, count: int) -> list[Popen[str]]:
        """Processes for the sessions that are missing; they wait for a word."""
        opening = []
        for first in range(self._connected, count, SESSIONS_A_PROCESS):
            part = min(SESSIONS_A_PROCESS, count - first)
            opened = own_process("load_sessions", self.port, first, part, 1)
            process = await self._sessions.enter_async_context(opened)
            assert await line_of(process) == "ready"
            opening.append(process)
        self._connected = count
        self._opened += opening
        return opening

    async def _fan_out(self, name: str) -> None:
        width = self.sizes.width
        await timed(self.client, fan_out(min(50, width)))
        cpu = cpu_s(self.pid)
        with self._generated(name, self._opened):
            times = [await timed(self.client, fan_out(width)) for _ in range(FAN_OUT_TURNS)]
        cpu = (cpu_s(self.pid) - cpu) / FAN_OUT_TURNS
        self._add(f"{name}: fan-out 1→{width:,}→1", (width + 2) / median(times), "nodes/s")
        self._add(f"{name}: processor time of a node of it", cpu / (width + 2) * 1e6, "µs CPU")

    # -- readers --------------------------------------------------------------------------------

    async def _without_readers(self) -> None:
        cpu = cpu_s(self.pid)
        alone = await self._singles(self.sizes.runs)
        self._alone_cpu = cpu_s(self.pid) - cpu
        self._add("no readers: a run of one node, median", median(alone), "ms")

    async def _readers(self, readers: int) -> None:
        """How late each of many readers of a tenant sees that a run has ended, and what they cost the runs."""
        sizes = self.sizes
        name = f"{readers:,} readers"
        async with self._reading(readers) as processes:
            cpu = cpu_s(self.pid)
            with self._generated(name, processes):
                among = await self._singles(sizes.runs)
            told = await asyncio.gather(*map(line_of, processes))
            cpu = cpu_s(self.pid) - cpu - self._alone_cpu
        late = sorted(one for text in told for one in msgspec.json.decode(text, type=list[float]))
        self._add(f"{name}: a run of one node, median", median(among), "ms")
        self._add(f"{name}: an event is seen after, median", median(late), "ms")
        self._add(f"{name}: an event is seen after, 99 of 100", of_100(late, 99), "ms")
        self._add(f"{name}: events seen, of all", len(late) / readers / sizes.runs * 100, "%")
        self._add(f"{name}: a run costs the scheduler more, for each",
                  cpu / readers / sizes.runs * 1e6, "µs CPU")  # fmt: skip

    @asynccontextmanager
    async def _reading(self, readers: int) -> AsyncIterator[list[Popen[str]]]:
        sizes = self.sizes
        async with AsyncExitStack() as stack:
            processes = []
            for first in range(0, readers, READERS_A_PROCESS):
                part = min(READERS_A_PROCESS, readers - first)
                opened = own_process("load_readers", self.port, part, sizes.runs, sizes.step_s / 2)
                processes.append(await stack.enter_async_context(opened))
            for process in processes:
                assert await line_of(process) == "attached"
            yield processes

    async def _singles(self, count: int) -> list[float]:
        """Milliseconds of runs of one node, one after the other, as a tenant's stream tells."""
        times = []
        async with self.client.stream() as events:
            for _ in range(count):
                started = perf_counter()
                run_id = await self.client.submit(wide(1))
                await self.client.ended({run_id}, events)
                times.append((perf_counter() - started) * 1000)
        return times

    # -- the queue ------------------------------------------------------------------------------

    async def _queue(self, tasks: int) -> None:
        """Fill the queue of a tenant without workers up to so many, and submit for another one meanwhile and
        afterwards."""
        name = f"{tasks:,} waiting tasks"
        if not self._crowd_token:
            self._crowd_token = await self._crowd()
            self._empty_mib = rss_mib(self.pid)
        more, self._waiting = tasks - self._waiting, tasks
        filler = own_process("load_queue", self.port, self._crowd_token, more, min(PER_RUN, more))
        async with filler as process:
            filled = asyncio.create_task(line_of(process))
            meanwhile = await self._submitted(filled.done)
            self._add(f"{name}: accepted", more / float(await filled), "tasks/s")
        more_mib = rss_mib(self.pid) - self._empty_mib
        budget = WAITING_BUDGET.get(tasks)
        self._add(f"{name}: scheduler without workers", self._idle_mib + more_mib, "MiB", budget)
        self._add(f"{name}: memory of a task", more_mib * 1024**2 / tasks, "bytes")
        for when, times in (
            ("while they come", meanwhile),
            ("when they are there", await self._submitted(_after(self.sizes.runs))),
        ):
            self._add(f"{name}: a submission {when}, median", median(times), "ms")
            self._add(f"{name}: a submission {when}, 99 of 100", of_100(times, 99), "ms")
        started = perf_counter()
        depth = self._metric("astraflow_queue_depth")
        self._add(f"{name}: a scrape of the metrics", (perf_counter() - started) * 1000, "ms")
        self._add(f"{name}: the depth that it shows", depth, "tasks")

    async def _crowd(self) -> str:
        """A token of the tenant without workers."""
        await self._post("tenants", {"tenant": TENANT})
        made = await self._post("tokens", {"tenant": TENANT, "role": "operator"})
        return str(made["token"])

    async def _post(self, path: str, body: dict[str, str]) -> Any:
        return await self.client.request("POST", f"/api/v1/{path}", msgspec.json.encode(body))

    async def _submitted(self, is_over: Callable[[], bool]) -> list[float]:
        """Milliseconds from a request for a run of one node to its acceptance."""
        times: list[float] = []
        while not (times and is_over()):
            request = wide(1)
            started = perf_counter()
            await self.client.submit(request)
            times.append((perf_counter() - started) * 1000)
            await asyncio.sleep(PROBE_S)
        return sorted(times)

    def _metric(self, name: str) -> float:
        """The sum of the samples of a metric, of all tenants."""
        headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=headers)
        with urllib.request.urlopen(request) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(one.rpartition(" ")[2]) for one in lines if one.startswith(f"{name}{{"))


def _rungs(whole: int, parts: tuple[float, ...]) -> list[int]:
    return sorted({round(whole * part) for part in parts} - {0})


def of_100(values: list[float], share: int) -> float:
    """The value that so many of a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def _after(count: int) -> Callable[[], bool]:
    """Whether it was asked so often."""
    left = iter(range(count, 0, -1))
    return lambda: next(left, 0) <= 1


@contextmanager
def _scheduler(sizes: Sizes) -> Iterator[System]:
    settings = {
        "ASTRA_SCHEDULER_METRICS_TOKEN": METRICS_TOKEN,
        "ASTRA_SCHEDULER_MAX_SSE_READERS": str(sizes.readers + OWN_STREAMS),
    }
    with tempfile.TemporaryDirectory() as folder, _database(sizes.store) as url:
        if url is not None:
            settings["ASTRA_SCHEDULER_DATABASE_URL"] = url
            settings["ASTRA_SCHEDULER_SECRET"] = "a secret for benchmarks that is long enough"
        system = System(Path(folder), settings)
        system.start_scheduler()
        try:
            yield system
        finally:
            system.stop()


@contextmanager
def _database(store: StoreKind) -> Iterator[str | None]:
    """The address of a database, if one is wanted."""
    if store == "sqlite":
        yield None
        return
    with postgres_server() as server, database(server, "load") as url:
        yield url


def figures(sizes: Sizes | None = None) -> list[Figure]:
    sizes = sizes or Sizes()
    try:
        raise_file_limit(sizes.workers + sizes.readers + SPARE)
    except TooFewFiles as error:
        raise SystemExit(f"load: {error}") from None
    with _scheduler(sizes) as system:

        async def load() -> list[Figure]:
            return await Load(system, sizes).run()

        return uvloop.run(load())
