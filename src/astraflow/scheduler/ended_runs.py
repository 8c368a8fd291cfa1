"""Runs that are not in memory, read from the store: the fold of their facts, exactly as they were when active."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from astraflow.core.engine.batch import NumberedFact
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import Fact, decode_fact, width
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.transitions import replay
from astraflow.scheduler.byte_cache import ByteCache
from astraflow.scheduler.plans import plan_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.core.workflow.plan import Plan
    from astraflow.scheduler.plans import Plans
    from astraflow.store.rows import FactSegment, RunRow
    from astraflow.store.store import Store

CACHE_BYTES: Final = 32 * 1024**2
"""What ended runs take that are kept for the next reader, with their plans, parameters and results."""
LARGEST_BYTES: Final = CACHE_BYTES // 2
HELD_S: Final = 10.0
INLINE_BYTES: Final = 256 * 1024
"""Facts that are folded at once; more are folded beside what the scheduler does for others."""
RUN_BYTES: Final = 3_000
TASK_BYTES: Final = 1_000
"""What a run takes, and each of its tasks, beside their bytes."""


def facts_of(segment: FactSegment) -> list[NumberedFact]:
    """The facts of a segment with the numbers of their first events."""
    first = segment.first
    facts: list[NumberedFact] = []
    for line in segment.body.split(b"\n"):
        fact = decode_fact(line)
        last = first + width(fact) - 1
        facts.append(NumberedFact(segment.run_id, first, last, fact))
        first = last + 1
    assert first == segment.last + 1, f"a segment of {segment.run_id} does not hold what it says"
    return facts


class EndedRuns:
    """Reads whole runs. Ended ones do not change, so a cache keeps the last that were read."""

    def __init__(self, store: Store, plans: Plans) -> None:
        self._store = store
        self._plans = plans
        self._cache: ByteCache[str, RunRecord] = ByteCache(CACHE_BYTES, LARGEST_BYTES)
        self._held = HeldRun()
        self._turn = asyncio.Lock()

    async def facts(self, run_id: RunId) -> list[Fact]:
        """All facts of a run, in order."""
        return _decoded(await self._bodies(run_id))

    async def _bodies(self, run_id: RunId) -> list[bytes]:
        """What the segments of a run hold, in order."""
        bodies: list[bytes] = []
        after = 0
        while segments := await self._store.read_segments(run_id, after):
            bodies += (segment.body for segment in segments)
            after = segments[-1].last
        return bodies

    async def run(self, row: RunRow) -> RunRecord:
        """A stored run, folded."""
        known = self._cache.find(row.run_id) or self._held.find(row.run_id)
        if known is not None:
            return known
        plan = await self._plans.find(row.plan_id)
        bodies = await self._bodies(row.run_id)
        size = sum(map(len, bodies))
        if size > INLINE_BYTES:
            return await self._large_run(row.run_id, plan, bodies, size)
        run = _folded(plan, bodies)
        self._keep(row.run_id, run, size)
        return run

    async def _large_run(
        self, run_id: RunId, plan: Plan, bodies: list[bytes], size: int
    ) -> RunRecord:
        """Folded beside the loop, and one after another: a run of 100,000 tasks takes 100 MB."""
        async with self._turn:
            run = self._cache.find(run_id) or self._held.find(run_id)
            if run is None:
                run = await asyncio.to_thread(_folded, plan, bodies)
                self._keep(run_id, run, size)
        return run

    def _keep(self, run_id: RunId, run: RunRecord, size: int) -> None:
        if not run.is_terminal:
            return
        size += plan_bytes(run.plan) + RUN_BYTES + TASK_BYTES * len(run.tasks)
        if size <= LARGEST_BYTES:
            self._cache.put(run_id, run, size)
        else:
            self._held.put(run_id, run)


class HeldRun:
    """The last run that was too large for the cache, until nobody has asked for it for a while: whoever reads the items
    of a map asks for one page after another."""

    def __init__(self) -> None:
        self._held: tuple[RunId, RunRecord] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def find(self, run_id: RunId) -> RunRecord | None:
        if self._held is None or self._held[0] != run_id:
            return None
        run = self._held[1]
        self.put(run_id, run)
        return run

    def put(self, run_id: RunId, run: RunRecord) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._held = (run_id, run)
        self._timer = asyncio.get_running_loop().call_later(HELD_S, self._drop)

    def _drop(self) -> None:
        self._held = self._timer = None


def _decoded(bodies: Iterable[bytes]) -> list[Fact]:
    return [decode_fact(line) for body in bodies for line in body.split(b"\n")]


def _folded(plan: Plan, bodies: Iterable[bytes]) -> RunRecord:
    return replay(plan, _decoded(bodies))
