"""Re-runs: a new run that takes over what another one has committed, alone or for many runs at once.

Rule 1: the run that is repeated has ended, and stays as it is.
Rule 2: a result is taken over only if everything that it was made of is: what has changed is repeated with all that
        follows, and so is a result whose artifact is gone.
Rule 3: the new run is planned like any other: from the stored definition, with what is asked for changed in it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

import msgspec

from astraflow.core.contract.words import RunStatus
from astraflow.core.fleet.resources import GONE
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.accept import ReusedResult
from astraflow.core.runs.rerun import (
    check_ended,
    keep_for_rerun_from,
    keep_for_rerun_of_failed,
    nodes_with_inputs,
)
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.overrides import override
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.runs import Runs, Submission, SubmittedRun
from astraflow.store.rows import RunRow
from astraflow.store.store import Store


class RerunOrder(msgspec.Struct, frozen=True, kw_only=True, tag="rerun"):
    """A re-run that somebody asks for."""

    tenant: str
    run_id: RunId
    by: str
    mode: Literal["all", "failed", "from"] = "failed"
    nodes: tuple[str, ...] = ()
    parameters: dict[str, dict[str, object]] = {}
    inputs: msgspec.Raw | None = None
    """None: those of the run."""
    packages: dict[str, str] = {}
    idempotency_key: str | None = None
    fingerprint: str | None = None
    traceparent: str | None = None


class RepeatedRun(msgspec.Struct, frozen=True):
    """The new run, and the nodes whose results it took over."""

    run: SubmittedRun
    kept: list[str]


class Reruns:
    """Use from the scheduler's loop."""

    def __init__(self, store: Store, runs: Runs, reader: RunReader) -> None:
        self._store = store
        self._runs = runs
        self._reader = reader

    async def submit(self, order: RerunOrder) -> RepeatedRun:
        """Accept a run that repeats another one; when this returns it is durable.

        Raises:
            NotFound: no such run, or no such node in it.
            Conflict: the run has not ended.
            InvalidDocument: what is changed does not fit the nodes, or the workflow can no longer be run.
        """
        base = await self._reader.get_record(order.tenant, order.run_id)
        check_ended(base)
        row = await self._reader.get_row(order.tenant, order.run_id)
        stored = await self._reader.get_definition(order.tenant, order.run_id)
        packages = {str(node.node_id): node.package_name for node in base.plan.nodes}
        definition, changed = override(stored, order.parameters, order.packages, packages)
        kept = await self._kept(base, order, changed)
        inputs = base.accepted.inputs if order.inputs is None else order.inputs
        made = await self._runs.submit(
            Submission(
                tenant=order.tenant,
                by=order.by,
                definition=definition,
                version=None if changed else row.workflow_version,
                inputs=inputs,
                idempotency_key=order.idempotency_key,
                fingerprint=order.fingerprint,
                traceparent=order.traceparent,
                rerun_of=order.run_id,
                kept=kept,
            )
        )
        return RepeatedRun(made, [str(node_id) for node_id in kept])

    async def _kept(
        self, base: RunRecord, order: RerunOrder, changed: frozenset[str]
    ) -> dict[NodeId, ReusedResult]:
        if order.mode == "all":
            return {}
        first = [NodeId(node) for node in (*order.nodes, *sorted(changed))]
        if order.inputs is not None:
            first += nodes_with_inputs(base.plan)
        gone = await self._gone(base)
        kept = (
            keep_for_rerun_from(base, first, gone)
            if first
            else keep_for_rerun_of_failed(base, gone)
        )
        return {base.plan.nodes[task].node_id: value for task, value in kept.items()}

    async def _gone(self, base: RunRecord) -> frozenset[str]:
        """The artifacts of a run that nobody has any more."""
        gone: set[str] = set()
        for artifact in (one for task in base.tasks for one in task.artifacts if not one.inline):
            found = await self._store.find_resource(
                base.tenant, artifact.resource_id, artifact.worker_id
            )
            if not any(row.state not in GONE or row.blob is not None for row in found):
                gone.add(artifact.resource_id)
        return frozenset(gone)

    async def find(
        self,
        tenant: str,
        statuses: tuple[RunStatus, ...],
        *,
        limit: int,
        before: tuple[int, str] | None,
        workflow_id: str | None,
    ) -> list[RunRow]:
        """Runs with one of these statuses, newest first, by (created_at, run_id)."""
        found: list[RunRow] = []
        for status in statuses:
            found += await self._reader.list_runs(
                tenant, limit=limit, before=before, status=status, workflow_id=workflow_id
            )
        found.sort(key=lambda row: (row.created_at, row.run_id), reverse=True)
        return found[:limit]


def key_of_many(key: str | None, run_id: str) -> str | None:
    """The idempotency key of one of many re-runs that have one key together."""
    return None if key is None else sha256(f"{key} {run_id}".encode()).hexdigest()
