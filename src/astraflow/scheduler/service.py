"""The scheduler as the API sees it: submit, cancel, read, follow; and its life from start to stop.

Rule 1: it serves under one claim at a time. When the store fails it lets everything go and starts over from what is
        stored; meanwhile it says that it is not ready, and why.
Rule 2: what is shown is durable. A view of an active run is made in one turn of the loop and given out after the
        barrier that makes everything in it durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec

from astraflow import errors
from astraflow.engine.batch import DrainWish, NumberedFact
from astraflow.engine.intake import CancelRun, SubmitRun
from astraflow.engine.view import View
from astraflow.ids import NodeId
from astraflow.runs.facts import (
    CallOpened,
    CancelRequested,
    RunFinished,
    RunStatus,
    TaskFact,
)
from astraflow.runs.projections import Event, events_of, view_node, view_run
from astraflow.runs.run import Run
from astraflow.scheduler.archive import Archive, facts_of
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.ledger import Origin, status_of
from astraflow.scheduler.orders import Drain, Rebind, Undrain, WorkerCommand
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.serving import Parts, Serving, open_serving
from astraflow.scheduler.writer import Connection
from astraflow.store.rows import AuditRow, RunRow, TenantEvent, WorkerRow, WorkflowRow
from astraflow.workflow import decode_definition, validate
from astraflow.workflow.catalog import Catalog
from astraflow.workflow.plan import Feature
from astraflow.workflow.problems import Problem

__all__ = ["Accepted", "Scheduler", "Submission", "WorkerView"]

_log: Final = logging.getLogger(__name__)

CLAIM_RETRY_S: Final = 0.5
START_OVER_S: Final = 1.0
"""Before a scheduler whose store failed tries again."""

PASSING: Final = frozenset(
    {errors.STORE_UNAVAILABLE.code, errors.STORE_FENCED.code, errors.STORE_FULL.code}
)
"""Failures of a store that may be over when it is asked again. A disk that fails to flush is not among them: what it
holds is unknown, and only an operator can say."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A run that somebody asks for: a definition of its own, or a saved workflow."""

    tenant: str
    by: str = ""
    definition: bytes | None = None
    workflow_id: str | None = None
    version: int | None = None
    inputs: msgspec.Raw = msgspec.Raw(b"{}")
    idempotency_key: str | None = None
    fingerprint: str | None = None


class Accepted(msgspec.Struct, frozen=True):
    """The run that a submission has made, now or before."""

    run_id: str
    status: RunStatus
    created_at: int
    is_new: bool


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as lists show it."""

    worker_id: str
    name: str
    tenant: str
    status: str
    version: str
    hostname: str
    max_parallel: int
    inflight: int
    packages: list[dict[str, str]]
    labels: dict[str, str]
    last_heartbeat_at: int


class Scheduler:
    """Start it with `run`; everything else raises `Unavailable` while it is not ready."""

    def __init__(self, parts: Parts, catalog: Catalog) -> None:
        self._parts = parts
        self._catalog = catalog
        self._store = parts.store
        self._plans = Plans(parts.store, catalog)
        self._archive = Archive(parts.store, self._plans)
        self._feed = Feed(parts.store)
        self._serving: Serving | None = None
        self._problem: str | None = "starting"
        self.ready = asyncio.Event()

    # -- life -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Open the store and serve until cancelled.

        Raises:
            StoreError: the store cannot be used, and waiting will not help.
        """
        await self._store.open()
        try:
            while True:
                await self._serve()
        finally:
            await self._store.close()

    async def _serve(self) -> None:
        parts = self._parts
        try:
            claim = await self._store.claim(parts.scheduler_id)
            if claim is None:
                self._problem = "another scheduler owns the store"
                await asyncio.sleep(CLAIM_RETRY_S)
                return
            serving = await open_serving(parts, claim, self._plans, self._feed)
            self._serving, self._problem = serving, None
            self.ready.set()
            try:
                await serving.run()
            finally:
                self._serving = None
                self.ready.clear()
                parts.gauge.forget()
                await self._store.release(claim)
        except errors.StoreError as error:
            if error.code.code not in PASSING:
                raise
            self._problem = f"the store failed: {error.message}"
            _log.warning("starting over: %s", error.message, extra={"code": error.code.code})
            await asyncio.sleep(START_OVER_S)

    def end_streams(self) -> None:
        """Let everybody go who follows something: the process is about to end, and they can resume."""
        self._feed.end()

    @property
    def view(self) -> View | None:
        """What the engine that serves knows, for metrics."""
        return self._serving.engine.view if self._serving is not None else None

    def is_ready(self) -> bool:
        return self._serving is not None

    def problem(self) -> str | None:
        """Why it is not ready."""
        return self._problem

    @property
    def serving(self) -> Serving:
        """What serves now.

        Raises:
            Unavailable: nothing does.
        """
        if self._serving is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, f"not ready: {self._problem}")
        return self._serving

    def connect(self, connection: Connection, certificate: object = None) -> tuple[Serving, str]:
        """A worker has opened a socket."""
        serving = self.serving
        return serving, serving.writer.opened(connection, certificate)

    # -- runs -------------------------------------------------------------------------------

    async def submit(self, submission: Submission) -> Accepted:
        """Take a run in; when this returns it is durable (P1).

        Raises:
            InvalidDocument: with all problems of the definition.
            Conflict: the idempotency key was used with another body.
            Unavailable: not ready, or too much is waiting.
        """
        definition, version = await self._definition_of(submission)
        planned = await self._plans.make(definition)
        serving = self.serving
        run_id = self._parts.ids.new()
        serving.writer.ledger.origins[run_id] = Origin(planned.row, planned.name, version)
        try:
            made = await serving.writer.submit(
                lambda token: SubmitRun(
                    token,
                    submission.tenant,
                    run_id,
                    planned.plan,
                    submission.inputs,
                    submission.idempotency_key,
                    submission.fingerprint,
                )
            )
        finally:
            serving.writer.ledger.origins.pop(run_id, None)
        if made == run_id:
            return Accepted(made, "queued", self._parts.clock.wall_ms(), True)
        row = await self._get_row(submission.tenant, made)
        return Accepted(made, row.status, row.created_at, False)

    async def _definition_of(self, submission: Submission) -> tuple[bytes, int | None]:
        if submission.definition is not None:
            return submission.definition, None
        assert submission.workflow_id is not None, "a submission names what to run"
        row = await self.get_workflow(submission.tenant, submission.workflow_id, submission.version)
        return row.definition, row.version

    async def cancel(self, tenant: str, run_id: str, by: str) -> None:
        """Ask a run to stop. Fine if it is being or was cancelled.

        Raises:
            NotFound: no such run.
            Conflict: it has succeeded or failed.
        """
        writer = self.serving.writer
        try:
            await writer.cancel(lambda token: CancelRun(token, tenant, run_id, by))
        except errors.NotFound:
            row = await self._get_row(tenant, run_id)
            if row.status != "cancelled":
                raise _ended(row) from None
        writer.act(lambda now, at: writer.engine.audit(tenant, by, "cancel", run_id))

    async def rebind(self, tenant: str, run_id: str, *, restart: bool, by: str) -> None:
        """Forget where the run's tasks went before; with `restart`, what runs begins anew.

        Raises:
            NotFound: no such run.
            Conflict: it has ended.
        """
        writer = self.serving.writer

        def rebind(now: float, at: int) -> None:
            writer.engine.rebind_run(tenant, run_id, now, at, restart=restart)
            writer.engine.audit(tenant, by, "rebind", run_id)

        try:
            writer.act(rebind)
        except errors.NotFound:
            raise _ended(await self._get_row(tenant, run_id)) from None
        await writer.barrier()

    async def view_run(
        self, tenant: str, run_id: str, *, with_nodes: bool = True
    ) -> dict[str, Any]:
        """A run as clients see it. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        view = view_run(run, nodes=with_nodes)
        await self._durable(run)
        return view

    async def view_node(self, tenant: str, run_id: str, node_id: str) -> dict[str, Any]:
        """One node with its whole result. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        place = run.plan.index.get(NodeId(node_id))
        if place is None:
            raise errors.NotFound(errors.RUN_NOT_FOUND, f"no such node in the run: {node_id}")
        view = view_node(run, place)
        await self._durable(run)
        return view

    async def _find_run(self, tenant: str, run_id: str) -> Run:
        active = self.serving.engine.view.runs.get(run_id)
        if active is not None and active.tenant == tenant:
            return active
        return await self._archive.run(await self._get_row(tenant, run_id))

    async def _durable(self, run: Run) -> None:
        """Rule 2. An ended run was read from the store, or ended in a batch that is on its way."""
        await self.serving.writer.barrier()

    async def _get_row(self, tenant: str, run_id: str) -> RunRow:
        row = await self._store.find_run(tenant, run_id)
        if row is None:
            raise errors.NotFound(errors.RUN_NOT_FOUND, f"no such run: {run_id[:64]}")
        return row

    async def list_runs(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        status: RunStatus | None = None,
        workflow_id: str | None = None,
    ) -> list[RunRow]:
        return await self._store.list_runs(
            tenant, limit=limit, before=before, status=status, workflow_id=workflow_id
        )

    async def get_definition(self, tenant: str, run_id: str) -> bytes:
        row = await self._get_row(tenant, run_id)
        plan = await self._store.find_plan(row.plan_id)
        assert plan is not None, "the plan of a run is kept as long as the run"
        return plan.definition

    # -- events -----------------------------------------------------------------------------

    async def last_event(self, tenant: str, run_id: str) -> tuple[int, bool]:
        """The number of the last event, and whether it is the last there will ever be."""
        run = await self._find_run(tenant, run_id)
        last, is_over = run.last_event, run.is_terminal
        await self._durable(run)
        return last, is_over

    async def follow_run(
        self, tenant: str, run_id: str, after: int
    ) -> AsyncGenerator[list[Event], None]:
        """Events beyond `after`, in batches, to the end of the run."""
        row = await self._get_row(tenant, run_id)
        active = self.serving.engine.view.runs.get(run_id)
        plan = active.plan if active is not None else await self._plans.find(row.plan_id)
        calls: dict[int, CallOpened] = {}
        if after and Feature.MIDDLEWARE in plan.features:
            calls = await self._archive.calls(run_id)
        async with aclosing(self._feed.pages(run_id, after)) as batches:
            async for pages in batches:
                events: list[Event] = []
                fact: object = None
                for numbered in (one for page in pages for one in facts_of(page)):
                    fact = numbered.fact
                    if isinstance(fact, CallOpened):
                        calls[fact.task] = fact
                    events += events_of(numbered.fact, numbered.first, plan, calls)
                if events and events[0]["id"] <= after:
                    events = [event for event in events if event["id"] > after]
                if events:
                    yield events
                if isinstance(fact, RunFinished):
                    return

    async def last_tenant_event(self, tenant: str) -> int:
        """The number of the last event of the tenant's stream."""
        last = self.serving.writer.ledger.head_of(tenant)
        await self.serving.writer.barrier()
        return last

    async def follow_tenant(
        self, tenant: str, after: int | None
    ) -> AsyncGenerator[list[TenantEvent], None]:
        """Events of the tenant's own stream beyond `after`; None: from now on."""
        start = self.serving.writer.ledger.head_of(tenant) if after is None else after
        async with aclosing(self._feed.events(tenant, start)) as batches:
            async for events in batches:
                yield events

    async def read_facts(
        self, tenant: str, run_id: str, after: int, limit: int
    ) -> list[NumberedFact]:
        """Facts whose first event is beyond `after`, in order, `limit` at the most."""
        await self._get_row(tenant, run_id)
        found: list[NumberedFact] = []
        while len(found) < limit:
            pages = await self._store.read_pages(run_id, after)
            if not pages:
                break
            found += (one for page in pages for one in facts_of(page) if one.first > after)
            after = pages[-1].last
        return found[:limit]

    async def node_facts(self, tenant: str, run_id: str, node_id: str) -> list[NumberedFact]:
        """The facts about one node, in order: its task's, those of the calls in its chain, and cancels of the run.

        Raises: NotFound.
        """
        run = await self._find_run(tenant, run_id)
        place = run.plan.index.get(NodeId(node_id))
        if place is None:
            raise errors.NotFound(errors.RUN_NOT_FOUND, f"no such node in the run: {node_id[:64]}")
        tasks = {place} | {call for call in run.calls.values() if _is_of(run, call, place)}
        found: list[NumberedFact] = []
        after = 0
        while pages := await self._store.read_pages(run_id, after):
            for numbered in (one for page in pages for one in facts_of(page)):
                fact = numbered.fact
                is_of_task = isinstance(fact, TaskFact) and fact.task in tasks
                if is_of_task or isinstance(fact, CancelRequested):
                    found.append(numbered)
            after = pages[-1].last
        return found

    # -- workflows --------------------------------------------------------------------------

    def validate(self, definition: bytes) -> list[Problem]:
        """All problems of a definition; none if it could run."""
        return validate(decode_definition(definition), self._catalog)

    async def save_workflow(
        self,
        tenant: str,
        definition: bytes,
        *,
        by: str,
        workflow_id: str | None = None,
        expected_version: int | None = None,
    ) -> WorkflowRow:
        """Save a new version of a workflow, or a new workflow.

        Raises:
            InvalidDocument: it is not a definition.
            Conflict: it was saved by somebody else since `expected_version`.
        """
        decoded = decode_definition(definition)
        own_id = decoded.workflow.id
        if workflow_id is not None and own_id != workflow_id:
            raise errors.Refused(
                errors.WORKFLOW_INVALID, "the id is not that of the path", pointer="/id"
            )
        stored = await self._store.find_workflow(tenant, own_id)
        version = stored.version if stored is not None else 0
        if expected_version is not None and expected_version != version:
            raise errors.Conflict(
                errors.WORKFLOW_CONFLICT, f"the workflow is at version {version} by now"
            )
        now = self._parts.clock.wall_ms()
        metadata = decoded.workflow.metadata
        row = WorkflowRow(
            tenant=tenant,
            workflow_id=own_id,
            version=version + 1,
            name=metadata.name if metadata is not None and metadata.name else "",
            definition=definition,
            created_at=stored.created_at if stored is not None else now,
            updated_at=now,
            updated_by=by,
        )
        await self._store.put_workflow(self.serving.claim, row)
        return row

    async def get_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow:
        row = await self._store.find_workflow(tenant, workflow_id, version)
        if row is None:
            raise errors.NotFound(
                errors.WORKFLOW_NOT_FOUND, f"no such workflow: {workflow_id[:64]}"
            )
        return row

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        return await self._store.list_workflows(tenant, limit=limit, before=before)

    async def delete_workflow(self, tenant: str, workflow_id: str) -> None:
        if not await self._store.delete_workflow(self.serving.claim, tenant, workflow_id):
            raise errors.NotFound(
                errors.WORKFLOW_NOT_FOUND, f"no such workflow: {workflow_id[:64]}"
            )

    # -- workers ----------------------------------------------------------------------------

    def workers(self, tenant: str) -> list[WorkerView]:
        rows = self.serving.writer.ledger.workers.values()
        return [self._view_worker(row) for row in rows if row.tenant == tenant]

    def worker(self, tenant: str, worker_id: str) -> WorkerView:
        row = self.serving.writer.ledger.workers.get((tenant, worker_id))
        if row is None:
            raise errors.NotFound(errors.WORKER_NOT_FOUND, f"no such worker: {worker_id[:64]}")
        return self._view_worker(row)

    async def command(self, tenant: str, worker_id: str, command: WorkerCommand, by: str) -> str:
        """Order something of a worker; returns the id of the order once it is durable.

        Raises:
            NotFound: no such worker.
            Refused: this release installs no packages.
        """
        writer = self.serving.writer
        engine = writer.engine
        order_id = self._parts.ids.new()

        def operate(now: float, at: int) -> None:
            if isinstance(command, Drain):
                deadline_ms = command.deadline_ms
                deadline_s = None if deadline_ms is None else deadline_ms / 1000
                wish = DrainWish(command.reason or "", deadline_s)
                engine.drain_worker(tenant, worker_id, wish, now, at)
            elif isinstance(command, Undrain):
                engine.undrain_worker(tenant, worker_id, now, at)
            elif isinstance(command, Rebind):
                engine.rebind_worker(tenant, worker_id, now, at)
            else:
                raise errors.Refused(
                    errors.CMD_UNKNOWN, "this release has no package repository", pointer="/type"
                )
            action = str(type(command).__struct_config__.tag)
            engine.audit(tenant, by, action, order_id, worker_id)

        writer.act(operate)
        await writer.barrier()
        return order_id

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        return await self._store.audit(tenant, limit=limit, before=before)

    def _view_worker(self, row: WorkerRow) -> WorkerView:
        entry = self.serving.engine.view.workers.find(row.tenant, row.worker_id)
        return WorkerView(
            worker_id=row.worker_id,
            name=row.name,
            tenant=row.tenant,
            status=row.status if entry is None else status_of(entry),
            version=row.version,
            hostname=row.hostname,
            max_parallel=row.max_parallel,
            inflight=0 if entry is None else entry.used,
            packages=msgspec.json.decode(row.packages),
            labels=msgspec.json.decode(row.labels),
            last_heartbeat_at=row.seen_at if entry is None else max(entry.heard_at, row.seen_at),
        )


def _ended(row: RunRow) -> errors.Conflict:
    return errors.Conflict(
        errors.RUN_TERMINAL, f"the run has ended: {row.status}", detail={"status": row.status}
    )


def _is_of(run: Run, call: int, place: int) -> bool:
    """Whether a call executes the node, or is one in the chain round it."""
    return run.tasks[call].node == place or run.host_of(call) == place
