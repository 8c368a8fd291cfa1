"""Packages: published versions, the active ones, rollouts; and the values of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.content import check_row, check_values, other_digest
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import ActiveRow, PackageRow, RolloutRow, SiteRow

if TYPE_CHECKING:
    from collections.abc import Collection

    from astraflow.store.database import Database, Transaction
    from astraflow.store.rows import Row
    from astraflow.store.store import Claim


class StoredPackages:
    """What holds for all workers of a tenant, or for the whole site."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        check_row(row)

        async def publish(transaction: Transaction) -> bool:
            if await transaction.put(row):
                return True
            key = {"tenant": row.tenant, "name": row.name, "version": row.version}
            stored = await first_row(transaction, PackageRow, "find_package", **key)
            if stored is not None and stored.sha256 != row.sha256:
                raise other_digest(row, stored.sha256)
            return False

        return await self._database.write(claim, publish)

    async def yank_package(
        self, claim: Claim, tenant: str, name: str, version: str, at: int | None, reason: str = ""
    ) -> bool:
        check_values(tenant, name, version, at, reason)

        async def yank(transaction: Transaction) -> bool:
            key = {"tenant": tenant, "name": name, "version": version}
            mark = {"yanked_at": at, "yanked_reason": reason}
            return await transaction.change("yank_package", **key, **mark) > 0

        return await self._database.write(claim, yank)

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        query = "packages" if tenant is None else "packages_of_tenant"
        return await all_rows(self._database, PackageRow, query, tenant=tenant)

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None:
        key = {"tenant": tenant, "name": name, "version": version}
        return await first_row(self._database, PackageRow, "find_package", **key)

    async def active_versions(self) -> list[ActiveRow]:
        return await all_rows(self._database, ActiveRow, "active_versions")

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        found = await all_rows(self._database, RolloutRow, "rollouts")
        return [row for row in found if states is None or row.state in states]

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        await self._put(claim, SiteRow(name, value))

    async def find_site(self, name: str) -> str | None:
        found = await self._database.rows("find_site", name=name)
        return str(found[0][0]) if found else None

    async def _put(self, claim: Claim, row: Row) -> None:
        check_row(row)
        await self._database.write(claim, lambda transaction: transaction.put(row))
