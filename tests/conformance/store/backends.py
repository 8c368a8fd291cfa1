"""The back ends as tests see them: a place that outlives stores, and stores that are opened on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from astraflow.store.memory import MemoryStore
from astraflow.store.postgres import PostgresStore
from astraflow.store.rows import Changes, RunRow
from astraflow.store.sqlite import SqliteStore
from astraflow.store.store import Claim, Store

__all__ = ["Backend", "Desk", "MemoryBackend", "PostgresBackend", "SqliteBackend"]


class Desk:
    """An open store and the claim it is written under; commits get their numbers here."""

    def __init__(self, store: Store, claim: Claim) -> None:
        self.store = store
        self.claim = claim
        self.number = 0

    async def write(self, **rows: Sequence[object]) -> None:
        """Commit these rows; the keywords are the fields of `Changes`."""
        changes = Changes()
        for table, added in rows.items():
            getattr(changes, table).extend(added)
        self.number += 1
        await self.store.commit(self.claim, self.number, changes)

    async def find(self, run: RunRow) -> RunRow | None:
        return await self.store.find_run(run.tenant, run.run_id)


class Backend:
    """A place for a store."""

    name = ""

    def store(self) -> Store:
        """A store on this place, not open yet."""
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        store = self.store()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def desk(self, owner: str = "one") -> AsyncIterator[Desk]:
        async with self.opened() as store:
            claim = await store.claim(owner)
            assert claim is not None
            yield Desk(store, claim)


class MemoryBackend(Backend):
    name = "memory"

    def __init__(self) -> None:
        self._store = MemoryStore()

    def store(self) -> Store:
        return self._store


class SqliteBackend(Backend):
    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path

    def store(self) -> Store:
        return SqliteStore(self.path)


class PostgresBackend(Backend):
    name = "postgres"

    def __init__(self, url: str) -> None:
        self.url = url

    def store(self) -> Store:
        return PostgresStore(self.url)
