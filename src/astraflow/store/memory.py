"""A store in plain dictionaries, for tests and simulation: the same promises, without a disk.

What it holds lives as long as the object: `close` and `open` again is a restart after which everything is there. It has
no threads, and answers without waiting, so that a simulated world stays repeatable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.errors import Conflict, StoreError
from astraflow.store import retention as pieces
from astraflow.store.content import check_changes, check_row, check_values, refused
from astraflow.store.memory_holdings import MemoryHoldings
from astraflow.store.retention import Finished, Span, beyond, cutoff_ms, pick
from astraflow.store.rows import (
    AuditRow,
    FactPage,
    PlanRow,
    RunRow,
    Submission,
    TenantEvent,
    WorkerRow,
    WorkflowRow,
)
from astraflow.store.store import Claim, Swept, Usage

if TYPE_CHECKING:
    from astraflow.clock import Clock
    from astraflow.core.runs.facts import RunStatus
    from astraflow.store.rows import Changes
    from astraflow.store.store import Retention

__all__ = ["MemoryStore"]

SCHEMA_VERSION = 3
"""Of the rows it holds: that of the databases."""


class MemoryStore(MemoryHoldings):
    """A `Store` for one process. With a clock and a ttl, claims run out as they do on PostgreSQL."""

    def __init__(self, *, clock: Clock | None = None, ttl_s: float | None = None) -> None:
        assert (clock is None) == (ttl_s is None), "a ttl needs a clock"
        super().__init__()
        self._clock = clock
        self._ttl_s = ttl_s
        self._owner = ""
        self._epoch = 0
        self._number = 0
        self._until = 0.0
        self._plans: dict[str, PlanRow] = {}
        self._runs: dict[str, RunRow] = {}
        self._pages: dict[str, list[FactPage]] = {}
        self._submissions: dict[tuple[str, str], Submission] = {}
        self._workflows: dict[tuple[str, str], list[WorkflowRow]] = {}
        self._events: dict[str, list[TenantEvent]] = {}
        self._audits: list[tuple[int, AuditRow]] = []
        self._audit_number = 0

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
        for plan in changes.plans:
            self._plans.setdefault(plan.plan_id, plan)
        for run in changes.runs:
            self._add_run(run)
        for change in changes.run_changes:
            fields = msgspec.structs.asdict(change)
            run = self._runs[change.run_id]
            self._runs[change.run_id] = msgspec.structs.replace(run, **fields)
        for page in changes.pages:
            self._pages.setdefault(page.run_id, []).append(page)
        for forgotten in changes.workers_gone:
            self._workers.pop(forgotten, None)
        for worker in changes.workers:
            self._workers[worker.tenant, worker.worker_id] = worker
        for event in changes.events:
            self._events.setdefault(event.tenant, []).append(event)
        for audit in changes.audits:
            self._audit_number += 1
            self._audits.append((self._audit_number, audit))
        self._write_holdings(changes)

    def _add_run(self, run: RunRow) -> None:
        self._runs[run.run_id] = run
        key = run.idempotency_key
        if key is not None:
            self._submissions[run.tenant, key] = Submission(
                run.tenant, key, run.fingerprint, run.run_id, run.created_at
            )

    def _check_against_stored(self, changes: Changes) -> None:
        """What the keys and references of a database refuse."""
        plans = {plan.plan_id for plan in changes.plans}
        added: set[str] = set()
        for run in changes.runs:
            if run.run_id in self._runs or run.run_id in added:
                raise refused(f"the run is stored already: {run.run_id}", "/runs")
            if run.plan_id not in self._plans and run.plan_id not in plans:
                raise refused(f"the plan of a run is not stored: {run.plan_id}", "/runs")
            added.add(run.run_id)
        for change in changes.run_changes:
            if change.run_id not in self._runs and change.run_id not in added:
                raise refused("a run that is changed does not exist", "/run_changes")
        heads: dict[str, int] = {}
        for page in changes.pages:
            stored = self._pages.get(page.run_id)
            _advance(heads, page.run_id, page.last, stored[-1].last if stored else 0)
        heads.clear()
        for event in changes.events:
            told = self._events.get(event.tenant)
            _advance(heads, event.tenant, event.number, told[-1].number if told else 0)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        self._fence(claim)
        return self._number >= number

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, keep: int | None = None
    ) -> None:
        check_row(row)
        self._fence(claim)
        versions = self._workflows.get((row.tenant, row.workflow_id), [])
        if row.version != (versions[-1].version if versions else 0) + 1:
            raise Conflict(
                errors.WORKFLOW_CONFLICT,
                f"the stored version is not the one before {row.version}: {row.workflow_id}",
            )
        kept = [one for one in versions if keep is None or one.version > row.version - keep]
        self._workflows[row.tenant, row.workflow_id] = [*kept, row]

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool:
        check_values(tenant, workflow_id)
        self._fence(claim)
        return self._workflows.pop((tenant, workflow_id), None) is not None

    # -- retention --------------------------------------------------------------------------

    async def sweep(self, claim: Claim, retention: Retention, now_ms: int) -> Swept:
        self._fence(claim)
        finished = sorted(
            (run.finished_at, run.run_id, run.plan_id)
            for run in self._runs.values()
            if run.finished_at is not None
        )
        oldest = [
            Finished(run_id, plan_id, at, self._run_bytes(run_id))
            for at, run_id, plan_id in finished[: pieces.PIECE_RUNS + 1]
        ]
        picked, has_more = pick(oldest, retention, now_ms, len(finished), self._held_bytes())
        for run in picked:
            del self._runs[run.run_id]
            self._pages.pop(run.run_id, None)
        used = {run.plan_id for run in self._runs.values()}
        for plan_id in {run.plan_id for run in picked} - used:
            del self._plans[plan_id]
        self._remove_keys(now_ms - pieces.KEY_MS)
        self._remove_holdings(now_ms)
        events = self._remove_events(cutoff_ms(now_ms, retention.tenant_events_s))
        events += self._trim_events(retention.tenant_events)
        audits = self._remove_audits(cutoff_ms(now_ms, retention.audit_s), retention.audits)
        is_piece = max(events, audits) >= pieces.PIECE_ROWS
        return Swept(len(picked), events, audits, more=has_more or is_piece)

    def _remove_keys(self, cutoff: int) -> None:
        for key in [key for key, one in self._submissions.items() if one.created_at < cutoff]:
            del self._submissions[key]

    def _remove_events(self, cutoff: int | None) -> int:
        removed = 0
        for tenant, events in self._events.items():
            old = [index for index, event in enumerate(events[:-1]) if _is_old(event.at, cutoff)]
            if old:
                # From the front, so that what is left has no gap (P17).
                self._events[tenant] = events[old[-1] + 1 :]
                removed += old[-1] + 1
        return removed

    def _trim_events(self, keep: int | None) -> int:
        spans = [
            Span(tenant, events[0].number, events[-1].number)
            for tenant, events in self._events.items()
        ]
        removed = 0
        for tenant, up_to in beyond(spans, keep):
            left = [event for event in self._events[tenant] if event.number > up_to]
            removed += len(self._events[tenant]) - len(left)
            self._events[tenant] = left
        return removed

    def _remove_audits(self, cutoff: int | None, keep: int | None) -> int:
        oldest = 0 if keep is None else self._audit_number - keep
        kept = [
            (number, row)
            for number, row in self._audits
            if not _is_old(row.at, cutoff) and number > oldest
        ]
        removed = len(self._audits) - len(kept)
        self._audits = kept
        return removed

    def _run_bytes(self, run_id: str) -> int:
        return sum(len(page.body) for page in self._pages.get(run_id, ()))

    def _held_bytes(self) -> int:
        plans = sum(len(plan.definition) + len(plan.plan) for plan in self._plans.values())
        return plans + sum(self._run_bytes(run_id) for run_id in self._pages)

    # -- reading ----------------------------------------------------------------------------

    async def active_runs(self) -> list[RunRow]:
        active = (run for run in self._runs.values() if run.finished_at is None)
        return sorted(active, key=lambda run: (run.created_at, run.run_id))

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None:
        check_values(tenant, run_id)
        run = self._runs.get(run_id)
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
        check_values(tenant, limit, before, status, workflow_id)
        found = [
            run
            for run in self._runs.values()
            if run.tenant == tenant
            and (status is None or run.status == status)
            and (workflow_id is None or run.workflow_id == workflow_id)
            and (before is None or (run.created_at, run.run_id) < before)
        ]
        found.sort(key=lambda run: (run.created_at, run.run_id), reverse=True)
        return found[:limit]

    async def find_plan(self, plan_id: str) -> PlanRow | None:
        check_values(plan_id)
        return self._plans.get(plan_id)

    async def read_pages(
        self, run_id: str, after: int = 0, max_bytes: int = 4 * 1024**2
    ) -> list[FactPage]:
        check_values(run_id, after, max_bytes)
        pages: list[FactPage] = []
        size = 0
        for page in self._pages.get(run_id, ()):
            if page.last <= after:
                continue
            size += len(page.body)
            if pages and size > max_bytes:
                break
            pages.append(page)
        return pages

    async def submissions(self, since_ms: int) -> list[Submission]:
        check_values(since_ms)
        found = (one for one in self._submissions.values() if one.created_at >= since_ms)
        return sorted(found, key=lambda one: (one.created_at, one.tenant, one.key))

    async def find_submission(self, tenant: str, key: str) -> Submission | None:
        check_values(tenant, key)
        return self._submissions.get((tenant, key))

    async def workers(self) -> list[WorkerRow]:
        return [self._workers[key] for key in sorted(self._workers)]

    async def find_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow | None:
        check_values(tenant, workflow_id, version)
        versions = self._workflows.get((tenant, workflow_id), [])
        if version is None:
            return versions[-1] if versions else None
        return next((one for one in versions if one.version == version), None)

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        check_values(tenant, limit, before)
        found = [
            versions[-1]
            for (owner, workflow_id), versions in self._workflows.items()
            if owner == tenant
            and (before is None or (versions[-1].updated_at, workflow_id) < before)
        ]
        found.sort(key=lambda row: (row.updated_at, row.workflow_id), reverse=True)
        return found[:limit]

    async def event_heads(self) -> dict[str, int]:
        return {tenant: events[-1].number for tenant, events in sorted(self._events.items())}

    async def tenant_events(self, tenant: str, after: int, limit: int) -> list[TenantEvent]:
        check_values(tenant, after, limit)
        events = self._events.get(tenant, ())
        return [event for event in events if event.number > after][:limit]

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        check_values(tenant, limit, before)
        found = [
            (number, row)
            for number, row in reversed(self._audits)
            if row.tenant == tenant and (before is None or number < before)
        ]
        return found[:limit]

    async def usage(self) -> Usage:
        active = sum(run.finished_at is None for run in self._runs.values())
        return Usage(self._held_bytes(), len(self._runs), active, schema_version=SCHEMA_VERSION)


def _is_old(at: int, cutoff: int | None) -> bool:
    return cutoff is not None and at < cutoff


def _advance(heads: dict[str, int], key: str, number: int, stored: int) -> None:
    if number <= heads.get(key, stored):
        raise refused(f"event {number} is stored already: {key}")
    heads[key] = number
