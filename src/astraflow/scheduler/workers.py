"""Workers as the API asks for them: lists, and commands."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from astraflow.core import errors
from astraflow.core.contract.words import WorkerStatus
from astraflow.core.contract.workers import (
    Drain,
    InstalledPackage,
    InstallPackage,
    Rebind,
    Undrain,
    Worker,
    WorkerAmounts,
    WorkerAttempt,
    WorkerCommand,
    WorkerDetail,
    WorkerHandler,
)
from astraflow.core.dispatch.leases import AttemptLease
from astraflow.core.engine.commands import (
    DrainWorker,
    RebindWorker,
    RequestInstall,
    RequestRemoval,
    UndrainWorker,
)
from astraflow.core.engine.commands import WorkerCommand as EngineCommand
from astraflow.core.fleet.workers import DrainIntent
from astraflow.core.ids import IdSource
from astraflow.core.runs.run import RunRecord
from astraflow.core.timestamps import iso
from astraflow.core.workflow.amounts import Amounts
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.current import Current
from astraflow.store.rows import WorkerRow

_packages: Final = msgspec.json.Decoder(list[InstalledPackage])


class Workers:
    """Use from the scheduler's loop."""

    def __init__(self, current: Current, catalogs: Catalogs, ids: IdSource) -> None:
        self._current = current
        self._catalogs = catalogs
        self._ids = ids

    def of_tenant(self, tenant: str) -> list[Worker]:
        rows = self._current.writer.rows.workers.values()
        return [self._view(row) for row in rows if row.tenant == tenant]

    def get(self, tenant: str, worker_id: str) -> WorkerDetail:
        """Raises: NotFound."""
        row = self._current.writer.rows.workers.get((tenant, worker_id))
        if row is None:
            raise errors.NotFound(errors.WORKER_NOT_FOUND, f"no such worker: {worker_id[:64]}")
        return self._detail(row)

    def installed(self, tenant: str) -> set[tuple[str, str]]:
        """Names and versions of the packages that connected workers have."""
        return {
            (one.name, one.version)
            for row in self._current.writer.rows.workers.values()
            if row.tenant == tenant and self._is_connected(row)
            for one in _packages.decode(row.packages)
            if one.status == "installed"
        }

    def _is_connected(self, row: WorkerRow) -> bool:
        entry = self._current.engine.ask.worker(row.tenant, row.worker_id)
        return entry is not None and entry.session_id is not None

    async def command(self, tenant: str, worker_id: str, command: WorkerCommand, by: str) -> str:
        """Order something of a worker; returns the id of the order once it is durable.

        Raises:
            NotFound: no such worker, or no such package is published.
        """
        order_id = self._ids.new()
        self._current.execute(_engine_command(command, tenant, worker_id, by, order_id))
        await self._current.writer.barrier()
        return order_id

    def _packages_of(self, row: WorkerRow) -> list[InstalledPackage]:
        """What it has, and what is on its way to it or did not get there."""
        packages = _packages.decode(row.packages)
        there = {(one.name, one.version) for one in packages}
        for intent in self._current.engine.ask.installs(row.tenant, row.worker_id):
            is_coming = intent.target == "installed" and intent.state != "installed"
            if is_coming and (intent.name, intent.version) not in there:
                packages.append(
                    InstalledPackage(name=intent.name, version=intent.version, status=intent.state)
                )
        return packages

    def _detail(self, row: WorkerRow) -> WorkerDetail:
        ask = self._current.engine.ask
        fields = self._fields(row)
        entry = ask.worker(row.tenant, row.worker_id)
        offer = None if entry is None else entry.offer
        measured = None if entry is None or entry.session_id is None else entry.measured
        return WorkerDetail(
            **fields,
            incarnation=row.incarnation,
            session_id=None if entry is None else entry.session_id,
            runtimes=[] if offer is None else sorted(offer.runtimes),
            features=[] if offer is None else sorted(offer.features),
            per_node_limits={} if offer is None else dict(offer.per_node_limits),
            capacity=None if offer is None else _amounts(offer.capacity),
            reserved=None if entry is None else _amounts(entry.reserved),
            cpu_pct=None if measured is None else measured.cpu_pct,
            mem_pct=None if measured is None else measured.mem_pct,
            disk_pct=None if measured is None else measured.disk_pct,
            latency_ms=None if measured is None else measured.latency_ms,
            attempts=[
                _attempt(lease, run) for lease, run in ask.attempts(row.tenant, row.worker_id)
            ],
            handlers=self._handlers_of(row.tenant, fields["packages"]),
        )

    def _handlers_of(self, tenant: str, packages: list[InstalledPackage]) -> list[WorkerHandler]:
        installed = {(one.name, one.version) for one in packages if one.status == "installed"}
        manifests = (known.manifest for known in self._catalogs.known(tenant))
        return [
            WorkerHandler(
                node_type=node.type,
                package=manifest.name,
                version=manifest.version,
                runtime=next(iter(node.runtimes), None),
            )
            for manifest in manifests
            if (manifest.name, manifest.version) in installed
            for node in manifest.body.nodes
            if node.executed_by == "worker"
        ]

    def _view(self, row: WorkerRow) -> Worker:
        return Worker(**self._fields(row))

    def _fields(self, row: WorkerRow) -> dict[str, Any]:
        entry = self._current.engine.ask.worker(row.tenant, row.worker_id)
        seen_at = row.seen_at if entry is None else max(entry.heard_at, row.seen_at)
        return dict(
            worker_id=row.worker_id,
            name=row.name,
            tenant=row.tenant,
            status=cast("WorkerStatus", row.status if entry is None else entry.shown_status),
            version=row.version,
            hostname=row.hostname,
            max_parallel=row.max_parallel,
            inflight=0 if entry is None else entry.used,
            packages=self._packages_of(row),
            labels=msgspec.json.decode(row.labels),
            last_heartbeat_at=iso(seen_at) if seen_at else None,
            resources=None
            if entry is None
            else {_camel(name): value for name, value in entry.resources.items()} or None,
            inventory_drift=entry is not None and entry.has_drifted,
            drain_requested=entry is not None and entry.drain is not None,
        )


def _attempt(lease: AttemptLease, run: RunRecord) -> WorkerAttempt:
    node = run.tasks[lease.task].node
    return WorkerAttempt(
        run_id=lease.run.run_id,
        task_id=lease.task_id,
        node_id=node.node_id,
        node_type=node.type,
        attempt=lease.attempt,
        acknowledged=lease.is_taken,
    )


def _amounts(amounts: Amounts | None) -> WorkerAmounts | None:
    if amounts is None:
        return None
    return WorkerAmounts(cpu=amounts.cpu, memory_bytes=amounts.memory_bytes, gpu=amounts.gpu)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _engine_command(
    command: WorkerCommand, tenant: str, worker_id: str, by: str, order_id: str
) -> EngineCommand:
    if isinstance(command, Drain):
        deadline_s = None if command.deadline_ms is None else command.deadline_ms / 1000
        intent = DrainIntent(command.reason or "", deadline_s)
        return DrainWorker(
            tenant=tenant, worker_id=worker_id, by=by, subject=order_id, intent=intent
        )
    if isinstance(command, Undrain):
        return UndrainWorker(tenant=tenant, worker_id=worker_id, by=by, subject=order_id)
    if isinstance(command, Rebind):
        return RebindWorker(tenant=tenant, worker_id=worker_id, by=by, subject=order_id)
    kind = RequestInstall if isinstance(command, InstallPackage) else RequestRemoval
    return kind(
        tenant=tenant,
        worker_id=worker_id,
        by=by,
        subject=order_id,
        name=command.name,
        version=command.version,
    )
