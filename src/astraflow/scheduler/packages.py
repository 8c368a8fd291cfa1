"""Packages as the API asks for them: activating, rolling out, rolling back. Publishing is the repository's."""

from __future__ import annotations

import msgspec

from astraflow.clock import Clock
from astraflow.core.contract.packages import RolloutRequest
from astraflow.core.engine.commands import ActivateVersion, RollBack, StartRollout
from astraflow.core.fleet.rollouts import RolloutRecord
from astraflow.core.fleet.versions import ActiveVersionRecord
from astraflow.core.ids import IdSource
from astraflow.scheduler.current import Current
from astraflow.scheduler.repository import Repository
from astraflow.store.store import Store


class Packages:
    """Versions of packages, and their way to all workers."""

    def __init__(
        self, store: Store, repository: Repository, current: Current, clock: Clock, ids: IdSource
    ) -> None:
        self.repository = repository
        self._store = store
        self._current = current
        self._clock = clock
        self._ids = ids

    async def activate(self, tenant: str, name: str, version: str, by: str) -> ActiveVersionRecord:
        """Make a version the one that nodes without a version get. Fine if it is.

        Raises:
            NotFound: no such version.
            Conflict: it is yanked.
        """
        row = self.repository.find(tenant, name, version)
        self._current.execute(
            ActivateVersion(
                tenant=tenant,
                by=by,
                subject=f"{name} {row.version}",
                name=name,
                version=row.version,
            )
        )
        await self._current.writer.barrier()
        active = self.repository.pointer(tenant, name)
        assert active is not None, "what was activated is noted when it is committed"
        return active

    async def roll_out(
        self, tenant: str, name: str, request: RolloutRequest, by: str
    ) -> RolloutRecord:
        """Begin to bring a version to all workers.

        Raises:
            NotFound: it is not published.
            Conflict: another rollout of the package runs, or the version was yanked.
            Refused: the waves make no sense.
        """
        request.check()
        row = self.repository.find(tenant, name, request.version)
        at = self._clock.wall_ms()
        rollout = RolloutRecord(
            rollout_id=self._ids.new(),
            tenant=tenant,
            name=name,
            version=row.version,
            previous=self.repository.active(tenant, name),
            waves=request.waves,
            soak_seconds=request.soak_seconds,
            max_failed_percent=request.max_failed_percent,
            started_at=at,
            updated_at=at,
            started_by=by,
        )
        subject = f"{name} {row.version}"
        self._current.execute(StartRollout(tenant=tenant, by=by, subject=subject, rollout=rollout))
        await self._current.writer.barrier()
        return rollout

    async def roll_back(self, tenant: str, name: str, by: str) -> str:
        """Go back to the version that was active before; returns it. A rollout that runs is ended.

        Raises:
            NotFound: there is no such package.
            Conflict: no version was active before.
        """
        self.repository.versions(tenant, name)
        self._current.execute(RollBack(tenant=tenant, by=by, subject=name, name=name))
        await self._current.writer.barrier()
        return self.repository.active(tenant, name) or ""

    async def rollouts(self, tenant: str, name: str) -> list[RolloutRecord]:
        """All that are kept of a package, newest first."""
        await self._current.writer.barrier()
        rows = await self._store.rollouts()
        found = [
            msgspec.json.decode(row.body, type=RolloutRecord)
            for row in rows
            if row.tenant == tenant and row.name == name
        ]
        return sorted(found, key=lambda one: one.started_at, reverse=True)
