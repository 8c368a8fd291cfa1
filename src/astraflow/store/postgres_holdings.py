"""The half of the PostgreSQL store that is not about runs: packages, wishes, resources, affinities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.store import retention
from astraflow.store.content import MAX_INTEGER, check_row, check_values, other_digest
from astraflow.store.reading import LAST_RESOURCE, package_row, resource_row, wish_row
from astraflow.store.rows import ActiveRow, AffinityRow, RolloutRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from astraflow.store.postgres_link import Connection
    from astraflow.store.rows import PackageRow, ResourceRow, WishRow
    from astraflow.store.store import Claim

__all__ = ["PostgresHoldings"]

_row = msgspec.structs.astuple


class PostgresHoldings:
    """What `PostgresStore` answers about them."""

    _queries: Mapping[str, str]

    def _transaction(self, claim: Claim) -> AbstractAsyncContextManager[Connection]:
        raise NotImplementedError

    async def _all(self, name: str, *arguments: object) -> list[Any]:
        raise NotImplementedError

    async def _one(self, name: str, *arguments: object) -> Any:
        raise NotImplementedError

    # -- writing ----------------------------------------------------------------------------

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        check_row(row)
        async with self._transaction(claim) as connection:
            if await connection.fetchval(self._queries["insert_package"], *_row(row)) is not None:
                return True
            key = (row.tenant, row.name, row.version)
            stored = package_row(await connection.fetchrow(self._queries["find_package"], *key))
            if stored.sha256 != row.sha256:
                raise other_digest(row, stored.sha256)
            return False

    async def yank_package(
        self, claim: Claim, tenant: str, name: str, version: str, at: int | None, reason: str = ""
    ) -> bool:
        return await self._change(claim, "yank_package", tenant, name, version, at, reason)

    async def put_active(self, claim: Claim, row: ActiveRow) -> None:
        await self._change(claim, "put_active", *_row(row))

    async def put_rollout(self, claim: Claim, row: RolloutRow) -> None:
        await self._change(claim, "put_rollout", *_row(row))

    async def set_resource_blob(
        self, claim: Claim, key: tuple[str, str, str], blob: str | None
    ) -> bool:
        return await self._change(claim, "set_resource_blob", *key, blob)

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        await self._change(claim, "put_site", name, value)

    async def _change(self, claim: Claim, name: str, *arguments: Any) -> bool:
        """Whether there was a row to change, of queries that say so."""
        check_values(*arguments)
        async with self._transaction(claim) as connection:
            return await connection.fetchval(self._queries[name], *arguments) is not None

    async def _remove_holdings(self, connection: Connection, now_ms: int) -> int:
        """Remove a piece of what has ended long ago; the rows of the kind that had most of them."""
        gone_ms, copies_ms = now_ms - retention.RESOURCE_MS, now_ms - retention.COPY_MS
        most = 0
        for name, cutoffs in (
            ("delete_ended_resources", (gone_ms, copies_ms)),
            ("delete_ended_wishes", (now_ms - retention.WISH_MS,)),
            ("delete_ended_rollouts", (now_ms - retention.ROLLOUT_MS,)),
        ):
            removed = await connection.fetchval(self._queries[name], *cutoffs, retention.PIECE_ROWS)
            most = max(most, removed)
        return most

    # -- reading ----------------------------------------------------------------------------

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        if tenant is None:
            rows = await self._all("packages")
        else:
            rows = await self._all("packages_of_tenant", tenant)
        return [package_row(row) for row in rows]

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None:
        row = await self._one("find_package", tenant, name, version)
        return None if row is None else package_row(row)

    async def find_site(self, name: str) -> str | None:
        row = await self._one("find_site", name)
        return None if row is None else str(row[0])

    async def active_versions(self) -> list[ActiveRow]:
        return [ActiveRow(*row) for row in await self._all("active_versions")]

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        found = [RolloutRow(*row) for row in await self._all("rollouts")]
        return [row for row in found if states is None or row.state in states]

    async def find_rollout(self, tenant: str, rollout_id: str) -> RolloutRow | None:
        row = await self._one("find_rollout", tenant, rollout_id)
        return None if row is None else RolloutRow(*row)

    async def wishes(self) -> list[WishRow]:
        return [wish_row(row) for row in await self._all("wishes")]

    async def resources(
        self,
        tenant: str | None = None,
        *,
        limit: int | None = None,
        before: tuple[int, str, str] | None = None,
        run_id: str | None = None,
        worker_id: str | None = None,
        type: str | None = None,
        state: str | None = None,
    ) -> list[ResourceRow]:
        most = MAX_INTEGER if limit is None else limit
        place = (tenant, *(before or LAST_RESOURCE), most, worker_id, type, state)
        if tenant is None:
            rows = await self._all("all_resources", most)
        elif run_id is None:
            rows = await self._all("list_resources", *place)
        else:
            rows = await self._all("list_resources_of_run", *place, run_id)
        return [resource_row(row) for row in rows]

    async def find_resource(
        self, tenant: str, resource_id: str, worker_id: str | None = None
    ) -> list[ResourceRow]:
        if worker_id is None:
            rows = await self._all("find_resources", tenant, resource_id)
        else:
            rows = await self._all("find_resource", tenant, worker_id, resource_id)
        return [resource_row(row) for row in rows]

    async def blobs_of_resources(self) -> set[str]:
        return {blob for (blob,) in await self._all("blobs_of_resources")}

    async def affinities(self) -> list[AffinityRow]:
        return [AffinityRow(*row) for row in await self._all("affinities")]
