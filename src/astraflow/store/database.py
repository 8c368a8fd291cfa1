"""What a store asks of a database. `sqlite`, `postgres` and `memory` have one each; the parts know only this.

A part names a query and gives its parameters by name; rows come back as they are. What changes rows is a function of a
`Transaction`, which a database runs where it writes: SQLite in its thread, where nothing waits, PostgreSQL on its
connection, the one in memory at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from astraflow.store.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from astraflow.store.rows import Changes, Row
    from astraflow.store.store import Claim

Answer = TypeVar("Answer")
R = TypeVar("R", bound="Row")
RawRow = Any
"""The values of a row, in the order of the columns of the query."""


class Reader(Protocol):
    """What can be read."""

    async def rows(self, name: str, /, **values: object) -> list[RawRow]: ...


class Transaction(Reader, Protocol):
    """Writes that become durable together, under a claim that is good."""

    async def change(self, name: str, /, **values: object) -> int:
        """Run a query that changes rows; how many it changed."""

    async def put(self, row: Row) -> int:
        """Write one row, as its mode says; 0 if nothing was written."""

    async def give_space_back(self) -> bool:
        """Return a piece of the unused space to the operating system; whether there may be more."""


class Database(Reader, Protocol):
    """Where the rows are, and who may write them."""

    shard: int
    """What is claimed here; what an owner reads when it starts is of this shard."""

    def of_shard(self, shard: int) -> Database:
        """The same rows for the owner of another shard.

        Raises:
            Refused: this kind of store has one owner.
        """

    async def open(self) -> None:
        """Connect, and migrate the schema forward behind a lock.

        Raises:
            StoreError: not a store of ours, a newer schema, locked by another scheduler, unreachable.
        """

    async def close(self) -> None: ...

    async def claim(self, owner: str) -> Claim | None:
        """Take the right to write with a new, higher epoch; None while another's claim is good."""

    async def renew(self, claim: Claim) -> bool:
        """Prolong the claim; False if a higher epoch has been claimed."""

    async def release(self, claim: Claim) -> None:
        """Give the claim up, so that another may have it at once."""

    async def commit(self, claim: Claim, number: int, changes: Changes) -> None:
        """Write one transaction. Its number must be above that of every commit under this claim.

        Raises:
            StoreError: nothing was written. Its code says why: fenced, full, unavailable, or refused for its content.
                When it is broken or damaged, stop: the next start reads back what the disk has.
            OutcomeUnknown: nobody knows; ask `is_committed` when the store answers again.
        """

    async def is_committed(self, claim: Claim, number: int) -> bool:
        """Whether the commit with this number, the last one tried, was written under this claim (R16).

        An answer is final: what was still under way when it was asked can no longer be written.

        Raises:
            StoreError: a higher epoch has been claimed, or the store does not answer.
        """

    async def rows_until(
        self, name: str, take: Callable[[Iterable[RawRow]], list[RawRow]], /, **values: object
    ) -> list[RawRow]:
        """As `rows`, but only those that `take` takes, unless the query itself has the limit. No others are read."""

    async def write(
        self, claim: Claim, script: Callable[[Transaction], Awaitable[Answer]]
    ) -> Answer:
        """Run the script in one transaction. The script awaits nothing but the transaction.

        Raises:
            StoreError: nothing was written; a higher epoch has been claimed, for example.
        """


async def all_rows(reader: Reader, kind: type[R], name: str, /, **values: object) -> list[R]:
    decode = table_of(kind).decode
    return [decode(row) for row in await reader.rows(name, **values)]


async def first_row(reader: Reader, kind: type[R], name: str, /, **values: object) -> R | None:
    found = await all_rows(reader, kind, name, **values)
    return found[0] if found else None
