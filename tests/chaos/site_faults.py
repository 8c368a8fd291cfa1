"""What is done to a site, and how long each tenant was without an owner."""

from __future__ import annotations

import asyncio
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from astraflow.core.cluster.lanes import lane_of_key, lane_of_name, tenant_of_lane
from tests.chaos.site import Site, url_of
from tests.chaos.site_upgrades import SiteUpgrade
from tests.definitions import node, workflow
from tests.processes.process import Process

__all__ = ["SITE_FAULTS", "Fault", "SiteNemesis"]

TRY_S = 5.5
"""For one answer to a write: a little longer than a node looks for an owner."""
RETRY_S = 0.05
FIRST_WRITE_S = 60.0
LATE_S = 9.5
"""A take-over that took longer is to be explained by logs."""
LOG_LINES = 12
LOG_CHARS = 300


@dataclass(frozen=True)
class Fault:
    """One fault: when, and for each lane that was hit, the time until a write for it was answered."""

    kind: str
    at_ns: int
    gaps_s: dict[str, float]


class Writer:
    """Writes for one lane of a tenant: runs of one node that does nothing. Each has a key of its own."""

    def __init__(self, site: Site, name: str) -> None:
        self.tenant = tenant = tenant_of_lane(name)
        self._lane = lane_of_name(name)
        self._lanes = range(site.lanes[tenant])
        self.runs: list[str] = []
        self._site = site
        headers = {"Authorization": f"Bearer {site.tokens[tenant]}"}
        self._http = httpx.AsyncClient(headers=headers, timeout=TRY_S)

    async def __aenter__(self) -> Writer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def write(self, nodes: Sequence[Process], at: float) -> float:
        """Submit a run at each of the nodes, with one key for all, until one has answered; the seconds since `at`."""
        key, body = self._key(), {"workflow": workflow(node("core.noop"))}
        tries = [asyncio.create_task(self._write_at(one, key, body)) for one in nodes]
        try:
            async with asyncio.timeout(FIRST_WRITE_S):
                done, _ = await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
            took = time.monotonic() - at
            self.runs.append(next(iter(done)).result())
            return took
        finally:
            for one in tries:
                one.cancel()
            await asyncio.gather(*tries, return_exceptions=True)

    def _key(self) -> str:
        """One that the lane takes."""
        while lane_of_key(key := str(uuid.uuid4()), self._lanes) != self._lane:
            pass
        return key

    async def _write_at(self, asked: Process, key: str, body: dict[str, Any]) -> str:
        while True:
            try:
                answer = await self._http.post(
                    f"{url_of(asked)}/api/v1/runs", json=body, headers={"Idempotency-Key": key}
                )
                if answer.is_success:
                    return str(answer.json()["runId"])
                assert answer.status_code == 503, answer.text
            except httpx.TransportError:
                pass  # it is gone, or does not answer
            await asyncio.sleep(RETRY_S)


@dataclass
class SiteNemesis:
    """Does faults one after another; all is healed before the next."""

    site: Site
    rng: random.Random
    away_s: float
    """So long a node is frozen or cut off at least: longer than its claim and all that follows from it."""
    between_s: tuple[float, float]
    """For long attempts to begin anew."""
    writers: dict[str, Writer] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> SiteNemesis:
        for name in self.site.names():
            writer = Writer(self.site, name)
            self.writers[name] = await self._stack.enter_async_context(writer)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self, until: float, kinds: Sequence[str]) -> None:
        """Each kind in turn, until a time of the loop's clock; each at least once."""
        loop = asyncio.get_running_loop()
        at = 0
        while at < len(kinds) or loop.time() < until:
            await self.do(kinds[at % len(kinds)])
            await asyncio.sleep(self.rng.uniform(*self.between_s))
            at += 1

    async def do(self, kind: str) -> None:
        self.counts[kind] += 1
        await SITE_FAULTS[kind](self)
        await self.site.until_ready()

    # -- measuring --------------------------------------------------------------------------

    async def _victim(self) -> tuple[Process, list[str]]:
        """A node that serves some lane, and all that it serves."""
        owners = await self.site.owners()
        victim = self.rng.choice([*owners.values()])
        return victim, [name for name, owner in owners.items() if owner is victim]

    async def _first_writes(
        self, kind: str, at: float, tenants: Sequence[str], nodes: Sequence[Process]
    ) -> None:
        """Note how long it takes until each lane has a write answered."""
        took = await asyncio.gather(*(self.writers[one].write(nodes, at) for one in tenants))
        gaps = dict(zip(tenants, took, strict=True))
        self.faults.append(Fault(kind, int(at * 1e9), gaps))
        said = ", ".join(f"{tenant} {gap:.2f} s" for tenant, gap in gaps.items())
        self.site.supervisor.note(f"written again: {said}")
        if max(took) > LATE_S:
            self._show_logs()

    def _show_logs(self) -> None:
        """What the nodes have said lately: their logs go with the site."""
        for one in self.site.nodes:
            for line in one.said().splitlines()[-LOG_LINES:]:
                self.site.supervisor.note(f"{one.name} said {line[:LOG_CHARS]}")

    def _others(self, victim: Process) -> list[Process]:
        return [one for one in self.site.nodes if one is not victim]

    # -- the faults -------------------------------------------------------------------------

    async def kill(self) -> None:
        victim, hit = await self._victim()
        supervisor = self.site.supervisor
        supervisor.unwanted.add(victim.name)
        at = time.monotonic()
        supervisor.kill(victim)
        await self._first_writes("kill", at, hit, self._others(victim))
        await asyncio.sleep(self.rng.uniform(0.0, 3.0))
        supervisor.spawn(victim)

    async def freeze(self) -> None:
        victim, hit = await self._victim()
        supervisor = self.site.supervisor
        supervisor.note(f"freeze {victim.name}")
        at = time.monotonic()
        with victim.frozen():
            await self._first_writes("stop", at, hit, self._others(victim))
            await asyncio.sleep(max(0.0, at + self.away_s - time.monotonic()))
        supervisor.note(f"thaw {victim.name}")

    async def partition(self) -> None:
        victim, hit = await self._victim()
        supervisor = self.site.supervisor
        supervisor.note(f"cut {victim.name} off from PostgreSQL")
        at = time.monotonic()
        self.site.cut_off(victim)
        try:
            await self._first_writes("partition", at, hit, self._others(victim))
            await asyncio.sleep(max(0.0, at + self.away_s - time.monotonic()))
        finally:
            self.site.restore(victim)
        supervisor.note(f"{victim.name} reaches PostgreSQL again")

    async def promote(self) -> None:
        servers = self.site.servers
        if not servers.has_replica:
            await asyncio.to_thread(servers.add_replica)
        self.site.supervisor.note("stop the primary, and promote the replica")
        at = time.monotonic()
        promoting = asyncio.create_task(asyncio.to_thread(servers.fail_over))
        await self._first_writes("promote", at, list(self.writers), self.site.nodes)
        await promoting
        await asyncio.to_thread(servers.add_replica)

    async def rolling(self) -> None:
        """Restart each node, while each tenant writes without a pause."""
        self.site.supervisor.note("restart all nodes, one after the other")
        async with self.writing("rolling"):
            for victim in self.site.nodes:
                await self.restart(victim)

    async def upgrade(self) -> None:
        """Give all nodes the next release, while each tenant writes without a pause."""
        async with self.writing("upgrade"):
            await SiteUpgrade(self.site, self.restart, self.rng).run()

    @asynccontextmanager
    async def writing(self, kind: str) -> AsyncIterator[None]:
        """Write all the time for each tenant; the longest that one waits is noted as a fault."""
        at = time.monotonic()
        is_over = asyncio.Event()
        tasks = [asyncio.create_task(self._keep_writing(one, is_over)) for one in self.writers]
        try:
            yield
        finally:
            is_over.set()
            gaps = await asyncio.gather(*tasks)
        found = dict(zip(self.writers, gaps, strict=True))
        self.faults.append(Fault(kind, int(at * 1e9), found))
        said = ", ".join(f"{tenant} {gap:.2f} s" for tenant, gap in found.items())
        self.site.supervisor.note(f"the longest write: {said}")

    async def restart(self, victim: Process) -> None:
        supervisor = self.site.supervisor
        supervisor.unwanted.add(victim.name)
        supervisor.note(f"SIGTERM {victim.name}")
        victim.send(signal.SIGTERM)
        code = await self.site.until_gone(victim)
        supervisor.note(f"{victim.name} ended with {code}")
        if code != 0:
            self.problems.append(f"{victim.name} ended with {code}: {victim.said()[-400:]}")
        supervisor.spawn(victim)
        await self.site.until_ready()

    async def _keep_writing(self, tenant: str, is_over: asyncio.Event) -> float:
        """The longest that a client waits that tries another node as soon as one refuses the connection."""
        longest = 0.0
        while not is_over.is_set():
            took = await self.writers[tenant].write(self.site.nodes, time.monotonic())
            if took > 0.5:
                self.site.supervisor.note(f"a write of {tenant} took {took:.2f} s")
            longest = max(longest, took)
            await asyncio.sleep(RETRY_S)
        return longest


SITE_FAULTS: dict[str, Callable[[SiteNemesis], Awaitable[None]]] = {
    "kill": SiteNemesis.kill,
    "stop": SiteNemesis.freeze,
    "partition": SiteNemesis.partition,
    "promote": SiteNemesis.promote,
    "rolling": SiteNemesis.rolling,
    "upgrade": SiteNemesis.upgrade,
}
