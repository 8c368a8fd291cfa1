"""A scheduler in memory, as small as the port allows: real definitions, real facts, real folds; nothing is executed.

Tests drive a run by hand (`start`, `finish`, `say`), so that each sees exactly what it asked for.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from obstore.store import MemoryStore as BlobsInMemory

from astraflow.api.ports import WorkerCommand
from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.fleet.rollouts import Rollout
from astraflow.core.runs.facts import (
    AttemptProgressed,
    AttemptStarted,
    CancelRequested,
    Chunk,
    Fact,
    Problem,
    RunAccepted,
    RunFinished,
    RunStarted,
    RunStatus,
    TaskCancelled,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.runs.projections import Event, events_of, view_node, view_run
from astraflow.core.runs.run import Run
from astraflow.core.runs.transitions import fold
from astraflow.core.workflow import (
    check_inputs,
    core_manifest,
    decode_definition,
    plan_workflow,
    validate,
)
from astraflow.core.workflow.problems import Problem as DocumentProblem
from astraflow.scheduler.blobs import Blobs
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.copies import Copies
from astraflow.scheduler.depot import Depot
from astraflow.scheduler.links import Links
from astraflow.scheduler.repository import Repository
from astraflow.scheduler.rollouts import RolloutRequest
from astraflow.scheduler.runs import Accepted, Submission, WorkerView
from astraflow.store.memory import MemoryStore as StoreInMemory
from astraflow.store.rows import AuditRow, Changes, ResourceRow, RunRow, TenantEvent, WorkflowRow

WORKER = "w1"
CLOCK = SystemClock()


class FakeRun:
    """One run and what was said about it."""

    def __init__(self, run: Run, row: RunRow, definition: bytes) -> None:
        self.run = run
        self.row = row
        self.definition = definition
        self.facts: list[NumberedFact] = []
        self.events: list[Event] = []
        self.changed = asyncio.Condition()


class FakeScheduler:
    """Fits `SchedulerPort`."""

    def __init__(self) -> None:
        self.catalogs = Catalogs([core_manifest()])
        self.store = store = StoreInMemory()
        blobs, links = Blobs(BlobsInMemory()), Links(b"a secret for tests only", CLOCK)
        spool = Path(tempfile.gettempdir()) / "astraflow-test-uploads"
        self.depot = Depot(
            Repository(store, blobs, links, CLOCK, self.catalogs, spool=spool),
            Copies(store, blobs, links, CLOCK),
            CLOCK,
        )
        self.rollouts = FakeRollouts(self)
        self.exported: list[str] = []
        self.closed: list[tuple[str, str, str]] = []
        self.runs: dict[str, FakeRun] = {}
        self.keys: dict[tuple[str, str], tuple[str | None, str]] = {}
        self.workflows: dict[tuple[str, str], list[WorkflowRow]] = {}
        self.known_workers: dict[tuple[str, str], WorkerView] = {}
        self.commands: list[tuple[str, WorkerCommand, str]] = []
        self.refusals: list[tuple[str, str, str, str]] = []
        self.rebound: list[tuple[str, bool]] = []
        self.audits: list[AuditRow] = []
        self.tenant_log: list[TenantEvent] = []
        self.following = 0
        self.left = asyncio.Event()
        self.why_not: str | None = None
        self.raises: Exception | None = None
        self.time = 1_768_471_200_000

    def is_ready(self) -> bool:
        return self.why_not is None

    def problem(self) -> str | None:
        return self.why_not

    def tick(self) -> int:
        self.time += 1
        return self.time

    # -- driving ----------------------------------------------------------------------------

    async def tell(self, run_id: str, *facts: Fact) -> None:
        known = self.runs[run_id]
        async with known.changed:
            for fact in facts:
                first = known.run.last_event + 1
                known.facts.append(NumberedFact(run_id, first, fact))
                known.events += events_of(fact, first, known.run.plan)
                if not isinstance(fact, RunAccepted):
                    fold(known.run, fact)
                known.run.ready.clear()
                known.run.doomed.clear()
            known.changed.notify_all()
        run = known.run
        known.row = msgspec.structs.replace(
            known.row,
            status=run.status,
            cancel_requested=run.cancel is not None,
            started_at=run.started_at,
            finished_at=run.finished_at,
            error=msgspec.json.encode(run.error) if run.error else None,
        )

    async def start(self, run_id: str, *tasks: int) -> None:
        await self.tell(run_id, RunStarted(self.tick()))
        for task in tasks:
            await self.tell(run_id, TaskLeased(self.tick(), task, 1, WORKER, 1, 30_000))
            await self.tell(run_id, AttemptStarted(self.tick(), task, 1))

    async def say(self, run_id: str, task: int, *texts: str) -> None:
        chunks = tuple(Chunk("stdout", index, text) for index, text in enumerate(texts))
        await self.tell(run_id, AttemptProgressed(self.tick(), task, 1, chunks=chunks))

    async def succeed(self, run_id: str, task: int, result: bytes = b'{"value":1}') -> None:
        await self.tell(run_id, TaskSucceeded(self.tick(), task, 1, msgspec.Raw(result)))

    async def fail(self, run_id: str, task: int) -> None:
        error = Problem("E.RUNNER.FAILURE", "USER_CODE", "it broke")
        await self.tell(run_id, TaskFailed(self.tick(), task, 1, error))

    async def finish(self, run_id: str, status: RunStatus = "succeeded") -> None:
        await self.tell(run_id, RunFinished(self.tick(), status))

    # -- runs -------------------------------------------------------------------------------

    async def submit(self, submission: Submission) -> Accepted:
        if self.raises is not None:
            raise self.raises
        tenant, key = submission.tenant, submission.idempotency_key
        if key is not None and (tenant, key) in self.keys:
            fingerprint, run_id = self.keys[(tenant, key)]
            if fingerprint != submission.fingerprint:
                raise errors.Conflict(errors.RUN_IDEMPOTENCY_CONFLICT, "another body had this key")
            row = self.runs[run_id].row
            return Accepted(run_id, row.status, row.created_at, False)
        definition = submission.definition
        version = None
        if definition is None:
            saved = await self.get_workflow(
                tenant, submission.workflow_id or "", submission.version
            )
            definition, version = saved.definition, saved.version
        decoded = decode_definition(definition)
        plan = plan_workflow(decoded, self.catalogs.of(tenant))
        check_inputs(frozenset(decoded.workflow.inputs), bytes(submission.inputs))
        run_id = f"run-{len(self.runs) + 1:04}"
        at = self.tick()
        accepted = RunAccepted(at, run_id, tenant, plan.workflow_id, submission.inputs)
        row = RunRow(
            run_id=run_id,
            tenant=tenant,
            workflow_id=plan.workflow_id,
            workflow_version=version,
            plan_id="p",
            created_at=at,
        )
        run = Run(plan, accepted)
        run.ready.clear()
        self.runs[run_id] = FakeRun(run, row, definition)
        await self.tell(run_id, accepted)
        run.last_event = 1
        if key is not None:
            self.keys[(tenant, key)] = (submission.fingerprint, run_id)
        return Accepted(run_id, "queued", at, True)

    def _run(self, tenant: str, run_id: str) -> FakeRun:
        known = self.runs.get(run_id)
        if known is None or known.row.tenant != tenant:
            raise errors.NotFound(errors.RUN_NOT_FOUND, f"no such run: {run_id[:64]}")
        return known

    async def cancel(self, tenant: str, run_id: str, by: str) -> None:
        known = self._run(tenant, run_id)
        if known.run.status in ("succeeded", "failed"):
            raise errors.Conflict(
                errors.RUN_TERMINAL,
                f"the run has ended: {known.run.status}",
                detail={"status": known.run.status},
            )
        if known.run.cancel is None:
            await self.tell(run_id, CancelRequested(self.tick(), by))

    async def end_cancelled(self, run_id: str) -> None:
        for task, one in enumerate(self.runs[run_id].run.tasks):
            if not one.is_terminal:
                await self.tell(run_id, TaskCancelled(self.tick(), task, one.attempt))
        await self.finish(run_id, "cancelled")

    async def rebind(self, tenant: str, run_id: str, *, restart: bool, by: str) -> None:
        self._run(tenant, run_id)
        self.rebound.append((run_id, restart))

    async def view_run(
        self, tenant: str, run_id: str, *, with_nodes: bool = True
    ) -> dict[str, Any]:
        return view_run(self._run(tenant, run_id).run, nodes=with_nodes)

    async def view_node(self, tenant: str, run_id: str, node_id: str) -> dict[str, Any]:
        run = self._run(tenant, run_id).run
        return view_node(run, self._place(run, node_id))

    def _place(self, run: Run, node_id: str) -> int:
        for place, node in enumerate(run.plan.nodes):
            if node.node_id == node_id:
                return place
        raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, f"no such node: {node_id[:64]}")

    async def node_facts(self, tenant: str, run_id: str, node_id: str) -> list[NumberedFact]:
        known = self._run(tenant, run_id)
        place = self._place(known.run, node_id)
        return [
            one
            for one in known.facts
            if isinstance(one.fact, CancelRequested)
            or (isinstance(one.fact, TaskFact) and one.fact.task == place)
        ]

    async def get_definition(self, tenant: str, run_id: str) -> bytes:
        return self._run(tenant, run_id).definition

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        rows = sorted(
            (one.row for one in self.runs.values() if one.row.tenant == tenant),
            key=lambda row: (row.created_at, row.run_id),
            reverse=True,
        )
        return [
            row
            for row in rows
            if (before is None or (row.created_at, row.run_id) < tuple(before))
            and (status is None or row.status == status)
            and (workflow_id is None or row.workflow_id == workflow_id)
        ][:limit]

    # -- streams ----------------------------------------------------------------------------

    async def last_event(self, tenant: str, run_id: str) -> tuple[int, bool]:
        run = self._run(tenant, run_id).run
        return run.last_event, run.is_terminal

    async def follow_run(
        self, tenant: str, run_id: str, after: int
    ) -> AsyncGenerator[list[Event], None]:
        known = self._run(tenant, run_id)
        self.following += 1
        try:
            while True:
                fresh = known.events[after:]
                if fresh:
                    after = fresh[-1]["id"]
                    yield fresh
                    if known.run.is_terminal and after == known.run.last_event:
                        return
                    continue
                async with known.changed:
                    await known.changed.wait_for(lambda seen=after: len(known.events) > seen)
        finally:
            self.following -= 1
            self.left.set()

    async def last_tenant_event(self, tenant: str) -> int:
        return len([one for one in self.tenant_log if one.tenant == tenant])

    async def follow_tenant(
        self, tenant: str, after: int | None
    ) -> AsyncGenerator[list[TenantEvent], None]:
        log = [one for one in self.tenant_log if one.tenant == tenant]
        start = len(log) if after is None else after
        self.following += 1
        try:
            if log[start:]:
                yield log[start:]
            await asyncio.Event().wait()
        finally:
            self.following -= 1
            self.left.set()

    # -- workflows --------------------------------------------------------------------------

    def validate(self, tenant: str, definition: bytes) -> list[DocumentProblem]:
        return validate(decode_definition(definition), self.catalogs.of(tenant))

    async def save_workflow(
        self,
        tenant: str,
        definition: bytes,
        *,
        by: str,
        workflow_id: str | None = None,
        expected_version: int | None = None,
    ) -> WorkflowRow:
        workflow = decode_definition(definition).workflow
        if workflow_id is not None and workflow.id != workflow_id:
            raise errors.Refused(
                errors.WORKFLOW_INVALID, "the id is not that of the path", pointer="/id"
            )
        versions = self.workflows.setdefault((tenant, workflow.id), [])
        if expected_version is not None and expected_version != len(versions):
            raise errors.Conflict(errors.WORKFLOW_CONFLICT, f"it is at version {len(versions)}")
        at = self.tick()
        row = WorkflowRow(
            tenant=tenant,
            workflow_id=workflow.id,
            version=len(versions) + 1,
            name=(workflow.metadata.name if workflow.metadata else None) or "",
            definition=definition,
            created_at=versions[0].created_at if versions else at,
            updated_at=at,
            updated_by=by,
        )
        versions.append(row)
        return row

    async def get_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow:
        versions = self.workflows.get((tenant, workflow_id), [])
        wanted = len(versions) if version is None else version
        if not versions or wanted > len(versions):
            raise errors.NotFound(errors.WORKFLOW_NOT_FOUND, "no such workflow")
        return versions[wanted - 1]

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        rows = sorted(
            (rows[-1] for (owner, _), rows in self.workflows.items() if owner == tenant and rows),
            key=lambda row: (row.updated_at, row.workflow_id),
            reverse=True,
        )
        return [
            row
            for row in rows
            if before is None or (row.updated_at, row.workflow_id) < tuple(before)
        ][:limit]

    async def delete_workflow(self, tenant: str, workflow_id: str) -> None:
        if not self.workflows.pop((tenant, workflow_id), None):
            raise errors.NotFound(errors.WORKFLOW_NOT_FOUND, "no such workflow")

    # -- workers, audit ---------------------------------------------------------------------

    def add_worker(self, tenant: str, worker_id: str) -> None:
        self.known_workers[(tenant, worker_id)] = WorkerView(
            worker_id=worker_id,
            name=f"name of {worker_id}",
            tenant=tenant,
            status="online",
            version="0.1.0",
            hostname="here",
            max_parallel=4,
            inflight=1,
            packages=[{"name": "core", "version": "1.0.0", "status": "installed"}],
            labels={"zone": "a"},
            last_heartbeat_at=self.tick(),
        )

    def workers(self, tenant: str) -> list[WorkerView]:
        return [one for (owner, _), one in self.known_workers.items() if owner == tenant]

    def worker(self, tenant: str, worker_id: str) -> WorkerView:
        known = self.known_workers.get((tenant, worker_id))
        if known is None:
            raise errors.NotFound(errors.WORKER_NOT_FOUND, f"no such worker: {worker_id[:64]}")
        return known

    def audit_refusal(self, tenant: str, by: str, action: str, code: errors.Code) -> None:
        self.refusals.append((tenant, by, action, code.code))

    async def command(self, tenant: str, worker_id: str, command: WorkerCommand, by: str) -> str:
        self.worker(tenant, worker_id)
        self.commands.append((worker_id, command, by))
        return f"c{len(self.commands)}"

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        numbered = [
            (number, row)
            for number, row in enumerate(self.audits, 1)
            if row.tenant == tenant and (before is None or number < before)
        ]
        return numbered[::-1][:limit]

    # -- packages, resources ----------------------------------------------------------------

    async def begin(self) -> None:
        """What a scheduler does when it has its claim."""
        claim = await self.store.claim("fake")
        assert claim is not None
        self.claim = claim
        await self.depot.begin(claim, self._note)

    def _note(self, tenant: str, by: str, action: str, subject: str) -> None:
        self.audits.append(AuditRow(tenant, self.tick(), by, action, subject))

    async def hold(self, row: ResourceRow) -> None:
        """A worker says that it has a resource."""
        self.number = getattr(self, "number", 0) + 1
        changes = Changes()
        changes.resources.append(row)
        await self.store.commit(self.claim, self.number, changes)

    async def resources(self, tenant: str, **wanted: Any) -> list[ResourceRow]:
        return await self.store.resources(tenant, **wanted)

    async def resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> ResourceRow:
        found = await self.store.find_resource(tenant, resource_id, worker_id)
        if not found:
            raise errors.NotFound(errors.RESOURCE_MISSING, f"no such resource: {resource_id[:80]}")
        if len(found) > 1:
            raise errors.Conflict(errors.RESOURCE_CONFLICT, "several workers have it: name one")
        return found[0]

    async def close_resource(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        row = await self.resource(tenant, resource_id, worker_id)
        self.closed.append((row.worker_id, row.resource_id, by))
        return row

    async def extend_resource(
        self, tenant: str, resource_id: str, worker_id: str | None, ttl_s: float, by: str
    ) -> ResourceRow:
        row = await self.resource(tenant, resource_id, worker_id)
        longer = msgspec.structs.replace(row, expires_at=self.time + int(ttl_s * 1000))
        await self.hold(longer)
        return longer

    async def export_artifact(
        self, tenant: str, resource_id: str, worker_id: str | None, by: str
    ) -> ResourceRow:
        """The worker uploads its id, in bytes."""
        row = await self.resource(tenant, resource_id, worker_id)
        self.exported.append(resource_id)

        async def chunks() -> AsyncIterator[bytes]:
            yield resource_id.encode()

        url = self.depot.copies.upload_url((tenant, row.worker_id, resource_id))
        link = self.depot.copies.open_upload(url.rpartition("/")[2])
        await self.depot.copies.receive(link, chunks())
        return await self.resource(tenant, resource_id, row.worker_id)


class FakeRollouts:
    """Rollouts that begin and stay where they are."""

    def __init__(self, scheduler: FakeScheduler) -> None:
        self._scheduler = scheduler
        self.begun: list[Rollout] = []

    async def start(self, tenant: str, name: str, request: RolloutRequest, by: str) -> Rollout:
        request.check()
        repository = self._scheduler.depot.repository
        row = repository.find(tenant, name, request.version)
        rollout = Rollout(
            rollout_id=f"rollout-{len(self.begun) + 1}",
            tenant=tenant,
            name=name,
            version=row.version,
            previous=repository.active(tenant, name),
            waves=request.waves,
            started_at=self._scheduler.tick(),
            updated_at=self._scheduler.tick(),
            started_by=by,
        )
        self.begun.append(rollout)
        return rollout

    async def of(self, tenant: str, name: str) -> list[Rollout]:
        return [one for one in self.begun if (one.tenant, one.name) == (tenant, name)][::-1]

    async def roll_back(self, tenant: str, name: str, by: str) -> str:
        pointer = self._scheduler.depot.repository.pointer(tenant, name)
        if pointer is None or pointer.previous is None:
            raise errors.Conflict(errors.PKG_CONFLICT, "nothing was active before")
        await self._scheduler.depot.repository.activate(tenant, name, pointer.previous, by)
        return pointer.previous
