"""A store in the memory of one process, for tests and simulation: SQLite without a file, called in line.

What it holds lives as long as the object: `close` and `open` again is a restart after which everything is there. It has
no threads, and answers without waiting, so that a simulated world stays repeatable.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

from astraflow.store.content import check_changes, check_values
from astraflow.store.sqlite_file import MEMORY, connect_writer, read_rows
from astraflow.store.sqlite_writer import SHARD, SqliteWriter
from astraflow.store.statements import statements_of
from astraflow.store.store import Claim, Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from astraflow.clock import Clock
    from astraflow.store.database import RawRow, Transaction
    from astraflow.store.rows import Changes

Answer = TypeVar("Answer")


class MemoryDatabase:
    """A `Database` for one process. With a clock and a ttl, claims run out as they do on PostgreSQL."""

    def __init__(
        self,
        clock: Clock | None,
        ttl_s: float | None,
        shard: int = SHARD,
        writer: SqliteWriter | None = None,
        leases: dict[int, float] | None = None,
    ) -> None:
        assert (clock is None) == (ttl_s is None), "a ttl needs a clock"
        self.shard = shard
        self.statements = statements_of("sqlite")
        self.writer = writer or SqliteWriter(
            connect_writer(MEMORY, self.statements), self.statements
        )
        self.ttl_s = ttl_s
        self._leases = {} if leases is None else leases
        """When the claim of each shard runs out."""
        self._clock = clock

    def of_shard(self, shard: int) -> MemoryDatabase:
        return MemoryDatabase(self._clock, self.ttl_s, shard, self.writer, self._leases)

    @property
    def until(self) -> float:
        """When the claim runs out."""
        return self._leases.get(self.shard, 0.0)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    # -- ownership --------------------------------------------------------------------------

    async def claim(self, owner: str) -> Claim | None:
        check_values(owner)
        is_held = self._clock is not None and self._clock.now() < self.until
        ((holder,),) = await self.rows("owner", shard=self.shard)
        if is_held and owner != holder:
            return None
        claim = Claim(owner, self.writer.claim(self.shard, owner), self.ttl_s, self.shard)
        await self.renew(claim)
        return claim

    async def renew(self, claim: Claim) -> bool:
        if not self._is_newest(claim):
            return False
        if self._clock is not None and self.ttl_s is not None:
            self._leases[self.shard] = self._clock.now() + self.ttl_s
        return True

    async def release(self, claim: Claim) -> None:
        if self._is_newest(claim):
            self._leases[self.shard] = 0.0
        self.writer.release(claim)

    def _is_newest(self, claim: Claim) -> bool:
        epoch, _ = self.writer.shard(claim.shard)
        return epoch == claim.epoch

    # -- reading and writing ----------------------------------------------------------------

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        check_changes(changes)
        self.writer.commit(claim, number, changes)

    async def is_committed(self, claim: Claim, number: int) -> bool:
        return self.writer.is_committed(claim, number)

    async def write(
        self, claim: Claim, script: Callable[[Transaction], Awaitable[Answer]]
    ) -> Answer:
        return self.writer.run(claim, script)

    async def rows(self, name: str, /, **values: object) -> list[RawRow]:
        return await self.rows_until(name, sqlite3.Cursor.fetchall, **values)

    async def rows_until(
        self, name: str, take: Callable[[sqlite3.Cursor], list[RawRow]], /, **values: object
    ) -> list[RawRow]:
        check_values(*values.values())
        return read_rows(self.writer.connection, self.statements[name], values, take)


class MemoryStore(Store):
    """A `Store` for one process."""

    database: MemoryDatabase

    def __init__(self, *, clock: Clock | None = None, ttl_s: float | None = None) -> None:
        super().__init__(MemoryDatabase(clock, ttl_s))
