"""The draft of a workflow, its versions, and what differs between them.

The ETag of a draft is its revision. A draft is saved in whatever state it is; publishing validates it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_type_hints

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import DEFINITION_BODY_BYTES, Request, as_number, decode_json
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Header, Reply, route
from astraflow.api.workflow_routes import (
    INLINE_BYTES,
    WORKFLOWS,
    check_definition,
    etag,
    expected_number,
)
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.versions import (
    DiffSide,
    DiffWorkflow,
    Draft,
    DraftPage,
    DraftSummary,
    ListDrafts,
    ListVersions,
    PublishRequest,
    Restored,
    RestoreRequest,
    SaveDraft,
    VersionPage,
    VersionSummary,
    WorkflowDiff,
)
from astraflow.core.contract.workflows import Definition
from astraflow.core.security.policy import EDIT, READ
from astraflow.core.timestamps import iso
from astraflow.core.workflow.diff import DefinitionDiff, diff_definitions
from astraflow.store.rows import DraftRow, VersionRow, WorkflowRow

_ONE: Final = f"{WORKFLOWS}/{{id}}"
_DRAFT: Final = f"{_ONE}/draft"
_ETAG: Final = {"ETag": "The revision of the draft, in quotes."}
_IF_MATCH: Final = Header(
    "If-Match",
    'The ETag of the revision that the change was made from, `"0"` for none; another one is a 409.',
)
_publish_request: Final = msgspec.json.Decoder(PublishRequest)
_restore_request: Final = msgspec.json.Decoder(RestoreRequest)
_DIFF_TYPES: Final = get_type_hints(WorkflowDiff)


class VersionEndpoints(Endpoints):
    """The endpoints of drafts and versions, under `/api/v1/workflows`."""

    @route("GET", f"{WORKFLOWS}/drafts", READ, "listDrafts", "list drafts, last changed first",
           tag="workflows", query=ListDrafts, replies=DraftPage)  # fmt: skip
    async def list_drafts(self, request: Request[ListDrafts]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        place = f"drafts {query.workflow_id}" if query.workflow_id else "drafts"
        before = self._cursors.read(place, tenant, query.cursor, tuple[int, str])
        rows = await self._scheduler.drafts.search(
            tenant, limit=query.count + 1, before=before, workflow_id=query.workflow_id
        )
        page = rows[: query.count]
        after = (page[-1].updated_at, page[-1].workflow_id) if len(rows) > len(page) else None
        cursor = self._cursors.make(place, tenant, after)
        items = [_draft_summary(row) for row in page]
        return json_response(DraftPage(items=items, next_cursor=cursor))

    @route("GET", _DRAFT, READ, "getDraft", "show the draft of a workflow", tag="workflows",
           replies={200: Reply("The draft.", Draft, headers=_ETAG)})  # fmt: skip
    async def show_draft(self, request: Request[NoQuery]) -> AsgiApp:
        row = await self._scheduler.drafts.get(request.tenant, request.params["id"])
        head = msgspec.structs.asdict(_draft_summary(row))
        return json_response(
            Draft(**head, definition=msgspec.Raw(row.definition)), headers=[etag(row.revision)]
        )

    @route(
        "PUT",
        _DRAFT,
        EDIT,
        "saveDraft",
        "save the draft of a workflow",
        tag="workflows",
        text="It makes no version, and may have errors. The workflow may have no version yet.",
        query=SaveDraft,
        headers=(_IF_MATCH,),
        body=Definition,
        replies={200: Reply("It is saved.", DraftSummary, headers=_ETAG)},
    )
    async def save_draft(self, request: Request[SaveDraft]) -> AsgiApp:
        expected = expected_number(request)
        definition = await request.json_body(DEFINITION_BODY_BYTES)
        row = await self._scheduler.drafts.save(
            request.tenant,
            definition,
            by=request.subject,
            workflow_id=request.params["id"],
            expected_revision=expected,
            base_version=request.query.base_version,
        )
        return json_response(_draft_summary(row), headers=[etag(row.revision)])

    @route("DELETE", _DRAFT, EDIT, "discardDraft",
           "discard the draft of a workflow; its versions stay", tag="workflows",
           headers=(_IF_MATCH,), replies={204: Reply("It is gone.")})  # fmt: skip
    async def discard_draft(self, request: Request[NoQuery]) -> AsgiApp:
        expected = expected_number(request)
        await self._scheduler.drafts.discard(
            request.tenant, request.params["id"], expected, request.subject
        )
        return NO_CONTENT

    @route(
        "POST",
        f"{_ONE}/publish",
        EDIT,
        "publishDraft",
        "make the draft the newest version",
        tag="workflows",
        text="A draft with errors is a 422 that lists them all. One that was begun before the newest version was "
        "published is a 409, unless `force` is set.",
        body=PublishRequest,
        is_body_required=False,
        replies={201: Reply("The version.", VersionSummary)},
    )
    async def publish(self, request: Request[NoQuery]) -> AsgiApp:
        drafts = self._scheduler.drafts
        row = await drafts.get(request.tenant, request.params["id"])
        body = await request.optional_body()
        wanted = decode_json(body, _publish_request) if body else PublishRequest()
        if wanted.revision not in (None, row.revision):
            raise errors.Conflict(
                errors.WORKFLOW_CONFLICT, f"the draft is at revision {row.revision} by now"
            )
        await check_definition(self._scheduler, request.tenant, row.definition)
        made = await drafts.publish(
            row, by=request.subject, note=wanted.note, is_forced=wanted.force
        )
        return json_response(_version_summary(made), 201)

    @route("GET", f"{_ONE}/versions", READ, "listVersions",
           "list the versions of a workflow, newest first", tag="workflows",
           query=ListVersions, replies=VersionPage)  # fmt: skip
    async def list_versions(self, request: Request[ListVersions]) -> AsgiApp:
        query, tenant, workflow_id = request.query, request.tenant, request.params["id"]
        place = f"versions {workflow_id}"
        before = self._cursors.read(place, tenant, query.cursor, int)
        rows = await self._scheduler.workflows.history(
            tenant, workflow_id, limit=query.count + 1, before=before
        )
        page = rows[: query.count]
        after = page[-1].version if len(rows) > len(page) else None
        cursor = self._cursors.make(place, tenant, after)
        items = [_version_summary(row) for row in page]
        return json_response(VersionPage(items=items, next_cursor=cursor))

    @route(
        "POST",
        f"{_ONE}/versions/{{version}}/restore",
        EDIT,
        "restoreVersion",
        "make an older version the newest one, or the draft",
        tag="workflows",
        text="Nothing is removed: the versions in between stay. A draft is replaced only with `replace`.",
        body=RestoreRequest,
        is_body_required=False,
        replies={201: Reply("What it has become.", Restored)},
    )
    async def restore(self, request: Request[NoQuery]) -> AsgiApp:
        workflow_id = request.params["id"]
        await self._scheduler.workflows.get(request.tenant, workflow_id)
        version = as_number(request.params["version"], "version")
        row = await self._scheduler.workflows.get(request.tenant, workflow_id, version)
        body = await request.optional_body()
        wanted = decode_json(body, _restore_request) if body else RestoreRequest()
        if wanted.to == "draft":
            revision = await self._restore_draft(request, row, is_replacing=wanted.replace)
            return json_response(Restored(id=workflow_id, restored=version, revision=revision), 201)
        await check_definition(self._scheduler, request.tenant, row.definition)
        made = await self._scheduler.workflows.save(
            request.tenant,
            row.definition,
            by=request.subject,
            note=wanted.note or f"restores version {version}",
        )
        return json_response(Restored(id=workflow_id, restored=version, version=made.version), 201)

    async def _restore_draft(
        self, request: Request[NoQuery], row: WorkflowRow, *, is_replacing: bool
    ) -> int:
        drafts, workflows = self._scheduler.drafts, self._scheduler.workflows
        newest = await workflows.get(row.tenant, row.workflow_id)
        made = await drafts.save(
            row.tenant,
            row.definition,
            by=request.subject,
            expected_revision=None if is_replacing else 0,
            base_version=newest.version,
        )
        return made.revision

    @route("GET", f"{_ONE}/diff", READ, "diffWorkflow",
           "compare two versions of a workflow, or a version and the draft", tag="workflows",
           query=DiffWorkflow, replies=WorkflowDiff)  # fmt: skip
    async def diff(self, request: Request[DiffWorkflow]) -> AsgiApp:
        before, one = await self._side(request, request.query.from_, "from")
        after, other = await self._side(request, request.query.to, "to")
        if len(before) + len(after) <= INLINE_BYTES:
            found = _diff(before, after)
        else:
            found = await asyncio.to_thread(_diff, before, after)
        view = WorkflowDiff(
            id=request.params["id"],
            from_=one,
            to=other,
            is_equal=found.is_empty,
            **{name: _as_view(name, getattr(found, name)) for name in found.__struct_fields__},
        )
        return json_response(view)

    async def _side(
        self, request: Request[DiffWorkflow], name: str, parameter: str
    ) -> tuple[bytes, DiffSide]:
        """One of the definitions that are compared."""
        workflow_id = request.params["id"]
        if name == "draft":
            draft = await self._scheduler.drafts.get(request.tenant, workflow_id)
            return draft.definition, DiffSide(revision=draft.revision)
        version = None if name == "newest" else as_number(name, parameter)
        row = await self._scheduler.workflows.get(request.tenant, workflow_id, version)
        return row.definition, DiffSide(version=row.version)


def _diff(before: bytes, after: bytes) -> DefinitionDiff:
    return diff_definitions(msgspec.json.decode(before), msgspec.json.decode(after))


def _as_view(name: str, value: object) -> Any:
    """A part of a difference as clients see it: the same fields."""
    return msgspec.convert(value, _DIFF_TYPES[name], from_attributes=True)


def _draft_summary(row: DraftRow) -> DraftSummary:
    return DraftSummary(
        id=row.workflow_id,
        revision=row.revision,
        base_version=row.base_version,
        name=row.name,
        updated_at=iso(row.updated_at),
        updated_by=row.updated_by,
    )


def _version_summary(row: VersionRow | WorkflowRow) -> VersionSummary:
    return VersionSummary(
        id=row.workflow_id,
        version=row.version,
        name=row.name,
        saved_at=iso(row.updated_at),
        saved_by=row.updated_by,
        note=row.note,
    )
