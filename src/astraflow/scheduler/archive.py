"""Runs that are not in memory, read from the store: the fold of their facts, exactly as they were when active."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from astraflow.engine.batch import NumberedFact
from astraflow.runs.facts import CallOpened, Fact, decode_fact, width
from astraflow.runs.run import Run
from astraflow.runs.transitions import replay

if TYPE_CHECKING:
    from astraflow.scheduler.plans import Plans
    from astraflow.store.rows import FactPage, RunRow
    from astraflow.store.store import Store

__all__ = ["Archive", "facts_of"]

KEPT_TASKS: Final = 50_000
"""Tasks of ended runs that are kept for the next reader, about 60 MiB at the most."""


def facts_of(page: FactPage) -> list[NumberedFact]:
    """The facts of a page with the numbers of their first events."""
    first = page.first
    facts: list[NumberedFact] = []
    for line in page.body.split(b"\n"):
        fact = decode_fact(line)
        facts.append(NumberedFact(page.run_id, first, fact))
        first += width(fact)
    assert first == page.last + 1, f"a page of {page.run_id} does not hold what it says"
    return facts


class Archive:
    """Reads whole runs. Ended ones do not change, so the last that were read are kept."""

    def __init__(self, store: Store, plans: Plans) -> None:
        self._store = store
        self._plans = plans
        self._kept: OrderedDict[str, Run] = OrderedDict()
        self._tasks = 0

    async def facts(self, run_id: str) -> list[Fact]:
        """All facts of a run, in order."""
        facts: list[Fact] = []
        after = 0
        while pages := await self._store.read_pages(run_id, after):
            for page in pages:
                facts.extend(map(decode_fact, page.body.split(b"\n")))
            after = pages[-1].last
        return facts

    async def run(self, row: RunRow) -> Run:
        """A stored run, folded."""
        known = self._kept.get(row.run_id)
        if known is not None:
            self._kept.move_to_end(row.run_id)
            return known
        plan = await self._plans.find(row.plan_id)
        run = replay(plan, await self.facts(row.run_id))
        if run.is_terminal:
            self._keep(run)
        return run

    async def calls(self, run_id: str) -> dict[int, CallOpened]:
        """The calls of middlewares in a run, by task: later events name them."""
        facts = await self.facts(run_id)
        return {fact.task: fact for fact in facts if isinstance(fact, CallOpened)}

    def _keep(self, run: Run) -> None:
        if run.run_id in self._kept:
            return  # two readers asked for it at once
        self._kept[run.run_id] = run
        self._tasks += len(run.tasks)
        while self._tasks > KEPT_TASKS and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._tasks -= len(dropped.tasks)
