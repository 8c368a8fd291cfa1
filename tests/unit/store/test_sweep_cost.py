"""A piece of a sweep costs the same however many finished runs are stored: what grows with them is asked once."""

from __future__ import annotations

import re

import pytest

from astraflow.core.errors import StoreError
from astraflow.store.memory import MemoryStore
from astraflow.store.retention import PIECE_RUNS, Swept
from astraflow.store.rows import Changes, PlanRow
from astraflow.store.store import Claim, Retention
from tests.conformance.store.samples import NOW_MS, PLAN, finished, segment

COUNTS = re.compile(r"count\(\*\)")
BY_NUMBER = Retention(finished_runs=0)


class Counted:
    """A store with finished runs, whose connection notes every statement and every step of its machine."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.statements: list[str] = []
        self.steps = 0
        self.number = 0
        self.connection = self.store.database.writer.connection

    async def fill(self, runs: int) -> Claim:
        claim = await self.store.claim("one")
        assert claim is not None
        await self.add(claim, 0, runs)
        self.connection.set_trace_callback(self.statements.append)
        self.connection.set_progress_handler(self._step, 1)
        return claim

    def _step(self) -> int:
        self.steps += 1
        return 0

    async def add(self, claim: Claim, first: int, runs: int) -> None:
        """Each run has a plan of its own, so that what is stored beside runs grows with them."""
        rows = [
            finished(number, NOW_MS - 10**6 + number, plan_id=f"plan-{number}")
            for number in range(first, first + runs)
        ]
        changes = Changes()
        changes.plans += [PlanRow(row.plan_id, PLAN.definition, PLAN.plan) for row in rows]
        changes.runs += rows
        changes.segments += [segment(row, 1, 1) for row in rows]
        self.number += 1
        await self.store.commit(claim, self.number, changes)

    async def sweep(self, claim: Claim, retention: Retention = BY_NUMBER) -> Swept:
        return await self.store.sweep(claim, retention, NOW_MS)

    def counts(self) -> int:
        return sum(bool(COUNTS.search(text)) for text in self.statements)


async def steps_of_second_piece(runs: int) -> int:
    counted = Counted()
    claim = await counted.fill(runs)
    assert (await counted.sweep(claim)).more
    counted.steps = 0
    assert (await counted.sweep(claim)).runs == PIECE_RUNS
    return counted.steps


async def test_a_sweep_counts_once_however_many_pieces_it_takes() -> None:
    counted = Counted()
    claim = await counted.fill(3 * PIECE_RUNS + 1)
    pieces = [await counted.sweep(claim) for _ in range(4)]
    assert [(one.runs, one.more) for one in pieces] == [(PIECE_RUNS, True)] * 3 + [(1, False)]
    assert counted.counts() == 1
    await counted.sweep(claim)
    assert counted.counts() == 2


async def test_a_piece_takes_the_same_steps_among_many_runs_as_among_few() -> None:
    few, many = await steps_of_second_piece(1_000), await steps_of_second_piece(8_000)
    assert many < 1.05 * few


async def test_runs_that_end_between_two_pieces_stay_until_the_next_sweep() -> None:
    counted = Counted()
    claim = await counted.fill(PIECE_RUNS + 10)
    keep_5 = Retention(finished_runs=5)
    assert await counted.sweep(claim, keep_5) == Swept(runs=PIECE_RUNS, more=True)
    await counted.add(claim, 1_000, 20)
    assert await counted.sweep(claim, keep_5) == Swept(runs=5)
    assert await counted.sweep(claim, keep_5) == Swept(runs=20)
    assert (await counted.store.usage()).runs == 5


async def test_a_sweep_counts_again_after_one_that_failed() -> None:
    """A carried count that is too high would remove runs that may stay."""
    counted = Counted()
    claim = await counted.fill(2 * PIECE_RUNS + 10)
    keep = Retention(finished_runs=PIECE_RUNS)
    assert await counted.sweep(claim, keep) == Swept(runs=PIECE_RUNS, more=True)
    later = await counted.store.claim("two")
    assert later is not None
    with pytest.raises(StoreError):
        await counted.sweep(claim, keep)
    assert await counted.sweep(later, keep) == Swept(runs=10)
    assert counted.counts() == 2


async def test_a_later_claim_does_not_take_the_count_of_an_earlier_one() -> None:
    counted = Counted()
    claim = await counted.fill(2 * PIECE_RUNS)
    keep = Retention(finished_runs=PIECE_RUNS - 1)
    assert (await counted.sweep(claim, keep)).more
    other = await counted.store.claim("two")
    assert other is not None
    assert await counted.sweep(other, keep) == Swept(runs=1)
    assert counted.counts() == 2
