"""Who may get in: tenants, users, and bearer tokens. Commits write tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.store.content import check_row, check_values
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import SiteRow, TenantRow, TokenRow, UserRow
from astraflow.store.runs import FIRST_PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim


TOKENS_CHANGE = "tokens_change"
"""The value of the site that differs after each change of a token, for schedulers that share this store."""


class StoredIdentity:
    """Tokens are read whole when a scheduler begins to serve; lists are read as they are asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tenants(self) -> list[TenantRow]:
        """Those of the shard."""
        return await all_rows(self._database, TenantRow, "tenants", shard=self._database.shard)

    async def all_tenants(self) -> list[TenantRow]:
        """Those of all shards."""
        return await all_rows(self._database, TenantRow, "all_tenants")

    async def put_token(self, claim: Claim, row: TokenRow) -> None:
        check_row(row)

        async def insert(transaction: Transaction) -> None:
            await transaction.put(row)
            await transaction.put(SiteRow(TOKENS_CHANGE, f"put {row.token_id}"))

        await self._database.write(claim, insert)

    async def good_tokens(self, now: int) -> list[TokenRow]:
        """All that are neither revoked nor expired, of all tenants."""
        return await all_rows(self._database, TokenRow, "good_tokens", now=now)

    async def list_tokens(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        subject: str | None = None,
    ) -> list[TokenRow]:
        """Newest first, by (created_at, token_id); those of one subject, if it is given."""
        before_at, before_id = before or FIRST_PAGE
        return await all_rows(
            self._database,
            TokenRow,
            "list_tokens",
            tenant=tenant,
            limit=limit,
            before_at=before_at,
            before_id=before_id,
            subject=subject,
        )

    async def find_token(self, tenant: str, token_id: str) -> TokenRow | None:
        return await first_row(
            self._database, TokenRow, "find_token", tenant=tenant, token_id=token_id
        )

    async def revoke_tokens(self, claim: Claim, token_ids: list[str], at: int, by: str) -> int:
        """How many of them were good until now: of two who redeem the same link, one gets 1."""
        check_values(token_ids, by)

        async def revoke(transaction: Transaction) -> int:
            revoked = await transaction.change(
                "revoke_tokens", token_ids=token_ids, revoked_at=at, revoked_by=by
            )
            if revoked:
                await transaction.put(SiteRow(TOKENS_CHANGE, f"revoke {token_ids[-1]}"))
            return revoked

        return await self._database.write(claim, revoke)

    async def touch_tokens(self, claim: Claim, used: Mapping[str, int]) -> None:
        """When tokens were used last."""

        async def touch(transaction: Transaction) -> None:
            for token_id, used_at in used.items():
                await transaction.change("touch_token", token_id=token_id, used_at=used_at)

        await self._database.write(claim, touch)

    async def create_user(self, claim: Claim, row: UserRow) -> bool:
        """False if there is one of this name."""
        check_row(row)

        async def insert(transaction: Transaction) -> bool:
            return await transaction.change("create_user", **msgspec.structs.asdict(row)) > 0

        return await self._database.write(claim, insert)

    async def change_user(
        self, claim: Claim, tenant: str, name: str, *, if_hash: str | None = None, **changes: Any
    ) -> UserRow | None:
        """Change some fields of a user; None if there is none, or if its password has not this hash any more."""
        check_values(tenant, name, *changes.values())

        async def change(transaction: Transaction) -> UserRow | None:
            found = await first_row(transaction, UserRow, "find_user", tenant=tenant, name=name)
            if found is None or if_hash not in (None, found.password_hash):
                return None
            changed = msgspec.structs.replace(found, **changes)
            await transaction.put(changed)
            return changed

        return await self._database.write(claim, change)

    async def delete_user(self, claim: Claim, tenant: str, name: str) -> bool:
        check_values(tenant, name)

        async def delete(transaction: Transaction) -> bool:
            return await transaction.change("delete_user", tenant=tenant, name=name) > 0

        return await self._database.write(claim, delete)

    async def find_user(self, tenant: str, name: str) -> UserRow | None:
        return await first_row(self._database, UserRow, "find_user", tenant=tenant, name=name)

    async def list_users(self, tenant: str, *, limit: int, after: str = "") -> list[UserRow]:
        """By name."""
        return await all_rows(
            self._database, UserRow, "list_users", tenant=tenant, limit=limit, after=after
        )
