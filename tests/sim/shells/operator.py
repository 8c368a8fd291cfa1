"""An operator of a world of shells: publishes, rolls out and back, installs, removes, and asks for resources.

It asks the services that the API asks. What nobody answers is asked again a few times, what is refused is not. What it
is told is stored.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.contract.packages import RolloutRequest
from astraflow.core.contract.workers import InstallPackage, UninstallPackage
from tests.sim.config import TENANTS
from tests.sim.shells.archives import ARCHIVED, archive_of
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from astraflow.scheduler.service import Scheduler
    from tests.sim.shells.clients import Client
    from tests.sim.shells.site import Site

__all__ = ["Operator"]

COMMANDS = 8
PATIENCE_S = 30.0
TRIES = 4
PAUSE_S = 2.0
WHO = "ann"
_REFUSED = (errors.AstraflowError, TimeoutError)


class Operator:
    """Works while the world is breaking."""

    def __init__(self, site: Site, client: Client) -> None:
        self.site = site
        self.world = site.world
        self.config = site.config
        self._client = client

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """The tasks that must have ended before the world can be at rest."""
        tasks = []
        if self.config.has_archives:
            tasks.append(group.create_task(self._publish(), name="publisher"))
        if self._draws():
            for number in range(COMMANDS):
                name = f"operator {number}"
                tasks.append(group.create_task(self._command(), name=name))
        return tasks

    async def _publish(self) -> None:
        for tenant in TENANTS[: self.config.tenants]:
            for name, version in ARCHIVED:
                archive = archive_of(name, version)
                await self._client.ask(
                    lambda scheduler, tenant=tenant, archive=archive: (  # type: ignore[misc]
                        scheduler.packages.repository.publish(tenant, _chunks(archive), None, WHO)
                    )
                )
        self.site.published.set()

    async def _command(self) -> None:
        await asyncio.sleep(self.world.rng.random() * self.config.fault_phase_s * 0.9)
        tenant = TENANTS[self.world.rng.randrange(self.config.tenants)]
        act = self.world.rng.choice(self._draws())
        for _ in range(TRIES):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await act(tenant)
                return
            except _REFUSED as refused:
                self.world.log(f"{act.__name__} is refused: {type(refused).__name__}")
                if not isinstance(refused, errors.Unavailable):
                    return
            await asyncio.sleep(PAUSE_S)

    def _draws(self) -> list[Callable[[str], Awaitable[None]]]:
        """What it may do in this world, the usual more often."""
        draws: list[Callable[[str], Awaitable[None]]] = []
        if self.config.rollouts:
            draws += [self._roll_out] * 6 + [self._roll_back, self._activate]
        if self.config.has_archives and self.config.removals:
            draws += [self._order] * 6
        if self.config.resources:
            draws += [self._close, self._extend, self._export, self._export]
        return draws

    @property
    def _scheduler(self) -> Scheduler:
        return self.site.front()

    # -- packages -----------------------------------------------------------------------------

    async def _roll_out(self, tenant: str) -> None:
        rng = self.world.rng
        name, version = rng.choice(ARCHIVED)
        request = RolloutRequest(
            version=version,
            waves=rng.choice(((100,), (50, 100))),
            soak_seconds=rng.choice((0.0, 2.0)),
            max_failed_percent=rng.choice((0.0, 10.0, 100.0)),
        )
        rollout = await self._scheduler.packages.roll_out(tenant, name, request, WHO)
        if rollout.rollout_id not in self.site.mirror.rollouts:
            raise Violation("I12", f"the rollout of {version} was acknowledged, not stored")

    async def _roll_back(self, tenant: str) -> None:
        name = ARCHIVED[0][0]
        await self._scheduler.packages.roll_back(tenant, name, WHO)

    async def _activate(self, tenant: str) -> None:
        name, version = self.world.rng.choice(ARCHIVED)
        active = await self._scheduler.packages.activate(tenant, name, version, WHO)
        self._check_active(tenant, name, active.version)

    def _check_active(self, tenant: str, name: str, version: str) -> None:
        if version not in self.site.activated.get((tenant, name), {}):
            raise Violation("I12", f"{name} {version} was told to be active, and is not stored so")

    async def _order(self, tenant: str) -> None:
        rng = self.world.rng
        name, version = rng.choice(ARCHIVED)
        worker = rng.choice([one for one in self.site.workers if one.tenant == tenant])
        installed = self._scheduler.workers.get(tenant, worker.worker_id).packages
        held = [one.version for one in installed if one.name == name]
        if held and rng.random() < 0.7:
            command: InstallPackage | UninstallPackage = UninstallPackage(
                name=name, version=rng.choice(held)
            )
        else:
            command = InstallPackage(name=name, version=version)
        await self._scheduler.workers.command(tenant, worker.worker_id, command, WHO)
        if (tenant, worker.worker_id, name, command.version) not in self.site.mirror.intents:
            raise Violation("I12", f"an order for {name} was acknowledged, not stored")

    # -- resources ----------------------------------------------------------------------------

    async def _draw(self, tenant: str) -> tuple[str, str]:
        rows = await self._scheduler.resources.search(tenant, limit=20, state="ready")
        if not rows:
            raise errors.NotFound(errors.RESOURCE_MISSING, "there is nothing")
        row = self.world.rng.choice(rows)
        return row.resource_id, row.worker_id

    async def _close(self, tenant: str) -> None:
        resource_id, worker_id = await self._draw(tenant)
        row = await self._scheduler.resources.close(tenant, resource_id, worker_id, WHO)
        stored = self.site.mirror.resources[tenant, worker_id, resource_id]
        if row.state != "ready" and stored.state == "ready":
            raise Violation("I12", f"the end of {resource_id} was acknowledged, not stored")
        self.world.sometimes("resource closed by command")

    async def _extend(self, tenant: str) -> None:
        resource_id, worker_id = await self._draw(tenant)
        await self._scheduler.resources.extend(tenant, resource_id, worker_id, 7200.0, WHO)

    async def _export(self, tenant: str) -> None:
        resource_id, worker_id = await self._draw(tenant)
        row = await self._scheduler.resources.export(tenant, resource_id, worker_id, WHO)
        if (tenant, worker_id, resource_id) not in self.site.copied:
            raise Violation("I12", f"the copy of {resource_id} was acknowledged, not stored")
        if row.blob is not None:
            self.world.sometimes("copy made by command")


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body
