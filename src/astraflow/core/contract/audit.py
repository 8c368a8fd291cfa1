"""The audit: who did what, and whether it is as it was written."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from astraflow.core.contract.base import (
    Count,
    Id,
    JsonObject,
    Page,
    PageQuery,
    Positive,
    Query,
    RestObject,
    Timestamp,
    doc,
)

Word = Annotated[str, Meta(max_length=512)]
Outcome = Literal["ok", "refused"]
_Who = Annotated[Word | None, doc("Only what this subject or worker did.")]
_Action = Annotated[
    Word | None,
    doc("Only this action; with a `.` at its end all that begin so, as `token.`."),
]
_Code = Annotated[Word | None, doc("Only what was refused with this code.")]
_WithOutcome = Annotated[Outcome | None, doc("Only what was done, or only what was refused.")]
_Since = Annotated[str | None, doc("Only from this time on (RFC 3339).")]
_Until = Annotated[str | None, doc("Only before this time (RFC 3339).")]
_Corr = Annotated[Word | None, doc("Only what this request or frame asked for, by its id.")]
_Worker = Annotated[Id | None, doc("Only what is about this worker.")]


class AuditEntry(RestObject, frozen=True, kw_only=True):
    """Something that somebody did, or was refused."""

    id: Annotated[Count, doc("Its id in the store; it grows.")]
    number: Annotated[
        Positive | None,
        doc("Its number in the chain of the tenant; null if it is older than the chain."),
    ]
    occurred_at: Annotated[Timestamp, doc("When.")]
    who: Annotated[str, doc("The subject of the token, or the worker.")]
    action: Annotated[str, doc("What was done.")]
    worker_id: Annotated[str | None, doc("The worker that it is about.")]
    corr: Annotated[str | None, doc("The id of the request or the frame that asked for it.")]
    code: Annotated[str | None, doc("The error code, if it was refused.")]
    detail: Annotated[Any, doc("More about it.")]
    previous: Annotated[str | None, doc("The hash of the entry before it, in hexadecimal.")]
    hash: Annotated[str | None, doc("Its hash, in hexadecimal.")]


class AuditPage(Page[AuditEntry], frozen=True, kw_only=True):
    """A page of the audit, newest first."""


class ListRunAudit(PageQuery, frozen=True, kw_only=True):
    """Which entries of a run."""


class ListAudit(PageQuery, frozen=True, kw_only=True):
    """Which entries."""

    who: _Who = None
    action: _Action = None
    code: _Code = None
    outcome: _WithOutcome = None
    since: _Since = None
    until: _Until = None
    corr: _Corr = None
    worker_id: _Worker = None


class ExportAudit(Query, frozen=True, kw_only=True):
    """Which entries are exported."""

    who: _Who = None
    action: _Action = None
    code: _Code = None
    outcome: _WithOutcome = None
    since: _Since = None
    until: _Until = None
    corr: _Corr = None
    worker_id: _Worker = None


class VerifyAudit(Query, frozen=True, kw_only=True):
    """What is known from elsewhere."""

    expect: Annotated[
        str | None,
        doc("A head that was noted earlier, as `N:HASH`: the chain must contain it."),
    ] = None


class AuditVerification(RestObject, frozen=True, kw_only=True):
    """Whether the audit of the tenant is as it was written."""

    ok: Annotated[bool, doc("Whether the chain is whole.")]
    from_: Annotated[Positive | None, doc("The number of the first entry that is kept.")] = (
        msgspec.field(name="from")
    )
    to: Annotated[Positive | None, doc("The number of the last entry that was verified.")]
    head: Annotated[str, doc("Where the chain ends, as `N:HASH`. Note it elsewhere.")]
    unchained: Annotated[Count, doc("Entries that are older than the chain, not verified.")]
    problem: Annotated[
        str | None, doc("The first thing that does not fit; left out if everything does.")
    ] = None

    EXAMPLE: ClassVar[JsonObject] = {
        "ok": True,
        "from": 1,
        "to": 42,
        "head": f"42:{'5f' * 32}",
        "unchained": 0,
    }
