"""The scheduler itself: health, metrics, the caller, the description of the API."""

from __future__ import annotations

from typing import Final

from astraflow.api.asgi import AsgiApp
from astraflow.api.docs_page import PAGE
from astraflow.api.requests import Request
from astraflow.api.responses import Response, json_response
from astraflow.api.routes import Endpoints, Place, Reply, route
from astraflow.api.sample_page import PAGE as SAMPLE
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.system import Me, Status
from astraflow.core.errors import Unavailable
from astraflow.core.security.policy import PUBLIC, SCRAPE, SELF, sees_all_metrics
from astraflow.core.timestamps import iso
from astraflow.scheduler.service import Scheduler

_METRICS: Final = b"text/plain; version=0.0.4; charset=utf-8"
_HTML: Final = b"text/html; charset=utf-8"
_POLICY: Final = (
    b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)
"""A page brings all it needs; nothing may be loaded from elsewhere."""
_PAGE_REPLY: Final = {200: Reply("A page.", None, "text/html")}


def check_ready(scheduler: Scheduler) -> None:
    """
    Raises:
        Unavailable: it does not serve, and why.
    """
    reason = scheduler.problem()
    if reason is not None:
        raise Unavailable(errors.SCHEDULER_NOT_READY, f"not ready: {reason}")


class SystemEndpoints(Endpoints):
    """The endpoints of the process itself."""

    @route("GET", "/api/v1/me", SELF, "getMe", "show whose token this is", tag="access",
           replies=Me)  # fmt: skip
    async def me(self, request: Request[NoQuery]) -> AsgiApp:
        bearer = request.bearer
        until, now = bearer.expires_at, self._services.clock.wall_ms() / 1000
        view = Me(
            tenant=bearer.tenant,
            subject=bearer.subject,
            role=bearer.role,
            expires_at=None if until is None else iso(int(until * 1000)),
            expires_in_seconds=None if until is None else max(0, int(until - now)),
        )
        return json_response(view)

    @route("GET", "/healthz", PUBLIC, "getHealth", "check that the process lives", tag="system",
           replies={200: Reply("It does.", Status)}, place=Place.HERE)  # fmt: skip
    async def health(self, request: Request[NoQuery]) -> AsgiApp:
        return json_response(Status(status="ok"))

    @route("GET", "/readyz", PUBLIC, "getReadiness", "check that it serves; a 503 says why not",
           tag="system", replies={200: Reply("It does.", Status)}, place=Place.HERE)  # fmt: skip
    async def readiness(self, request: Request[NoQuery]) -> AsgiApp:
        check_ready(self._scheduler)
        return json_response(Status(status="ready"))

    @route("GET", "/metrics", SCRAPE, "getMetrics",
           "metrics for Prometheus: those of the token's tenant (role metrics: of all tenants), and those of no tenant",
           tag="system", replies={200: Reply("The metrics.", None, "text/plain")},
           place=Place.HERE)  # fmt: skip
    async def metrics(self, request: Request[NoQuery]) -> AsgiApp:
        bearer = request.bearer
        of_one = None if sees_all_metrics(bearer.tenant, bearer.role) else bearer.tenant
        return Response(self._services.metrics.text(of_one), 200, _METRICS)

    @route("GET", "/api/docs", PUBLIC, "getDocs", "this description, for people", tag="system",
           replies=_PAGE_REPLY)  # fmt: skip
    async def docs(self, request: Request[NoQuery]) -> AsgiApp:
        return Response(PAGE, 200, _HTML, [(b"content-security-policy", _POLICY)])

    @route("GET", "/samples/login", PUBLIC, "getSamplePage", "a page for trying browser nodes",
           tag="system", replies=_PAGE_REPLY)  # fmt: skip
    async def sample(self, request: Request[NoQuery]) -> AsgiApp:
        return Response(SAMPLE, 200, _HTML, [(b"content-security-policy", _POLICY)])

    @route("GET", "/api/openapi.json", PUBLIC, "getDescription", "this description", tag="system",
           replies={200: Reply("An OpenAPI 3.1 document.")})  # fmt: skip
    async def openapi(self, request: Request[NoQuery]) -> AsgiApp:
        return Response(self._services.description())
