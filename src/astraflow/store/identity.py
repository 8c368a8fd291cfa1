"""Who may get in: the bearer tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.content import check_row, check_values
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import TokenRow
from astraflow.store.runs import FIRST_PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim


class StoredIdentity:
    """Tokens are read whole when a scheduler begins to serve; lists are read as they are asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_token(self, claim: Claim, row: TokenRow) -> None:
        check_row(row)

        async def insert(transaction: Transaction) -> None:
            await transaction.put(row)

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
            return await transaction.change(
                "revoke_tokens", token_ids=token_ids, revoked_at=at, revoked_by=by
            )

        return await self._database.write(claim, revoke)

    async def touch_tokens(self, claim: Claim, used: Mapping[str, int]) -> None:
        """When tokens were used last."""

        async def touch(transaction: Transaction) -> None:
            for token_id, used_at in used.items():
                await transaction.change("touch_token", token_id=token_id, used_at=used_at)

        await self._database.write(claim, touch)
