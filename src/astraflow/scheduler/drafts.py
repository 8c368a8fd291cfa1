"""Drafts: what people work on. One of each workflow, apart from its versions; it may have errors until it is published.

Rule 1: a save of a draft makes no version. A run never uses a draft.
Rule 2: a draft knows the version that it was made from. While a newer one exists it is not published over that one,
        unless whoever publishes it says so.
Rule 3: publishing makes a version and ends the draft in one transaction.
"""

from __future__ import annotations

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import WorkflowReport
from astraflow.core.workflow.decoding import decode_draft
from astraflow.scheduler.current import Current
from astraflow.scheduler.workflows import Workflows, check_id
from astraflow.store.rows import DraftRow, WorkflowRow
from astraflow.store.store import Store


class Drafts:
    """Saving, publishing and discarding them."""

    def __init__(self, store: Store, workflows: Workflows, current: Current, clock: Clock) -> None:
        self._store = store
        self._workflows = workflows
        self._current = current
        self._clock = clock

    async def get(self, tenant: str, workflow_id: str) -> DraftRow:
        """Raises: NotFound."""
        row = await self._store.find_draft(tenant, workflow_id)
        if row is None:
            raise errors.NotFound(
                errors.WORKFLOW_NO_DRAFT, f"the workflow has no draft: {workflow_id[:64]}"
            )
        return row

    async def search(
        self,
        tenant: str,
        *,
        limit: int,
        before: tuple[int, str] | None = None,
        workflow_id: str = "",
    ) -> list[DraftRow]:
        if workflow_id:
            found = await self._store.find_draft(tenant, workflow_id)
            return [] if found is None else [found]
        return await self._store.list_drafts(tenant, limit=limit, before=before)

    async def create(self, tenant: str, definition: bytes, *, by: str) -> DraftRow:
        """The draft of a new workflow.

        Raises:
            InvalidDocument: it has no id.
            Conflict: there is a workflow or a draft of this id.
        """
        workflow_id = decode_draft(definition).id
        if await self._store.find_workflow(tenant, workflow_id) is not None:
            raise errors.Conflict(
                errors.WORKFLOW_CONFLICT, f"there is a workflow of this id: {workflow_id[:64]}"
            )
        return await self.save(tenant, definition, by=by, expected_revision=0)

    async def save(
        self,
        tenant: str,
        definition: bytes,
        *,
        by: str,
        workflow_id: str | None = None,
        expected_revision: int | None = None,
        base_version: int | None = None,
    ) -> DraftRow:
        """Save the next revision, or the first. `base_version`: the version whose changes it contains; by default that
        of the draft before it, or the newest for a first one.

        Raises:
            InvalidDocument: it has no id.
            Conflict: it was saved by somebody else since `expected_revision`.
            Unavailable: the store is full.
        """
        head = decode_draft(definition)
        check_id(head.id, workflow_id)
        stored = await self._store.find_draft(tenant, head.id)
        revision = 0 if stored is None else stored.revision
        if expected_revision is not None and expected_revision != revision:
            said = f"at revision {revision}" if revision else "gone"
            raise errors.Conflict(errors.WORKFLOW_CONFLICT, f"the draft is {said} by now")
        newest = await self._newest(tenant, head.id)
        if base_version is not None and base_version > newest:
            raise errors.Refused(
                errors.REQUEST_INVALID,
                f"the workflow has no version {base_version}: the newest is {newest}",
                detail={"parameter": "baseVersion"},
            )
        if base_version is None:
            base_version = newest if stored is None else stored.base_version
        row = DraftRow(
            tenant=tenant,
            workflow_id=head.id,
            revision=revision + 1,
            base_version=base_version,
            name=head.name,
            definition=definition,
            updated_at=self._clock.wall_ms(),
            updated_by=by,
        )
        await self._store.put_draft(self._current.claim_with_room, row)
        report = WorkflowReport(workflow_id=head.id, name=head.name, revision=row.revision, by=by)
        self._current.announce(tenant, "workflow.draft_saved", report)
        return row

    async def _newest(self, tenant: str, workflow_id: str) -> int:
        row = await self._store.find_workflow(tenant, workflow_id)
        return 0 if row is None else row.version

    async def discard(
        self, tenant: str, workflow_id: str, expected_revision: int | None, by: str = ""
    ) -> None:
        """Raises: NotFound; Conflict, if it was saved by somebody else since `expected_revision`."""
        row = await self.get(tenant, workflow_id)
        revision = row.revision if expected_revision is None else expected_revision
        await self._store.delete_draft(self._current.claim, tenant, workflow_id, revision)
        if not await self._newest(tenant, workflow_id):
            await self._store.pins.delete(self._current.claim, tenant, workflow_id)
        report = WorkflowReport(workflow_id=workflow_id, by=by)
        self._current.announce(tenant, "workflow.draft_discarded", report)

    async def publish(
        self, row: DraftRow, *, by: str, note: str, is_forced: bool = False
    ) -> WorkflowRow:
        """Make a draft, which has been validated, the newest version; the draft ends.

        Raises:
            Conflict: a newer version than its base exists and it `is_forced` not, or the draft was saved meanwhile.
        """
        newest = await self._newest(row.tenant, row.workflow_id)
        if newest != row.base_version and not is_forced:
            raise errors.Conflict(
                errors.WORKFLOW_STALE_DRAFT,
                f"the draft was made from version {row.base_version}, and version {newest} is published by now",
                detail={"baseVersion": row.base_version, "version": newest},
            )
        return await self._workflows.save(
            row.tenant,
            row.definition,
            by=by,
            expected_version=newest,
            note=note,
            draft_revision=row.revision,
        )
