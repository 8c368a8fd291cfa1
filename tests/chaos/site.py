"""A site: several nodes on one PostgreSQL, tenants with a token and a worker each, and clients that ask any node.

If asked for, each node reaches each server of PostgreSQL through a proxy of its own, so that it can be cut off from the
store alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import httpx

from astraflow.core.cluster.lanes import lane_name
from tests.chaos.proxy import DOWN, UP, Proxy, Weather
from tests.chaos.supervisor import Supervisor
from tests.chaos.workload import Api
from tests.processes.postgres_pair import PostgresPair
from tests.processes.process import Process
from tests.processes.releases import LaterRelease
from tests.processes.system import System, port_of
from tests.processes.waiting import until_seen

__all__ = ["TENANTS", "Site", "site"]

TENANTS = ("acme", "globex", "initech", "umbrella")
LOOK_S = 0.1
READY_S = 120.0
ASK_S = 5.0
OWNERS = """
    SELECT l.name, n.url FROM astraflow.lanes AS l
    JOIN astraflow.shards AS s USING (shard) JOIN astraflow.nodes AS n ON n.node_id = s.owner
    WHERE s.leased_until > clock_timestamp()
"""
WRITTEN = "SELECT name, value FROM astraflow.site WHERE name = 'facts_version'"
MARKED = """
    SELECT '', count(*) FROM astraflow.fact_segments WHERE position('{mark}' IN convert_from(body, 'UTF8')) > 0
"""
VERSIONS = """
    SELECT node_id, version FROM astraflow.nodes WHERE seen_at > clock_timestamp() - interval '5 seconds'
"""
RUNS = "SELECT tenant, run_id FROM astraflow.runs"
SHORT = {"ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS": "5"}
"""All other numbers are as shipped, if no `heartbeat_ms` is given."""


class Site:
    """What runs. Use from one loop, which also carries what nodes say to PostgreSQL, if they are linked."""

    def __init__(self, servers: PostgresPair, supervisor: Supervisor, rng: random.Random) -> None:
        self.servers = servers
        self.supervisor = supervisor
        self.truth = supervisor.system.folder / "truth"
        self.tokens: dict[str, str] = {}
        self.lanes: dict[str, int] = {}
        """How many each tenant has."""
        self.release = LaterRelease(supervisor.system.folder, 0)
        """What all nodes run, when no upgrade is under way."""
        self._rng = rng
        self._links: dict[str, list[Proxy]] = {}

    @property
    def nodes(self) -> list[Process]:
        return self.supervisor.schedulers

    def api(self, tenant: str | None = None) -> Api:
        """A client that asks any node: the admin of the site, or of a tenant."""
        if tenant is None:
            return Api(self._any_url)
        return Api(self._any_url, self.tokens[tenant])

    def _any_url(self) -> str:
        return url_of(self._rng.choice(self.nodes))

    # -- starting ---------------------------------------------------------------------------

    async def open(self, tenants: tuple[str, ...], *, lanes: int, is_linked: bool) -> None:
        """`lanes`: of the first tenant; the others have one."""
        for node in self.nodes:
            if is_linked:
                await self._link(node)
            self.supervisor.spawn(node)
        await self.until_ready()
        async with self.api() as admin:
            for tenant in tenants:
                await self._make(admin, tenant, lanes if tenant == tenants[0] else 1)
        for tenant in tenants:
            self._start_worker(tenant)

    async def _link(self, node: Process) -> None:
        links = [Proxy(port) for port in self.servers.ports]
        for link in links:
            await link.open()
        self._links[node.name] = links
        at = node.arguments.index("--database-url") + 1
        node.arguments[at] = self.servers.url_through(*(one.port for one in links))

    async def _make(self, admin: Api, tenant: str, lanes: int) -> None:
        made = await admin.ask("POST", "/api/v1/tenants", json={"tenant": tenant})
        assert made.status_code == 201, made.text
        body = {"tenant": tenant, "role": "admin"}
        token = await admin.ask("POST", "/api/v1/tokens", json=body)
        assert token.status_code == 201, token.text
        self.tokens[tenant] = token.json()["token"]
        self.lanes[tenant] = lanes
        if lanes > 1:
            path = f"/api/v1/tenants/{tenant}/lanes"
            given = await admin.ask("PUT", path, json={"count": lanes})
            assert given.status_code == 200, given.text

    def _start_worker(self, tenant: str) -> None:
        urls = ",".join(f"ws://127.0.0.1:{port_of(node)}/ws/worker" for node in self.nodes)
        environ = {"ASTRA_WORKER_AUTH_TOKEN": self.tokens[tenant], "ASTRA_WORKER_TENANT": tenant}
        system = self.supervisor.system
        self.supervisor.spawn(system.new_worker(f"worker-{tenant}", url=urls, **environ))

    async def close(self) -> None:
        for links in self._links.values():
            for link in links:
                await link.close()

    # -- what it is like --------------------------------------------------------------------

    async def until_ready(self) -> None:
        """Until each node answers, and each lane of each tenant has an owner."""
        async with httpx.AsyncClient(timeout=ASK_S) as http:
            for node in self.nodes:
                async with asyncio.timeout(READY_S):
                    while not await _is_ready(http, node):  # noqa: ASYNC110  (nothing would set an event)
                        await asyncio.sleep(LOOK_S)
        async with asyncio.timeout(READY_S):
            while set(await self.owners()) != set(self.names()):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)

    def names(self) -> list[str]:
        """Of all lanes of all tenants."""
        return [
            lane_name(tenant, lane) for tenant, most in self.lanes.items() for lane in range(most)
        ]

    async def owners(self) -> dict[str, Process]:
        """The node of each lane, by its name; without those that nobody owns now."""
        nodes = {url_of(node): node for node in self.nodes}
        names = set(self.names())
        return {
            name: nodes[url]
            for name, url in await self._rows(OWNERS)
            if url in nodes and name in names
        }

    async def stored_runs(self) -> list[tuple[str, str]]:
        """Of all tenants."""
        return [(str(tenant), str(run_id)) for tenant, run_id in await self._rows(RUNS)]

    async def facts_written(self) -> int:
        """Up to which version facts are written."""
        ((_, version),) = await self._rows(WRITTEN)
        return int(version)

    async def runs_of(self, release: LaterRelease) -> int:
        """How many runs say that a release has accepted them."""
        ((_, count),) = await self._rows(MARKED.format(mark=release.mark))
        return int(count)

    async def versions(self) -> set[str]:
        """The releases of the nodes that are there."""
        return {str(version) for _, version in await self._rows(VERSIONS)}

    async def _rows(self, question: str) -> list[tuple[str, str]]:
        connection = await asyncpg.connect(self.servers.url, timeout=ASK_S)
        try:
            return [tuple(row) for row in await connection.fetch(question)]
        finally:
            await connection.close()

    # -- what can be done to it -------------------------------------------------------------

    def cut_off(self, node: Process) -> None:
        """Nothing passes between a node and PostgreSQL, and neither is told."""
        for link in self._links[node.name]:
            for way in (UP, DOWN):
                link.set(way, Weather(is_silent=True))

    def restore(self, node: Process) -> None:
        """What was said meanwhile arrives now."""
        for link in self._links[node.name]:
            link.heal()

    async def until_gone(self, node: Process) -> int:
        """Its exit code."""
        await until_seen(lambda: not node.is_alive())
        assert node.code is not None
        return node.code


async def _is_ready(http: httpx.AsyncClient, node: Process) -> bool:
    with suppress(httpx.TransportError):
        return (await http.get(f"{url_of(node)}/readyz")).status_code == 200
    return False


def url_of(node: Process) -> str:
    return f"http://127.0.0.1:{port_of(node)}"


@asynccontextmanager
async def site(
    folder: Path,
    servers: PostgresPair,
    rng: random.Random,
    *,
    nodes: int = 3,
    tenants: tuple[str, ...] = TENANTS,
    lanes: int = 1,
    heartbeat_ms: int | None = None,
    is_linked: bool = True,
    is_loud: bool = False,
) -> AsyncIterator[Site]:
    """All of it, running; killed, whatever happens, at the end."""
    environ = {**SHORT, "ASTRA_SCHEDULER_SEVERAL_LANES": "true"} if lanes > 1 else SHORT
    system = System(folder, heartbeat_ms=heartbeat_ms, database_url=servers.url, environ=environ)
    for _ in range(nodes - 1):
        system.new_scheduler()
    supervisor = Supervisor(system, is_loud=is_loud)
    made = Site(servers, supervisor, rng)
    made.truth.mkdir()
    try:
        await made.open(tenants, lanes=lanes, is_linked=is_linked)
        yield made
    finally:
        await supervisor.close()
        await made.close()
