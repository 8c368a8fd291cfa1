"""The rows and events of what workers keep: resources, install intents, rollouts, affinity keys. Both ways."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.contract.base import RestObject
from astraflow.core.contract.events import (
    ArtifactRemoved,
    PackageChange,
    PackageReport,
    RemovedArtifact,
    ResourceReport,
    RolloutReport,
)
from astraflow.core.engine.batch import FleetChange
from astraflow.core.fleet.affinity import AffinityAcquired, AffinityFact, AffinityReleased
from astraflow.core.fleet.installs import (
    InstallFact,
    InstallIntent,
    InstallProblem,
    PackageReported,
)
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.fleet.resources import GONE, ResourceFact, ResourceKey, ResourceRecord
from astraflow.core.fleet.rollouts import RolloutFact, RolloutRecord
from astraflow.core.fleet.tenants import TenantFact, TenantPolicy, TenantRecord
from astraflow.core.fleet.versions import ActiveVersionRecord, VersionActivated
from astraflow.core.fleet.workers import PoolConfigured, PoolRemoved
from astraflow.core.ids import POOL_PREFIX
from astraflow.core.timestamps import iso
from astraflow.scheduler.shard_lanes import ShardLanes
from astraflow.store.packages import PACKAGES_CHANGE
from astraflow.store.rows import (
    ActiveRow,
    AffinityRow,
    Changes,
    InstallIntentRow,
    PoolRow,
    ResourceRow,
    RolloutRow,
    SiteRow,
    TenantRow,
)

Told = tuple[str, int, str, RestObject]
"""An event for a tenant's stream: tenant, time, type, body."""


def write_fleet(changes: Changes, fleet: list[FleetChange], lanes: ShardLanes) -> Iterator[Told]:
    """Put the rows of a batch into `changes`; yields the events. Each row once, as it is at the end of the batch: a
    statement must not write a row twice."""
    resources: dict[ResourceKey, ResourceRecord] = {}
    last: dict[object, FleetChange] = {}
    for change in fleet:
        fact = change.fact
        if isinstance(fact, PackageReported):
            yield fact.tenant, fact.at, *_told_package(fact)
        elif isinstance(fact, ResourceFact):
            assert isinstance(change.after, ResourceRecord)
            resources[fact.key] = change.after
        elif isinstance(fact, InstallFact):
            last["install", fact.key] = change
        elif isinstance(fact, RolloutFact):
            assert isinstance(change.after, RolloutRecord)
            last["rollout", change.after.rollout_id] = change
        elif isinstance(fact, VersionActivated):
            last["active", fact.tenant, fact.name] = change
        elif isinstance(fact, PoolConfigured | PoolRemoved):
            last["pool", fact.tenant, fact.worker_id] = change
        elif isinstance(fact, TenantFact):
            last["tenant", fact.tenant] = change
        elif isinstance(fact, AffinityAcquired | AffinityReleased):
            last["affinity", fact.tenant, fact.key] = change
    at = fleet[-1].fact.at
    for change in last.values():
        _write(changes, change)
        if isinstance(change.after, RolloutRecord):
            yield change.after.tenant, at, *_told_rollout(change.after)
        elif isinstance(change.after, ActiveVersionRecord):
            yield change.after.tenant, at, "package.activated", _told_active(change.after)
    for record in resources.values():
        lane = lanes.lane_of(record.tenant) or HOME_LANE
        changes.resources.append(resource_row(record, lane))
        for kind, body in _told_resource(record):
            yield record.tenant, at, kind, body


def _write(changes: Changes, change: FleetChange) -> None:
    fact, after = change.fact, change.after
    if isinstance(fact, InstallFact):
        if after is None:
            changes.intents_gone.append(fact.key)
        else:
            assert isinstance(after, InstallIntent)
            changes.intents.append(install_row(after))
    elif isinstance(fact, PoolConfigured):
        changes.pools.append(pool_row(fact.pool))
    elif isinstance(fact, PoolRemoved):
        changes.pools_gone.append((fact.tenant, fact.worker_id.removeprefix(POOL_PREFIX)))
    elif isinstance(after, TenantRecord):
        changes.tenants.append(tenant_row(after))
    elif isinstance(after, RolloutRecord):
        changes.rollouts.append(rollout_row(after))
    elif isinstance(after, ActiveVersionRecord):
        changes.active_versions.append(ActiveRow(*msgspec.structs.astuple(after)))
        mark = f"{after.tenant} {after.name} {after.version} {after.updated_at}"
        changes.site.append(SiteRow(PACKAGES_CHANGE, mark))
    elif isinstance(fact, AffinityAcquired):
        row = AffinityRow(fact.tenant, fact.key, fact.worker_id, fact.acquired_at, fact.expires_at)
        changes.affinities.append(row)
    else:
        assert isinstance(fact, AffinityFact)
        changes.affinities_gone.append((fact.tenant, fact.key))


def tenant_row(record: TenantRecord) -> TenantRow:
    return TenantRow(
        record.tenant,
        record.is_suspended,
        msgspec.json.encode(record.policy),
        record.created_at,
        record.created_by,
        record.updated_at,
    )


def tenant_of(row: TenantRow) -> TenantRecord:
    return TenantRecord(
        tenant=row.tenant,
        is_suspended=row.is_suspended,
        policy=msgspec.json.decode(row.policy, type=TenantPolicy),
        created_at=row.created_at,
        created_by=row.created_by,
        updated_at=row.updated_at,
    )


def pool_row(pool: PoolRecord) -> PoolRow:
    return PoolRow(pool.tenant, pool.name, msgspec.json.encode(pool), pool.updated_at)


def pool_of(row: PoolRow) -> PoolRecord:
    return msgspec.json.decode(row.body, type=PoolRecord)


def resource_row(record: ResourceRecord, lane: int = HOME_LANE) -> ResourceRow:
    return ResourceRow(**msgspec.structs.asdict(record), lane=lane)


def resource_of(row: ResourceRow) -> ResourceRecord:
    fields = msgspec.structs.asdict(row)
    del fields["lane"]
    return ResourceRecord(**fields)


def install_row(intent: InstallIntent) -> InstallIntentRow:
    return InstallIntentRow(
        tenant=intent.tenant,
        worker_id=intent.worker_id,
        name=intent.name,
        version=intent.version,
        intent=intent.target,
        state=intent.state,
        why=intent.why,
        tries=intent.tries,
        error=None if intent.error is None else msgspec.json.encode(intent.error),
        updated_at=intent.updated_at,
    )


def install_of(row: InstallIntentRow) -> InstallIntent:
    error = None
    if row.error is not None:
        error = msgspec.json.decode(row.error, type=InstallProblem)
    return InstallIntent(
        tenant=row.tenant,
        worker_id=row.worker_id,
        name=row.name,
        version=row.version,
        target=row.intent,
        state=row.state,
        why=row.why,
        tries=row.tries,
        error=error,
        updated_at=row.updated_at,
    )


def rollout_row(rollout: RolloutRecord) -> RolloutRow:
    return RolloutRow(
        rollout.tenant,
        rollout.rollout_id,
        rollout.name,
        rollout.state,
        msgspec.json.encode(rollout),
        rollout.updated_at,
    )


def _told_resource(record: ResourceRecord) -> Iterator[tuple[str, RestObject]]:
    body = ResourceReport(
        resource_id=record.resource_id,
        worker_id=record.worker_id,
        type=record.type,
        state=record.state,
        run_id=record.run_id,
        node_id=record.node_id,
        size_bytes=record.size_bytes,
        expires_at=iso(record.expires_at) if record.expires_at is not None else None,
    )
    yield f"resource.{record.state}", body
    if record.state in GONE and record.is_artifact:
        artifact = RemovedArtifact(
            resource_id=record.resource_id,
            worker_id=record.worker_id,
            type=record.type,
            size_bytes=record.size_bytes,
        )
        removed = ArtifactRemoved(run_id=record.run_id, node_id=record.node_id, artifact=artifact)
        yield "artifact.removed", removed


def _told_package(fact: PackageReported) -> tuple[str, RestObject]:
    body = PackageReport(
        worker_id=fact.worker_id,
        name=fact.name,
        version=fact.version,
        status=fact.status,
        details=msgspec.Raw(fact.details),
        progress=fact.progress,
    )
    return f"package.{fact.status}", body


def _told_rollout(rollout: RolloutRecord) -> tuple[str, RestObject]:
    body = RolloutReport(
        rollout_id=rollout.rollout_id,
        name=rollout.name,
        version=rollout.version,
        state=rollout.state,
        wave=rollout.wave,
        waves=list(rollout.waves),
        error=rollout.error or None,
    )
    return f"rollout.{rollout.state}", body


def _told_active(active: ActiveVersionRecord) -> RestObject:
    return PackageChange(name=active.name, version=active.version, by=active.updated_by)
