"""What is not about one run, workflow or worker: health, metrics, who am I, the audit, the description."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar.types import ASGIApp

from astraflow.api.answers import Answer, answer_json
from astraflow.api.docs_page import PAGE
from astraflow.api.ports import SchedulerPort
from astraflow.api.requests import Call
from astraflow.api.routes import Parts
from astraflow.api.sample_page import PAGE as SAMPLE
from astraflow.core import errors
from astraflow.core.errors import Unavailable
from astraflow.core.timestamps import iso

__all__ = ["SystemEndpoints", "check_ready"]

_METRICS: Final = b"text/plain; version=0.0.4; charset=utf-8"
_HTML: Final = b"text/html; charset=utf-8"
_POLICY: Final = (
    b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)
"""The page brings all it needs; nothing may be loaded from elsewhere."""


def check_ready(scheduler: SchedulerPort) -> None:
    """
    Raises:
        Unavailable: it does not serve, and why.
    """
    reason = scheduler.problem()
    if reason is not None:
        raise Unavailable(errors.SCHEDULER_NOT_READY, f"not ready: {reason}")


class SystemEndpoints:
    """The endpoints of the process itself. `description` is the OpenAPI document."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._scheduler = parts.scheduler
        self._cursors = parts.cursors
        self.description = b"{}"

    async def health(self, call: Call) -> ASGIApp:
        return answer_json({"status": "ok"})

    async def readiness(self, call: Call) -> ASGIApp:
        check_ready(self._scheduler)
        return answer_json({"status": "ready"})

    async def metrics(self, call: Call) -> ASGIApp:
        return Answer(self._parts.metrics.text(call.tenant), 200, _METRICS)

    async def docs(self, call: Call) -> ASGIApp:
        headers = [(b"content-security-policy", _POLICY)]
        return Answer(PAGE, 200, _HTML, headers)

    async def root(self, call: Call) -> ASGIApp:
        return Answer(b"", 307, _HTML, [(b"location", b"/api/docs")])

    async def sample(self, call: Call) -> ASGIApp:
        headers = [(b"content-security-policy", _POLICY)]
        return Answer(SAMPLE, 200, _HTML, headers)

    async def openapi(self, call: Call) -> ASGIApp:
        return Answer(self.description)

    async def me(self, call: Call) -> ASGIApp:
        bearer = call.bearer
        view: dict[str, Any] = {
            "tenant": bearer.tenant,
            "subject": bearer.subject,
            "role": bearer.role,
            "expiresAt": None if bearer.expires_at is None else iso(int(bearer.expires_at * 1000)),
        }
        return answer_json(view)

    async def list_audit(self, call: Call) -> ASGIApp:
        limit = call.limit()
        cursor = call.text("cursor", 512)
        before = self._cursors.read("audit", call.tenant, cursor, int) if cursor else None
        rows = await self._scheduler.audit(call.tenant, limit=limit + 1, before=before)
        page = rows[:limit]
        last = page[-1][0] if len(rows) > limit else None
        items = [
            {
                "id": number,
                "occurredAt": iso(row.at),
                "who": row.who,
                "action": row.action,
                "corr": row.corr,
                "code": row.code,
                "detail": msgspec.Raw(row.detail),
            }
            for number, row in page
        ]
        return answer_json(
            {
                "items": items,
                "nextCursor": last and self._cursors.make("audit", call.tenant, last),
            }
        )
