"""The audit: its pages, its export as JSON lines, and the verification of its chain."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.downloads import Streamed
from astraflow.api.requests import Request
from astraflow.api.responses import encode, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.api.run_audit import run_entry
from astraflow.core import errors
from astraflow.core.contract.audit import (
    AuditEntry,
    AuditPage,
    AuditVerification,
    ExportAudit,
    ListAudit,
    ListRunAudit,
    VerifyAudit,
)
from astraflow.core.errors import Refused
from astraflow.core.ids import RunId
from astraflow.core.security.audit_chain import ChainHead, head_of
from astraflow.core.security.policy import ADMIN
from astraflow.core.timestamps import iso, parse_iso
from astraflow.store.audits import AuditFilter
from astraflow.store.rows import AuditRow

NDJSON: Final = "application/x-ndjson"


class AuditEndpoints(Endpoints):
    """The endpoints of the audit."""

    @route("GET", "/api/v1/audit", ADMIN, "listAudit", "list who did what, newest first",
           tag="audit", query=ListAudit, replies=AuditPage)  # fmt: skip
    async def list_audit(self, request: Request[ListAudit]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        before = self._cursors.read("audit", tenant, query.cursor, int)
        rows = await self._scheduler.audits.page(
            tenant, _filter(query), limit=query.count + 1, before=before
        )
        page = rows[: query.count]
        cursor = self._cursors.make("audit", tenant, page[-1][0] if len(rows) > len(page) else None)
        items = [_entry(number, row) for number, row in page]
        return json_response(AuditPage(items=items, next_cursor=cursor))

    @route("GET", "/api/v1/audit/runs/{runId}", ADMIN, "listRunAudit",
           "list what was done with a run, oldest first", tag="audit", query=ListRunAudit,
           text="Its submission, its dispatches, their results, and its cancel: from its own facts, so that they have "
                "no hash. An entry without `who` is of the scheduler.",
           replies=AuditPage)  # fmt: skip
    async def list_run_audit(self, request: Request[ListRunAudit]) -> AsgiApp:
        query, tenant, run_id = request.query, request.tenant, RunId(request.params["runId"])
        after = self._cursors.read(f"audit of {run_id}", tenant, query.cursor, int) or 0
        facts = await self._scheduler.reader.read_facts(tenant, run_id, after, query.count + 1)
        page = facts[: query.count]
        last = page[-1].last if len(facts) > len(page) else None
        items = [entry for one in page if (entry := run_entry(one)) is not None]
        cursor = self._cursors.make(f"audit of {run_id}", tenant, last)
        return json_response(AuditPage(items=items, next_cursor=cursor))

    @route("GET", "/api/v1/audit/export", ADMIN, "exportAudit",
           "export who did what as JSON lines, oldest first", tag="audit", query=ExportAudit,
           text="It reads everything, so it is limited for each tenant (429 with `Retry-After`).",
           replies={200: Reply("One entry of the audit per line.", None, NDJSON)})  # fmt: skip
    async def export_audit(self, request: Request[ExportAudit]) -> AsgiApp:
        wanted = _filter(request.query)
        self._scheduler.audits.count_read(request.tenant)
        head = [
            (b"content-type", NDJSON.encode()),
            (b"content-disposition", b'attachment; filename="audit.jsonl"'),
        ]
        pieces = self._lines(request.tenant, wanted)
        # Before the response begins: a store that does not respond gets its own status.
        first = await anext(pieces, b"")
        return Streamed(200, head, first, None if request.method == "HEAD" else pieces)

    async def _lines(self, tenant: str, wanted: AuditFilter) -> AsyncIterator[bytes]:
        async for rows in self._scheduler.audits.pieces(tenant, wanted):
            yield b"".join(encode(_entry(number, row)) + b"\n" for number, row in rows)

    @route("GET", "/api/v1/audit/verify", ADMIN, "verifyAudit",
           "verify that the audit is as it was written", tag="audit", query=VerifyAudit,
           text="It reads everything, so it is limited for each tenant (429 with `Retry-After`).",
           replies=AuditVerification)  # fmt: skip
    async def verify_audit(self, request: Request[VerifyAudit]) -> AsgiApp:
        expected = _expected(request.query.expect)
        self._scheduler.audits.count_read(request.tenant)
        report = await self._scheduler.audits.verify(request.tenant, expected)
        return json_response(
            AuditVerification(
                ok=report.problem is None,
                from_=report.first,
                to=report.last,
                head=str(report.head),
                unchained=report.unchained,
                problem=report.problem,
            )
        )


def _filter(query: ListAudit | ExportAudit) -> AuditFilter:
    """Raises: Refused, for a time that is none."""
    action = query.action
    is_prefix = action is not None and action.endswith(".")
    return AuditFilter(
        who=query.who,
        action=None if is_prefix else action,
        prefix=action if is_prefix else None,
        code=query.code,
        outcome=query.outcome,
        corr=query.corr,
        worker=query.worker_id,
        since=_time("since", query.since),
        until=_time("until", query.until),
    )


def _time(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    at = parse_iso(text)
    if at is None:
        raise Refused(errors.REQUEST_INVALID, f"{name}: not a time in RFC 3339 form")
    return at


def _expected(text: str | None) -> list[ChainHead]:
    if text is None:
        return []
    head = head_of(text)
    if head is None:
        raise Refused(
            errors.REQUEST_INVALID, "expect: a head is N:HASH, with 64 hexadecimal digits"
        )
    return [head]


def _entry(number: int, row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=number,
        number=row.chain_number,
        occurred_at=iso(row.at),
        who=row.who,
        action=row.action,
        worker_id=row.worker or None,
        corr=row.corr,
        code=row.code,
        detail=_detail(row.detail),
        previous=None if row.previous is None else row.previous.hex(),
        hash=None if row.hash is None else row.hash.hex(),
    )


def _detail(raw: bytes) -> Any:
    """What somebody else has put into the row may be no JSON: one such row must not make a whole page unreadable."""
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {"unreadable": base64.b64encode(raw).decode()}
    return msgspec.Raw(raw)
