"""The requests about the audit."""

from __future__ import annotations

from typing import Any, Final

from astraflow.client.requests import ApiRequest, Pages, _as, _as_nothing, _query
from astraflow.core.contract.audit import (
    AuditEntry,
    AuditPage,
    AuditVerification,
    ExportAudit,
    ListAudit,
    Outcome,
    VerifyAudit,
)
from astraflow.core.contract.base import Page

AUDIT: Final = "/api/v1/audit"


def list_audit(
    *,
    who: str | None = None,
    action: str | None = None,
    code: str | None = None,
    outcome: Outcome | None = None,
    since: str | None = None,
    until: str | None = None,
    corr: str | None = None,
    worker_id: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> ApiRequest[Page[AuditEntry]]:
    """Who did what, newest first. An `action` with a `.` at its end is a prefix; times are RFC 3339."""
    params = _query(
        ListAudit,
        who=who, action=action, code=code, outcome=outcome, since=since, until=until, corr=corr,
        worker_id=worker_id, limit=limit, cursor=cursor,
    )  # fmt: skip
    return ApiRequest("GET", AUDIT, _as(AuditPage), params)


def iterate_audit(
    *, limit: int | None = None, page_size: int = 200, **wanted: Any
) -> Pages[AuditEntry]:
    """All of them or so many, newest first, a page at a time. `wanted`: the filters of `list`."""
    return Pages(lambda cursor: list_audit(limit=page_size, cursor=cursor, **wanted), limit)


def export_audit(
    *,
    who: str | None = None,
    action: str | None = None,
    code: str | None = None,
    outcome: Outcome | None = None,
    since: str | None = None,
    until: str | None = None,
    corr: str | None = None,
    worker_id: str | None = None,
) -> ApiRequest[None]:
    """Who did what as JSON lines, oldest first: to be read in pieces."""
    params = _query(
        ExportAudit,
        who=who, action=action, code=code, outcome=outcome, since=since, until=until, corr=corr,
        worker_id=worker_id,
    )  # fmt: skip
    return ApiRequest("GET", f"{AUDIT}/export", _as_nothing, params)


def verify_audit(*, expect: str | None = None) -> ApiRequest[AuditVerification]:
    """Whether the audit is as it was written. `expect`: a head that was noted earlier, as `N:HASH`."""
    params = _query(VerifyAudit, expect=expect)
    return ApiRequest("GET", f"{AUDIT}/verify", _as(AuditVerification), params)
