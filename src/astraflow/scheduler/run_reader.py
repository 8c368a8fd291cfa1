"""What is known of runs: their views, their events, their facts.

What is shown is durable. A view of an active run is made in one turn of the loop and given out after the barrier that
makes everything in it durable.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import Event, RunSnapshot
from astraflow.core.contract.runs import Artifact, KeyHolder, Node, Run, RunWithoutNodes, WaitingFor
from astraflow.core.contract.timelines import TimelineEntry
from astraflow.core.contract.words import NodeStatus, RunStatus
from astraflow.core.dispatch.execution import NodeExecution, execution_of
from astraflow.core.engine.batch import NumberedFact
from astraflow.core.engine.wait_reasons import Reason
from astraflow.core.ids import RunId
from astraflow.core.runs.chains import calls_by_task, executing_tasks, related_tasks, shown_task
from astraflow.core.runs.facts import CancelRequested, Fact
from astraflow.core.runs.history import NodeHistory, attempts_of, reused_run, timeline_of
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of, ready_at, view_head, view_node
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_views import (
    check_scope,
    find_task,
    view_artifacts,
    view_body,
    view_items,
    view_whole,
    with_scope,
)
from astraflow.core.runs.timeline import concerns
from astraflow.core.runs.timeline_entries import TimelineEntries
from astraflow.core.timestamps import iso
from astraflow.core.workflow.plan import Feature
from astraflow.scheduler.current import Current
from astraflow.scheduler.ended_runs import EndedRuns, facts_of
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.other_shards import NO_OTHER_SHARDS, OtherShards
from astraflow.scheduler.run_events import RunEvents
from astraflow.scheduler.written_output import read_output
from astraflow.store.rows import FactSegment, RunRow
from astraflow.store.runs import RunFilter
from astraflow.store.store import Store

NodePlace = tuple[str, str | None]
"""The id of a node, and the path of the scope that it is in."""
ADDING: Final = frozenset({Feature.MIDDLEWARE, Feature.MAP, Feature.SUBGRAPH, Feature.CALL})
"""What adds tasks to a run beyond those of its plan: later events name them."""
PIECE_BYTES: Final = 256 * 1024
"""The facts that are read at once, where a page may need more of them."""
TIMELINE_BYTES: Final = 4 * 1024**2
"""The facts that are read for one page of a timeline; it may then be shorter, and has a cursor."""


class RunReader:
    """Runs, as clients see them."""

    def __init__(
        self,
        store: Store,
        current: Current,
        ended: EndedRuns,
        feed: Feed,
        clock: Clock,
        others: OtherShards = NO_OTHER_SHARDS,
    ) -> None:
        self._store = store
        self._current = current
        self._ended = ended
        self._feed = feed
        self._clock = clock
        self._others = others
        self._places: WeakValueDictionary[RunId, TaskPlaces] = WeakValueDictionary()
        """Of the runs that are followed: shared, so that what one follower made of a segment serves the others."""

    async def view_run(self, tenant: str, run_id: RunId) -> Run:
        """A run as clients see it. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        places = range(len(run.plan.nodes))
        view = view_whole(run, self._unacked(run, places), self._waits(run, places))
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

    async def view_node(
        self, tenant: str, run_id: RunId, node_id: str, scope_path: str | None = None
    ) -> tuple[Node, NodeExecution]:
        """One node with its whole result, and what it was executed with. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        task = find_task(run, node_id, scope_path)
        deadlines, waits = self._unacked(run, [task]), self._waits(run, [task])
        view = view_node(run, task, ack_deadline=deadlines.get(task), waiting_for=waits.get(task))
        view = with_scope(run, task, view)
        execution = execution_of(run, shown_task(run, task))
        await self._durable(run)
        return view, execution

    async def view_items(
        self,
        tenant: str,
        run_id: RunId,
        place: NodePlace,
        *,
        first: int,
        limit: int,
        status: NodeStatus | None,
    ) -> list[Node]:
        """The items of a map, from one on. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        items = view_items(run, find_task(run, *place), first, limit, status)
        await self._durable(run)
        return items

    async def view_body(
        self, tenant: str, run_id: RunId, place: NodePlace, item: int
    ) -> list[Node]:
        """The nodes inside of a node, for one item. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        nodes = view_body(run, find_task(run, *place), item)
        await self._durable(run)
        return nodes

    async def view_artifacts(self, tenant: str, run_id: RunId, scope: str) -> list[Artifact]:
        """The artifacts of a run, or of one scope of it. Raises: NotFound."""
        run = await self._find_run(tenant, run_id)
        artifacts = view_artifacts(run, scope)
        await self._durable(run)
        return artifacts

    async def check_scope(self, tenant: str, run_id: RunId, scope: str) -> None:
        """Raises: NotFound: the run has no such scope."""
        run = await self._find_run(tenant, run_id)
        check_scope(run, scope)
        await self._durable(run)

    def _waits(self, run: RunRecord, nodes: Iterable[int]) -> dict[int, WaitingFor]:
        """What each node that waits is waiting for at this moment."""
        if self._active(run.run_id) is not run:
            return {}
        shown = _shown_tasks(run, nodes)
        now, wall_ms = self._clock.now(), self._clock.wall_ms()
        reasons = self._current.engine.ask.reasons(run, list(dict.fromkeys(shown.values())))
        told = {task: view_reason(one, now, wall_ms) for task, one in reasons.items()}
        return {index: told[task] for index, task in shown.items() if task in told}

    def _active(self, run_id: RunId) -> RunRecord | None:
        return self._current.engine.ask.run(run_id)

    async def _find_run(self, tenant: str, run_id: RunId) -> RunRecord:
        held = self._active(run_id) or self._feed.tapes.find_run(run_id)
        if held is not None and held.tenant == tenant:
            return held
        return await self._ended.run(await self.get_row(tenant, run_id))

    def _unacked(self, run: RunRecord, nodes: Iterable[int]) -> dict[int, str]:
        """The nodes of a run whose dispatch no worker has acknowledged, and until when one may."""
        if self._active(run.run_id) is not run:
            return {}
        now, wall_ms = self._clock.now(), self._clock.wall_ms()
        unacked = dict(self._current.engine.ask.unacked(run))
        return {
            index: iso(wall_ms + int((unacked[task] - now) * 1000))
            for index, task in (_shown_tasks(run, nodes).items() if unacked else ())
            if task in unacked
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

    async def search_runs(
        self,
        tenant: str,
        wanted: RunFilter,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
    ) -> list[RunRow]:
        return await self._store.search_runs(tenant, wanted, limit=limit, before=before)

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
        durable = self._feed.tapes.last_event(run_id)
        if durable is not None:
            return durable, is_over and durable == last
        await self._durable(run)
        return last, is_over

    async def follow_run(
        self, tenant: str, run_id: RunId, after: int
    ) -> AsyncGenerator[list[Event], None]:
        """Events beyond `after`, in batches, to the end of the run."""
        async with aclosing(self.follow_segments(tenant, run_id, after)) as batches:
            async for made, segments in batches:
                events = made.take(segments)
                if events:
                    yield events

    async def follow_segments(
        self, tenant: str, run_id: RunId, after: int
    ) -> AsyncGenerator[tuple[RunEvents, list[FactSegment]], None]:
        """Segments with events beyond `after`, to the end of the run, and what makes their events: the caller takes
        each segment before it asks for the next ones."""
        made = await self.open_events(tenant, run_id, after)
        async with aclosing(self._feed.segments(run_id, after)) as batches:
            async for segments in batches:
                yield made, segments
                if made.is_over:
                    return

    async def open_events(self, tenant: str, run_id: RunId, after: int) -> RunEvents:
        """What makes the events of a run beyond `after`, also where another node serves it. Raises: NotFound."""
        if self._current.is_serving:
            run = await self._find_run(tenant, run_id)
            is_adding = not run.plan.features.isdisjoint(ADDING)
            if is_adding or self._feed.tapes.last_event(run_id) is None:
                await self._durable(run)  # its tasks, or that it exists
        else:
            run = await self._stored_run(tenant, run_id)
            is_adding = not run.plan.features.isdisjoint(ADDING)
        places = self._places.get(run_id)
        if places is None:
            places = TaskPlaces.of_run(run) if is_adding else TaskPlaces(run.plan)
            self._places[run_id] = places
        return RunEvents(places, after)

    async def timeline(
        self, tenant: str, run_id: RunId, node_id: str | None, *, after: int, limit: int
    ) -> tuple[list[TimelineEntry], int, int]:
        """Entries of events beyond `after`, about `limit` of them; the last event that they are of, and the last that
        there is. Raises: NotFound."""
        last, _ = await self.last_event(tenant, run_id)
        made = await self.open_events(tenant, run_id, after)
        gathered = TimelineEntries(made.places, node_id)
        scanned = 0
        while after < last and len(gathered.entries) < limit and scanned < TIMELINE_BYTES:
            segments = await self._store.read_segments(run_id, after, PIECE_BYTES)
            for segment in segments:
                facts = [one for one in facts_of(segment) if one.first > after]
                gathered.take(one.fact for one in facts)
                after = segment.last
                scanned += len(segment.body)
                if len(gathered.entries) >= limit:
                    break
            if not segments:
                break
        return gathered.entries, after, last

    async def snapshot(
        self, tenant: str, run_id: RunId, *, asks_others: bool = True
    ) -> tuple[RunSnapshot, RunEvents]:
        """The run as it is, with its output so far, and what makes the events after it. `asks_others`: not for another
        shard, which has asked this one. Raises: NotFound."""
        if self._is_known(run_id):
            return await self._snapshot_of(tenant, run_id, await self.view_run(tenant, run_id))
        row = await self.get_row(tenant, run_id)
        if asks_others and row.finished_at is None:
            found = await self._others.snapshot(tenant, row.lane, run_id)
            if found is not None:
                return found, await self.open_events(tenant, run_id, found.last_event)
        # What the store alone says of an active run is without what it waits for now.
        view = view_whole(await self._ended.run(row), {}, {})
        return await self._snapshot_of(tenant, run_id, view)

    def _is_known(self, run_id: RunId) -> bool:
        """Whether the engine here has decided the run lately."""
        if not self._current.is_serving:
            return False
        return self._active(run_id) is not None or self._feed.tapes.find_run(run_id) is not None

    async def _stored_run(self, tenant: str, run_id: RunId) -> RunRecord:
        """A run as far as it is stored. Raises: NotFound."""
        return await self._ended.run(await self.get_row(tenant, run_id))

    async def _snapshot_of(
        self, tenant: str, run_id: RunId, view: Run
    ) -> tuple[RunSnapshot, RunEvents]:
        made = await self.open_events(tenant, run_id, view.last_event)
        written = await read_output(self._store, run_id, view.last_event, made.places)
        snapshot = RunSnapshot(
            **msgspec.structs.asdict(view),
            output=written.output,
            output_truncated=written.is_truncated,
        )
        return snapshot, made

    async def read_back(
        self, tenant: str, run_id: RunId, before: int
    ) -> AsyncGenerator[list[Event], None]:
        """Events before event `before`, the last one first, in batches. Raises: NotFound."""
        places = (await self.open_events(tenant, run_id, before)).places
        while before > 1:
            segments = await self._store.read_segments_back(run_id, before, PIECE_BYTES)
            if not segments:
                return
            for segment in segments:
                events = [
                    event
                    for one in facts_of(segment)
                    for event in events_of(one.fact, one.first, places)
                    if event.id < before
                ]
                before = segment.first
                yield events[::-1]

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

    async def node_history(
        self, tenant: str, run_id: RunId, node_id: str, scope_path: str | None = None
    ) -> NodeHistory:
        """What happened to one node, in order: the facts of its tasks, and cancels of the run.

        Raises: NotFound.
        """
        run = await self._find_run(tenant, run_id)
        place = find_task(run, node_id, scope_path)
        prefixes = related_tasks(run, place)
        facts: list[Fact] = []
        after = 0
        while segments := await self._store.read_segments(run_id, after):
            for numbered in (one for segment in segments for one in facts_of(segment)):
                fact = numbered.fact
                if concerns(fact, prefixes) or isinstance(fact, CancelRequested):
                    facts.append(fact)
            after = segments[-1].last
        since = ready_at(run, place)
        return NodeHistory(
            attempts_of(
                facts, executing_tasks(run, place), {} if since is None else {place: since}
            ),
            timeline_of(facts, prefixes),
            None if since is None else iso(since),
            reused_run(facts, place),
        )


def _shown_tasks(run: RunRecord, nodes: Iterable[int]) -> dict[int, int]:
    """The task that each node is shown with."""
    if Feature.MIDDLEWARE not in run.plan.features:
        return {index: index for index in nodes}
    calls = calls_by_task(run)
    return {index: shown_task(run, index, calls) for index in nodes}


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
