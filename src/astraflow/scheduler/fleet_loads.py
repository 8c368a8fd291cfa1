"""What the workers of a tenant do at this moment, for those who look at them."""

from __future__ import annotations

from typing import Final

from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.contract.events import WorkerLoad, WorkerLoads
from astraflow.scheduler.current import Current
from astraflow.scheduler.other_shards import OtherShards

LOAD_S: Final = 2.0
"""How often it is looked at, at the most."""


class FleetLoads:
    """Asks the engine, once for all followers of a tenant. Where another node serves the tenant, that node is asked."""

    def __init__(self, current: Current, others: OtherShards) -> None:
        self._current = current
        self._others = others
        self._seen: dict[str, tuple[float, dict[str, WorkerLoad]]] = {}

    def follow(self, tenant: str) -> FollowedLoads:
        return FollowedLoads(self, tenant)

    async def of(self, tenant: str, now: float) -> dict[str, WorkerLoad]:
        """By worker; up to `LOAD_S` old."""
        known = self._seen.get(tenant)
        if known is not None and now - known[0] < LOAD_S / 2:
            return known[1]
        if self._current.is_serving:
            found: dict[str, WorkerLoad] | None = self.ask(tenant)
        else:
            self._seen[tenant] = (now, {} if known is None else known[1])  # one of them asks
            found = await self._others.loads(tenant, HOME_LANE)
        if found is not None:
            self._seen[tenant] = (now, found)
        return self._seen[tenant][1]

    def ask(self, tenant: str) -> dict[str, WorkerLoad]:
        """What the engine here knows. Raises: Unavailable."""
        ask, found = self._current.engine.ask, {}
        for of_tenant, worker_id in self._current.writer.rows.workers:
            entry = ask.worker(tenant, worker_id) if of_tenant == tenant else None
            if entry is None or entry.session_id is None:
                continue
            measured = entry.measured
            found[worker_id] = WorkerLoad(
                worker_id=worker_id,
                inflight=entry.used,
                max_parallel=0 if entry.offer is None else entry.offer.max_parallel,
                cpu_pct=None if measured is None else measured.cpu_pct,
                mem_pct=None if measured is None else measured.mem_pct,
            )
        return found


class FollowedLoads:
    """What one follower was told."""

    def __init__(self, loads: FleetLoads, tenant: str) -> None:
        self._loads = loads
        self._tenant = tenant
        self._told: dict[str, WorkerLoad] = {}

    async def take(self, now: float) -> WorkerLoads | None:
        """What has changed since the last time; None: nothing has."""
        current = await self._loads.of(self._tenant, now)
        changed = [one for worker_id, one in current.items() if self._told.get(worker_id) != one]
        self._told = current
        return WorkerLoads(workers=changed) if changed else None
