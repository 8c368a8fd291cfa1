"""Secrets and the keys that they are encrypted with. Both are read whole when a scheduler begins to serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.content import check_row
from astraflow.store.database import all_rows
from astraflow.store.rows import DataKeyRow, SecretRow

if TYPE_CHECKING:
    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim


class StoredSecrets:
    """Nothing in it can be read without the master key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_data_key(self, claim: Claim, row: DataKeyRow) -> None:
        """Keep a new key, or one that was wrapped again."""
        check_row(row)

        async def put(transaction: Transaction) -> None:
            await transaction.put(row)

        await self._database.write(claim, put)

    async def data_keys(self) -> list[DataKeyRow]:
        """Those of the tenants of this shard."""
        return await all_rows(self._database, DataKeyRow, "data_keys", shard=self._database.shard)

    async def data_keys_of_site(self) -> list[DataKeyRow]:
        """Those of all tenants."""
        return await all_rows(self._database, DataKeyRow, "data_keys_of_site")

    async def put_secret(self, claim: Claim, row: SecretRow) -> None:
        """Keep a secret; one of the same name is replaced."""
        check_row(row)

        async def put(transaction: Transaction) -> None:
            await transaction.put(row)

        await self._database.write(claim, put)

    async def delete_secret(self, claim: Claim, tenant: str, name: str) -> bool:
        """Whether there was one."""

        async def delete(transaction: Transaction) -> int:
            return await transaction.change("delete_secret", tenant=tenant, name=name)

        return await self._database.write(claim, delete) > 0

    async def secrets(self) -> list[SecretRow]:
        """All of the tenants of this shard."""
        return await all_rows(self._database, SecretRow, "secrets", shard=self._database.shard)
