"""What a second scheduler adds: two tenants on two nodes, and one tenant with two lanes on two nodes, against one node.

All are there at once, on one PostgreSQL server, and are loaded in turns; ratios are taken turn by turn. Each engine, of
a tenant or of a lane, gets the same: as many runs, and workers with as many sessions and slots. Where the machine is
full, throughput says how much of it there was, and processor time is the figure.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import asyncpg
import msgspec
import uvloop

from astraflow.bench.processes import BenchClient, System, fan_out
from astraflow.core.cluster.lanes import lane_of_key
from benchmarks.figures import Figure
from benchmarks.own_processes import own_process
from benchmarks.tenants import TenantClient
from benchmarks.usage import busy_s, cpu_s, family_cpu_s
from tests.processes.postgres import database, postgres_process

__all__ = ["Sizes", "figures"]

WorkerKind = Literal["light workers", "astra worker"]
SETTINGS: Final = {
    "ASTRA_SCHEDULER_SECRET": "a secret for benchmarks that is long enough",
    "ASTRA_SCHEDULER_SEVERAL_LANES": "true",
    "ASTRA_SCHEDULER_LOG_LEVEL": "error",  # the light workers go without a word
}
WORKERS: Final = 2
"""That each engine has a session with."""
SLOTS: Final = 32
"""Of a session."""
MAX_TENANTS: Final = 16
"""One of them is where it is wanted, with all likelihood: the shard of each is a throw of a coin."""
LOOK_S: Final = 0.1
PLACED_S: Final = 120.0
SPEEDUP: Final = 1.5
DEARER: Final = 1.15
PLACES: Final = """
    SELECT l.lane, n.url FROM astraflow.lanes AS l
    JOIN astraflow.shards AS s USING (shard) JOIN astraflow.nodes AS n ON n.node_id = s.owner
    WHERE l.tenant = $1 AND l.state = 'open' AND s.leased_until > clock_timestamp() ORDER BY l.lane
"""
LANES_OF_RUNS: Final = "SELECT lane FROM astraflow.runs WHERE run_id = ANY($1)"


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much an engine gets in a turn, and how many turns there are."""

    width: int = 5_000
    runs: int = 2
    turns: int = 5
    kinds: tuple[WorkerKind, ...] = ("light workers", "astra worker")


class Turn(msgspec.Struct, frozen=True):
    """What one turn of one load took."""

    nodes_per_s: float
    scheduler_us: tuple[float, ...]
    """Processor time of a node, of the scheduler of each engine."""
    postgres_us: float
    machine_percent: float
    """Of all cores, whoever used them."""


class Tenant(msgspec.Struct, frozen=True):
    """A tenant, and the node of each of its lanes."""

    name: str
    token: str
    nodes: tuple[System, ...]


class Site:
    """The nodes that share a database."""

    def __init__(self, url: str, nodes: list[System]) -> None:
        self.url = url
        self.nodes = nodes
        self._made = 0

    async def tenants(self, count: int, lanes: int) -> list[Tenant]:
        """So many tenants with so many lanes, all on different nodes."""
        found: dict[tuple[int, ...], Tenant] = {}
        for _ in range(MAX_TENANTS):
            tenant = await self._tenant(lanes)
            ports = tuple(node.port for node in tenant.nodes)
            if len(set(ports)) == lanes:
                found[ports] = tenant
            if len(found) == count:
                return list(found.values())
        raise AssertionError(f"{MAX_TENANTS} tenants, and all are on one node")

    async def _tenant(self, lanes: int) -> Tenant:
        self._made += 1
        name = f"tenant-{self._made}"
        admin = BenchClient(self.nodes[0].port)
        await admin.request("POST", "/api/v1/tenants", _json(tenant=name))
        made = await admin.request("POST", "/api/v1/tokens", _json(tenant=name, role="admin"))
        if lanes > 1:
            await admin.request("PUT", f"/api/v1/tenants/{name}/lanes", _json(count=lanes))
        await admin.close()
        by_port = {node.port: node for node in self.nodes}
        async with asyncio.timeout(PLACED_S):
            while len(rows := await self.rows(PLACES, name)) < lanes:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        nodes = tuple(by_port[urlsplit(url).port or 0] for _, url in rows)
        return Tenant(name, made["token"], nodes)

    async def rows(self, question: str, *values: object) -> list[Any]:
        connection = await asyncpg.connect(self.url)
        try:
            return list(await connection.fetch(question, *values))
        finally:
            await connection.close()


class Load:
    """Tenants that are loaded at the same time, and what that takes."""

    def __init__(self, site: Site, tenants: list[Tenant], postgres_pid: int) -> None:
        self.site = site
        self.tenants = tenants
        self._postgres_pid = postgres_pid
        nodes = (node for tenant in tenants for node in tenant.nodes)
        self._pids = [node.scheduler.pid for node in nodes if node.scheduler is not None]

    async def warm(self, width: int) -> None:
        """Until there are workers in each lane: a run goes home from one that has none. Then once as it is measured."""
        for tenant in self.tenants:
            async with asyncio.timeout(PLACED_S):
                while await self._submit_all(tenant, 1, 1) != _even(tenant, 1):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)
            spread = await self._submit_all(tenant, 1, width)
            assert spread == _even(tenant, 1), spread

    async def turn(self, sizes: Sizes) -> Turn:
        before, started = self._used(), perf_counter()
        spread = await asyncio.gather(
            *(self._submit_all(tenant, sizes.runs, sizes.width) for tenant in self.tenants)
        )
        seconds = perf_counter() - started
        used = (after - one for after, one in zip(self._used(), before, strict=True))
        *schedulers, postgres, machine = used
        assert spread == [_even(tenant, sizes.runs) for tenant in self.tenants], spread
        each = sizes.runs * (sizes.width + 2)
        total = each * len(self._pids)
        return Turn(
            total / seconds,
            tuple(one / each * 1e6 for one in schedulers),
            postgres / total * 1e6,
            machine / seconds / (os.cpu_count() or 1) * 100,
        )

    def _used(self) -> list[float]:
        schedulers = [cpu_s(pid) for pid in self._pids]
        return [*schedulers, family_cpu_s(self._postgres_pid), busy_s()]

    async def _submit_all(self, tenant: Tenant, runs: int, width: int) -> Counter[int]:
        """So many runs for each lane, all at once, until all have ended; how many were decided in which lane."""
        client = TenantClient(tenant.nodes[0].port, tenant.token)
        lanes = [lane for lane in range(len(tenant.nodes)) for _ in range(runs)]
        try:
            async with client.stream() as events:
                ids = await asyncio.gather(
                    *(client.submit(fan_out(width), _key_of(lane, tenant)) for lane in lanes)
                )
                await client.ended(set(ids), events)
        finally:
            await client.close()
        return Counter(row["lane"] for row in await self.site.rows(LANES_OF_RUNS, ids))

    @asynccontextmanager
    async def workers(self, kind: WorkerKind, folder: Path) -> AsyncIterator[None]:
        """The workers of all tenants."""
        async with AsyncExitStack() as stack:
            for tenant in self.tenants:
                if kind == "astra worker":
                    stack.enter_context(_real_workers(tenant, folder / tenant.name))
                    continue
                for lane, node in enumerate(tenant.nodes):
                    place = (node.port, WORKERS, SLOTS, tenant.name, tenant.token, lane)
                    await stack.enter_async_context(own_process("light_workers", *place))
            yield


@contextmanager
def _real_workers(tenant: Tenant, folder: Path) -> Iterator[None]:
    """With slots for all lanes, so that each has as many as it would have alone."""
    environ = {"ASTRA_WORKER_AUTH_TOKEN": tenant.token, "ASTRA_WORKER_TENANT": tenant.name}
    system = System(folder, environ)
    system.port = tenant.nodes[0].port
    try:
        for _ in range(WORKERS):
            system.start_worker("--max-parallel", str(SLOTS * len(tenant.nodes)))
        yield
    finally:
        system.stop()


def _json(**members: object) -> bytes:
    return msgspec.json.encode(members)


def _even(tenant: Tenant, runs: int) -> Counter[int]:
    return Counter(dict.fromkeys(range(len(tenant.nodes)), runs))


def _key_of(lane: int, tenant: Tenant) -> str:
    """The header of a run that goes to this lane. Without a key a run goes where fewer tasks wait."""
    lanes = range(len(tenant.nodes))
    keys: Iterator[str] = iter(lambda: str(uuid.uuid4()), "")
    return f"Idempotency-Key: {next(key for key in keys if lane_of_key(key, lanes) == lane)}"


@contextmanager
def _site(url: str, count: int, folder: Path) -> Iterator[Site]:
    settings = {**SETTINGS, "ASTRA_SCHEDULER_DATABASE_URL": url}
    with ExitStack() as stack:
        nodes = []
        for _ in range(count):
            nodes.append(System(folder, settings))
            stack.callback(nodes[-1].stop)
            nodes[-1].start_scheduler()
        yield Site(url, nodes)


async def _measure(alone: Site, pair: Site, postgres_pid: int, sizes: Sizes) -> list[Figure]:
    loads = {
        "one node, one tenant": Load(alone, await alone.tenants(1, 1), postgres_pid),
        "two nodes, two tenants": Load(pair, await pair.tenants(2, 1), postgres_pid),
        "two nodes, one tenant": Load(pair, await pair.tenants(1, 2), postgres_pid),
    }
    found: list[Figure] = []
    for kind in sizes.kinds:
        turns: dict[str, list[Turn]] = {name: [] for name in loads}
        with tempfile.TemporaryDirectory() as folder:
            async with AsyncExitStack() as stack:
                for number, load in enumerate(loads.values()):  # tenants of two sites share names
                    workers = load.workers(kind, Path(folder) / str(number))
                    await stack.enter_async_context(workers)
                for load in loads.values():
                    await load.warm(sizes.width)
                for _ in range(sizes.turns):
                    for name, load in loads.items():
                        turns[name].append(await load.turn(sizes))
        base = next(iter(turns.values()))
        for name, own in turns.items():
            found += _figures(f"{kind}: {name}", own, None if own is base else base)
    return found


def _figures(name: str, turns: list[Turn], base: list[Turn] | None) -> list[Figure]:
    """Medians; and of what one node took, turn by turn, unless this is the one node."""
    found: list[Figure] = []

    def add(of: str, value: Callable[[Turn], float], unit: str) -> None:
        found.append(Figure(f"{name}{of}", median(map(value, turns)), unit))

    def compare(of: str, value: Callable[[Turn], float], budget: float, floor: bool) -> None:
        if base is not None:
            pairs = zip(turns, base, strict=True)
            times = median(value(turn) / value(one) for turn, one in pairs)
            found.append(Figure(f"{of}, of one node's", times, "times", budget, floor))

    add("", lambda turn: turn.nodes_per_s, "nodes/s")
    compare("nodes a second", lambda turn: turn.nodes_per_s, SPEEDUP, True)
    for number in range(len(turns[0].scheduler_us)):
        add(f": scheduler {number + 1}, a node", lambda turn: turn.scheduler_us[number], "µs CPU")  # noqa: B023
    compare("the dearer scheduler", lambda turn: max(turn.scheduler_us), DEARER, False)
    add(": PostgreSQL, a node", lambda turn: turn.postgres_us, "µs CPU")
    compare("PostgreSQL", lambda turn: turn.postgres_us, DEARER, False)
    add(f": all processes, of {os.cpu_count()} cores", lambda turn: turn.machine_percent, "%")
    return found


def figures(sizes: Sizes | None = None) -> list[Figure]:
    chosen = sizes or Sizes()
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_process() as server,
        database(server.url, "alone") as one,
        database(server.url, "pair") as both,
        _site(one, 1, Path(folder) / "alone") as alone,
        _site(both, 2, Path(folder) / "pair") as pair,
    ):
        return uvloop.run(_measure(alone, pair, server.pid, chosen))
