"""Pinned results: the result of a node that stands in for it while a workflow is developed.

Rule 1: a pinned result is no part of a definition. It belongs to the workflow, with its draft and all its versions.
Rule 2: a run uses pinned results only if whoever starts it asks for them. A trigger never does.
Rule 3: a pinned result fits the schema of its node as `result_schema_policy` wants it: when it is pinned, as far as
        the workflow can be planned, and when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.pins import MAX_PINNED_BYTES, MAX_PINS
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.accept import ReusedResult
from astraflow.core.workflow import InvalidDocument
from astraflow.core.workflow.plan import Plan, PlanNode
from astraflow.core.workflow.value_schemas import find_schema
from astraflow.scheduler.current import Current
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.run_reader import RunReader
from astraflow.store.rows import PinnedResultRow
from astraflow.store.store import Store

Policy = Literal["off", "warn", "fail"]


class Pins:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        store: Store,
        current: Current,
        plans: Plans,
        reader: RunReader,
        clock: Clock,
        policy: Policy,
    ) -> None:
        """`policy`: what becomes of a result that does not fit the schema of its node."""
        self._store = store
        self._current = current
        self._plans = plans
        self._reader = reader
        self._clock = clock
        self._policy = policy

    async def search(self, tenant: str, workflow_id: str) -> list[PinnedResultRow]:
        """Raises: NotFound, if there is no such workflow."""
        await self._definition(tenant, workflow_id)
        return await self._store.pins.of_workflow(tenant, workflow_id)

    async def put(
        self,
        tenant: str,
        workflow_id: str,
        node_id: str,
        *,
        by: str,
        result: bytes | None,
        from_run: str | None,
    ) -> tuple[PinnedResultRow, list[str]]:
        """Pin a result, or that of the node in a run; also what does not fit its schema.

        Raises:
            NotFound: no such workflow or run, or the node has no result in it.
            Refused: no such node, or the result is too large, cannot be pinned, or does not fit and must.
        """
        definition = await self._definition(tenant, workflow_id)
        if from_run is not None:
            result = await self._result_in(tenant, RunId(from_run), node_id)
        assert result is not None, "a result is given, or a run that has it"
        warnings = await self._check(tenant, definition, node_id, result)
        stored = await self._store.pins.of_workflow(tenant, workflow_id)
        if len(stored) >= MAX_PINS and all(one.node_id != node_id for one in stored):
            raise _refused(f"a workflow can have at most {MAX_PINS} pinned results")
        row = PinnedResultRow(
            tenant=tenant,
            workflow_id=workflow_id,
            node_id=node_id,
            result=result,
            from_run=from_run,
            updated_at=self._clock.wall_ms(),
            updated_by=by,
        )
        await self._store.pins.put(self._current.claim_with_room, row)
        return row, warnings

    async def remove(self, tenant: str, workflow_id: str, node_id: str) -> None:
        """Raises: NotFound, if the node has no pinned result."""
        if not await self._store.pins.delete(self._current.claim, tenant, workflow_id, node_id):
            raise errors.NotFound(
                errors.WORKFLOW_NO_PIN, f"the node has no pinned result: {node_id[:64]}"
            )

    async def for_run(self, tenant: str, plan: Plan) -> dict[NodeId, ReusedResult]:
        """The pinned results that a run of this plan uses. Those of nodes that it has not are left out.

        Raises: Refused, if one does not fit the schema of its node and must.
        """
        found: dict[NodeId, ReusedResult] = {}
        rows = await self._store.pins.of_workflow(tenant, plan.workflow_id)
        index = plan.index if rows else {}
        for row in rows:
            node = _pinnable(plan, index.get(NodeId(row.node_id)))
            if node is not None:
                self._fits(plan, node, row.result)
                found[node.node_id] = (msgspec.Raw(row.result), ())
        return found

    async def _definition(self, tenant: str, workflow_id: str) -> bytes:
        """What is worked on: the draft, else the newest version."""
        draft = await self._store.find_draft(tenant, workflow_id)
        if draft is not None:
            return draft.definition
        row = await self._store.find_workflow(tenant, workflow_id)
        if row is None:
            raise errors.NotFound(
                errors.WORKFLOW_NOT_FOUND, f"no such workflow: {workflow_id[:64]}"
            )
        return row.definition

    async def _result_in(self, tenant: str, run_id: RunId, node_id: str) -> bytes:
        run = await self._reader.get_record(tenant, run_id)
        place = run.plan.find(node_id)
        task = None if place is None else run.tasks[place]
        if task is None or task.result is None:
            raise errors.NotFound(
                errors.RUN_NODE_NOT_FOUND, f"the node has no result in the run: {node_id[:64]}"
            )
        if any(not one.inline for one in task.artifacts):
            raise _refused("the result refers to what a worker keeps, which may be gone by then")
        return bytes(task.result)

    async def _check(
        self, tenant: str, definition: bytes, node_id: str, result: bytes
    ) -> list[str]:
        if len(result) > MAX_PINNED_BYTES:
            raise errors.Refused(
                errors.REQUEST_TOO_LARGE,
                f"a pinned result has at most {MAX_PINNED_BYTES} bytes: {len(result)}",
            )
        try:
            plan = (await self._plans.make(tenant, definition)).plan
        except InvalidDocument:
            plan = None  # a draft may have problems: what it is used with is checked then
        node = None if plan is None else _pinnable(plan, plan.find(node_id))
        is_draft = plan is None and node_id in _ids_in(msgspec.json.decode(definition))
        if node is None and not is_draft:
            raise errors.Refused(
                errors.WORKFLOW_UNKNOWN_NODE,
                f"the workflow has no node of this id, or it runs inside of another: {node_id[:64]}",
            )
        return [] if plan is None or node is None else self._fits(plan, node, result)

    def _fits(self, plan: Plan, node: PlanNode, result: bytes) -> list[str]:
        """What does not fit. Raises: Refused, if it must."""
        place = node.results_schema
        if self._policy == "off" or place is None:
            return []
        schema = find_schema(plan.schemas[place])
        found = [] if schema is None else schema.violations(msgspec.json.decode(result))
        told = [f"{one.pointer or '/'}: {one.message}" for one in found]
        if told and self._policy == "fail":
            raise errors.Refused(
                errors.RESULT_SCHEMA,
                f"the pinned result of {node.node_id} does not fit the schema of the node: {told[0]}",
            )
        return told


def _pinnable(plan: Plan, place: int | None) -> PlanNode | None:
    """The node at a place, unless it is a middleware: that runs round its host and has no result of its own."""
    node = None if place is None else plan.nodes[place]
    return node if node is not None and node.host is None else None


def _ids_in(document: Mapping[str, Any]) -> set[object]:
    nodes = document.get("nodes")
    return (
        {one.get("id") for one in nodes if isinstance(one, dict)}
        if isinstance(nodes, list)
        else set()
    )


def _refused(message: str) -> errors.Refused:
    return errors.Refused(errors.REQUEST_INVALID, message)
