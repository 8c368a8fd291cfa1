"""One seed of a world of shells: build it, break it, heal it, demand that everything ends and nothing is left."""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import httpx

from astraflow.core.engine.commands import ForgetWorker
from astraflow.core.ids import RunId
from astraflow.scheduler import serving
from astraflow.scheduler.row_writer import RowWriter
from astraflow.worker.hosts import host, probe
from astraflow.worker.packages import installation
from tests.sim.loop import Hang, VirtualLoop, run_virtual
from tests.sim.shells.clients import Client
from tests.sim.shells.config import Config, draw
from tests.sim.shells.firing import FiringWorkload
from tests.sim.shells.host_process import HostProgram
from tests.sim.shells.http import VirtualHttp
from tests.sim.shells.keeping import fake_environment
from tests.sim.shells.nemesis import Nemesis
from tests.sim.shells.operator import Operator
from tests.sim.shells.site import Site
from tests.sim.simulation import FORGET_S, Outcome
from tests.sim.sqlite.store import drive
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.sim.checkers import Checkers
    from tests.sim.shells.processes import WorkerProcess

__all__ = ["Simulation", "simulate_shells", "watched"]

PROGRESS_S = 60.0
REST_S = 60.0
MAX_RUNS = 100_000
MAX_BYTES = 1024**3
"""Beyond what a world stores: everything is read."""
SETTLE_S = 240.0
THREAD_S = 0.001
_REAL_CLIENT = httpx.AsyncClient
_FOLDERS = next((path for path in ("/dev/shm",) if Path(path).is_dir()), None)
"""Where the disks of workers are: in memory, if the machine lets us."""


@contextmanager
def watched(checkers: Checkers) -> Iterator[None]:
    """Schedulers that are made in here show the checkers what they deliver and decide."""

    def make(**how: Any) -> Any:
        gateway = checkers.gateway_class(**how)
        gateway.checkers = checkers
        return gateway

    changes_of = RowWriter.changes_of

    def decided(self: RowWriter, batch: Any) -> Any:
        changes = changes_of(self, batch)
        checkers.rollouts.on_decided(changes)
        return changes

    with patch.object(serving, "Gateway", make), patch.object(RowWriter, "changes_of", decided):
        yield


@contextmanager
def imitated(site: Site) -> Iterator[None]:
    """Workers that run in here have hosts, environments and a network that are imitated, and no randomness of their
    own."""
    if not site.config.keeps:
        yield
        return
    program = partial(HostProgram, site.boot_in)
    site.loop.thread_s = lambda: site.world.delay(THREAD_S)

    async def environment(folder: Path, *given: Any, **named: Any) -> None:
        await fake_environment(site.boot_in(folder), folder, *given, **named)

    def token_hex(size: int) -> str:
        return f"{site.world.rng.getrandbits(8 * size):0{2 * size}x}"

    with ExitStack() as patches:
        for module in (host, probe):
            patches.enter_context(patch.object(module, "HostProcess", program))
        patches.enter_context(patch.object(installation, "make_environment", environment))
        patches.enter_context(patch.object(secrets, "token_hex", token_hex))
        patches.enter_context(patch.object(httpx, "AsyncClient", partial(_client, site)))
        yield


def _client(site: Site, **how: Any) -> httpx.AsyncClient:
    return _REAL_CLIENT(**{**how, "transport": VirtualHttp(site)})


class Simulation:
    """The world of one configuration."""

    def __init__(self, config: Config, *, keep_transcript: bool = False) -> None:
        self.config = config
        self.keep_transcript = keep_transcript
        self.site: Site | None = None

    async def run(self, loop: VirtualLoop) -> None:
        """Raises: Violation."""
        with tempfile.TemporaryDirectory(dir=_FOLDERS, prefix="astraflow-sim-") as folder:
            await self._run(loop, Path(folder))

    async def _run(self, loop: VirtualLoop, folder: Path) -> None:
        async with asyncio.TaskGroup() as group:
            site = Site(loop, self.config, group, folder, keep_transcript=self.keep_transcript)
            self.site = site
            with watched(site.checkers), imitated(site):
                await self._live(site, group)
        for failure in loop.failures:
            raise Violation("crash", f"{failure['message']}: {failure.get('exception')!r}")
        site.check_nothing_left()
        self._reopen(site)

    async def _live(self, site: Site, group: asyncio.TaskGroup) -> None:
        config, client, nemesis = self.config, Client(site), Nemesis(site)
        site.start()
        runs = [
            group.create_task(client.run_one(number), name=f"client {number}")
            for number in range(config.runs)
        ]
        if config.keeps:
            operator = Operator(site, client)
            runs += operator.start(group)
        if config.triggers:
            runs += FiringWorkload(site, client).start(group)
        tenants = sorted({config.tenant_of(number) for number in range(config.runs)})
        streams = [
            group.create_task(client.follow_tenant(tenant), name=f"listener of {tenant}")
            for tenant in tenants
        ]
        breaking = nemesis.start(group)
        await asyncio.sleep(config.fault_phase_s)
        for task in breaking:
            task.cancel()
        nemesis.heal()
        await self._end_of(runs, site)
        await self._rest(site)
        site.firing.check_end()
        for worker in [one for one in site.workers if one.is_gone]:
            await self._forget(site, worker)
        for task in streams:
            task.cancel()
        await asyncio.wait(streams)
        await site.stop()
        await asyncio.sleep(5.0)  # what closes takes a moment

    async def _end_of(self, runs: list[asyncio.Task[None]], site: Site) -> None:
        """A world that is busy may go on; one that has committed nothing for so long is stuck."""
        late, commits = set(runs), -1
        while late and site.mirror.commits != commits:
            commits = site.mirror.commits
            _, late = await asyncio.wait(late, timeout=PROGRESS_S)
        if late:
            why = site.what_is_open() or "clients wait"
            raise Violation("I24", f"{why}\n{site.loop.stacks()}")

    async def _rest(self, site: Site) -> None:
        until = site.world.now + REST_S
        while (what := site.what_is_open()) is not None:
            if site.world.now > until:
                raise Violation("I24", what)
            await asyncio.sleep(0.5)
        # An install that failed is tried again after a while, a rollout waits for it.
        until = site.world.now + SETTLE_S
        while (held := site.what_is_held()) is not None:
            if site.world.now > until:
                raise Violation(*held)
            await asyncio.sleep(1.0)

    async def _forget(self, site: Site, worker: WorkerProcess) -> None:
        """A worker that never comes back is forgotten when its time is over, and all that it kept with it."""
        until = site.world.now + FORGET_S
        forget = ForgetWorker(tenant=worker.tenant, worker_id=worker.worker_id)
        while site.knows(worker):
            if site.world.now > until:
                raise Violation("I24", f"{worker.name} is gone and cannot be forgotten")
            writer = site.front().serving.writer
            writer.execute(forget)
            await writer.barrier()
            await asyncio.sleep(5.0)
        trouble = site.checkers.resources.trouble_of_forgotten(worker.tenant, worker.worker_id)
        if trouble is not None:
            raise Violation(*trouble)
        site.world.sometimes("worker forgotten")

    def _reopen(self, site: Site) -> None:
        """What is stored is what was told, and the rows say what the facts say."""
        store = site.disk.store
        listed = [drive(store.list_runs(tenant, limit=MAX_RUNS)) for tenant in site.mirror.heads]
        rows = {row.run_id: row for row in chain.from_iterable(listed)}
        for run_id, row in rows.items():
            difference = site.mirror.rows[run_id].differs(row)
            if difference is not None:
                raise Violation("I20", f"the row of {run_id}: {difference}")
        for accepted in site.checkers.accepted:
            if accepted not in rows:
                raise Violation("I7", f"run {accepted} was acknowledged and is gone")
        for stored_id, stored in site.mirror.runs.items():
            pages = drive(store.read_segments(RunId(stored_id), max_bytes=MAX_BYTES))
            if [page.first for page in pages[1:]] != [page.last + 1 for page in pages[:-1]]:
                raise Violation("I20", f"the pages of {stored_id} have gaps")
            if pages[-1].last != stored.last_event:
                raise Violation("I20", f"the pages of {stored_id} end early")


def simulate_shells(
    seed: int, config: Config | None = None, *, keep_transcript: bool = False
) -> Outcome:
    """Run one seed to its end."""
    simulation = Simulation(config or draw(seed), keep_transcript=keep_transcript)
    violation: Violation | None = None
    was = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        run_virtual(simulation.run)
    except Violation as broken:
        violation = broken
    except Hang as broken:
        violation = Violation("hang", str(broken))
    except BaseExceptionGroup as group:
        violation = _first(group)
    except Exception as broken:
        violation = Violation("crash", f"{type(broken).__name__}: {broken}"[:500])
        violation.__cause__ = broken
    finally:
        logging.disable(was)
    site = simulation.site
    assert site is not None
    return Outcome(
        simulation.config,  # type: ignore[arg-type]
        site.disk.violation or violation,
        site.world.seen,
        site.world.digest(),
        site.checkers.attempts.executions,
        site.mirror.commits,
        [],
        site.world.transcript or [],
    )


def _first(group: BaseExceptionGroup[BaseException]) -> Violation:
    """The violation among what failed together, or whatever did."""
    leaves: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        else:
            leaves.append(one)
    for leaf in leaves:
        if isinstance(leaf, Violation):
            return leaf
    violation = Violation("crash", f"{type(leaves[0]).__name__}: {leaves[0]}"[:500])
    violation.__cause__ = leaves[0]
    return violation
