"""What the engine of a shard must know of tenants with several lanes, kept as it changes.

Rule 1: the engine is told which lanes a tenant has within `LOOK_S` of the look of its process. The home opens a new
        lane when all that it accepted without knowing of it is committed (`core.cluster.lanes` Rule 3).
Rule 2: of a tenant whose home is elsewhere the engine knows the policy, and whether it is suspended, as the home has
        stored it `READ_S` ago at the most.
Rule 3: packages that tasks of another lane wait for are asked of the home through the store (`lane_wants`): the home
        has them installed, or says that nobody can, and then those tasks fail.
Rule 4: a worker that has a session here although no lane of its tenant is here is sent away: the tenant was new when
        the worker came.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE, PackageWant
from astraflow.core.engine.commands import GiveUpPackage, WantPackage
from astraflow.core.fleet.installs import InstallProblem
from astraflow.scheduler.fleet_rows import tenant_of

if TYPE_CHECKING:
    from astraflow.core.engine.lanes import TenantLanes
    from astraflow.scheduler.credentials import Credentials
    from astraflow.scheduler.serving import Parts
    from astraflow.scheduler.writer import Writer
    from astraflow.store.cluster import StoredCluster

LOOK_S: Final = 0.25
READ_S: Final = 1.0
WANT_AGAIN_MS: Final = 30_000
"""A package that is still wanted is asked for again so often; a want that is older is of nobody."""


class LaneTending:
    """One engine, from its making to its end. Use from one asyncio loop."""

    def __init__(
        self, parts: Parts, cluster: StoredCluster, writer: Writer, credentials: Credentials
    ) -> None:
        self._parts = parts
        self._cluster = cluster
        self._writer = writer
        self._credentials = credentials
        self._told: dict[str, TenantLanes] = {}

    async def run(self) -> None:
        """Endless. Raises: StoreError, if waiting will not help."""
        read_at = float("-inf")
        while True:
            self._tell_lanes()
            self._writer.send_away(lambda tenant: self._parts.lanes.lane_of(tenant) is None)
            now = self._parts.clock.now()
            try:
                for tenant in self._parts.lanes.opening():
                    await self._writer.barrier()
                    await self._cluster.open_lanes(tenant)
                if self._told and now - read_at >= READ_S:
                    read_at = now
                    await self._read()
            except errors.StoreError as error:
                if error.code is not errors.STORE_UNAVAILABLE:
                    raise  # else it is done again later
            await asyncio.sleep(LOOK_S)

    def _tell_lanes(self) -> None:
        several = dict(self._parts.lanes.several())
        for tenant in {*several, *self._told}:
            if several.get(tenant) != self._told.get(tenant):
                self._writer.set_lanes(tenant, several.get(tenant))
        self._told = several

    async def _read(self) -> None:
        guests = {tenant for tenant, lanes in self._told.items() if not lanes.is_home}
        if guests:
            for row in await self._parts.store.tenants():
                if row.tenant in guests:
                    self._credentials.set_suspended(row.tenant, row.is_suspended)
                    self._writer.learn_tenant(tenant_of(row))
            self._credentials.enforce()
        await self._exchange_wants()

    # -- packages -----------------------------------------------------------------------------

    async def _exchange_wants(self) -> None:
        known = {
            (one.tenant, one.name, one.version): one
            for one in await self._cluster.wanted_packages()
        }
        now = self._parts.clock.wall_ms()
        ask = self._writer.engine.ask
        for package in ask.wanted():
            tenant, name, version = package
            if ask.has_packages(tenant, [(name, version)]):
                self._writer.forget_want(package)
                continue
            want = known.get(package)
            if want is not None and want.problem is not None:
                await self._give_up(want)
            elif want is None or now - want.wanted_at >= WANT_AGAIN_MS // 2:
                await self._cluster.want_package(tenant, name, version, now)
        for want in known.values():
            if self._parts.lanes.lane_of(want.tenant) == HOME_LANE:
                await self._serve(want, now)

    async def _give_up(self, want: PackageWant) -> None:
        assert want.problem is not None
        problem = msgspec.json.decode(want.problem, type=InstallProblem)
        name = f"{want.name} {want.version}"
        self._writer.execute(
            GiveUpPackage(
                tenant=want.tenant,
                name=want.name,
                version=want.version,
                code=problem.code,
                message=f"{name} could not be installed on any worker: {problem.message}",
            )
        )
        self._writer.forget_want((want.tenant, want.name, want.version))
        await self._cluster.forget_want(want)

    async def _serve(self, want: PackageWant, now: int) -> None:
        """What the home does for another lane."""
        state = self._writer.engine.ask.wanted_state(want.tenant, want.name, want.version)
        if state == "installed" or now - want.wanted_at > WANT_AGAIN_MS:
            await self._cluster.forget_want(want)
        elif isinstance(state, InstallProblem) and want.problem is None:
            await self._cluster.refuse_want(want, msgspec.json.encode(state))
        elif state is None:
            command = WantPackage(tenant=want.tenant, name=want.name, version=want.version)
            self._writer.execute(command)
