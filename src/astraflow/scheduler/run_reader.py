"""What is known of runs: their views, their events, their facts.

What is shown is durable. A view of an active run is made in one turn of the loop and given out after the barrier that
makes everything in it durable.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.runs import KeyHolder, Node, Run, RunWithoutNodes, WaitingFor
from astraflow.core.contract.words import RunStatus
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.engine.wait_reasons import Reason
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.facts import CallOpened, CancelRequested, RunFinished
from astraflow.core.runs.projections import events_of, shown_task, view_head, view_node, view_run
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.timeline import concerns
from astraflow.core.timestamps import iso
from astraflow.core.workflow.plan import Feature
from astraflow.scheduler.current import Current
from astraflow.scheduler.ended_runs import EndedRuns, facts_of
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.plans import Plans
from astraflow.store.rows import RunRow
from astraflow.store.store import Store


class RunReader:
    """Runs, as clients see them."""

    def __init__(
        self,
        store: Store,
        current: Current,
        plans: Plans,
        ended: EndedRuns,
        feed: Feed,
        clock: Clock,
    ) -> None:
        self._store = store
        self._current = current
        self._plans = plans
        self._ended = ended
        self._feed = feed
        self._clock = clock

    async def view_run(self, tenant: str, run_id: RunId) -> Run:
        """A run as clients see it. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        waits = self._waits(run, range(len(run.plan.nodes)))
        view = view_run(run, ack_deadlines=self._unacked(run), waits=waits)
        await self._durable(run)
        return view

    async def get_record(self, tenant: str, run_id: RunId) -> RunRecord:
        """A run as the engine knows it, durable as it is now. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        await self._durable(run)
        return run

    async def view_head(self, tenant: str, run_id: RunId) -> RunWithoutNodes:
        """A run without its nodes. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        view = view_head(run)
        await self._durable(run)
        return view

    async def view_node(self, tenant: str, run_id: RunId, node_id: str) -> Node:
        """One node with its whole result. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        place = _place_of(run, node_id)
        deadline, waits = self._unacked(run).get(place), self._waits(run, [place])
        view = view_node(run, place, ack_deadline=deadline, waiting_for=waits.get(place))
        await self._durable(run)
        return view

    def _waits(self, run: RunRecord, nodes: Iterable[int]) -> dict[int, WaitingFor]:
        """What each node that waits is waiting for at this moment."""
        if self._active(run.run_id) is not run:
            return {}
        by_task = {shown_task(run, index): index for index in nodes}
        now, wall_ms = self._clock.now(), self._clock.wall_ms()
        reasons = self._current.engine.ask.reasons(run, list(by_task))
        return {by_task[task]: view_reason(one, now, wall_ms) for task, one in reasons.items()}

    def _active(self, run_id: RunId) -> RunRecord | None:
        return self._current.engine.ask.run(run_id)

    async def _find_run(self, tenant: str, run_id: RunId) -> RunRecord:
        active = self._active(run_id)
        if active is not None and active.tenant == tenant:
            return active
        return await self._ended.run(await self.get_row(tenant, run_id))

    def _unacked(self, run: RunRecord) -> dict[int, str]:
        """The nodes of a run whose dispatch no worker has acknowledged, and until when one may."""
        if self._active(run.run_id) is not run:
            return {}
        now, wall_ms = self._clock.now(), self._clock.wall_ms()
        return {
            task: iso(wall_ms + int((until - now) * 1000))
            for task, until in self._current.engine.ask.unacked(run)
            if task < len(run.plan.nodes)
        }

    async def _durable(self, run: RunRecord) -> None:
        """Rule 2. An ended run was read from the store, or ended in a batch that is on its way."""
        await self._current.writer.barrier()

    async def get_row(self, tenant: str, run_id: RunId) -> RunRow:
        """Raises: NotFound."""
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

    async def get_definition(self, tenant: str, run_id: RunId) -> bytes:
        row = await self.get_row(tenant, run_id)
        plan = await self._store.find_plan(row.plan_id)
        assert plan is not None, "the plan of a run is kept as long as the run"
        return plan.definition

    # -- events -----------------------------------------------------------------------------

    async def last_event(self, tenant: str, run_id: RunId) -> tuple[int, bool]:
        """The number of the last event, and whether it is the last there will ever be."""
        run = await self._find_run(tenant, run_id)
        last, is_over = run.last_event, run.is_terminal
        await self._durable(run)
        return last, is_over

    async def follow_run(
        self, tenant: str, run_id: RunId, after: int
    ) -> AsyncGenerator[list[Event], None]:
        """Events beyond `after`, in batches, to the end of the run."""
        row = await self.get_row(tenant, run_id)
        active = self._active(run_id)
        plan = active.plan if active is not None else await self._plans.find(row.plan_id)
        calls: dict[int, CallOpened] = {}
        if after and Feature.MIDDLEWARE in plan.features:
            calls = await self._ended.calls(run_id)
        async with aclosing(self._feed.segments(run_id, after)) as batches:
            async for segments in batches:
                events: list[Event] = []
                fact: object = None
                for numbered in (one for segment in segments for one in facts_of(segment)):
                    fact = numbered.fact
                    if isinstance(fact, CallOpened):
                        calls[fact.task] = fact
                    events += events_of(numbered.fact, numbered.first, plan, calls)
                if events and events[0].id <= after:
                    events = [event for event in events if event.id > after]
                if events:
                    yield events
                if isinstance(fact, RunFinished):
                    return

    async def read_facts(
        self, tenant: str, run_id: RunId, after: int, limit: int
    ) -> list[NumberedFact]:
        """Facts whose first event is beyond `after`, in order, `limit` at the most."""
        await self.get_row(tenant, run_id)
        found: list[NumberedFact] = []
        while len(found) < limit:
            segments = await self._store.read_segments(run_id, after)
            if not segments:
                break
            found += (one for segment in segments for one in facts_of(segment) if one.first > after)
            after = segments[-1].last
        return found[:limit]

    async def node_facts(self, tenant: str, run_id: RunId, node_id: str) -> list[NumberedFact]:
        """The facts about one node, in order: its task's, those of the calls in its chain, and cancels of the run.

        Raises: NotFound.
        """
        run = await self._find_run(tenant, run_id)
        place = _place_of(run, node_id)
        tasks = {place} | {call for call in run.calls.values() if _is_of(run, call, place)}
        found: list[NumberedFact] = []
        after = 0
        while segments := await self._store.read_segments(run_id, after):
            for numbered in (one for segment in segments for one in facts_of(segment)):
                fact = numbered.fact
                if concerns(fact, tasks) or isinstance(fact, CancelRequested):
                    found.append(numbered)
            after = segments[-1].last
        return found


def view_reason(reason: Reason, now: float, wall_ms: int) -> WaitingFor:
    """A reason as clients see it; its time is of the wall clock."""
    until = None if reason.until is None else iso(wall_ms + int((reason.until - now) * 1000))
    return WaitingFor(
        kind=reason.kind,
        detail=reason.detail,
        until=until,
        retry_at=until if reason.kind in ("retry", "dispatch") else None,
        held_by=None
        if reason.held_by is None
        else KeyHolder(run_id=reason.held_by[0], node_id=reason.held_by[1]),
    )


def _place_of(run: RunRecord, node_id: str) -> int:
    place = run.plan.index.get(NodeId(node_id))
    if place is None:
        raise errors.NotFound(errors.RUN_NODE_NOT_FOUND, f"no such node in the run: {node_id[:64]}")
    return place


def _is_of(run: RunRecord, call: int, place: int) -> bool:
    """Whether a call executes the node, or is one in the chain round it."""
    return run.tasks[call].node is run.plan.nodes[place] or run.host_of(call) == place
