"""Saved workflows: every version of each, with who made it, when, and a note. Drafts are beside (`drafts`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.events import WorkflowReport
from astraflow.core.triggers.loops import find_loop
from astraflow.core.triggers.record import TriggerRecord
from astraflow.core.workflow import decode_definition, plan_workflow, validate
from astraflow.core.workflow.definition import WorkflowSpec, WorkflowTrigger
from astraflow.core.workflow.node_rules import UUID
from astraflow.core.workflow.package_uses import PackageUses, WantedPackage
from astraflow.core.workflow.problems import DefinitionProblem
from astraflow.core.workflow.secret_refs import may_refer_to_secrets
from astraflow.core.workflow.unknown_fields import find_warnings
from astraflow.scheduler.called_workflows import read_called
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.current import Current
from astraflow.scheduler.plans import INLINE_BYTES
from astraflow.scheduler.secret_vault import SecretVault
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.store.rows import VersionRow, WorkflowRow
from astraflow.store.store import Store

if TYPE_CHECKING:
    from astraflow.core.workflow.callees import Documents


SCANNED_ROWS: Final = 50
MAX_SCANNED_WORKFLOWS: Final = 1_000
MAX_SCANNED_BYTES: Final = 32 * 1024**2
"""Of definitions that one request looks at: about a tenth of a second."""

Place = tuple[int, str]
"""Of a workflow in the list: when it was updated, and its id."""


class Workflows:
    """Saving and finding them. `keep`: how many versions of each stay."""

    def __init__(
        self,
        store: Store,
        catalogs: Catalogs,
        current: Current,
        vault: SecretVault,
        triggers: TriggerTable,
        clock: Clock,
        keep: int | None,
    ) -> None:
        self._vault = vault
        self._triggers = triggers
        self._store = store
        self._catalogs = catalogs
        self._current = current
        self._clock = clock
        self._keep = keep

    async def validate(self, tenant: str, definition: bytes) -> list[DefinitionProblem]:
        """All problems of a definition; none if the tenant could run it."""
        called = await read_called(self._store, tenant, definition)
        if len(definition) <= INLINE_BYTES:
            return self._problems(tenant, definition, called)
        return await asyncio.to_thread(self._problems, tenant, definition, called)

    def _problems(
        self, tenant: str, definition: bytes, called: Documents
    ) -> list[DefinitionProblem]:
        decoded, catalog = decode_definition(definition), self._catalogs.of(tenant)
        problems = validate(decoded, catalog, called)
        has_secrets = may_refer_to_secrets(definition) or any(
            may_refer_to_secrets(one.raw) for one in called.values()
        )
        if not problems and has_secrets:
            plan = plan_workflow(decoded, catalog, called)
            problems = self._vault.problems_of(tenant, plan, definition)
        return problems

    async def warnings(self, tenant: str, definition: bytes) -> list[DefinitionProblem]:
        """What should be looked at in a definition that has no problems."""
        known = self._triggers.of_tenant(tenant)
        if len(definition) <= INLINE_BYTES:
            return _warnings_of(definition, known)
        return await asyncio.to_thread(_warnings_of, definition, known)

    async def save(
        self,
        tenant: str,
        definition: bytes,
        *,
        by: str,
        workflow_id: str | None = None,
        expected_version: int | None = None,
        note: str = "",
        draft_revision: int | None = None,
    ) -> WorkflowRow:
        """Save a new version of a workflow, or a new workflow. `draft_revision`: the draft that ends with it.

        Raises:
            InvalidDocument: it is not a definition.
            Conflict: it was saved by somebody else since `expected_version`, or the draft was.
            Unavailable: the store is full.
        """
        decoded = decode_definition(definition)
        own_id = decoded.workflow.id
        check_id(own_id, workflow_id)
        stored = await self._store.find_workflow(tenant, own_id)
        version = stored.version if stored is not None else 0
        if expected_version is not None and expected_version != version:
            raise errors.Conflict(
                errors.WORKFLOW_CONFLICT, f"the workflow is at version {version} by now"
            )
        now = self._clock.wall_ms()
        metadata = decoded.workflow.metadata
        row = WorkflowRow(
            tenant=tenant,
            workflow_id=own_id,
            version=version + 1,
            name=metadata.name if metadata is not None and metadata.name else "",
            definition=definition,
            created_at=stored.created_at if stored is not None else now,
            updated_at=now,
            updated_by=by,
            note=note,
        )
        await self._store_version(row, decoded.workflow, draft_revision)
        kind = "workflow.saved" if draft_revision is None else "workflow.published"
        report = WorkflowReport(workflow_id=own_id, name=row.name, version=row.version, by=by)
        self._current.announce(tenant, kind, report)
        return row

    async def _store_version(
        self, row: WorkflowRow, workflow: WorkflowSpec, draft_revision: int | None
    ) -> None:
        """Make a version durable, with its triggers. Every new version of every workflow passes here, and `delete`
        removes them all."""
        claim = self._current.claim_with_room
        async with self._triggers.saving(row.tenant, workflow) as triggers:
            await self._store.put_workflow(
                claim, row, keep=self._keep, draft_revision=draft_revision, triggers=triggers
            )

    async def get(self, tenant: str, workflow_id: str, version: int | None = None) -> WorkflowRow:
        row = await self._store.find_workflow(tenant, workflow_id, version)
        if row is None:
            raise await self._missing(tenant, workflow_id, version)
        return row

    async def _missing(self, tenant: str, workflow_id: str, version: int | None) -> errors.NotFound:
        said = f"no such workflow: {workflow_id[:64]}"
        if version is not None and await self._store.find_workflow(tenant, workflow_id):
            said = f"the workflow has no version {version}, or not any more: {workflow_id[:64]}"
        elif await self._store.find_draft(tenant, workflow_id) is not None:
            said = f"the workflow has a draft, but no published version: {workflow_id[:64]}"
        return errors.NotFound(errors.WORKFLOW_NOT_FOUND, said)

    async def search(
        self,
        tenant: str,
        *,
        limit: int,
        before: Place | None = None,
        text: str = "",
    ) -> list[WorkflowRow]:
        return await self._store.list_workflows(tenant, limit=limit, before=before, text=text)

    async def search_uses(
        self,
        tenant: str,
        wanted: WantedPackage,
        *,
        limit: int,
        before: Place | None = None,
        text: str = "",
    ) -> tuple[list[WorkflowRow], Place | None]:
        """Those that use a package, and where to go on. So that no request takes long, each looks at so many
        definitions only, and may find fewer than `limit`."""
        uses, found = PackageUses(wanted, self._catalogs.of(tenant)), list[WorkflowRow]()
        seen, size = 0, 0
        while seen < MAX_SCANNED_WORKFLOWS and size < MAX_SCANNED_BYTES:
            rows = await self.search(tenant, limit=SCANNED_ROWS, before=before, text=text)
            for row in rows:
                if await _is_user(uses, row.definition):
                    found.append(row)
                seen, size, before = seen + 1, size + len(row.definition), _place(row)
                if len(found) > limit:
                    return found[:limit], _place(found[limit - 1])
            if len(rows) < SCANNED_ROWS:
                return found, None
        return found, before

    async def history(
        self, tenant: str, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[VersionRow]:
        """The versions that are kept, newest first. Raises: NotFound."""
        rows = await self._store.list_versions(tenant, workflow_id, limit=limit, before=before)
        if not rows and before is None:
            await self.get(tenant, workflow_id)
        return rows

    async def delete(self, tenant: str, workflow_id: str, by: str = "") -> None:
        if not await self._store.delete_workflow(self._current.claim, tenant, workflow_id):
            raise errors.NotFound(
                errors.WORKFLOW_NOT_FOUND, f"no such workflow: {workflow_id[:64]}"
            )
        await self._triggers.forget(tenant, workflow_id)
        report = WorkflowReport(workflow_id=workflow_id, by=by)
        self._current.announce(tenant, "workflow.deleted", report)


def _place(row: WorkflowRow) -> Place:
    return row.updated_at, row.workflow_id


async def _is_user(uses: PackageUses, definition: bytes) -> bool:
    if len(definition) <= INLINE_BYTES:
        return uses.is_used_in(definition)
    return await asyncio.to_thread(uses.is_used_in, definition)


def _warnings_of(definition: bytes, known: list[TriggerRecord]) -> list[DefinitionProblem]:
    found = find_warnings(definition)
    workflow = decode_definition(definition).workflow
    for place, spec in enumerate(workflow.triggers):
        if isinstance(spec, WorkflowTrigger) and not spec.disabled:
            loop = find_loop(workflow.id, spec.workflow_id, workflow.triggers, known)
            if loop is not None:
                message = f"these workflows start each other: {' → '.join(loop)}"
                where = f"/triggers/{place}/workflowId"
                found.append(DefinitionProblem(where, errors.TRIGGER_LOOP.code, message))
    return found


def check_id(workflow_id: str, wanted: str | None) -> None:
    """Refuse an id that is no UUID, or not that of the path."""
    if not UUID.fullmatch(workflow_id):
        raise errors.Refused(
            errors.WORKFLOW_BAD_ID, "the id of a workflow must be a UUID", pointer="/id"
        )
    if wanted is not None and workflow_id != wanted:
        raise errors.Refused(
            errors.WORKFLOW_INVALID, "the id is not that of the path", pointer="/id"
        )
