"""Ends of runs that start other workflows: the events of a tenant are followed from where its triggers have come to.

Rule 1: how far a trigger has come is stored with what it takes. After a crash the events since then are read again; one
        that was taken is not taken again.
Rule 2: events that concern no trigger are noted from time to time only, so that they cost no commit each.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import RunReport
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import RunAccepted
from astraflow.core.triggers.decisions import take_end
from astraflow.core.triggers.record import EventsSeen, TriggerFact, TriggerRecord
from astraflow.core.workflow.definition import WorkflowTrigger
from astraflow.scheduler.ended_runs import facts_of
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.store.rows import TenantEvent
from astraflow.store.store import Store

NOTE_EVERY: Final = 500
"""Events that are read again at most after a crash."""
LOOK_S: Final = 1.0
"""How soon a tenant is followed that has its first trigger of this type."""
_report: Final = msgspec.json.Decoder(RunReport)


class WorkflowEnds:
    """Use from the scheduler's loop."""

    def __init__(
        self, table: TriggerTable, store: Store, reader: RunReader, feed: Feed, clock: Clock
    ) -> None:
        self._table = table
        self._store = store
        self._reader = reader
        self._feed = feed
        self._clock = clock

    async def follow(self) -> None:
        """Take what the ends of runs want. Endless. Raises: StoreError."""
        following: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                for tenant in {one.tenant for one in self._triggers()} - set(following):
                    following[tenant] = asyncio.create_task(self._follow(tenant))
                for tenant in [one for one, task in following.items() if task.done()]:
                    await following.pop(tenant)
                await asyncio.sleep(LOOK_S)
        finally:
            for task in following.values():
                task.cancel()
            await asyncio.gather(*following.values(), return_exceptions=True)

    def _triggers(self, tenant: str | None = None) -> list[TriggerRecord]:
        known = self._table.all() if tenant is None else self._table.of_tenant(tenant)
        return [one for one in known if isinstance(one.spec, WorkflowTrigger)]

    async def _follow(self, tenant: str) -> None:
        after = min(one.events_seen for one in self._triggers(tenant))
        async with aclosing(self._feed.events(tenant, after)) as batches:
            async for events in batches:
                if not self._triggers(tenant):
                    return
                for event in events:
                    if event.type == "run.status":
                        await self._take(event)
                await self._note(tenant, events[-1].number)

    async def _take(self, event: TenantEvent) -> None:
        report = _report.decode(event.body)
        if report.status not in ("succeeded", "failed"):
            return
        row = await self._store.find_run(event.tenant, RunId(report.run_id))
        if row is None:
            return
        shown: dict[str, Any] = {
            "runId": row.run_id,
            "workflowId": row.workflow_id,
            "status": row.status,
            "outputs": None,
        }
        wanted = [one for one in self._triggers(event.tenant) if _wants(one, shown)]
        if any("outputs" in path for one in wanted for path in _paths(one)):
            shown["outputs"] = await self._outputs(event.tenant, row.run_id)

        def facts() -> list[TriggerFact]:
            at = self._clock.wall_ms()
            return [
                fact
                for one in self._triggers(event.tenant)
                if _wants(one, shown) and one.events_seen < event.number
                for fact in take_end(
                    one, row.run_id, shown, at=at, number=event.number, depth=depth
                )
            ]

        if wanted:
            depth = await self._depth(row.run_id)
            await self._table.decide(facts)

    async def _depth(self, run_id: RunId) -> int:
        """How many ends of runs led to this run: its first fact says it."""
        pages = await self._store.read_segments(run_id, max_bytes=1)
        accepted = facts_of(pages[0])[0].fact if pages else None  # retention may have removed it
        return accepted.depth if isinstance(accepted, RunAccepted) else 0

    async def _outputs(self, tenant: str, run_id: RunId) -> Any:
        try:
            view = await self._reader.view_head(tenant, run_id)
        except errors.NotFound:
            return None  # retention has removed it
        return msgspec.json.decode(msgspec.json.encode(view)).get("outputs")

    async def _note(self, tenant: str, number: int) -> None:
        def facts() -> list[TriggerFact]:
            at = self._clock.wall_ms()
            return [
                EventsSeen(tenant, at, one.workflow_id, one.name, number)
                for one in self._triggers(tenant)
                if number - one.events_seen >= NOTE_EVERY
            ]

        if facts():
            await self._table.decide(facts)


def _wants(record: TriggerRecord, run: dict[str, Any]) -> bool:
    spec = record.spec
    assert isinstance(spec, WorkflowTrigger)
    is_its = spec.workflow_id == run["workflowId"] and run["status"] in spec.on
    return record.state == "enabled" and is_its


def _paths(record: TriggerRecord) -> list[str]:
    return list(record.spec.inputs.values()) if isinstance(record.spec, WorkflowTrigger) else []
