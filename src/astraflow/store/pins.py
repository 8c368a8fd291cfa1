"""Pinned results: one of each node of a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.store.content import check_row, check_values
from astraflow.store.database import Database, Transaction, all_rows
from astraflow.store.rows import PinnedResultRow

if TYPE_CHECKING:
    from astraflow.store.store import Claim


class StoredPins:
    """Reads and writes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, claim: Claim, row: PinnedResultRow) -> None:
        """Save the pinned result of a node, in place of the one there is."""
        check_row(row)

        async def save(transaction: Transaction) -> None:
            await transaction.put(row)

        await self._database.write(claim, save)

    async def of_workflow(self, tenant: str, workflow_id: str) -> list[PinnedResultRow]:
        """Those of a workflow, by node."""
        return await all_rows(
            self._database, PinnedResultRow, "list_pins", tenant=tenant, workflow_id=workflow_id
        )

    async def delete(
        self, claim: Claim, tenant: str, workflow_id: str, node_id: str | None = None
    ) -> int:
        """Remove the one of a node, or all; how many there were."""
        check_values(tenant, workflow_id, node_id)
        key = {"tenant": tenant, "workflow_id": workflow_id}

        async def delete(transaction: Transaction) -> int:
            if node_id is None:
                return await transaction.change("delete_pins", **key)
            return await transaction.change("delete_pin", **key, node_id=node_id)

        return await self._database.write(claim, delete)
