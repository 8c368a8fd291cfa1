"""Workers and HTTP pools, and what belongs to them: install intents, affinities, resources. Commits write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.ids import RunId
from astraflow.store.content import MAX_INTEGER
from astraflow.store.database import all_rows
from astraflow.store.rows import AffinityRow, InstallIntentRow, PoolRow, ResourceRow, WorkerRow

if TYPE_CHECKING:
    from astraflow.store.database import Database

_FIRST_PAGE = (MAX_INTEGER, "", "")


class StoredWorkers:
    """Reads, and the copies of resources: a worker does not know those of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def workers(self) -> list[WorkerRow]:
        return await all_rows(self._database, WorkerRow, "workers", shard=self._database.shard)

    async def pools(self) -> list[PoolRow]:
        return await all_rows(self._database, PoolRow, "pools", shard=self._database.shard)

    async def intents(self) -> list[InstallIntentRow]:
        shard = self._database.shard
        return await all_rows(self._database, InstallIntentRow, "intents", shard=shard)

    async def affinities(self) -> list[AffinityRow]:
        return await all_rows(self._database, AffinityRow, "affinities", shard=self._database.shard)

    async def resources(
        self,
        tenant: str | None = None,
        *,
        limit: int | None = None,
        before: tuple[int, str, str] | None = None,
        run_id: RunId | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        """Newest first, by (created_at, worker_id, resource_id); `before` is the last one of the page before.

        Without a tenant: those of all of the shard, tenant by tenant; then nothing but a limit may be asked for.
        """
        query = "list_resources" if run_id is None else "list_resources_of_run"
        before_at, before_worker, before_id = before or _FIRST_PAGE
        return await all_rows(
            self._database,
            ResourceRow,
            "all_resources" if tenant is None else query,
            tenant=tenant,
            shard=self._database.shard,
            limit=MAX_INTEGER if limit is None else limit,
            before_at=before_at,
            before_worker=before_worker,
            before_id=before_id,
            run_id=run_id,
            worker_id=worker_id,
            type=type,
            state=state,
        )

    async def find_resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> list[ResourceRow]:
        """The resource on this worker, or on every worker that has one of this id."""
        return await all_rows(
            self._database,
            ResourceRow,
            "find_resources" if worker_id is None else "find_resource",
            tenant=tenant,
            resource_id=resource_id,
            worker_id=worker_id,
        )

    async def blobs_of_resources(self) -> set[str]:
        """Every copy that a stored resource has."""
        return {blob for (blob,) in await self._database.rows("blobs_of_resources")}
