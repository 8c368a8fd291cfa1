"""What a real store has been given, beside it and in plain objects: the checkers read it, the product never does.

It has the shape of the simulated store, so that the checkers of the core world hold here too, and adds what only rows
have: pages and streams without gaps, rows of runs that agree with the facts they repeat, epochs that only grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core.runs.facts import (
    CancelRequested,
    RunAccepted,
    RunFinished,
    RunStarted,
    TaskLeased,
)
from astraflow.core.workflow.plan import Plan
from astraflow.core.workflow.stored_plan import decode_plan
from astraflow.scheduler.ended_runs import facts_of
from tests.sim.store import KeptRows, StoredRun
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.core.engine.batch import NumberedFact
    from astraflow.store.rows import Changes, FactSegment, RunChange, RunRow

__all__ = ["Mirror", "Row", "Written"]


class Row:
    """The row of a run as its facts say it must be."""

    __slots__ = ("cancel_requested", "created_at", "error", "finished_at", "started_at", "status")

    def __init__(self) -> None:
        self.status = "queued"
        self.cancel_requested = False
        self.created_at = 0
        self.started_at: int | None = None
        self.finished_at: int | None = None
        self.error: bytes | None = None

    def learn(self, fact: object) -> None:
        if isinstance(fact, RunAccepted):
            self.created_at = fact.at
        elif isinstance(fact, RunStarted):
            self.status, self.started_at = "running", fact.at
        elif isinstance(fact, CancelRequested):
            self.cancel_requested = True
        elif isinstance(fact, RunFinished):
            self.status, self.finished_at = fact.status, fact.at
            self.error = msgspec.json.encode(fact.error) if fact.error is not None else None

    def differs(self, row: RunRow | RunChange) -> str | None:
        for name in ("status", "cancel_requested", "started_at", "finished_at", "error"):
            if getattr(row, name) != getattr(self, name):
                return f"{name} is {getattr(row, name)!r}, its facts say {getattr(self, name)!r}"
        return None


class Written:
    """One transaction as the checkers of the core world take it."""

    __slots__ = ("facts",)

    def __init__(self, facts: list[NumberedFact]) -> None:
        self.facts = facts


class Mirror(KeptRows):
    """Told of every transaction that was really written, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0
        self.number = 0
        self.commits = 0
        self.is_healed = False
        self.runs: dict[str, StoredRun] = {}
        self.rows: dict[str, Row] = {}
        self.heads: dict[str, int] = {}
        self.on_commit: list[Callable[[Written], None]] = []
        self._plans: dict[str, Plan] = {}

    def written(self, epoch: int, number: int, changes: Changes) -> None:
        """This transaction is durable now."""
        self._follow(epoch, number)
        self.commits += 1
        for plan in changes.plans:
            if plan.plan_id not in self._plans:
                self._plans[plan.plan_id] = decode_plan(plan.plan)
        for row in changes.runs:
            self.runs[row.run_id] = StoredRun(self._plans[row.plan_id])
            self.rows[row.run_id] = Row()
        by_run: dict[str, list[NumberedFact]] = {}
        for page in changes.segments:
            by_run.setdefault(page.run_id, []).extend(self._add_page(page))
        for event in changes.events:
            head = self.heads.get(event.tenant, 0)
            if event.number != head + 1:
                raise Violation(
                    "I20", f"event {event.number} of tenant {event.tenant} follows {head}"
                )
            self.heads[event.tenant] = event.number
        self._check_changes(changes)
        self.keep(changes)
        for listener in self.on_commit:
            listener(Written(_merged(list(by_run.values()))))

    def _follow(self, epoch: int, number: int) -> None:
        """I21: no lower epoch after a higher one; numbers grow within one."""
        if epoch < self.epoch or (epoch == self.epoch and number <= self.number):
            raise Violation(
                "I21",
                f"commit {number} of epoch {epoch} after {self.number} of epoch {self.epoch}",
            )
        self.epoch, self.number = epoch, number

    def _add_page(self, page: FactSegment) -> list[NumberedFact]:
        run = self.runs.get(page.run_id)
        if run is None:
            raise Violation("I20", f"a page of a run that is not stored: {page.run_id}")
        if page.first != run.last_event + 1:
            raise Violation("I20", f"{page.run_id}: a page from {page.first} on {run.last_event}")
        run.last_event = page.last
        facts = facts_of(page)
        row = self.rows[page.run_id]
        for one in facts:
            run.facts.append(one)
            row.learn(one.fact)
            if isinstance(one.fact, RunFinished):
                run.is_finished = True
        return facts

    def _check_changes(self, changes: Changes) -> None:
        """A row is written in the same transaction as the facts that it repeats."""
        for change in changes.run_changes:
            difference = self.rows[change.run_id].differs(change)
            if difference is not None:
                raise Violation("I20", f"the row of {change.run_id}: {difference}")


def _merged(runs: list[list[NumberedFact]]) -> list[NumberedFact]:
    """The facts of several runs as they may have been decided: by time, and what frees a slot before what takes one."""
    facts: list[NumberedFact] = []
    waiting = [iter(run) for run in runs]
    heads = [next(run) for run in waiting]
    while heads:
        first = min(range(len(heads)), key=lambda index: _turn(heads[index]))
        facts.append(heads[first])
        following = next(waiting[first], None)
        if following is None:
            del heads[first], waiting[first]
        else:
            heads[first] = following
    return facts


def _turn(one: NumberedFact) -> tuple[int, bool]:
    return one.fact.at, isinstance(one.fact, TaskLeased)
