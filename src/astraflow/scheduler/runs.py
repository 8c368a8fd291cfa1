"""Runs as the API asks for them: submit, cancel, rebind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from secrets import token_urlsafe
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.cluster.lanes import HOME_LANE
from astraflow.core.contract.words import RunStatus
from astraflow.core.engine.commands import CancelRun, KeepAudit, RebindRun, SubmitRun
from astraflow.core.engine.engine import Engine
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.accept import ReusedResult
from astraflow.core.runs.facts import SignalKey
from astraflow.core.workflow import refusal_of, take_inputs
from astraflow.core.workflow.plan import Feature
from astraflow.core.workflow.problems import InvalidDocument
from astraflow.observe.request_ids import current_request_id
from astraflow.scheduler.current import Current
from astraflow.scheduler.lane_rules import LaneRules, LanesAdded, moved_to
from astraflow.scheduler.pins import Pins
from astraflow.scheduler.plans import Planned, Plans
from astraflow.scheduler.repository import Repository
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.secret_vault import SecretVault
from astraflow.scheduler.serving import Parts
from astraflow.scheduler.store_timeouts import with_store_timeout
from astraflow.scheduler.workflows import Workflows
from astraflow.store.rows import RunRow

KEY_BYTES: Final = 24
"""192 bits: nobody can guess what the addresses of a run are made of."""


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
    traceparent: str | None = None
    rerun_of: str | None = None
    kept: Mapping[NodeId, ReusedResult] = {}
    """The results of `rerun_of` that the run takes over."""
    depth: int = 0
    """How many ends of runs led to this one, by triggers."""
    trigger: str = ""
    """The name of the trigger that asks for it."""
    use_pinned: bool = False
    """Whether nodes have the pinned results of the workflow. A trigger never asks for that."""


class SubmittedRun(msgspec.Struct, frozen=True):
    """The run that a submission has made, now or before."""

    run_id: RunId
    status: RunStatus
    created_at: int
    is_new: bool


class PreparedRun(msgspec.Struct, frozen=True):
    """A submission that has no problem."""

    planned: Planned
    version: int | None
    inputs: msgspec.Raw
    pinned: dict[NodeId, ReusedResult]


class Runs:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        parts: Parts,
        current: Current,
        plans: Plans,
        workflows: Workflows,
        reader: RunReader,
        vault: SecretVault,
        pins: Pins,
        repository: Repository | None = None,
    ) -> None:
        self._store = parts.store
        self._current = current
        self._plans = plans
        self._workflows = workflows
        self._reader = reader
        self._vault = vault
        self._pins = pins
        self._repository = repository
        self._clock = parts.clock
        self._ids = parts.ids
        self._traces = parts.traces
        self._lane_rules = LaneRules(parts, current)
        self._remember_s = parts.engine.remember_submissions_s
        self._base_url = parts.base_url

    async def submit(self, submission: Submission) -> SubmittedRun:
        """Accept a run; when this returns it is durable (P1).

        Raises:
            InvalidDocument: with all problems of the definition.
            Conflict: the idempotency key was used with another body, or its run has been removed.
            Unavailable: not ready, or too much is waiting.
        """
        if self._repository is not None and not self._lane_rules.is_home(submission.tenant):
            await with_store_timeout(self._repository.refresh(submission.tenant))
        try:
            prepared = await self.prepare(submission)
        except InvalidDocument:
            if not self._lane_rules.is_home(submission.tenant):
                raise moved_to(HOME_LANE) from None  # which may know more
            raise
        is_only_here = submission.trigger or not self._lane_rules.has_several(submission.tenant)
        try:
            if is_only_here:  # triggers are at home, and so are their keys
                return await self._submit(submission, prepared)
            return await self._submit_to_lane(submission, prepared)
        except LanesAdded:
            return await self._submit_to_lane(submission, prepared)

    async def _submit_to_lane(self, submission: Submission, prepared: PreparedRun) -> SubmittedRun:
        """Raises: LanesAdded: meanwhile; nothing was done."""
        rules, tenant = self._lane_rules, submission.tenant
        right_lane = partial(rules.right_lane, tenant, prepared.planned.plan, prepared.inputs)
        if submission.rerun_of is not None:
            right_lane = partial(rules.own_lane, tenant)
        async with rules.reserved(
            tenant,
            right_lane,
            submission.idempotency_key,
            submission.fingerprint,
            partial(self._is_known, submission),
        ):
            return await self._submit(submission, prepared)

    async def _submit(self, submission: Submission, prepared: PreparedRun) -> SubmittedRun:
        had_several = self._lane_rules.has_several(submission.tenant)
        planned, pinned = prepared.planned, prepared.pinned
        reused = {**submission.kept, **pinned}
        index = planned.plan.index if reused else {}
        serving = self._current.serving
        if serving.is_full:
            raise errors.Unavailable(
                errors.STORE_FULL, "the store has reached retention_bytes; active runs go on"
            )
        await self._recall(serving.engine, submission.tenant, submission.idempotency_key)
        run_id = RunId(self._ids.new())
        signal_key = None
        if Feature.SIGNAL_ADDRESS in planned.plan.features:
            signal_key = SignalKey(token_urlsafe(KEY_BYTES), self._base_url)
        trace = self._traces.begin(submission.traceparent)
        has_several = self._lane_rules.has_several(submission.tenant)
        if has_several != had_several and not submission.trigger:
            raise LanesAdded
        made, at = await serving.writer.submit(
            lambda token: SubmitRun(
                token,
                submission.tenant,
                run_id,
                planned.plan,
                prepared.inputs,
                submission.idempotency_key,
                submission.fingerprint,
                deadline_s=planned.plan.timeout_s,
                rerun_of=submission.rerun_of,
                kept={index[node]: one for node, one in reused.items()},
                pinned=tuple(sorted(index[node] for node in pinned)),
                plan_id=planned.row.plan_id,
                definition=planned.row.definition,
                plan_body=planned.row.plan,
                name=planned.name,
                workflow_version=prepared.version,
                trace=trace,
                by=submission.by,
                corr=current_request_id() or None,
                signal_key=signal_key,
                depth=submission.depth,
                trigger=submission.trigger,
            )
        )
        if made == run_id:
            return SubmittedRun(made, "queued", at, True)
        return await self._accepted_before(submission.tenant, made)

    async def prepare(self, submission: Submission) -> PreparedRun:
        """All that the definition and the inputs of a run are checked for; nothing is changed.

        Raises: as `submit`.
        """
        definition, version = await self._definition_of(submission)
        planned = await self._plans.make(submission.tenant, definition)
        if planned.has_secrets:
            problems = self._vault.problems_of(submission.tenant, planned.plan, definition)
            if problems:
                raise refusal_of(problems)
        inputs = take_inputs(planned.inputs, submission.inputs)
        pinned: dict[NodeId, ReusedResult] = {}
        if submission.use_pinned:
            pinned = await self._pins.for_run(submission.tenant, planned.plan)
        return PreparedRun(planned, version, inputs, pinned)

    async def _recall(self, engine: Engine, tenant: str, key: str | None) -> None:
        """Let the engine know of an earlier use of the key, if it may have had to forget it."""
        clock, ask = self._clock, engine.ask
        if key is None or not ask.may_have_forgotten(tenant, key, clock.now()):
            return
        used = await with_store_timeout(self._store.find_submission(tenant, key))
        # Somebody else may have used it meanwhile: that is newer than what was stored.
        if used is not None and ask.may_have_forgotten(tenant, key, clock.now()):
            age_s = (clock.wall_ms() - used.created_at) / 1000
            if age_s < self._remember_s:
                engine.remember_submission(tenant, key, used.fingerprint, used.run_id, age_s)

    async def _is_known(self, submission: Submission) -> bool:
        """Whether this lane has a run of the key."""
        tenant, key = submission.tenant, submission.idempotency_key
        assert key is not None
        engine = self._current.engine
        await self._recall(engine, tenant, key)
        return engine.ask.knows_key(tenant, key, self._clock.now())

    async def _accepted_before(self, tenant: str, run_id: RunId) -> SubmittedRun:
        """The run that the same key has made before (P3)."""
        row = await with_store_timeout(self._store.find_run(tenant, run_id))
        if row is None:
            raise errors.Conflict(
                errors.RUN_REMOVED,
                f"the run of this Idempotency-Key was removed by retention: {run_id}",
                detail={"runId": run_id},
            )
        return SubmittedRun(run_id, row.status, row.created_at, False)

    async def _definition_of(self, submission: Submission) -> tuple[bytes, int | None]:
        if submission.definition is not None:
            return submission.definition, submission.version
        assert submission.workflow_id is not None, "a submission names what to run"
        tenant, workflow_id = submission.tenant, submission.workflow_id
        row = await with_store_timeout(self._workflows.get(tenant, workflow_id, submission.version))
        return row.definition, row.version

    async def cancel(self, tenant: str, run_id: RunId, by: str) -> None:
        """Ask a run to stop. Fine if it is being or was cancelled.

        Raises:
            NotFound: no such run.
            Conflict: it has succeeded or failed.
        """
        writer = self._current.writer
        try:
            await writer.cancel(lambda token: CancelRun(token, tenant, run_id, by))
        except errors.NotFound:
            row = await self._reader.get_row(tenant, run_id)
            if row.status != "cancelled":
                raise _ended(row) from None
        writer.execute(KeepAudit(tenant=tenant, by=by, what="cancel", subject=run_id))

    async def rebind(self, tenant: str, run_id: RunId, *, restart: bool, by: str) -> None:
        """Forget where the run's tasks went before; with `restart`, running attempts are restarted.

        Raises:
            NotFound: no such run.
            Conflict: it has ended.
        """
        command = RebindRun(tenant=tenant, by=by, subject=run_id, run_id=run_id, restart=restart)
        try:
            self._current.execute(command)
        except errors.NotFound:
            raise _ended(await self._reader.get_row(tenant, run_id)) from None
        await self._current.writer.barrier()


def _ended(row: RunRow) -> errors.Conflict:
    return errors.Conflict(
        errors.RUN_TERMINAL, f"the run has ended: {row.status}", detail={"status": row.status}
    )
