"""HTTP worker pools as the API asks for them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.pools import HttpPool, HttpPoolSettings, OfferedVersion
from astraflow.core.contract.words import DispatcherKind
from astraflow.core.engine.commands import ConfigurePool, RemovePool
from astraflow.core.fleet.pools import START_TIMEOUT_S, PoolPackage, PoolRecord
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import POOL_PREFIX
from astraflow.core.timestamps import iso
from astraflow.scheduler.dispatchers.dispatcher import Dispatcher
from astraflow.scheduler.dispatchers.http import check_http_url
from astraflow.scheduler.sealing import Sealer

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current

MAX_POOLS: Final = 1_000
"""In one tenant: each is in memory."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class Pools:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        current: Current,
        dispatchers: Mapping[DispatcherKind, Dispatcher],
        sealer: Sealer,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._current = current
        self._dispatchers = dispatchers
        self._sealer = sealer
        self._clock = clock
        self._base_url = base_url

    def page(self, tenant: str, after: str, count: int) -> tuple[list[HttpPool], bool]:
        """The next pools by name, and whether there are more."""
        known = self._current.engine.ask.pools(tenant)
        rest = [one for one in known if one.worker_id > POOL_PREFIX + after]
        found = heapq.nsmallest(count + 1, rest, key=lambda one: one.worker_id)
        return [self._view(one) for one in found[:count]], len(found) > count

    def get(self, tenant: str, name: str) -> HttpPool:
        """Raises: NotFound."""
        return self._view(self._find(tenant, name))

    async def put(self, tenant: str, name: str, settings: HttpPoolSettings, by: str) -> HttpPool:
        """Make a pool or replace its settings; it is durable when this returns.

        Raises: Refused, with a pointer to the field.
        """
        if _NAME.fullmatch(name) is None:
            message = "the name of a pool is 1 to 64 of A-Z a-z 0-9 . _ -"
            raise errors.Refused(errors.POOL_INVALID, message)
        ask = self._current.engine.ask
        known = ask.worker(tenant, POOL_PREFIX + name)
        if known is None and len(ask.pools(tenant)) >= MAX_POOLS:
            message = f"a tenant has at most {MAX_POOLS} pools"
            raise errors.Refused(errors.POOL_INVALID, message)
        pool = self._record(tenant, name, settings, by, None if known is None else known.pool)
        self._dispatchers[pool.dispatcher].check(pool)
        if pool.callback_url:
            check_http_url(pool.callback_url, "/callbackUrl")
        elif not self._base_url:
            message = (
                "its workers could not report: set callbackUrl, or public_url of the scheduler"
            )
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/callbackUrl")
        self._current.execute(ConfigurePool(tenant=tenant, by=by, subject=name, pool=pool))
        await self._current.writer.barrier()
        return self.get(tenant, name)

    async def remove(self, tenant: str, name: str, by: str) -> None:
        """Raises: NotFound; Conflict, while attempts are under way in it."""
        self._current.execute(RemovePool(tenant=tenant, by=by, subject=name, name=name))
        await self._current.writer.barrier()

    def _find(self, tenant: str, name: str) -> WorkerEntry:
        entry = self._current.engine.ask.worker(tenant, POOL_PREFIX + name)
        if entry is None or entry.pool is None:
            raise errors.NotFound(errors.POOL_NOT_FOUND, f"no such pool: {name[:64]}")
        return entry

    def _record(
        self, tenant: str, name: str, given: HttpPoolSettings, by: str, known: PoolRecord | None
    ) -> PoolRecord:
        now = self._clock.wall_ms()
        if given.secret is not None:
            sealed = self._sealer.seal(given.secret, tenant, name)
        else:
            kept = b"" if known is None else known.sealed_secret
            sealed = self._sealer.reseal(kept, tenant, name) if kept else kept
        start_s = given.start_timeout_seconds
        return PoolRecord(
            tenant=tenant,
            name=name,
            dispatcher=given.dispatcher,
            url=given.url,
            packages=tuple(PoolPackage(one.name, one.version) for one in given.packages),
            labels=given.labels,
            max_parallel=given.max_parallel,
            per_node_limits=given.per_node_limits,
            start_timeout_s=START_TIMEOUT_S[given.dispatcher] if start_s is None else start_s,
            heartbeat_interval_s=given.heartbeat_interval_seconds,
            heartbeat_timeout_s=given.heartbeat_timeout_seconds,
            cancel_grace_s=given.cancel_grace_seconds,
            token_ttl_s=given.token_ttl_seconds,
            workspace=given.workspace,
            callback_url=given.callback_url.rstrip("/"),
            options=given.options,
            sealed_secret=sealed,
            is_paused=given.is_paused,
            created_at=now if known is None else known.created_at,
            updated_at=now,
            updated_by=by,
        )

    def _view(self, entry: WorkerEntry) -> HttpPool:
        pool = entry.pool
        assert pool is not None
        return HttpPool(
            name=pool.name,
            worker_id=pool.worker_id,
            dispatcher=pool.dispatcher,
            url=pool.url,
            packages=[OfferedVersion(name=one.name, version=one.version) for one in pool.packages],
            labels=dict(entry.offer.labels),
            max_parallel=pool.max_parallel,
            per_node_limits=dict(pool.per_node_limits),
            inflight=entry.used,
            start_timeout_seconds=pool.start_timeout_s,
            heartbeat_interval_seconds=pool.heartbeat_interval_s,
            heartbeat_timeout_seconds=pool.heartbeat_timeout_s,
            cancel_grace_seconds=pool.cancel_grace_s,
            token_ttl_seconds=pool.token_ttl_s,
            workspace=pool.workspace,
            callback_url=pool.callback_url or self._base_url,
            options=dict(pool.options),
            has_secret=bool(pool.sealed_secret),
            is_paused=pool.is_paused,
            updated_at=iso(pool.updated_at),
            updated_by=pool.updated_by,
        )
