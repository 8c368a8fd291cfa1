"""A store in plain dictionaries, for tests and simulation: the same promises, without a disk.

What it holds lives as long as the object: `close` and `open` again is a restart after which everything is there. It has
no threads, and answers without waiting, so that a simulated world stays repeatable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store import retention as pieces
from astraflow.store.content import (
    check_changes,
    check_row,
    check_values,
    other_digest,
    refused,
    stale_workflow,
)
from astraflow.store.memory_tables import MemoryTables
from astraflow.store.retention import Finished, Span, beyond, cutoff_ms, pick
from astraflow.store.rows import (
    ENDED_INTENTS,
    ENDED_RESOURCES,
    ENDED_ROLLOUTS,
    ActiveRow,
    AffinityRow,
    AuditRow,
    FactSegment,
    InstallIntentRow,
    PackageRow,
    PlanRow,
    ResourceRow,
    RolloutRow,
    Row,
    RunRow,
    SiteRow,
    Submission,
    TenantEvent,
    WorkerRow,
    WorkflowRow,
)
from astraflow.store.statements import load_migrations
from astraflow.store.store import Claim, Swept, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from astraflow.clock import Clock
    from astraflow.core.runs.facts import RunStatus
    from astraflow.store.rows import Changes
    from astraflow.store.store import Retention

__all__ = ["MemoryStore"]

R = TypeVar("R", bound=Row)
SCHEMA_VERSION = len(load_migrations("sqlite"))
"""Of the rows it holds: that of the databases."""


class MemoryStore:
    """A `Store` for one process. With a clock and a ttl, claims run out as they do on PostgreSQL."""

    def __init__(self, *, clock: Clock | None = None, ttl_s: float | None = None) -> None:
        assert (clock is None) == (ttl_s is None), "a ttl needs a clock"
        self._clock = clock
        self._ttl_s = ttl_s
        self._owner = ""
        self._epoch = 0
        self._number = 0
        self._until = 0.0
        self.tables = MemoryTables()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        is_held = self._clock is not None and self._clock.now() < self._until
        if is_held and owner != self._owner:
            return None
        self._owner = owner
        self._epoch += 1
        self._number = 0
        claim = Claim(owner, self._epoch, self._ttl_s)
        await self.renew(claim)
        return claim

    async def owner(self) -> str:
        return self._owner

    async def renew(self, claim: Claim) -> bool:
        if claim.epoch != self._epoch:
            return False
        if self._clock is not None and self._ttl_s is not None:
            self._until = self._clock.now() + self._ttl_s
        return True

    async def release(self, claim: Claim) -> None:
        if claim.epoch == self._epoch:
            self._until = 0.0

    def _fence(self, claim: Claim) -> None:
        if claim.epoch != self._epoch:
            raise StoreError(
                errors.STORE_FENCED,
                f"epoch {claim.epoch} has been followed by epoch {self._epoch}",
            )

    # -- writing ----------------------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        self._fence(claim)
        if number <= self._number:
            raise refused(f"commit {number} does not follow the last one: {self._number}")
        self._check_against_stored(changes)
        self._number = number
        self.tables.write(changes)

    def _check_against_stored(self, changes: Changes) -> None:
        """What the keys and references of a database refuse."""
        tables = self.tables
        plans, runs = tables.of(PlanRow), tables.of(RunRow)
        new_plans = {plan.plan_id for plan in changes.plans}
        new_runs: set[str] = set()
        for run in changes.runs:
            if run.run_id in runs or run.run_id in new_runs:
                raise refused(f"the run is stored already: {run.run_id}", "/runs")
            if run.plan_id not in plans and run.plan_id not in new_plans:
                raise refused(f"the plan of a run is not stored: {run.plan_id}", "/runs")
            new_runs.add(run.run_id)
        for change in changes.run_changes:
            if change.run_id not in runs and change.run_id not in new_runs:
                raise refused("a run that is changed does not exist", "/run_changes")
        heads: dict[str, int] = {}
        for segment in changes.segments:
            stored = tables.segments.get(segment.run_id)
            _advance(heads, segment.run_id, segment.last, stored[-1].last if stored else 0)
        heads.clear()
        for event in changes.events:
            told = tables.events.get(event.tenant)
            _advance(heads, event.tenant, event.number, told[-1].number if told else 0)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        self._fence(claim)
        return self._number >= number

    def _put(self, claim: Claim, row: Row) -> bool:
        check_row(row)
        self._fence(claim)
        return self.tables.put(row)

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, keep: int | None = None
    ) -> None:
        check_row(row)
        self._fence(claim)
        newest = await self.find_workflow(row.tenant, row.workflow_id)
        if row.version != (0 if newest is None else newest.version) + 1:
            raise stale_workflow(row)
        self.tables.put(row)
        if keep is not None:
            self._remove_versions(row.tenant, row.workflow_id, row.version - keep)

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool:
        self._fence(claim)
        newest = await self.find_workflow(tenant, workflow_id)
        if newest is not None:
            self._remove_versions(tenant, workflow_id, newest.version)
        return newest is not None

    def _remove_versions(self, tenant: str, workflow_id: str, last: int) -> None:
        self.tables.remove(
            WorkflowRow,
            lambda row: (
                (row.tenant, row.workflow_id) == (tenant, workflow_id) and row.version <= last
            ),
        )

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        if self._put(claim, row):
            return True
        stored = self.tables.of(PackageRow)[row.tenant, row.name, row.version]
        if stored.sha256 != row.sha256:
            raise other_digest(row, stored.sha256)
        return False

    async def yank_package(
        self, claim: Claim, tenant: str, name: str, version: str, at: int | None, reason: str = ""
    ) -> bool:
        check_values(tenant, name, version, at, reason)
        mark = {"yanked_at": at, "yanked_reason": reason}
        return self._change(claim, PackageRow, (tenant, name, version), **mark)

    async def set_resource_blob(
        self, claim: Claim, key: tuple[str, str, str], blob: str | None
    ) -> bool:
        check_values(*key, blob)
        return self._change(claim, ResourceRow, key, blob=blob)

    def _change(self, claim: Claim, kind: type[Row], key: tuple[str, ...], **fields: Any) -> bool:
        self._fence(claim)
        rows = self.tables.of(kind)
        if key not in rows:
            return False
        rows[key] = msgspec.structs.replace(rows[key], **fields)
        return True

    async def put_active(self, claim: Claim, row: ActiveRow) -> None:
        self._put(claim, row)

    async def put_rollout(self, claim: Claim, row: RolloutRow) -> None:
        self._put(claim, row)

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        self._put(claim, SiteRow(name, value))

    # -- retention --------------------------------------------------------------------------

    async def sweep(self, claim: Claim, retention: Retention, now_ms: int) -> Swept:
        self._fence(claim)
        tables = self.tables
        runs = tables.of(RunRow)
        finished = sorted(
            (run.finished_at, run.run_id, run.plan_id)
            for run in runs.values()
            if run.finished_at is not None
        )
        oldest = [
            Finished(run_id, plan_id, at, tables.run_bytes(run_id))
            for at, run_id, plan_id in finished[: pieces.PIECE_RUNS + 1]
        ]
        picked, has_more = pick(oldest, retention, now_ms, len(finished), tables.held_bytes())
        for run in picked:
            del runs[run.run_id]
            tables.segments.pop(run.run_id, None)
        used = {run.plan_id for run in runs.values()}
        for plan_id in {run.plan_id for run in picked} - used:
            del tables.of(PlanRow)[plan_id]
        self._remove_ended(now_ms)
        events = self._remove_events(cutoff_ms(now_ms, retention.tenant_events_s))
        events += self._trim_events(retention.tenant_events)
        audits = self._remove_audits(cutoff_ms(now_ms, retention.audit_s), retention.audits)
        is_piece = max(events, audits) >= pieces.PIECE_ROWS
        return Swept(len(picked), events, audits, more=has_more or is_piece)

    def _remove_ended(self, now_ms: int) -> None:
        tables = self.tables
        workers = tables.of(WorkerRow)

        def is_over(row: ResourceRow) -> bool:
            keep_ms = pieces.RESOURCE_MS if row.blob is None else pieces.COPY_MS
            ended_at = row.created_at if row.expires_at is None else row.expires_at
            return row.state in ENDED_RESOURCES and ended_at < now_ms - keep_ms

        tables.remove(Submission, lambda row: row.created_at < now_ms - pieces.KEY_MS)
        tables.remove(ResourceRow, is_over)
        tables.remove(
            InstallIntentRow,
            lambda row: (
                row.state in ENDED_INTENTS
                and row.updated_at < now_ms - pieces.INTENT_MS
                and (row.tenant, row.worker_id) not in workers
            ),
        )
        tables.remove(
            RolloutRow,
            lambda row: row.state in ENDED_ROLLOUTS and row.updated_at < now_ms - pieces.ROLLOUT_MS,
        )

    def _remove_events(self, cutoff: int | None) -> int:
        removed = 0
        for tenant, events in self.tables.events.items():
            old = [index for index, event in enumerate(events[:-1]) if _is_old(event.at, cutoff)]
            if old:
                # From the front, so that what is left has no gap (P17).
                self.tables.events[tenant] = events[old[-1] + 1 :]
                removed += old[-1] + 1
        return removed

    def _trim_events(self, keep: int | None) -> int:
        streams = self.tables.events
        spans = [
            Span(tenant, events[0].number, events[-1].number) for tenant, events in streams.items()
        ]
        removed = 0
        for tenant, up_to in beyond(spans, keep):
            left = [event for event in streams[tenant] if event.number > up_to]
            removed += len(streams[tenant]) - len(left)
            streams[tenant] = left
        return removed

    def _remove_audits(self, cutoff: int | None, keep: int | None) -> int:
        oldest = 0 if keep is None else self.tables.audit_number - keep
        kept = [
            (number, row)
            for number, row in self.tables.audits
            if not _is_old(row.at, cutoff) and number > oldest
        ]
        removed = len(self.tables.audits) - len(kept)
        self.tables.audits = kept
        return removed

    async def usage(self) -> Usage:
        runs = self.tables.of(RunRow).values()
        active = sum(run.finished_at is None for run in runs)
        return Usage(self.tables.held_bytes(), len(runs), active, SCHEMA_VERSION)

    # -- reading ----------------------------------------------------------------------------

    async def active_runs(self) -> list[RunRow]:
        active = (run for run in self.tables.of(RunRow).values() if run.finished_at is None)
        return sorted(active, key=lambda run: (run.created_at, run.run_id))

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None:
        check_values(tenant, run_id)
        run = self.tables.of(RunRow).get(run_id)
        return run if run is not None and run.tenant == tenant else None

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        check_values(limit, before)
        found = self._matching(RunRow, tenant=tenant, status=status, workflow_id=workflow_id)
        return _page(found, lambda run: (run.created_at, run.run_id), before, limit)

    async def find_plan(self, plan_id: str) -> PlanRow | None:
        check_values(plan_id)
        return self.tables.of(PlanRow).get(plan_id)

    async def read_segments(
        self, run_id: str, after: int = 0, max_bytes: int = 4 * 1024**2
    ) -> list[FactSegment]:
        check_values(run_id, after, max_bytes)
        found: list[FactSegment] = []
        size = 0
        for segment in self.tables.segments.get(run_id, ()):
            if segment.last <= after:
                continue
            size += len(segment.body)
            if found and size > max_bytes:
                break
            found.append(segment)
        return found

    async def submissions(self, since_ms: int) -> list[Submission]:
        check_values(since_ms)
        found = (one for one in self.tables.of(Submission).values() if one.created_at >= since_ms)
        return sorted(found, key=lambda one: (one.created_at, one.tenant, one.key))

    async def find_submission(self, tenant: str, key: str) -> Submission | None:
        check_values(tenant, key)
        return self.tables.of(Submission).get((tenant, key))

    async def workers(self) -> list[WorkerRow]:
        return self.tables.sorted(WorkerRow)

    async def intents(self) -> list[InstallIntentRow]:
        return self.tables.sorted(InstallIntentRow)

    async def affinities(self) -> list[AffinityRow]:
        return self.tables.sorted(AffinityRow)

    async def find_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow | None:
        wanted = {"tenant": tenant, "workflow_id": workflow_id, "version": version}
        found = self._matching(WorkflowRow, **wanted)
        return max(found, key=lambda row: row.version, default=None)

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        check_values(limit, before)
        versions = sorted(self._matching(WorkflowRow, tenant=tenant), key=lambda row: row.version)
        newest = {row.workflow_id: row for row in versions}
        return _page(newest.values(), lambda row: (row.updated_at, row.workflow_id), before, limit)

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        found = self._matching(PackageRow, tenant=tenant)
        return sorted(found, key=lambda row: (row.tenant, row.name, row.version))

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None:
        check_values(tenant, name, version)
        return self.tables.of(PackageRow).get((tenant, name, version))

    async def active_versions(self) -> list[ActiveRow]:
        return self.tables.sorted(ActiveRow)

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        rows = self.tables.of(RolloutRow).values()
        found = [row for row in rows if states is None or row.state in states]
        return sorted(found, key=lambda row: (row.updated_at, row.tenant, row.rollout_id))

    async def find_rollout(self, tenant: str, rollout_id: str) -> RolloutRow | None:
        check_values(tenant, rollout_id)
        return self.tables.of(RolloutRow).get((tenant, rollout_id))

    async def find_site(self, name: str) -> str | None:
        check_values(name)
        row = self.tables.of(SiteRow).get(name)
        return None if row is None else row.value

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
        check_values(limit, before)
        wanted = {"tenant": tenant, "run_id": run_id, "worker_id": worker_id}
        found = self._matching(ResourceRow, **wanted, type=type, state=state)
        found = _page(found, _place_of_resource, before, None)
        # A stable sort: tenant by tenant, in the same order within each.
        return sorted(found, key=lambda row: row.tenant, reverse=True)[:limit]

    async def find_resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> list[ResourceRow]:
        wanted = {"tenant": tenant, "resource_id": resource_id, "worker_id": worker_id}
        return sorted(self._matching(ResourceRow, **wanted), key=lambda row: row.worker_id)

    async def blobs_of_resources(self) -> set[str]:
        rows = self.tables.of(ResourceRow).values()
        return {row.blob for row in rows if row.blob is not None}

    async def event_heads(self) -> dict[str, int]:
        return {tenant: events[-1].number for tenant, events in sorted(self.tables.events.items())}

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]:
        check_values(tenant, after, limit)
        events = self.tables.events.get(tenant, ())
        return [event for event in events if event.number > after][:limit]

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        check_values(tenant, limit, before)
        found = [
            (number, row)
            for number, row in reversed(self.tables.audits)
            if row.tenant == tenant and (before is None or number < before)
        ]
        return found[:limit]

    def _matching(self, kind: type[R], **wanted: object) -> list[R]:
        """The rows whose fields have these values; None stands for any."""
        check_values(*wanted.values())
        given = [(name, value) for name, value in wanted.items() if value is not None]
        rows = self.tables.of(kind).values()
        return [row for row in rows if all(getattr(row, name) == value for name, value in given)]


def _page(
    rows: Collection[R],
    place: Callable[[R], tuple[Any, ...]],
    before: tuple[Any, ...] | None,
    limit: int | None,
) -> list[R]:
    """The newest first, from the place `before` on."""
    found = [row for row in rows if before is None or place(row) < before]
    return sorted(found, key=place, reverse=True)[:limit]


def _place_of_resource(row: ResourceRow) -> tuple[int, str, str]:
    return row.created_at, row.worker_id, row.resource_id


def _is_old(at: int, cutoff: int | None) -> bool:
    return cutoff is not None and at < cutoff


def _advance(heads: dict[str, int], key: str, number: int, stored: int) -> None:
    if number <= heads.get(key, stored):
        raise refused(f"event {number} is stored already: {key}")
    heads[key] = number
