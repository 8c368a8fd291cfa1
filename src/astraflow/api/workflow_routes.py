"""Saved workflows. A definition is stored byte for byte; its ETag is its version, which a save may name in `If-Match`.

What is saved can be run: a save is refused with every error that `validate` would list. Work in progress is a draft
(`version_routes`), which `?draft=true` saves, too.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import DEFINITION_BODY_BYTES, Request
from astraflow.api.responses import JSON, NO_CONTENT, Headers, Response, json_response
from astraflow.api.routes import Endpoints, Header, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.workflows import (
    Definition,
    DefinitionWarning,
    ListWorkflows,
    SaveWorkflow,
    ShowWorkflow,
    Validity,
    WorkflowPage,
    WorkflowSummary,
)
from astraflow.core.errors import Conflict, Refused
from astraflow.core.security.policy import EDIT, READ
from astraflow.core.timestamps import iso
from astraflow.core.workflow import refusal_of
from astraflow.core.workflow.package_uses import parse_wanted
from astraflow.scheduler.service import Scheduler
from astraflow.store.rows import WorkflowRow

INLINE_BYTES: Final = 64 * 1024
"""A larger definition is validated in a thread: the largest takes seconds, and heartbeats must not wait for it."""

WORKFLOWS: Final = "/api/v1/workflows"
_ONE: Final = f"{WORKFLOWS}/{{id}}"
_ETAG: Final = {"ETag": "The version of the workflow, in quotes."}
_IF_MATCH: Final = Header(
    "If-Match", "The ETag of the version that the change was made from; another one is a 409."
)
_SHOWN: Final = Reply("The definition, byte for byte.", Definition, headers=_ETAG)

_VERSION: Final = re.compile(r'(?:W/)?"([0-9]{1,15})"', re.ASCII)


class WorkflowEndpoints(Endpoints):
    """The endpoints under `/api/v1/workflows`."""

    @route("GET", WORKFLOWS, READ, "listWorkflows", "list saved workflows, last changed first",
           tag="workflows", query=ListWorkflows, replies=WorkflowPage)  # fmt: skip
    async def list_workflows(self, request: Request[ListWorkflows]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        if query.package:
            return await self._list_users(request)
        before = self._cursors.read("workflows", tenant, query.cursor, tuple[int, str])
        rows = await self._scheduler.workflows.search(
            tenant, limit=query.count + 1, before=before, text=query.text
        )
        page = rows[: query.count]
        after = (page[-1].updated_at, page[-1].workflow_id) if len(rows) > len(page) else None
        cursor = self._cursors.make("workflows", tenant, after)
        items = [_summary(row) for row in page]
        return json_response(WorkflowPage(items=items, next_cursor=cursor))

    async def _list_users(self, request: Request[ListWorkflows]) -> AsgiApp:
        """The workflows that use a package."""
        query, tenant = request.query, request.tenant
        wanted = parse_wanted(query.package)
        if wanted is None:
            raise Refused(
                errors.REQUEST_INVALID,
                "the parameter must be the name of a package, or name@version: package",
                detail={"parameter": "package"},
            )
        place = f"workflows {query.package}"
        before = self._cursors.read(place, tenant, query.cursor, tuple[int, str])
        rows, after = await self._scheduler.workflows.search_uses(
            tenant, wanted, limit=query.count, before=before, text=query.text
        )
        cursor = self._cursors.make(place, tenant, after)
        return json_response(WorkflowPage(items=list(map(_summary, rows)), next_cursor=cursor))

    @route(
        "POST",
        WORKFLOWS,
        EDIT,
        "createWorkflow",
        "save a new workflow",
        tag="workflows",
        query=SaveWorkflow,
        body=Definition,
        replies={
            201: Reply("It is saved.", Definition, headers={"Location": "Its path.", **_ETAG})
        },
    )
    async def create(self, request: Request[SaveWorkflow]) -> AsgiApp:
        definition = await request.json_body(DEFINITION_BODY_BYTES)
        if request.query.draft:
            draft = await self._scheduler.drafts.create(
                request.tenant, definition, by=request.subject
            )
            place = f"{WORKFLOWS}/{quote(draft.workflow_id, safe='')}/draft".encode()
            headers = [(b"location", place), etag(draft.revision)]
            return Response(definition, 201, JSON, headers)
        await check_definition(self._scheduler, request.tenant, definition)
        row = await self._scheduler.workflows.save(
            request.tenant,
            definition,
            by=request.subject,
            expected_version=0,
            note=request.query.note,
        )
        location = (b"location", f"{WORKFLOWS}/{quote(row.workflow_id, safe='')}".encode())
        return Response(row.definition, 201, JSON, [location, *_version_headers(row)])

    @route("POST", f"{WORKFLOWS}/validate", READ, "validateWorkflow",
           "list every error of a definition", tag="workflows", body=Definition,
           replies={200: Reply("It can be run. If not, a 422 lists why.", Validity)})  # fmt: skip
    async def validate(self, request: Request[NoQuery]) -> AsgiApp:
        definition = await request.json_body(DEFINITION_BODY_BYTES)
        await check_definition(self._scheduler, request.tenant, definition)
        found = await self._scheduler.workflows.warnings(request.tenant, definition)
        warnings = [
            DefinitionWarning(pointer=one.pointer, code=one.code, message=one.message)
            for one in found
        ]
        return json_response(Validity(valid=True, errors=[], warnings=warnings))

    @route("GET", _ONE, READ, "getWorkflow", "show a saved workflow", tag="workflows",
           query=ShowWorkflow, replies={200: _SHOWN})  # fmt: skip
    async def show(self, request: Request[ShowWorkflow]) -> AsgiApp:
        row = await self._scheduler.workflows.get(
            request.tenant, request.params["id"], request.query.version
        )
        return Response(row.definition, 200, JSON, _version_headers(row))

    @route("PUT", _ONE, EDIT, "saveWorkflow", "save a new version", tag="workflows",
           query=SaveWorkflow, headers=(_IF_MATCH,), body=Definition,
           replies={200: _SHOWN})  # fmt: skip
    async def save(self, request: Request[SaveWorkflow]) -> AsgiApp:
        workflow_id, expected = request.params["id"], expected_number(request)
        definition = await request.json_body(DEFINITION_BODY_BYTES)
        if request.query.draft:
            draft = await self._scheduler.drafts.save(
                request.tenant,
                definition,
                by=request.subject,
                workflow_id=workflow_id,
                expected_revision=expected,
            )
            return Response(definition, 200, JSON, [etag(draft.revision)])
        if expected is None:
            # Not found comes before all errors of the definition: PUT changes what exists, POST makes what does not.
            await self._scheduler.workflows.get(request.tenant, workflow_id)
        await check_definition(self._scheduler, request.tenant, definition)
        row = await self._scheduler.workflows.save(
            request.tenant,
            definition,
            by=request.subject,
            workflow_id=workflow_id,
            expected_version=expected,
            note=request.query.note,
        )
        return Response(row.definition, 200, JSON, _version_headers(row))

    @route("DELETE", _ONE, EDIT, "deleteWorkflow",
           "delete a workflow with all its versions and its draft; its runs stay", tag="workflows",
           headers=(_IF_MATCH,), replies={204: Reply("It is gone.")})  # fmt: skip
    async def delete(self, request: Request[NoQuery]) -> AsgiApp:
        workflow_id, expected = request.params["id"], expected_number(request)
        if expected is not None:
            row = await self._scheduler.workflows.get(request.tenant, workflow_id)
            if row.version != expected:
                raise Conflict(
                    errors.WORKFLOW_CONFLICT, f"the workflow is at version {row.version} by now"
                )
        await self._scheduler.workflows.delete(request.tenant, workflow_id, request.subject)
        return NO_CONTENT


async def check_definition(scheduler: Scheduler, tenant: str, definition: bytes) -> None:
    """Raises InvalidDocument with every error that keeps the definition from being run."""
    problems = await scheduler.workflows.validate(tenant, definition)
    if problems:
        raise refusal_of(problems)


def etag(number: int) -> tuple[bytes, bytes]:
    """The header that names a version or a revision."""
    return b"etag", f'"{number}"'.encode()


def _version_headers(row: WorkflowRow) -> Headers:
    return [etag(row.version)]


def expected_number(request: Request[Any]) -> int | None:
    """The version or the revision that the client saw. `*` is any that exists."""
    given = request.header(b"if-match")
    if given is None or given.strip() == "*":
        return None
    found = _VERSION.fullmatch(given.strip())
    if found is None:
        raise Refused(errors.REQUEST_INVALID, "If-Match must be one ETag of this workflow")
    return int(found[1])


def _summary(row: WorkflowRow) -> WorkflowSummary:
    return WorkflowSummary(
        id=row.workflow_id,
        name=row.name,
        version=row.version,
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
        updated_by=row.updated_by,
    )
