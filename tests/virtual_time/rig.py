"""A site of true shells with a disk that fails when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from astraflow.core.errors import StoreError
from astraflow.core.ids import RunId
from astraflow.scheduler.runs import Submission
from astraflow.scheduler.service import Scheduler
from astraflow.store.rows import Changes
from astraflow.store.store import Claim
from tests.sim.loop import VirtualLoop, run_virtual
from tests.sim.shells.config import Config
from tests.sim.shells.definitions import node_uid
from tests.sim.shells.disk import Handle
from tests.sim.shells.simulation import watched
from tests.sim.shells.site import Site

TENANT = "acme"
WAIT_S = 120.0
LOOK_S = 0.05


class Rig:
    """One scheduler and its workers; `hold` keeps commits from ending until `let_go`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.fault: StoreError | None = None
        self._gate = asyncio.Event()
        self._gate.set()

    @property
    def scheduler(self) -> Scheduler:
        return self.site.front()

    def hold(self) -> None:
        self._gate.clear()

    def let_go(self) -> None:
        self._gate.set()

    async def pass_gate(self) -> None:
        await self._gate.wait()
        if self.fault is not None:
            raise self.fault

    async def submit(self, *kinds: str, key: str | None = None) -> str:
        """Ask for a run with a node of each kind, one after the other."""
        accepted = await self.scheduler.runs.submit(self.submission(*kinds, key=key))
        return accepted.run_id

    def submission(self, *kinds: str, key: str | None = None) -> Submission:
        nodes = [
            {
                "id": node_uid(place),
                "type": f"sim.{kind}",
                "package": {"name": "sim", "version": "1.0"},
                "parameters": {"from": {}},
                "ui": {
                    "inputPorts": [
                        {"key": "p", "binding": {"path": f"parameters.from.{place - 1}"}}
                    ]
                    if place
                    else [],
                    "outputPorts": [{"key": "v", "binding": {"path": "results.v"}}],
                },
            }
            for place, kind in enumerate(kinds)
        ]
        edges = [
            {
                "source": {"node": node_uid(place), "port": "v"},
                "target": {"node": node_uid(place + 1), "port": "p"},
            }
            for place in range(len(kinds) - 1)
        ]
        document = {"id": node_uid(99), "nodes": nodes, "edges": edges}
        return Submission(
            tenant=TENANT,
            definition=msgspec.json.encode(document),
            idempotency_key=key,
            fingerprint=key,
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        for _ in range(int(WAIT_S / LOOK_S)):
            if holds():
                return
            await asyncio.sleep(LOOK_S)
        raise AssertionError("it did not come about")

    async def status(self, run_id: str) -> Any:
        return (await self.scheduler.reader.view_run(TENANT, RunId(run_id))).status

    async def events(self, run_id: str, after: int = 0) -> list[int]:
        """The numbers of all events to the end of the run, or of the stream."""
        numbers: list[int] = []
        async for batch in self.scheduler.reader.follow_run(TENANT, RunId(run_id), after):
            numbers += [event.id for event in batch]
        return numbers


def with_rig(test: Callable[[Rig], Awaitable[None]], **shape: Any) -> None:
    """Run a test on a site that serves, stop the site, and see that nothing is left."""

    async def main(loop: VirtualLoop) -> None:
        async with asyncio.TaskGroup() as group:
            site = Site(loop, Config(seed=1, **shape), group)
            rig = Rig(site)

            class GatedHandle(Handle):
                async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
                    await rig.pass_gate()
                    await super().commit(claim, number, changes)

            site.handle_class = GatedHandle
            with watched(site.checkers):
                site.start()
                await rig.until(lambda: site.schedulers[0].epoch > 0)
                async with asyncio.timeout(WAIT_S):
                    await test(rig)
                rig.let_go()
                await site.stop()
                await asyncio.sleep(5.0)
        site.check_nothing_left()

    run_virtual(main)
