"""Runs: make, list, look at, cancel, rebind."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from hashlib import sha256
from typing import Any, Final, Literal, get_args

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Raw, UnsetType

from astraflow.api.answers import Answer, answer_json
from astraflow.api.requests import (
    DEFINITION_BODY_BYTES,
    MAX_ID_CHARS,
    Call,
    check_values,
    decode_json,
)
from astraflow.api.routes import Parts
from astraflow.api.run_views import bounded, complete_node, log_lines, node_history, summary
from astraflow.core import errors
from astraflow.core.errors import Refused
from astraflow.core.runs.facts import RunStatus
from astraflow.core.timestamps import iso
from astraflow.scheduler.runs import Submission

__all__ = ["RunEndpoints"]

MAX_KEY_CHARS: Final = 255
MAX_SCANNED_EVENTS: Final = 20_000
"""Events that one page of log lines may look through; a sparse page is shorter, and says where it goes on."""

INLINE_DIGEST_BYTES: Final = 1024 * 1024
"""A larger body is digested in a thread, a quarter of a second for the largest: heartbeats must not wait for it."""

_KEY: Final = re.compile(rf"[!-~]{{1,{MAX_KEY_CHARS}}}")
_STATUSES: Final = frozenset(get_args(RunStatus))


class _RunRequest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of `POST /api/v1/runs`. What it carries for others stays as it came."""

    workflow: Raw | UnsetType = UNSET
    workflow_id: str | UnsetType = UNSET
    version: int | None = None
    inputs: Raw = Raw(b"{}")


class _RebindRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    running: Literal["keep", "restart"] = "keep"


_run_request: Final = msgspec.json.Decoder(_RunRequest)
_rebind_request: Final = msgspec.json.Decoder(_RebindRequest)


class RunEndpoints:
    """The endpoints under `/api/v1/runs`."""

    def __init__(self, parts: Parts) -> None:
        self._scheduler = parts.scheduler
        self._cursors = parts.cursors

    async def create(self, call: Call) -> ASGIApp:
        key = _idempotency_key(call)
        body = await call.json_body(DEFINITION_BODY_BYTES)
        request = decode_json(body, _run_request)
        definition = _check_request(request)
        accepted = await self._scheduler.runs.submit(
            Submission(
                tenant=call.tenant,
                by=call.bearer.subject,
                definition=definition,
                workflow_id=None if request.workflow_id is UNSET else request.workflow_id,
                version=request.version,
                inputs=request.inputs,
                idempotency_key=key,
                fingerprint=None if key is None else await _fingerprint(body),
            )
        )
        view = {
            "runId": accepted.run_id,
            "status": "queued",  # P3: the same answer, also when the run has gone on since
            "createdAt": iso(accepted.created_at),
        }
        return answer_json(view, 202, [(b"location", _location(accepted.run_id))])

    async def show(self, call: Call) -> ASGIApp:
        with_nodes = call.flag("nodes", True)
        view = await self._scheduler.reader.view_run(
            call.tenant, _id(call, "runId"), with_nodes=with_nodes
        )
        return answer_json(bounded(view))

    async def list_runs(self, call: Call) -> ASGIApp:
        limit = call.limit()
        status = call.text("status")
        if status is not None and status not in _STATUSES:
            raise Refused(errors.REQUEST_INVALID, f"unknown status: {status[:80]}")
        cursor = call.text("cursor", 512)
        before = cursor and self._cursors.read("runs", call.tenant, cursor, tuple[int, str])
        rows = await self._scheduler.reader.list_runs(
            call.tenant,
            limit=limit + 1,
            before=before or None,
            status=status,  # type: ignore[arg-type]
            workflow_id=call.text("workflowId"),
        )
        page = rows[:limit]
        after = (page[-1].created_at, page[-1].run_id) if len(rows) > limit else None
        return answer_json(
            {
                "items": [summary(row) for row in page],
                "nextCursor": after and self._cursors.make("runs", call.tenant, after),
            }
        )

    async def show_node(self, call: Call) -> ASGIApp:
        run_id, node_id = _id(call, "runId"), _id(call, "nodeId")
        view = await self._scheduler.reader.view_node(call.tenant, run_id, node_id)
        complete_node(run_id, view)
        facts = await self._scheduler.reader.node_facts(call.tenant, run_id, node_id)
        return answer_json({**view, **node_history(facts)})

    async def show_definition(self, call: Call) -> ASGIApp:
        return Answer(await self._scheduler.reader.get_definition(call.tenant, _id(call, "runId")))

    async def list_artifacts(self, call: Call) -> ASGIApp:
        view = await self._scheduler.reader.view_run(call.tenant, _id(call, "runId"))
        return answer_json({"items": view["artifacts"], "nextCursor": None})

    async def cancel(self, call: Call) -> ASGIApp:
        run_id = _id(call, "runId")
        await call.optional_body()
        await self._scheduler.runs.cancel(call.tenant, run_id, call.bearer.subject)
        return answer_json(bounded(await self._scheduler.reader.view_run(call.tenant, run_id)))

    async def rebind(self, call: Call) -> ASGIApp:
        run_id = _id(call, "runId")
        body = await call.optional_body()
        request = decode_json(body, _rebind_request) if body else _RebindRequest()
        await self._scheduler.runs.rebind(
            call.tenant, run_id, restart=request.running == "restart", by=call.bearer.subject
        )
        return answer_json({"runId": run_id, "running": request.running}, 202)

    async def list_logs(self, call: Call) -> ASGIApp:
        run_id, limit = _id(call, "runId"), call.limit()
        node_id = call.text("nodeId")
        cursor = call.text("cursor", 512)
        place = f"logs {run_id}"
        after = self._cursors.read(place, call.tenant, cursor, int) if cursor else 0
        last, _ = await self._scheduler.reader.last_event(call.tenant, run_id)
        lines, reached = await self._gather_lines(call, run_id, node_id, after, last, limit)
        goes_on = reached < last
        return answer_json(
            {
                "items": lines,
                "nextCursor": self._cursors.make(place, call.tenant, reached) if goes_on else None,
            }
        )

    async def _gather_lines(
        self, call: Call, run_id: str, node_id: str | None, after: int, last: int, limit: int
    ) -> tuple[list[dict[str, Any]], int]:
        """Lines beyond `after`, and the number of the last event that was looked at."""
        lines: list[dict[str, Any]] = []
        if after >= last:
            return lines, after
        reached = after
        async with aclosing(
            self._scheduler.reader.follow_run(call.tenant, run_id, after)
        ) as batches:
            async for events in batches:
                lines.extend(log_lines(events, node_id))
                if len(lines) >= limit:
                    lines = lines[:limit]
                    return lines, min(lines[-1]["id"], last)
                reached = events[-1]["id"]
                if reached >= last or reached - after >= MAX_SCANNED_EVENTS:
                    break
        return lines, reached


def _id(call: Call, name: str) -> str:
    """A part of the path that names something. One that could name nothing is not found, like any other."""
    value: str = call.params[name]
    return value


async def _fingerprint(body: bytes) -> str:
    """What tells one request from another under the same key."""
    if len(body) <= INLINE_DIGEST_BYTES:
        return sha256(body).hexdigest()
    return (await asyncio.to_thread(sha256, body)).hexdigest()


def _location(run_id: str) -> bytes:
    return f"/api/v1/runs/{run_id}".encode()


def _idempotency_key(call: Call) -> str | None:
    key = call.header(b"idempotency-key")
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise Refused(
            errors.REQUEST_INVALID,
            f"Idempotency-Key must have 1 to {MAX_KEY_CHARS} visible ASCII characters",
        )
    return key


def _check_request(request: _RunRequest) -> bytes | None:
    """The definition in the request, if it has one."""
    if (request.workflow is UNSET) == (request.workflow_id is UNSET):
        raise Refused(
            errors.REQUEST_INVALID, "give either workflow or workflowId", pointer="/workflow"
        )
    if request.version is not None and request.version < 1:
        raise Refused(errors.REQUEST_INVALID, "versions begin at 1", pointer="/version")
    if request.version is not None and request.workflow_id is UNSET:
        raise Refused(
            errors.REQUEST_INVALID, "version goes with workflowId only", pointer="/version"
        )
    if request.workflow_id is not UNSET and not 1 <= len(str(request.workflow_id)) <= MAX_ID_CHARS:
        raise Refused(errors.REQUEST_INVALID, "not an id", pointer="/workflowId")
    inputs = bytes(request.inputs)
    if not inputs.lstrip().startswith(b"{"):
        raise Refused(errors.REQUEST_INVALID, "must be an object", pointer="/inputs")
    check_values(inputs, "/inputs")
    return None if request.workflow is UNSET else bytes(request.workflow)
