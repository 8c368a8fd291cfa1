"""Packages: published versions, the active ones, rollouts; and the values of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import astraflow
from astraflow.store.content import check_row, check_values, other_digest
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import ActiveRow, PackageRow, RolloutRow, SiteRow
from astraflow.store.written_facts import FACTS_VALUES, RAISED_BY, written_facts

if TYPE_CHECKING:
    from collections.abc import Collection

    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim


PACKAGES_CHANGE = "packages_change"
"""The value of the site that differs after each change of packages or of active versions, for the schedulers of other
lanes: they have read them when they began to serve."""


class StoredPackages:
    """What holds for all workers of a tenant, or for the whole site."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_package(self, claim: Claim, row: PackageRow) -> bool:
        """Add a version of a package; False if this very archive is stored already.

        Raises:
            Conflict: the version is stored with another digest.
        """
        check_row(row)

        async def publish(transaction: Transaction) -> bool:
            if await transaction.put(row):
                await transaction.put(_changed())
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
        """Mark the version as yanked, or as not with `at` None; False if there is no such version."""
        check_values(tenant, name, version, at, reason)

        async def yank(transaction: Transaction) -> bool:
            key = {"tenant": tenant, "name": name, "version": version}
            mark = {"yanked_at": at, "yanked_reason": reason}
            is_there = await transaction.change("yank_package", **key, **mark) > 0
            if is_there:
                await transaction.put(_changed())
            return is_there

        return await self._database.write(claim, yank)

    async def packages(self, tenant: str | None = None) -> list[PackageRow]:
        """By (tenant, name, version as text)."""
        query = "packages" if tenant is None else "packages_of_tenant"
        return await all_rows(self._database, PackageRow, query, tenant=tenant)

    async def find_package(self, tenant: str, name: str, version: str) -> PackageRow | None:
        key = {"tenant": tenant, "name": name, "version": version}
        return await first_row(self._database, PackageRow, "find_package", **key)

    async def active_versions(self) -> list[ActiveRow]:
        return await all_rows(self._database, ActiveRow, "active_versions")

    async def rollouts(self, states: Collection[str] | None = None) -> list[RolloutRow]:
        """Last updated last."""
        found = await all_rows(self._database, RolloutRow, "rollouts", shard=self._database.shard)
        return [row for row in found if states is None or row.state in states]

    async def put_site(self, claim: Claim, name: str, value: str) -> None:
        """Keep something that is true of all schedulers of this store."""
        row = SiteRow(name, value)
        check_row(row)
        await self._database.write(claim, lambda transaction: transaction.put(row))

    async def raise_written_facts(self, claim: Claim, facts_version: int) -> None:
        """Let facts up to this version be written in a store that one scheduler uses."""

        async def script(transaction: Transaction) -> None:
            if await transaction.change("raise_written_facts", facts_version=facts_version):
                await transaction.put(SiteRow(RAISED_BY, astraflow.__version__))

        await self._database.write(claim, script)

    async def written_facts(self) -> int:
        """Up to which version facts are written. Raises: StoreError, if this release does not read them."""
        found = await self._database.rows("site_values", names=FACTS_VALUES)
        return written_facts({name: value for name, value in found})

    async def find_site(self, name: str) -> str | None:
        found = await self._database.rows("find_site", name=name)
        return str(found[0][0]) if found else None


def _changed() -> SiteRow:
    return SiteRow(PACKAGES_CHANGE, uuid4().hex)
