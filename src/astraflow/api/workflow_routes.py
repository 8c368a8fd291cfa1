"""Workflows: a definition in, a definition out. The ETag is the version; a save may name the one it was made from.

What is saved can be run: a save is refused with all problems that `validate` would list. Work in progress is saved with
`?draft=true`, whatever is still wrong with it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final
from urllib.parse import quote

from litestar.types import ASGIApp

from astraflow.api.answers import JSON, NO_CONTENT, Answer, Headers, answer_json
from astraflow.api.requests import DEFINITION_BODY_BYTES, Call
from astraflow.api.routes import Parts
from astraflow.core import errors
from astraflow.core.errors import Conflict, Refused
from astraflow.core.timestamps import iso
from astraflow.core.workflow import refusal_of
from astraflow.store.rows import WorkflowRow

__all__ = ["WorkflowEndpoints"]

INLINE_BYTES: Final = 64 * 1024
"""A larger definition is validated in a thread: the largest takes seconds, and heartbeats must not wait for it."""

_ETAG: Final = re.compile(r'(?:W/)?"([0-9]{1,15})"', re.ASCII)


class WorkflowEndpoints:
    """The endpoints under `/api/v1/workflows`."""

    def __init__(self, parts: Parts) -> None:
        self._scheduler = parts.scheduler
        self._cursors = parts.cursors

    async def create(self, call: Call) -> ASGIApp:
        is_draft = call.flag("draft", False)
        definition = await call.json_body(DEFINITION_BODY_BYTES)
        if not is_draft:
            await self._check(call.tenant, definition)
        row = await self._scheduler.workflows.save(
            call.tenant, definition, by=call.bearer.subject, expected_version=0
        )
        location = (b"location", f"/api/v1/workflows/{quote(row.workflow_id, safe='')}".encode())
        return Answer(row.definition, 201, JSON, [location, *_version_headers(row)])

    async def show(self, call: Call) -> ASGIApp:
        row = await self._scheduler.workflows.get(
            call.tenant, _id(call), _positive(call.number("version"))
        )
        return Answer(row.definition, 200, JSON, _version_headers(row))

    async def save(self, call: Call) -> ASGIApp:
        workflow_id, expected = _id(call), _expected(call)
        is_draft = call.flag("draft", False)
        definition = await call.json_body(DEFINITION_BODY_BYTES)
        if expected is None:
            # Not found is told before anything is saved: PUT changes what is there, POST makes what is not.
            await self._scheduler.workflows.get(call.tenant, workflow_id)
        if not is_draft:
            await self._check(call.tenant, definition)
        row = await self._scheduler.workflows.save(
            call.tenant,
            definition,
            by=call.bearer.subject,
            workflow_id=workflow_id,
            expected_version=expected,
        )
        return Answer(row.definition, 200, JSON, _version_headers(row))

    async def delete(self, call: Call) -> ASGIApp:
        workflow_id, expected = _id(call), _expected(call)
        if expected is not None:
            row = await self._scheduler.workflows.get(call.tenant, workflow_id)
            if row.version != expected:
                raise Conflict(
                    errors.WORKFLOW_CONFLICT, f"the workflow is at version {row.version} by now"
                )
        await self._scheduler.workflows.delete(call.tenant, workflow_id)
        return NO_CONTENT

    async def list_workflows(self, call: Call) -> ASGIApp:
        limit = call.limit()
        cursor = call.text("cursor", 512)
        before = cursor and self._cursors.read("workflows", call.tenant, cursor, tuple[int, str])
        rows = await self._scheduler.workflows.search(
            call.tenant, limit=limit + 1, before=before or None
        )
        page = rows[:limit]
        after = (page[-1].updated_at, page[-1].workflow_id) if len(rows) > limit else None
        return answer_json(
            {
                "items": [_summary(row) for row in page],
                "nextCursor": after and self._cursors.make("workflows", call.tenant, after),
            }
        )

    async def validate(self, call: Call) -> ASGIApp:
        await self._check(call.tenant, await call.json_body(DEFINITION_BODY_BYTES))
        return answer_json({"valid": True, "errors": []})

    async def _check(self, tenant: str, definition: bytes) -> None:
        """Raises InvalidDocument with all that keeps the definition from being run."""
        if len(definition) <= INLINE_BYTES:
            problems = self._scheduler.workflows.validate(tenant, definition)
        else:
            problems = await asyncio.to_thread(
                self._scheduler.workflows.validate, tenant, definition
            )
        if problems:
            raise refusal_of(problems)


def _id(call: Call) -> str:
    value: str = call.params["id"]
    return value


def _version_headers(row: WorkflowRow) -> Headers:
    return [(b"etag", f'"{row.version}"'.encode())]


def _expected(call: Call) -> int | None:
    """The version that the client saw. `*` is any that exists."""
    given = call.header(b"if-match")
    if given is None or given.strip() == "*":
        return None
    found = _ETAG.fullmatch(given.strip())
    if found is None:
        raise Refused(errors.REQUEST_INVALID, "If-Match must be one ETag of this workflow")
    return int(found[1])


def _positive(version: int | None) -> int | None:
    if version == 0:
        raise Refused(errors.REQUEST_INVALID, "versions begin at 1: version")
    return version


def _summary(row: WorkflowRow) -> dict[str, Any]:
    return {
        "id": row.workflow_id,
        "name": row.name,
        "version": row.version,
        "createdAt": iso(row.created_at),
        "updatedAt": iso(row.updated_at),
        "updatedBy": row.updated_by,
    }
