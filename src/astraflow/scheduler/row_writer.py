"""The row writer: what a batch of the engine is in rows. It knows the facts of the batch, and nothing else.

Rule 1: everything that one batch decides is one transaction: facts, the rows of runs that repeat them, workers, the
        tenant's stream and the audit. So a reader never sees one of them without the others.
Rule 2: a row of a run is written only when its status changes; what happens to its tasks is in the segments alone.
Rule 3: the numbers of a tenant's stream and of its audit chain are given here, and only here. They are gapless because
        a row writer whose batch was not committed is discarded with its engine.
Rule 4: a fact that a node of the release before could not read is refused until all nodes read it
        (`core.facts_version`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from astraflow.core.cluster.lanes import HOME_LANE, tenant_of_lane
from astraflow.core.contract.base import RestObject
from astraflow.core.contract.events import RunReport, WorkerReport
from astraflow.core.contract.runs import TaskError
from astraflow.core.contract.words import RunStatus
from astraflow.core.engine.batch import Batch, FleetChange, NumberedFact
from astraflow.core.engine.commands import SubmitRun
from astraflow.core.facts_version import FIRST_FACTS, HeldBackFacts
from astraflow.core.fleet.facts import Announced, Audited
from astraflow.core.fleet.workers import (
    HeartbeatMissed,
    PoolConfigured,
    PoolRemoved,
    WorkerBound,
    WorkerConnectionChanged,
    WorkerFact,
    WorkerForgotten,
    WorkerPackageChanged,
    WorkerRegistered,
    WorkerState,
)
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import (
    CancelRequested,
    Fact,
    RunAccepted,
    RunFinished,
    RunStarted,
    TaskFailure,
    encode_fact,
)
from astraflow.scheduler.audit_chains import AuditChains
from astraflow.scheduler.fleet_rows import write_fleet
from astraflow.scheduler.refusals import Refusals
from astraflow.scheduler.sent_audits import SentAudits
from astraflow.scheduler.shard_lanes import ONLY_LANES, ShardLanes, name_here
from astraflow.store.rows import (
    AuditHeadRow,
    AuditRow,
    Changes,
    FactSegment,
    PlanRow,
    RunChange,
    RunRow,
    TenantEvent,
    WorkerRow,
)
from astraflow.store.store import Claim

SEGMENT_BYTES: Final = 1024**2
"""A segment is closed when it has so many bytes, so that one row does not hold a hundred large results."""

_encode: Final = msgspec.json.Encoder().encode
_OF_RUNS: Final = frozenset({RunAccepted, RunStarted, CancelRequested, RunFinished})
_UNWRITTEN: Final = (HeartbeatMissed, WorkerConnectionChanged, WorkerPackageChanged)
"""Facts about workers that no row repeats."""


class _Standing(msgspec.Struct):
    """The changing half of the row of an active run."""

    tenant: str
    plan_id: str
    status: RunStatus = "queued"
    cancel_requested: bool = False
    started_at: int | None = None


class RowWriter:
    """Restored from the store with an engine, and discarded with it."""

    def __init__(
        self,
        runs: Iterable[RunRow],
        workers: Iterable[WorkerRow],
        heads: dict[str, int],
        audit_heads: Iterable[AuditHeadRow] = (),
        claim: Claim | None = None,
        lanes: ShardLanes = ONLY_LANES,
        facts_version: int = FIRST_FACTS,
    ) -> None:
        """`heads`: the last event of the stream of each lane, by its name. `facts_version`: up to which facts may be
        written."""
        self._lanes = lanes
        self._held_back = HeldBackFacts(facts_version)
        self.workers: dict[tuple[str, str], WorkerRow] = {}
        for row in workers:
            tenant = tenant_of_lane(row.tenant)
            self.workers[tenant, row.worker_id] = msgspec.structs.replace(row, tenant=tenant)
        self._heads = dict(heads)
        self._refusals = Refusals()
        self.audit_chains = AuditChains(audit_heads)
        self._sent_audits = SentAudits(claim, lanes)
        self._standing = {
            row.run_id: _Standing(
                row.tenant, row.plan_id, row.status, row.cancel_requested, row.started_at
            )
            for row in runs
        }
        self._plan_uses = Counter(one.plan_id for one in self._standing.values())
        """How many active runs have each plan: such a plan is stored, and no sweep removes it."""

    def head_of(self, name: str) -> int:
        """The number of the last event of the stream of a lane."""
        return self._heads.get(name, 0)

    def let_write(self, facts_version: int) -> None:
        """Facts up to this version may be written from now on."""
        self._held_back = HeldBackFacts(facts_version)

    def changes_of(self, batch: Batch) -> Changes:
        """The rows of one batch.

        Raises:
            UnreadableFact: a fact of it may not be written yet.
        """
        if self._held_back:
            self._held_back.check(one.fact for one in batch.facts)
            self._held_back.check(one.fact for one in batch.fleet)
        changes = Changes()
        by_run: dict[RunId, list[NumberedFact]] = {}
        for numbered in batch.facts:
            facts = by_run.get(numbered.run_id)
            if facts is None:
                by_run[numbered.run_id] = [numbered]
            else:
                facts.append(numbered)
        for run_id, facts in by_run.items():
            self._write_segments(changes, run_id, facts)
            last: RunChange | None = None
            for numbered in facts:
                if type(numbered.fact) in _OF_RUNS:
                    last = self._write_run(changes, run_id, numbered.fact, batch.submitted)
            if last is not None:
                changes.run_changes.append(last)
        if batch.fleet:
            self._write_fleet(changes, batch.fleet)
        return changes

    def _write_fleet(self, changes: Changes, fleet: list[FleetChange]) -> None:
        written: dict[tuple[str, str], WorkerRow] = {}
        for change in fleet:
            fact = change.fact
            if isinstance(fact, PoolConfigured | PoolRemoved):
                continue  # `write_fleet` has them: a pool has a row of its own
            if isinstance(fact, WorkerFact):
                if not isinstance(fact, _UNWRITTEN):
                    assert isinstance(change.after, WorkerState)
                    self._write_worker(changes, written, fact, change.after)
            elif isinstance(fact, Audited):
                self._write_audit(changes, fact)
            elif isinstance(fact, Announced):
                self._put_event(changes, fact.tenant, fact.at, fact.kind, fact.body)
        for (tenant, _), row in written.items():
            name = name_here(self._lanes, tenant)
            changes.workers.append(
                row if name == tenant else msgspec.structs.replace(row, tenant=name)
            )
        if changes.audits:
            changes.audit_heads = self.audit_chains.heads_of(changes.audits)
        for tenant, at, kind, body in write_fleet(changes, fleet, self._lanes):
            self._tell(changes, tenant, at, kind, body)

    # -- runs -------------------------------------------------------------------------------

    def _write_segments(self, changes: Changes, run_id: RunId, facts: list[NumberedFact]) -> None:
        lines: list[bytes] = []
        size = 0
        first = facts[0].first
        for numbered in facts:
            line = encode_fact(numbered.fact)
            if size + len(line) > SEGMENT_BYTES and lines:
                changes.segments.append(
                    FactSegment(run_id, first, numbered.first - 1, b"\n".join(lines))
                )
                lines, size, first = [], 0, numbered.first
            lines.append(line)
            size += len(line)
        changes.segments.append(FactSegment(run_id, first, facts[-1].last, b"\n".join(lines)))

    def _write_run(
        self, changes: Changes, run_id: RunId, fact: Fact, submitted: dict[str, SubmitRun]
    ) -> RunChange | None:
        """Of several changes of one run in a transaction the last has it all."""
        error: TaskFailure | None = None
        finished_at: int | None = None
        if isinstance(fact, RunAccepted):
            self._write_accepted(changes, fact, submitted[run_id])
            self._tell(
                changes,
                fact.tenant,
                fact.at,
                "run.status",
                RunReport(run_id=run_id, status="queued"),
            )
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
            self._plan_uses[standing.plan_id] -= 1
            if not self._plan_uses[standing.plan_id]:
                del self._plan_uses[standing.plan_id]
        body = RunReport(
            run_id=run_id,
            status=standing.status,
            cancel_requested=standing.cancel_requested and finished_at is None,
            error=None if error is None else TaskError(code=error.code, message=error.message),
        )
        self._tell(changes, standing.tenant, fact.at, "run.status", body)
        return RunChange(
            run_id,
            standing.status,
            standing.cancel_requested,
            standing.started_at,
            finished_at,
            _encode(error) if error is not None else None,
        )

    def _write_accepted(self, changes: Changes, fact: RunAccepted, request: SubmitRun) -> None:
        # The store keeps one of each, which the sweep of the last run with it may just have removed.
        if request.plan_id not in self._plan_uses:
            changes.plans.append(PlanRow(request.plan_id, request.definition, request.plan_body))
        self._plan_uses[request.plan_id] += 1
        changes.runs.append(
            RunRow(
                run_id=fact.run_id,
                tenant=fact.tenant,
                workflow_id=fact.workflow_id,
                workflow_version=request.workflow_version,
                name=request.name,
                plan_id=request.plan_id,
                created_at=fact.at,
                idempotency_key=fact.idempotency_key,
                fingerprint=fact.fingerprint,
                rerun_of=fact.rerun_of,
                submitted_by=fact.by,
                trigger_name=fact.trigger,
                lane=self._lanes.lane_of(fact.tenant) or HOME_LANE,
            )
        )
        self._standing[fact.run_id] = _Standing(fact.tenant, request.plan_id)

    # -- workers ----------------------------------------------------------------------------

    def _write_worker(
        self,
        changes: Changes,
        written: dict[tuple[str, str], WorkerRow],
        fact: WorkerFact,
        after: WorkerState,
    ) -> None:
        key = (fact.tenant, fact.worker_id)
        if isinstance(fact, WorkerForgotten):
            self.workers.pop(key, None)
            written.pop(key, None)
            changes.workers_gone.append((name_here(self._lanes, fact.tenant), fact.worker_id))
            return
        known = self.workers.get(key)
        fields: dict[str, Any] = {}
        if isinstance(fact, WorkerBound):
            fields = {"subject": fact.subject}
            known = known or WorkerRow(tenant=fact.tenant, worker_id=fact.worker_id, **fields)
        elif isinstance(fact, WorkerRegistered):
            fields = _registered(fact)
        if known is None:
            return  # a session that ended before its worker was ever known
        drain = None if after.drain is None else _encode(after.drain)
        row = msgspec.structs.replace(
            known, status=after.status, seen_at=fact.at, drain=drain, **fields
        )
        self.workers[key] = written[key] = row
        is_news = isinstance(fact, WorkerRegistered) or after.status != known.status
        if is_news and self._lanes.lane_of(fact.tenant) == HOME_LANE:  # the home tells of all
            body = WorkerReport(worker_id=fact.worker_id, name=row.name, status=after.status)
            self._tell(changes, fact.tenant, fact.at, f"worker.{after.status}", body)

    def _write_audit(self, changes: Changes, fact: Audited) -> None:
        named = {
            "subject": fact.subject,
            "worker": fact.worker_id,
            "session": fact.session_id,
        }
        if self._sent_audits.takes(fact):
            changes.sent_audits.append(self._sent_audits.send(fact))
            return
        if fact.sent_id:
            changes.sent_audits_gone.append((fact.sent_id,))
        detail = _encode({name: value for name, value in named.items() if value})
        row = AuditRow(
            fact.tenant, fact.at, fact.who, fact.action, fact.corr, fact.code, detail,
            fact.worker_id,
        )  # fmt: skip
        is_refusal = fact.code is not None
        rows = self._refusals.take(row) if is_refusal else [row]
        changes.audits.extend(map(self.audit_chains.link, rows))

    def _tell(self, changes: Changes, tenant: str, at: int, kind: str, body: RestObject) -> None:
        self._put_event(changes, tenant, at, kind, _encode(body))

    def _put_event(self, changes: Changes, tenant: str, at: int, kind: str, body: bytes) -> None:
        name = name_here(self._lanes, tenant)
        number = self._heads.get(name, 0) + 1
        self._heads[name] = number
        changes.events.append(TenantEvent(name, number, at, kind, body))


def _registered(fact: WorkerRegistered) -> dict[str, Any]:
    return {
        "name": fact.name,
        "incarnation": fact.incarnation,
        "version": fact.version,
        "hostname": fact.hostname,
        "max_parallel": fact.offer.max_parallel,
        "labels": _encode(fact.offer.labels),
        "packages": _encode(fact.packages),
    }
