"""The ledger: what a batch of the engine is in rows.

Rule 1: everything that one batch decides is one transaction: facts, the rows of runs that repeat them, workers, the
        tenant's stream and the audit. So a reader never sees one of them without the others.
Rule 2: a row of a run is written only when its status changes; what happens to its tasks is in the pages alone.
Rule 3: the numbers of a tenant's stream are given here, and only here. They are gapless because a ledger whose batch
        was not committed is thrown away with its engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from astraflow.core.dispatch import WorkerEntry
from astraflow.core.engine.batch import (
    AffinityChanged,
    Batch,
    NumberedFact,
    PackageTold,
    ResourceChanged,
    WishChanged,
    WorkerChanged,
    WorkerForgotten,
)
from astraflow.core.engine.view import View
from astraflow.core.protocol.events import Audited, IdentityBound, RegisterArrived
from astraflow.core.runs.facts import (
    CancelRequested,
    Fact,
    Problem,
    RunAccepted,
    RunFinished,
    RunStarted,
    RunStatus,
    encode_fact,
    width,
)
from astraflow.scheduler.holdings import (
    tell_package,
    write_affinity,
    write_resource,
    write_wish,
)
from astraflow.scheduler.refusals import Refusals
from astraflow.store.rows import (
    AuditRow,
    Changes,
    FactSegment,
    PlanRow,
    RunChange,
    RunRow,
    TenantEvent,
    WorkerRow,
)

__all__ = ["PAGE_BYTES", "Ledger", "Origin", "status_of"]

PAGE_BYTES: Final = 1024**2
"""A page is closed when it has so many bytes, so that one row does not hold a hundred large results."""

_encode: Final = msgspec.json.Encoder().encode
_Workers = dict[tuple[str, str], WorkerRow]
_OF_HOLDINGS: Final = (ResourceChanged, AffinityChanged, WishChanged)
_OF_RUNS: Final = frozenset({RunAccepted, RunStarted, CancelRequested, RunFinished})


class Origin(msgspec.Struct, frozen=True):
    """Where a submitted run comes from: what its row says beside its facts."""

    plan: PlanRow
    name: str
    workflow_version: int | None


class _Standing(msgspec.Struct):
    """The changing half of the row of an active run."""

    tenant: str
    status: RunStatus = "queued"
    cancel_requested: bool = False
    started_at: int | None = None


def status_of(worker: WorkerEntry) -> str:
    """The one word for how a worker is."""
    if worker.status == "online" and (worker.is_draining or worker.is_pressed):
        return "draining"
    return worker.status


class Ledger:
    """Made from the store when an engine is made, and thrown away with it."""

    def __init__(
        self, runs: Iterable[RunRow], workers: Iterable[WorkerRow], heads: dict[str, int]
    ) -> None:
        self.workers = {(row.tenant, row.worker_id): row for row in workers}
        self.origins: dict[str, Origin] = {}
        self._heads = dict(heads)
        self._refusals = Refusals()
        self._standing = {
            row.run_id: _Standing(row.tenant, row.status, row.cancel_requested, row.started_at)
            for row in runs
        }

    def head_of(self, tenant: str) -> int:
        """The number of the last event of the tenant's stream."""
        return self._heads.get(tenant, 0)

    def changes_of(self, batch: Batch, view: View) -> Changes:
        """The rows of one batch."""
        changes = Changes()
        by_run: dict[str, list[NumberedFact]] = {}
        for numbered in batch.facts:
            facts = by_run.get(numbered.run_id)
            if facts is None:
                by_run[numbered.run_id] = [numbered]
            else:
                facts.append(numbered)
        for run_id, facts in by_run.items():
            self._write_pages(changes, run_id, facts)
            last: RunChange | None = None
            for numbered in facts:
                if type(numbered.fact) in _OF_RUNS:
                    last = self._write_run(changes, run_id, numbered.fact)
            if last is not None:
                changes.run_changes.append(last)
        workers: dict[tuple[str, str], WorkerRow] = {}
        for notice in batch.notices:
            self._write_notice(changes, workers, notice, view)
        changes.workers.extend(workers.values())
        self._write_holdings(changes, batch.notices, view)
        # A batch holds all that was decided by now: what is left was refused, and its caller has gone.
        self.origins.clear()
        return changes

    # -- runs -------------------------------------------------------------------------------

    def _write_pages(self, changes: Changes, run_id: str, facts: list[NumberedFact]) -> None:
        lines: list[bytes] = []
        size = 0
        first = facts[0].first
        for numbered in facts:
            line = encode_fact(numbered.fact)
            if size + len(line) > PAGE_BYTES and lines:
                changes.segments.append(
                    FactSegment(run_id, first, numbered.first - 1, b"\n".join(lines))
                )
                lines, size, first = [], 0, numbered.first
            lines.append(line)
            size += len(line)
        last = facts[-1].first + width(facts[-1].fact) - 1
        changes.segments.append(FactSegment(run_id, first, last, b"\n".join(lines)))

    def _write_run(self, changes: Changes, run_id: str, fact: Fact) -> RunChange | None:
        """Of several changes of one run in a transaction the last has it all."""
        error: Problem | None = None
        finished_at: int | None = None
        if isinstance(fact, RunAccepted):
            self._write_accepted(changes, fact)
            self._tell(changes, fact.tenant, fact.at, "run.status", _status(run_id, "queued"))
            return None
        standing = self._standing[run_id]
        if isinstance(fact, RunStarted):
            standing.status = "running"
            standing.started_at = fact.at
        elif isinstance(fact, CancelRequested):
            standing.cancel_requested = True
        else:
            assert isinstance(fact, RunFinished)
            standing.status = fact.status
            finished_at, error = fact.at, fact.error
            del self._standing[run_id]
        body = _status(run_id, standing.status)
        if standing.cancel_requested and finished_at is None:
            body["cancelRequested"] = True
        if error is not None:
            body["error"] = {"code": error.code, "message": error.message}
        self._tell(changes, standing.tenant, fact.at, "run.status", body)
        return RunChange(
            run_id,
            standing.status,
            standing.cancel_requested,
            standing.started_at,
            finished_at,
            _encode(error) if error is not None else None,
        )

    def _write_accepted(self, changes: Changes, fact: RunAccepted) -> None:
        origin = self.origins.pop(fact.run_id)
        # Written with every run of it; the store keeps one. A sweep may just have removed the last run's.
        changes.plans.append(origin.plan)
        changes.runs.append(
            RunRow(
                run_id=fact.run_id,
                tenant=fact.tenant,
                workflow_id=fact.workflow_id,
                workflow_version=origin.workflow_version,
                name=origin.name,
                plan_id=origin.plan.plan_id,
                created_at=fact.at,
                idempotency_key=fact.idempotency_key,
                fingerprint=fact.fingerprint,
                rerun_of=fact.rerun_of,
            )
        )
        self._standing[fact.run_id] = _Standing(fact.tenant)

    # -- what workers hold --------------------------------------------------------------------

    def _write_holdings(self, changes: Changes, notices: Iterable[object], view: View) -> None:
        """Each thing once, as it is by now: a row must not be written twice in one statement."""
        for notice in dict.fromkeys(one for one in notices if isinstance(one, _OF_HOLDINGS)):
            if isinstance(notice, ResourceChanged):
                for kind, body in write_resource(changes, notice, view):
                    self._tell(changes, notice.tenant, view.at, kind, body)
            elif isinstance(notice, AffinityChanged):
                write_affinity(changes, notice, view)
            else:
                write_wish(changes, notice, view)

    # -- workers ----------------------------------------------------------------------------

    def _write_notice(
        self, changes: Changes, workers: _Workers, notice: object, view: View
    ) -> None:
        if isinstance(notice, RegisterArrived):
            self._write_register(changes, workers, notice, view)
        elif isinstance(notice, WorkerChanged):
            self._write_worker(changes, workers, notice.tenant, notice.worker, view, {})
        elif isinstance(notice, WorkerForgotten):
            key = (notice.tenant, notice.worker)
            self.workers.pop(key, None)
            workers.pop(key, None)
            changes.workers_gone.append(key)
        elif isinstance(notice, IdentityBound):
            key = (notice.tenant, notice.worker)
            row = self.workers.get(key) or WorkerRow(
                tenant=notice.tenant, worker_id=notice.worker, subject=notice.subject
            )
            row = msgspec.structs.replace(row, subject=notice.subject, seen_at=view.at)
            self.workers[key] = workers[key] = row
        elif isinstance(notice, PackageTold):
            kind, body = tell_package(notice)
            self._tell(changes, notice.tenant, view.at, kind, body)
        elif isinstance(notice, Audited):
            who = notice.subject or notice.worker
            named = {"worker": notice.worker, "session": notice.session_id}
            detail = _encode({name: value for name, value in named.items() if value})
            audit = AuditRow(
                notice.tenant, view.at, who, notice.action, notice.frame_id, notice.code, detail
            )
            is_refusal = notice.code is not None
            changes.audits.extend(self._refusals.take(audit) if is_refusal else [audit])

    def _write_register(
        self, changes: Changes, workers: _Workers, event: RegisterArrived, view: View
    ) -> None:
        register, said = event.register, event.description
        fields: dict[str, Any] = {
            "name": said.worker_name,
            "incarnation": event.incarnation,
            "version": said.version,
            "hostname": said.hostname,
            "max_parallel": register.capabilities.concurrency.max_parallel,
            "labels": _encode(register.labels),
            "packages": _encode(
                [
                    {"name": one.name, "version": one.version, "status": one.status}
                    for one in register.packages
                ]
            ),
        }
        self._write_worker(changes, workers, event.tenant, event.worker, view, fields)

    def _write_worker(
        self,
        changes: Changes,
        workers: _Workers,
        tenant: str,
        worker_id: str,
        view: View,
        fields: dict[str, Any],
    ) -> None:
        entry = view.workers.find(tenant, worker_id)
        known = self.workers.get((tenant, worker_id))
        if entry is None or known is None:
            return  # a session that ended before its worker was ever known
        status = status_of(entry)
        wish = view.drains.get((tenant, worker_id))
        drain = None if wish is None else _encode(wish)
        row = msgspec.structs.replace(known, status=status, seen_at=view.at, drain=drain, **fields)
        self.workers[tenant, worker_id] = workers[tenant, worker_id] = row
        if fields or status != known.status:
            body = {"workerId": worker_id, "name": row.name, "status": status}
            self._tell(changes, tenant, view.at, f"worker.{status}", body)

    def _tell(
        self, changes: Changes, tenant: str, at: int, kind: str, body: dict[str, Any]
    ) -> None:
        number = self._heads.get(tenant, 0) + 1
        self._heads[tenant] = number
        changes.events.append(TenantEvent(tenant, number, at, kind, _encode(body)))


def _status(run_id: str, status: str) -> dict[str, Any]:
    return {"runId": run_id, "status": status}
