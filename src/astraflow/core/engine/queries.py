"""Queries: what shells ask an engine about. They change nothing; what they show may not be durable yet.

A shell that gives something of it out waits for the writer's barrier first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from astraflow.core.dispatch.leases import AttemptLease
from astraflow.core.engine.packages import wanted_state
from astraflow.core.engine.view import View
from astraflow.core.engine.wait_reasons import Reason, Reasons
from astraflow.core.fleet.installs import InstallIntent, InstallProblem
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.fleet.resources import ResourceRecord
from astraflow.core.fleet.tenants import TenantRecord
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import RunId, TaskId, is_pool
from astraflow.core.protocol.v1.frames import LeasedAttempt
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import Running, Stopping


class TenantUsage(NamedTuple):
    """What a tenant uses."""

    runs: int
    tasks: int
    workers: int
    disk_bytes: int
    memory_bytes: int


class Queries:
    """One engine, as shells see it."""

    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        self._view = view

    def may_write(self, facts_version: int) -> bool:
        """Whether facts of this version are written."""
        return self._view.may_write(facts_version)

    # -- lanes ------------------------------------------------------------------------------

    def waiting(self, tenant: str) -> int:
        """How many tasks of a tenant wait in this lane."""
        return self._view.queue.waiting_of(tenant)[0]

    def wanted(self) -> list[tuple[str, str, str]]:
        """The packages (tenant, name, version) that the home of their tenants is to have installed."""
        return list(self._view.lanes.wanted)

    def wanted_state(
        self, tenant: str, name: str, version: str
    ) -> Literal["installed", "installing"] | InstallProblem | None:
        """How far a package is that another lane wants."""
        return wanted_state(self._view, tenant, name, version)

    def has_packages(self, tenant: str, packages: Iterable[tuple[str, str]]) -> bool:
        """Whether, of each of these versions, a worker has a session here and has it."""
        workers = self._view.workers
        return all(
            any(
                one.session_id is not None and one.has_version(name, version)
                for one in workers.offering(tenant, name)
            )
            for name, version in packages
        )

    # -- runs -------------------------------------------------------------------------------

    def run(self, run_id: RunId) -> RunRecord | None:
        """An active run."""
        return self._view.runs.get(run_id)

    def runs_of(self, tenant: str) -> list[RunRecord]:
        """The active runs of a tenant."""
        return [run for run in self._view.runs if run.tenant == tenant]

    def reasons(self, run: RunRecord, tasks: list[int]) -> dict[int, Reason]:
        """Why tasks of an active run wait, for those that do."""
        reasons = Reasons(self._view)
        found = ((task, reasons.of(run, task)) for task in tasks)
        return {task: reason for task, reason in found if reason is not None}

    def unacked(self, run: RunRecord) -> list[tuple[int, float]]:
        """The tasks of an active run whose dispatch no worker has acknowledged, and until when one may (monotonic)."""
        timeout_s = self._view.settings.dispatch_ack_timeout_s
        return [
            (
                lease.task,
                lease.until if is_pool(lease.worker_id) else lease.until - lease.ttl_s + timeout_s,
            )
            for lease in self._view.leases
            if lease.run is run and not lease.is_taken
        ]

    def may_have_forgotten(self, tenant: str, key: str, now: float) -> bool:
        """Whether an idempotency key may have been used although the engine does not know it."""
        return self._view.submissions.may_be_missing(tenant, key, now)

    def knows_key(self, tenant: str, key: str, now: float) -> bool:
        """Whether an idempotency key has made a run here."""
        return self._view.submissions.knows(tenant, key, now)

    # -- tenants ----------------------------------------------------------------------------

    def tenants(self) -> list[TenantRecord]:
        """Those that somebody has configured."""
        return list(self._view.tenants)

    def tenant(self, tenant: str) -> TenantRecord | None:
        return self._view.tenants.find(tenant)

    def usage(self, tenant: str) -> TenantUsage:
        """What a tenant uses of its quotas."""
        view = self._view
        known = view.workers.of_tenant(tenant)
        online = sum(1 for one in known if one.session_id is not None)
        return TenantUsage(*view.runs.of_tenant(tenant), online, *view.resources.held_bytes(tenant))

    # -- workers ----------------------------------------------------------------------------

    def worker(self, tenant: str, worker_id: str) -> WorkerEntry | None:
        return self._view.workers.find(tenant, worker_id)

    def attempts(self, tenant: str, worker_id: str) -> list[tuple[AttemptLease, RunRecord]]:
        """The attempts that a worker has, each with its run."""
        leases = self._view.leases.of_worker(tenant, worker_id)
        return [(lease, lease.run) for lease in leases]

    def installs(self, tenant: str, worker_id: str) -> list[InstallIntent]:
        """What is intended of a worker about packages."""
        return self._view.installs.of_worker(tenant, worker_id)

    def pools(self, tenant: str) -> list[WorkerEntry]:
        """The HTTP pools of a tenant."""
        known = self._view.workers.of_tenant(tenant)
        return [one for one in known if one.pool is not None]

    def pool_of(self, tenant: str, task_id: TaskId, attempt: int) -> PoolRecord | None:
        """The HTTP pool that an attempt is under way in."""
        lease = self._view.leases.find(task_id, attempt)
        worker = None if lease is None else self._view.workers.find(tenant, lease.worker_id)
        return None if worker is None else worker.pool

    def held_by(self, tenant: str, worker_id: str) -> list[LeasedAttempt]:
        """The attempts that are leased to a worker and that it has acknowledged."""
        held: list[LeasedAttempt] = []
        for lease in self._view.leases.of_worker(tenant, worker_id):
            task = lease.run.tasks[lease.task]
            if isinstance(task.state, Running | Stopping):
                has_timeout = task.node.timeout_s is not None
                held.append(
                    LeasedAttempt(lease.run.run_id, lease.task_id, lease.attempt, has_timeout)
                )
        return held

    # -- resources ----------------------------------------------------------------------------

    def resources_of_type(self, kind: str) -> list[ResourceRecord]:
        """The resources of one type, of all tenants."""
        return [record for record in self._view.resources if record.type == kind]

    # -- numbers ----------------------------------------------------------------------------

    def queue_depth(self) -> dict[tuple[str, str], int]:
        """Tasks that wait for a place, by tenant and package. What is offered has a depth, too: nobody waits for it."""
        depths = self._view.queue.depths.by_bundle()
        return {**dict.fromkeys(self._view.workers.offered, 0), **depths}

    def slots_free(self) -> dict[tuple[str, str], int]:
        """Free slots of workers that get new tasks, by tenant and package. What is waited for has some, too: none."""
        depths = self._view.queue.depths.by_bundle()
        return {**dict.fromkeys(depths, 0), **self._view.workers.slots_free()}

    def active_tasks(self) -> int:
        return self._view.runs.tasks

    def workers(self) -> dict[tuple[str, str], int]:
        """Workers, by tenant and status."""
        counts: dict[tuple[str, str], int] = {}
        for worker in self._view.workers:
            key = (worker.tenant, worker.shown_status)
            counts[key] = counts.get(key, 0) + 1
        return counts

    def sessions(self) -> dict[str, int]:
        """Workers with a session, by tenant."""
        counts: dict[str, int] = {}
        for worker in self._view.workers:
            if worker.session_id is not None:
                counts[worker.tenant] = counts.get(worker.tenant, 0) + 1
        return counts
