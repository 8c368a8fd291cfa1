"""The scheduler as the API sees it: submit, cancel, read, follow, order."""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.engine.batch import DrainWish
from astraflow.core.engine.engine import Engine
from astraflow.core.engine.intake import CancelRun, SubmitRun
from astraflow.core.engine.packages import wish_installed, wish_removed
from astraflow.core.engine.view import View
from astraflow.core.runs.facts import (
    RunStatus,
)
from astraflow.core.workflow import check_inputs
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.depot import Depot
from astraflow.scheduler.ledger import Origin, status_of
from astraflow.scheduler.orders import (
    Drain,
    InstallPackage,
    Rebind,
    Undrain,
    UninstallPackage,
    WorkerCommand,
)
from astraflow.scheduler.reading import Reading
from astraflow.scheduler.resources import Resources
from astraflow.scheduler.serving import Parts
from astraflow.scheduler.waits import Undecided, within
from astraflow.scheduler.workflows import Workflows
from astraflow.store.rows import AuditRow, RunRow, WorkerRow

__all__ = ["Accepted", "Scheduler", "Submission", "WorkerView"]


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
    resources: dict[str, float] = {}
    has_drifted: bool = False
    drain_requested: bool = False
    """Somebody has asked it to drain, and nobody has taken that back: told again whenever it is back."""


class Scheduler(Reading, Workflows, Resources):
    """One scheduler process. Use from its loop."""

    def __init__(self, parts: Parts, catalogs: Catalogs, depot: Depot | None = None) -> None:
        super().__init__(parts, catalogs, depot)
        if depot is not None:
            depot.copies.on_copy = self.note_copy

    # -- runs -------------------------------------------------------------------------------

    async def submit(self, submission: Submission) -> Accepted:
        """Take a run in; when this returns it is durable (P1).

        Raises:
            InvalidDocument: with all problems of the definition.
            Conflict: the idempotency key was used with another body, or its run has been removed.
            Unavailable: not ready, or too much is waiting.
        """
        definition, version = await self._definition_of(submission)
        planned = await self._plans.make(submission.tenant, definition)
        check_inputs(planned.inputs, bytes(submission.inputs))
        serving = self.serving
        if serving.is_full:
            raise errors.Unavailable(
                errors.STORE_FULL, "the store has reached retention_bytes; active runs go on"
            )
        await self._recall(serving.engine, submission.tenant, submission.idempotency_key)
        run_id = self._parts.ids.new()
        origins = serving.writer.ledger.origins
        origins[run_id] = Origin(planned.row, planned.name, version)
        try:
            made, at = await serving.writer.submit(
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
        except Undecided:
            raise  # what the engine took in is written all the same when the store answers, and needs its origin
        except errors.AstraflowError:
            origins.pop(run_id, None)
            raise
        # Nor when the caller has given up, for the same reason.
        origins.pop(run_id, None)
        if made == run_id:
            return Accepted(made, "queued", at, True)
        return await self._accepted_before(submission.tenant, made)

    async def _recall(self, engine: Engine, tenant: str, key: str | None) -> None:
        """Let the engine know of an earlier use of the key, if it may have had to forget it."""
        clock, known = self._parts.clock, engine.view.submissions
        if key is None or not known.may_be_missing(tenant, key, clock.now()):
            return
        used = await within(self._store.find_submission(tenant, key))
        # Somebody else may have used it meanwhile: that is newer than what was stored.
        if used is not None and known.may_be_missing(tenant, key, clock.now()):
            age_s = (clock.wall_ms() - used.created_at) / 1000
            if age_s < self._parts.engine.remember_submissions_s:
                engine.remember_submission(tenant, key, used.fingerprint, used.run_id, age_s)

    async def _accepted_before(self, tenant: str, run_id: str) -> Accepted:
        """The run that the same key has made before (P3)."""
        row = await within(self._store.find_run(tenant, run_id))
        if row is None:
            raise errors.Conflict(
                errors.RUN_REMOVED,
                f"the run of this Idempotency-Key was removed by retention: {run_id}",
                detail={"runId": run_id},
            )
        return Accepted(run_id, row.status, row.created_at, False)

    async def _definition_of(self, submission: Submission) -> tuple[bytes, int | None]:
        if submission.definition is not None:
            return submission.definition, None
        assert submission.workflow_id is not None, "a submission names what to run"
        tenant, workflow_id = submission.tenant, submission.workflow_id
        row = await within(self.get_workflow(tenant, workflow_id, submission.version))
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
            NotFound: no such package is published.
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
                engine.operate(lambda view: _wish(view, tenant, worker_id, command), now, at)
            action = str(type(command).__struct_config__.tag)
            engine.audit(tenant, by, action, order_id, worker_id)

        writer.act(operate)
        await writer.barrier()
        return order_id

    def audit_refusal(self, tenant: str, by: str, action: str, code: errors.Code) -> None:
        """Keep that somebody asked for what they may not do."""
        writer = self.serving.writer
        writer.act(lambda now, at: writer.engine.audit(tenant, by, action, None, code=code))

    async def audit(
        self, tenant: str, *, limit: int, before: int | None = None
    ) -> list[tuple[int, AuditRow]]:
        return await self._store.audit(tenant, limit=limit, before=before)

    def _packages_of(self, row: WorkerRow) -> list[dict[str, str]]:
        """What it has, and what is on its way to it or did not get there."""
        packages: list[dict[str, str]] = msgspec.json.decode(row.packages)
        there = {(one["name"], one["version"]) for one in packages}
        view = self.serving.engine.view
        for wish in view.wishes.of_worker(row.tenant, row.worker_id):
            is_coming = wish.wish == "installed" and wish.state != "installed"
            if is_coming and (wish.name, wish.version) not in there:
                packages.append({"name": wish.name, "version": wish.version, "status": wish.state})
        return packages

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
            packages=self._packages_of(row),
            labels=msgspec.json.decode(row.labels),
            last_heartbeat_at=row.seen_at if entry is None else max(entry.heard_at, row.seen_at),
            resources={} if entry is None else dict(entry.resources),
            has_drifted=entry is not None and entry.has_drifted,
            drain_requested=(row.tenant, row.worker_id) in self.serving.engine.view.drains,
        )


def _wish(
    view: View, tenant: str, worker_id: str, command: InstallPackage | UninstallPackage
) -> None:
    worker = view.workers.find(tenant, worker_id)
    if worker is None:
        raise errors.NotFound(errors.WORKER_NOT_FOUND, f"no such worker: {worker_id[:64]}")
    if isinstance(command, InstallPackage):
        wish_installed(view, worker, command.name, command.version, "command")
    else:
        wish_removed(view, worker, command.name, command.version, "command")


def _ended(row: RunRow) -> errors.Conflict:
    return errors.Conflict(
        errors.RUN_TERMINAL, f"the run has ended: {row.status}", detail={"status": row.status}
    )
