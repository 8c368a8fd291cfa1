"""The half of the store in memory that is not about runs: packages, wishes, resources, affinities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.store import retention as pieces
from astraflow.store.content import check_row, check_values, other_digest
from astraflow.store.rows import (
    ENDED_RESOURCES,
    ENDED_ROLLOUTS,
    ENDED_WISHES,
    ActiveRow,
    AffinityRow,
    PackageRow,
    ResourceRow,
    RolloutRow,
    WishRow,
    WorkerRow,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from astraflow.store.rows import Changes
    from astraflow.store.store import Claim

__all__ = ["MemoryHoldings"]


class MemoryHoldings:
    """What `MemoryStore` answers about them."""

    def __init__(self) -> None:
        self._workers: dict[tuple[str, str], WorkerRow] = {}
        self._packages: dict[tuple[str, str, str], PackageRow] = {}
        self._active: dict[tuple[str, str], ActiveRow] = {}
        self._rollouts: dict[tuple[str, str], RolloutRow] = {}
        self._wishes: dict[tuple[str, str, str, str], WishRow] = {}
        self._resources: dict[tuple[str, str, str], ResourceRow] = {}
        self._affinities: dict[tuple[str, str], AffinityRow] = {}
        self._site: dict[str, str] = {}

    def _fence(self, claim: Claim) -> None:
        raise NotImplementedError

    # -- writing ----------------------------------------------------------------------------

    def _write_holdings(self, changes: Changes) -> None:
        kept = {(one.tenant, one.worker_id, one.resource_id) for one in changes.resources}
        for gone in changes.resources_gone:
            if gone not in kept:
                self._resources.pop(gone, None)
        for resource in changes.resources:
            key = (resource.tenant, resource.worker_id, resource.resource_id)
            stored = self._resources.get(key)
            if resource.blob is None and stored is not None:
                resource = msgspec.structs.replace(resource, blob=stored.blob)
            self._resources[key] = resource
        for lost in changes.affinities_gone:
            self._affinities.pop(lost, None)
        for affinity in changes.affinities:
            self._affinities[affinity.tenant, affinity.key] = affinity
        for done in changes.wishes_gone:
            self._wishes.pop(done, None)
        for wish in changes.wishes:
            self._wishes[wish.tenant, wish.worker_id, wish.name, wish.version] = wish

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        check_row(row)
        self._fence(claim)
        stored = self._packages.setdefault((row.tenant, row.name, row.version), row)
        if stored is row:
            return True
        if stored.sha256 != row.sha256:
            raise other_digest(row, stored.sha256)
        return False

    async def yank_package(
        self, claim: Claim, tenant: str, name: str, version: str, at: int | None, reason: str = ""
    ) -> bool:
        check_values(tenant, name, version, at, reason)
        self._fence(claim)
        stored = self._packages.get((tenant, name, version))
        if stored is None:
            return False
        self._packages[tenant, name, version] = msgspec.structs.replace(
            stored, yanked_at=at, yanked_reason=reason
        )
        return True

    async def put_active(self, claim: Claim, row: ActiveRow) -> None:
        check_row(row)
        self._fence(claim)
        self._active[row.tenant, row.name] = row

    async def put_rollout(self, claim: Claim, row: RolloutRow) -> None:
        check_row(row)
        self._fence(claim)
        self._rollouts[row.tenant, row.rollout_id] = row

    async def set_resource_blob(
        self, claim: Claim, key: tuple[str, str, str], blob: str | None
    ) -> bool:
        check_values(*key, blob)
        self._fence(claim)
        stored = self._resources.get(key)
        if stored is None:
            return False
        self._resources[key] = msgspec.structs.replace(stored, blob=blob)
        return True

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        check_values(name, value)
        self._fence(claim)
        self._site[name] = value

    def _remove_holdings(self, now_ms: int) -> None:
        for key, resource in list(self._resources.items()):
            keep_ms = pieces.RESOURCE_MS if resource.blob is None else pieces.COPY_MS
            ended_at = resource.created_at if resource.expires_at is None else resource.expires_at
            if resource.state in ENDED_RESOURCES and ended_at < now_ms - keep_ms:
                del self._resources[key]
        for place, wish in list(self._wishes.items()):
            is_over = wish.state in ENDED_WISHES and wish.updated_at < now_ms - pieces.WISH_MS
            if is_over and (wish.tenant, wish.worker_id) not in self._workers:
                del self._wishes[place]
        for name, rollout in list(self._rollouts.items()):
            is_old = rollout.updated_at < now_ms - pieces.ROLLOUT_MS
            if is_old and rollout.state in ENDED_ROLLOUTS:
                del self._rollouts[name]

    # -- reading ----------------------------------------------------------------------------

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        check_values(tenant)
        rows = [self._packages[key] for key in sorted(self._packages)]
        return [row for row in rows if tenant is None or row.tenant == tenant]

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None:
        check_values(tenant, name, version)
        return self._packages.get((tenant, name, version))

    async def find_site(self, name: str) -> str | None:
        check_values(name)
        return self._site.get(name)

    async def active_versions(self) -> list[ActiveRow]:
        return [self._active[key] for key in sorted(self._active)]

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        found = [row for row in self._rollouts.values() if states is None or row.state in states]
        return sorted(found, key=lambda row: (row.updated_at, row.tenant, row.rollout_id))

    async def find_rollout(self, tenant: str, rollout_id: str) -> RolloutRow | None:
        check_values(tenant, rollout_id)
        return self._rollouts.get((tenant, rollout_id))

    async def wishes(self) -> list[WishRow]:
        return [self._wishes[key] for key in sorted(self._wishes)]

    async def resources(
        self,
        tenant: str | None = None,
        *,
        limit: int | None = None,
        before: tuple[int, str, str] | None = None,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        check_values(tenant, limit, before, run_id, worker_id, type, state)
        wanted = {
            "tenant": tenant,
            "run_id": run_id,
            "worker_id": worker_id,
            "type": type,
            "state": state,
        }
        found = [
            row
            for row in self._resources.values()
            if all(value is None or getattr(row, name) == value for name, value in wanted.items())
            and (before is None or (row.created_at, row.worker_id, row.resource_id) < before)
        ]
        found.sort(
            key=lambda row: (row.tenant, row.created_at, row.worker_id, row.resource_id),
            reverse=True,
        )
        return found if limit is None else found[:limit]

    async def find_resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> list[ResourceRow]:
        check_values(tenant, resource_id, worker_id)
        return [
            self._resources[key]
            for key in sorted(self._resources)
            if key[0] == tenant
            and key[2] == resource_id
            and (worker_id is None or key[1] == worker_id)
        ]

    async def blobs_of_resources(self) -> set[str]:
        return {row.blob for row in self._resources.values() if row.blob is not None}

    async def affinities(self) -> list[AffinityRow]:
        return [self._affinities[key] for key in sorted(self._affinities)]
