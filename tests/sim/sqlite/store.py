"""The simulated store with a real one inside: SQLite in memory, whose every answer comes without waiting."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from copy import copy
from typing import Any, TypeVar

from astraflow.core import errors
from astraflow.core.engine.batch import Batch
from astraflow.store.memory import MemoryStore
from astraflow.store.rows import Changes
from astraflow.store.store import Claim
from tests.sim.config import Config
from tests.sim.loop import VirtualLoop
from tests.sim.mirror import Mirror
from tests.sim.store import CommitOutcome, Store
from tests.sim.world import World

__all__ = ["SqliteBackedStore", "drive"]

Answer = TypeVar("Answer")


def drive(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer of a coroutine that does not suspend."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    raise AssertionError("it waits for something")


class _Torn(Exception):
    """The process dies in the middle of a transaction."""


class _Tearing(list[Any]):
    """Rows that end in a crash."""

    def __iter__(self) -> Iterator[Any]:
        raise _Torn

    def __bool__(self) -> bool:
        return True


class SqliteBackedStore(Store):
    """The lease of the shard is the world's, so that two schedulers can fight for it; all else is SQLite's."""

    def __init__(self, world: World, config: Config) -> None:
        super().__init__(world, config)
        self.sqlite = MemoryStore()
        self.mirror = Mirror()
        self.loop = VirtualLoop()

    def acquire(self, name: str) -> int | None:
        if super().acquire(name) is None:
            return None
        claim = drive(self.sqlite.claim(name))
        assert claim is not None
        self.epoch = claim.epoch
        return claim.epoch

    def commit_rows(
        self, claim: Claim, number: int, batch: Batch, changes: Changes
    ) -> CommitOutcome:
        """One real transaction, or one that fails before, in the middle, or after without a word."""
        outcome = CommitOutcome.DONE
        if not self.is_healed and self.world.chance(self.config.commit_fault):
            outcome = self.world.rng.choice(
                (CommitOutcome.REFUSED, CommitOutcome.UNKNOWN_WRITTEN, CommitOutcome.UNKNOWN_LOST)
            )
        if outcome in (CommitOutcome.REFUSED, CommitOutcome.UNKNOWN_LOST):
            self._tear(claim, number, changes)
            return outcome
        try:
            drive(self.sqlite.commit(claim, number, changes))
        except errors.StoreError as error:
            if error.code is not errors.STORE_FENCED:
                raise
            return CommitOutcome.FENCED
        self.mirror.written(claim.epoch, number, changes)
        self.keep(changes)
        if batch.facts:
            self._write(claim.epoch, batch)
        return outcome

    def _tear(self, claim: Claim, number: int, changes: Changes) -> None:
        """Half of the rows are written when the process dies: the transaction must leave no trace."""
        torn = copy(changes)
        torn.audits = _Tearing()  # audits are written last
        try:
            self.sqlite.database.writer.commit(claim, number, torn)
        except _Torn:
            self.world.sometimes("transaction torn")
        except errors.StoreError as error:
            assert error.code is errors.STORE_FENCED

    def is_committed(self, claim: Claim, number: int) -> bool:
        return drive(self.sqlite.is_committed(claim, number))

    def shut(self) -> None:
        self.sqlite.database.writer.close()
        self.loop.close()
