"""Saved workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.store.content import check_row, check_values, stale_draft, stale_workflow
from astraflow.store.database import all_rows, first_row
from astraflow.store.rows import DraftRow, VersionRow, WorkflowRow
from astraflow.store.runs import FIRST_PAGE, pattern_of
from astraflow.store.triggers import check_triggers, write_triggers

if TYPE_CHECKING:
    from astraflow.store.database import Database, Transaction
    from astraflow.store.store import Claim
    from astraflow.store.trigger_changes import TriggerChanges


NEWEST: Final = 2**62
"""Above every version."""


class StoredWorkflows:
    """All versions of each workflow; the table `workflows` holds the newest, which a save is compared with. Beside them
    one draft of each, which is no version."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_workflow(
        self,
        claim: Claim,
        row: WorkflowRow,
        *,
        keep: int | None = None,
        draft_revision: int | None = None,
        triggers: TriggerChanges | None = None,
    ) -> None:
        """Save version `row.version`: 1 creates, n + 1 follows the stored version n. Of the versions that are stored
        then, the newest `keep` stay. `draft_revision`: the draft that it is made of, which ends with it. The changes of
        its triggers are part of the transaction.

        Raises:
            Conflict: the stored version is not the one before it, or the draft has another revision.
        """
        check_row(row)
        if triggers is not None:
            check_triggers(triggers)

        async def save(transaction: Transaction) -> None:
            query = "create_workflow" if row.version == 1 else "follow_workflow"
            if not await transaction.change(query, **msgspec.structs.asdict(row)):
                raise stale_workflow(row)
            await transaction.put(row)
            if draft_revision is not None:
                await _end_draft(transaction, row.tenant, row.workflow_id, draft_revision)
            if keep is not None:
                await transaction.change(
                    "delete_workflow_versions",
                    tenant=row.tenant,
                    workflow_id=row.workflow_id,
                    last=row.version - keep,
                )
            if triggers is not None:
                await write_triggers(transaction, triggers)

        await self._database.write(claim, save)

    async def delete_workflow(self, claim: Claim, tenant: str, workflow_id: str) -> bool:
        """Remove all its versions, its draft and its pinned results; whether there was a version or a draft."""
        check_values(tenant, workflow_id)

        async def delete(transaction: Transaction) -> bool:
            key = {"tenant": tenant, "workflow_id": workflow_id}
            had_draft = await transaction.change("delete_draft", **key, revision=None) > 0
            await transaction.change("delete_pins", **key)
            return await transaction.change("delete_workflow", **key) > 0 or had_draft

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
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        text: str = "",
    ) -> list[WorkflowRow]:
        """The newest version of each, last updated first, by (updated_at, workflow_id). `text`: only those that have it
        in their name or their id; A to Z in whatever case."""
        before_at, before_id = before or FIRST_PAGE
        return await all_rows(
            self._database,
            WorkflowRow,
            "list_workflows",
            tenant=tenant,
            limit=limit,
            before_at=before_at,
            before_id=before_id,
            pattern=pattern_of(text),
        )

    async def list_versions(
        self, tenant: str, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[VersionRow]:
        """The versions that are kept, newest first."""
        return await all_rows(
            self._database,
            VersionRow,
            "list_versions",
            tenant=tenant,
            workflow_id=workflow_id,
            limit=limit,
            before=NEWEST if before is None else before,
        )

    async def put_draft(self, claim: Claim, row: DraftRow) -> None:
        """Save revision `row.revision`: 1 creates, n + 1 follows the stored revision n.

        Raises:
            Conflict: the stored revision is not the one before it.
        """
        check_row(row)

        async def save(transaction: Transaction) -> None:
            stored = await _revision_of(transaction, row.tenant, row.workflow_id)
            if stored != row.revision - 1:
                raise stale_draft(row.workflow_id, stored)
            await transaction.put(row)

        await self._database.write(claim, save)

    async def find_draft(self, tenant: str, workflow_id: str) -> DraftRow | None:
        return await first_row(
            self._database, DraftRow, "find_draft", tenant=tenant, workflow_id=workflow_id
        )

    async def list_drafts(
        self, tenant: str, *, limit: int, before: tuple[int, str] | None = None
    ) -> list[DraftRow]:
        """Last updated first, by (updated_at, workflow_id)."""
        before_at, before_id = before or FIRST_PAGE
        return await all_rows(
            self._database,
            DraftRow,
            "list_drafts",
            tenant=tenant,
            limit=limit,
            before_at=before_at,
            before_id=before_id,
        )

    async def delete_draft(
        self, claim: Claim, tenant: str, workflow_id: str, revision: int
    ) -> None:
        """Raises: Conflict, if the draft has another revision or is gone."""
        check_values(tenant, workflow_id, revision)

        async def delete(transaction: Transaction) -> None:
            await _end_draft(transaction, tenant, workflow_id, revision)

        await self._database.write(claim, delete)


async def _revision_of(transaction: Transaction, tenant: str, workflow_id: str) -> int:
    """The revision of the stored draft; 0 without one."""
    found = await transaction.rows("draft_revision", tenant=tenant, workflow_id=workflow_id)
    return int(found[0][0]) if found else 0


async def _end_draft(
    transaction: Transaction, tenant: str, workflow_id: str, revision: int
) -> None:
    key = {"tenant": tenant, "workflow_id": workflow_id}
    if not await transaction.change("delete_draft", **key, revision=revision):
        raise stale_draft(workflow_id, await _revision_of(transaction, tenant, workflow_id))
