"""Rollouts: versions of packages on their way to all workers, looked at once a second."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from astraflow.core import errors
from astraflow.core.dispatch import WorkerEntry
from astraflow.core.dispatch.rollout import Health, Rollout, Standing, advance
from astraflow.core.engine.packages import INSTALLS, wish_installed
from astraflow.store.rows import RolloutRow

if TYPE_CHECKING:
    from astraflow.clock import Clock
    from astraflow.core.engine.view import View
    from astraflow.core.ids import IdSource
    from astraflow.scheduler.repository import Repository
    from astraflow.scheduler.writer import Writer
    from astraflow.store.store import Claim, Store

__all__ = ["RolloutRequest", "Rollouts"]

_log: Final = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0
_Percent = Annotated[int, Meta(ge=1, le=100)]


class RolloutRequest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What somebody asks for. The last wave must be all workers."""

    version: Annotated[str, Meta(min_length=1, max_length=128)]
    waves: Annotated[tuple[_Percent, ...], Meta(min_length=1, max_length=20)] = (10, 50, 100)
    soak_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    max_failed_percent: Annotated[float, Meta(ge=0, le=100)] = 10.0

    def check(self) -> None:
        """Raises: Refused."""
        if list(self.waves) != sorted(set(self.waves)) or self.waves[-1] != 100:
            raise errors.Refused(
                errors.REQUEST_INVALID,
                "waves must grow and end with 100, for example [10, 50, 100]",
                pointer="/waves",
            )


class Rollouts:
    """The rollouts of all tenants, under one claim: at most one runs for a package."""

    def __init__(
        self,
        store: Store,
        repository: Repository,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._store = store
        self._repository = repository
        self._clock = clock
        self._ids = ids
        self._claim: Claim | None = None
        self._writer: Writer | None = None
        self._running: dict[tuple[str, str], Rollout] = {}

    async def begin(self, claim: Claim, writer: Writer) -> None:
        """Take up what is stored."""
        self._claim, self._writer = claim, writer
        rows = await self._store.rollouts(["running"])
        loaded = (msgspec.json.decode(row.body, type=Rollout) for row in rows)
        self._running = {(one.tenant, one.name): one for one in loaded}
        for one in self._running.values():
            writer.engine.view.watched[one.tenant, one.name, one.version] = [0, 0]

    def end(self) -> None:
        self._claim = self._writer = None
        self._running.clear()

    async def tend(self) -> None:
        """Look at what runs, once a second."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for rollout in list(self._running.values()):
                try:
                    await self._look_at(rollout)
                except (errors.Conflict, errors.NotFound) as error:
                    # Somebody yanked it meanwhile: that ends the rollout, not the scheduler.
                    await self._fail(rollout, error.message)

    async def start(self, tenant: str, name: str, request: RolloutRequest, by: str) -> Rollout:
        """Begin to bring a version to all workers.

        Raises:
            NotFound: it is not published.
            Conflict: another rollout of the package runs, or the version was yanked.
            Refused: the waves make no sense.
        """
        request.check()
        row = self._repository.find(tenant, name, request.version)
        if row.yanked_at is not None:
            raise errors.Conflict(errors.PKG_YANKED, f"was yanked: {name} {row.version}")
        if (tenant, name) in self._running:
            other = self._running[tenant, name]
            raise errors.Conflict(
                errors.PKG_CONFLICT, f"a rollout runs already: {name} {other.version}"
            )
        now_ms = self._clock.wall_ms()
        rollout = Rollout(
            rollout_id=self._ids.new(),
            tenant=tenant,
            name=name,
            version=row.version,
            previous=self._repository.active(tenant, name),
            waves=request.waves,
            soak_seconds=request.soak_seconds,
            max_failed_percent=request.max_failed_percent,
            started_at=now_ms,
            updated_at=now_ms,
            started_by=by,
        )
        await self._put(rollout)
        self._view().watched[tenant, name, row.version] = [0, 0]
        self._audit(tenant, by, "pkg.rollout", f"{name} {row.version}")
        return rollout

    async def roll_back(self, tenant: str, name: str, by: str) -> str:
        """Go back to the version that was active before; returns it. A rollout that runs is ended.

        Raises:
            NotFound: there is no such package.
            Conflict: no version was active before.
        """
        running = self._running.get((tenant, name))
        if running is not None:
            now_ms = self._clock.wall_ms()
            ended = msgspec.structs.replace(
                running, state="rolled_back", updated_at=now_ms, error=f"rolled back by {by}"
            )
            await self._put(ended)
            self._audit(tenant, by, "pkg.rollback", f"{name} {running.version}")
            # Nothing had been activated yet: what is active stays so.
            return self._repository.active(tenant, name) or running.version
        pointer = self._repository.pointer(tenant, name)
        if pointer is None or pointer.previous is None:
            self._repository.versions(tenant, name)
            raise errors.Conflict(
                errors.PKG_NOT_FOUND, f"no version of it was active before: {name}"
            )
        await self._repository.activate(tenant, name, pointer.previous, by)
        self._audit(tenant, by, "pkg.rollback", f"{name} {pointer.previous}")
        return pointer.previous

    async def of(self, tenant: str, name: str) -> list[Rollout]:
        """All that are kept of a package, newest first."""
        rows = await self._store.rollouts()
        found = [
            msgspec.json.decode(row.body, type=Rollout)
            for row in rows
            if row.tenant == tenant and row.name == name
        ]
        return sorted(found, key=lambda one: one.started_at, reverse=True)

    async def _look_at(self, rollout: Rollout) -> None:
        view = self._view()
        key = (rollout.tenant, rollout.name, rollout.version)
        row = self._repository.find(*key)
        if row.yanked_at is not None:
            raise errors.Conflict(errors.PKG_YANKED, f"was yanked: {row.name} {row.version}")
        ended, failed = view.watched.setdefault(key, [0, 0])
        step = advance(
            rollout,
            self._clock.wall_ms(),
            _standings(view, rollout),
            Health(ended, failed),
        )
        if step.install_on:
            self._install(rollout, step.install_on)
        if step.activate:
            await self._repository.activate(
                rollout.tenant, rollout.name, rollout.version, rollout.started_by
            )
        if step.rollout is not rollout:
            await self._put(step.rollout)
        if step.rollout.state != "running":
            view.watched.pop(key, None)
            _log.info(
                "rollout of %s %s: %s %s",
                rollout.name,
                rollout.version,
                step.rollout.state,
                step.rollout.error,
            )

    async def _fail(self, rollout: Rollout, why: str) -> None:
        now_ms = self._clock.wall_ms()
        failed = msgspec.structs.replace(rollout, state="failed", updated_at=now_ms, error=why)
        await self._put(failed)
        self._view().watched.pop((rollout.tenant, rollout.name, rollout.version), None)

    def _install(self, rollout: Rollout, workers: tuple[str, ...]) -> None:
        writer = self._writer
        assert writer is not None

        def wish(view: View) -> None:
            for worker_id in workers:
                worker = view.workers.find(rollout.tenant, worker_id)
                if worker is not None:
                    why = rollout.rollout_id
                    wish_installed(view, worker, rollout.name, rollout.version, why)

        writer.act(lambda now, at: writer.engine.operate(wish, now, at))

    async def _put(self, rollout: Rollout) -> None:
        claim = self._claim
        if claim is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "not ready: nothing is served now")
        row = RolloutRow(
            rollout.tenant,
            rollout.rollout_id,
            rollout.name,
            rollout.state,
            msgspec.json.encode(rollout),
            rollout.updated_at,
        )
        await self._store.put_rollout(claim, row)
        if rollout.state == "running":
            self._running[rollout.tenant, rollout.name] = rollout
        else:
            self._running.pop((rollout.tenant, rollout.name), None)

    def _view(self) -> View:
        if self._writer is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "not ready: nothing is served now")
        return self._writer.engine.view

    def _audit(self, tenant: str, by: str, action: str, subject: str) -> None:
        writer = self._writer
        if writer is not None:
            writer.act(lambda now, at: writer.engine.audit(tenant, by, action, subject))


def _standings(view: View, rollout: Rollout) -> list[Standing]:
    """The workers that could take the version now: those that are away catch up when they are back."""
    return [
        _standing(view, worker, rollout)
        for worker in view.workers.of_tenant(rollout.tenant)
        if worker.is_reachable and (INSTALLS in worker.offer.features or _has(worker, rollout))
    ]


def _has(worker: WorkerEntry, rollout: Rollout) -> bool:
    return rollout.version in worker.offer.packages.get(rollout.name, ())


def _standing(view: View, worker: WorkerEntry, rollout: Rollout) -> Standing:
    wish = view.wishes.find((rollout.tenant, worker.worker_id, rollout.name, rollout.version))
    is_wished = wish is not None and wish.wish == "installed" and wish.is_open
    is_ours = wish is not None and wish.why == rollout.rollout_id
    failure = None
    if wish is not None and is_ours and wish.state == "failed" and wish.error is not None:
        failure = wish.error[1]
    return Standing(worker.worker_id, _has(worker, rollout), is_wished, failure)
