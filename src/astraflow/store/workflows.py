"""Saved workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.store.content import check_row, check_values, stale_workflow
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import WorkflowRow
from astraflow.store.runs import FIRST_PAGE

if TYPE_CHECKING:
    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim


class StoredWorkflows:
    """All versions of each workflow; the table `workflows` holds the newest, which a save is compared with."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_workflow(
        self, claim: Claim, row: WorkflowRow, *, keep: int | None = None
    ) -> None:
        """Save version `row.version`: 1 creates, n + 1 follows the stored version n. Of the versions that are stored
        then, the newest `keep` stay.

        Raises:
            Conflict: the stored version is not the one before it.
        """
        check_row(row)

        async def save(transaction: Transaction) -> None:
            query = "create_workflow" if row.version == 1 else "follow_workflow"
            if not await transaction.change(query, **msgspec.structs.asdict(row)):
                raise stale_workflow(row)
            await transaction.put(row)
            if keep is not None:
                await transaction.change(
                    "delete_workflow_versions",
                    tenant=row.tenant,
                    workflow_id=row.workflow_id,
                    last=row.version - keep,
                )

        await self._database.write(claim, save)

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool:
        check_values(tenant, workflow_id)

        async def delete(transaction: Transaction) -> bool:
            key = {"tenant": tenant, "workflow_id": workflow_id}
            return await transaction.change("delete_workflow", **key) > 0

        return await self._database.write(claim, delete)

    async def find_workflow(
        self, tenant: str, workflow_id: str, version: int | None = None
    ) -> WorkflowRow | None:
        """The newest version, or the one named."""
        return await first_row(
            self._database,
            WorkflowRow,
            "find_workflow" if version is None else "find_workflow_version",
            tenant=tenant,
            workflow_id=workflow_id,
            version=version,
        )

    async def list_workflows(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[WorkflowRow]:
        """The newest version of each, last updated first, by (updated_at, workflow_id)."""
        before_at, before_id = before or FIRST_PAGE
        return await all_rows(
            self._database,
            WorkflowRow,
            "list_workflows",
            tenant=tenant,
            limit=limit,
            before_at=before_at,
            before_id=before_id,
        )
