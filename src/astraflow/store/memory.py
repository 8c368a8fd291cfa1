"""A store in plain dictionaries, for tests and simulation: the same promises, without a disk.

What it holds lives as long as the object: `close` and `open` again is a restart after which everything is there. It has
no threads, and answers without waiting, so that a simulated world stays repeatable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.store.composed import ComposedStore
from astraflow.store.content import check_changes, check_values, refused
from astraflow.store.memory_queries import CHANGES, READS
from astraflow.store.memory_tables import MemoryTables
from astraflow.store.rows import PlanRow, Row, RunRow
from astraflow.store.store import Claim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from astraflow.clock import Clock
    from astraflow.store.database import RawRow, Transaction
    from astraflow.store.rows import Changes

Answer = TypeVar("Answer")


class MemoryDatabase:
    """A `Database` for one process. With a clock and a ttl, claims run out as they do on PostgreSQL."""

    def __init__(self, clock: Clock | None, ttl_s: float | None) -> None:
        assert (clock is None) == (ttl_s is None), "a ttl needs a clock"
        self.tables = MemoryTables()
        self.ttl_s = ttl_s
        self.until = 0.0
        """When the claim runs out."""
        self._clock = clock
        self._owner = ""
        self._epoch = 0
        self._number = 0

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        is_held = self._clock is not None and self._clock.now() < self.until
        if is_held and owner != self._owner:
            return None
        self._owner = owner
        self._epoch += 1
        self._number = 0
        claim = Claim(owner, self._epoch, self.ttl_s)
        await self.renew(claim)
        return claim

    async def owner(self) -> str:
        return self._owner

    async def renew(self, claim: Claim) -> bool:
        if claim.epoch != self._epoch:
            return False
        if self._clock is not None and self.ttl_s is not None:
            self.until = self._clock.now() + self.ttl_s
        return True

    async def release(self, claim: Claim) -> None:
        if claim.epoch == self._epoch:
            self.until = 0.0

    def _fence(self, claim: Claim) -> None:
        if claim.epoch != self._epoch:
            raise StoreError(
                errors.STORE_FENCED,
                f"epoch {claim.epoch} has been followed by epoch {self._epoch}",
            )

    # -- reading and writing ----------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        self._fence(claim)
        if number <= self._number:
            raise refused(f"commit {number} does not follow the last one: {self._number}")
        _check_against_stored(self.tables, changes)
        self._number = number
        self.tables.write(changes)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        self._fence(claim)
        return self._number >= number

    async def write(
        self, claim: Claim, script: Callable[[Transaction], Awaitable[Answer]]
    ) -> Answer:
        self._fence(claim)
        return await script(MemoryTransaction(self.tables))

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        check_values(*values.values())
        return _raw(READS[name](self.tables, values))

    async def rows_until(
        self, name: str, take: Callable[[Iterable[RawRow]], list[RawRow]], /, **values: object
    ) -> list[RawRow]:
        return take(await self.rows(name, **values))


class MemoryTransaction:
    """A `Transaction` that cannot be rolled back: scripts refuse before they change anything."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        return _raw(READS[name](self._tables, values))

    async def change(self, name: str, /, **values: object) -> int:
        return CHANGES[name](self._tables, values)

    async def put(self, row: Row) -> int:
        return int(self._tables.put(row))

    async def give_space_back(self) -> bool:
        return False


class MemoryStore(ComposedStore[MemoryDatabase]):
    """A `Store` for one process."""

    def __init__(self, *, clock: Clock | None = None, ttl_s: float | None = None) -> None:
        super().__init__(MemoryDatabase(clock, ttl_s))


def _raw(rows: list[Any]) -> list[RawRow]:
    return [msgspec.structs.astuple(row) if isinstance(row, Row) else row for row in rows]


def _check_against_stored(tables: MemoryTables, changes: Changes) -> None:
    """What the keys and references of a database refuse."""
    plans, runs = tables.of(PlanRow), tables.of(RunRow)
    new_plans = {plan.plan_id for plan in changes.plans}
    new_runs: set[str] = set()
    for run in changes.runs:
        if run.run_id in runs or run.run_id in new_runs:
            raise refused(f"the run is stored already: {run.run_id}", "/runs")
        if run.plan_id not in plans and run.plan_id not in new_plans:
            raise refused(f"the plan of a run is not stored: {run.plan_id}", "/runs")
        new_runs.add(run.run_id)
    for change in changes.run_changes:
        if change.run_id not in runs and change.run_id not in new_runs:
            raise refused("a run that is changed does not exist", "/run_changes")
    heads: dict[str, int] = {}
    for segment in changes.segments:
        stored = tables.segments.get(segment.run_id)
        _advance(heads, segment.run_id, segment.last, stored[-1].last if stored else 0)
    heads.clear()
    for event in changes.events:
        told = tables.events.get(event.tenant)
        _advance(heads, event.tenant, event.number, told[-1].number if told else 0)


def _advance(heads: dict[str, int], key: str, number: int, stored: int) -> None:
    if number <= heads.get(key, stored):
        raise refused(f"event {number} is stored already: {key}")
    heads[key] = number
