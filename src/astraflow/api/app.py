"""The application: from a request to its response, and every failure a problem document.

A request passes, in this order: its host and its path are checked, the router finds its route, the scheduler must be
ready, its credential must be allowed to use the route (`access`), its query is decoded, its endpoint is called. An
error of the catalogue becomes a response with its status. Everything else is logged and becomes a 500 that has the id
of the request and nothing else. A path without a route may be one of the web app, which needs no credential and no
scheduler that is ready.

Every write leaves a row in the audit, here: what it was, of whom, its request id and its code. What the scheduler
audits itself, with words of its own, has its row already. A request without a valid credential is nobody's: no row.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from astraflow.api.access import Forbidden, Gate
from astraflow.api.asgi import AsgiApp, Receive, Scope, Send
from astraflow.api.audit_routes import AuditEndpoints
from astraflow.api.catalog_routes import CatalogEndpoints
from astraflow.api.cursors import Cursors
from astraflow.api.discovery_routes import DiscoveryEndpoints
from astraflow.api.events import EventEndpoints
from astraflow.api.expression_routes import ExpressionEndpoints
from astraflow.api.hook_routes import HookEndpoints
from astraflow.api.login_routes import LoginEndpoints
from astraflow.api.message_routes import MessageEndpoints
from astraflow.api.oidc_routes import OidcEndpoints
from astraflow.api.openapi import describe
from astraflow.api.package_routes import PackageEndpoints
from astraflow.api.pin_routes import PinEndpoints
from astraflow.api.pool_routes import PoolEndpoints
from astraflow.api.queries import QueryDecoder
from astraflow.api.requests import Request
from astraflow.api.rerun_routes import RerunEndpoints
from astraflow.api.resource_routes import ResourceEndpoints
from astraflow.api.responses import REQUEST_ID, Response, problem_response
from astraflow.api.router import Router
from astraflow.api.routes import Endpoint, Endpoints, Place, Route, Services, Timing, routes_of
from astraflow.api.run_routes import RunEndpoints
from astraflow.api.scope_routes import ScopeEndpoints
from astraflow.api.secret_routes import SecretEndpoints
from astraflow.api.stream_grants import StreamOpening
from astraflow.api.system_routes import SystemEndpoints, check_ready
from astraflow.api.task_routes import TaskEndpoints
from astraflow.api.tenant_routes import TenantEndpoints
from astraflow.api.token_routes import TokenEndpoints
from astraflow.api.trigger_routes import TriggerEndpoints
from astraflow.api.user_routes import UserEndpoints
from astraflow.api.version_routes import VersionEndpoints
from astraflow.api.web_app import WebApp
from astraflow.api.worker_routes import WorkerEndpoints
from astraflow.api.workflow_routes import WorkflowEndpoints
from astraflow.clock import Clock, SystemClock
from astraflow.config import SchedulerSettings, Secret
from astraflow.core import errors
from astraflow.core.errors import AstraflowError, Code, Refused, Unavailable
from astraflow.core.security.bearer import TokenRecord
from astraflow.core.security.policy import READ, SITE
from astraflow.observe.audit_marks import AuditMark, begin_audit
from astraflow.observe.metrics import Metrics
from astraflow.observe.request_ids import begin_request, current_request_id
from astraflow.scheduler.service import Scheduler
from astraflow.web import DIST

MAX_PATH_BYTES: Final = 2_048
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_READING: Final = ("GET", "HEAD")

ENDPOINTS: Final[tuple[type[Endpoints], ...]] = (
    RunEndpoints,
    MessageEndpoints,
    ScopeEndpoints,
    RerunEndpoints,
    EventEndpoints,
    WorkflowEndpoints,
    VersionEndpoints,
    PinEndpoints,
    ExpressionEndpoints,
    TriggerEndpoints,
    HookEndpoints,
    WorkerEndpoints,
    PoolEndpoints,
    SecretEndpoints,
    TaskEndpoints,
    CatalogEndpoints,
    PackageEndpoints,
    ResourceEndpoints,
    LoginEndpoints,
    OidcEndpoints,
    TokenEndpoints,
    UserEndpoints,
    TenantEndpoints,
    AuditEndpoints,
    DiscoveryEndpoints,
    SystemEndpoints,
)
ROUTES: Final = tuple(route for endpoints in ENDPOINTS for route in routes_of(endpoints))
"""All routes of the API."""

NOT_AUDITED: Final = {
    "POST /api/v1/runs": "the first fact of the run says who submitted it",
    "POST /api/v1/workflows/validate": "it changes nothing",
    "POST /api/v1/signals/{runId}/{name}/{token}": "the facts of the run say it",
    **{
        f"{method} /api/v1/hooks/{{hookId}}": "the history of the trigger and the first fact of its run say it"
        for method in ("POST", "PUT", "PATCH", "DELETE")
    },
    "POST /api/workers/heartbeat": "it says that a worker lives, every few seconds",
    "PUT /api/v1/uploads/{token}": "its URL was made for one result; the resource of the run shows it",
    "POST /api/v1/auth/login": "who is nobody yet: what the login comes to is audited by the login",
    "POST /api/v1/auth/token": "as above",
    "POST /api/v1/auth/link": "as above",
} | {
    f"POST {prefix}/tasks/{{id}}/{what}": "the events of the run are the audit of its dispatches"
    for prefix in ("/v1", "/api/v1")
    for what in ("started", "heartbeat", "completed")
}
"""The writes that leave no row here, each with the reason."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Target:
    """A route with the endpoint that does it."""

    route: Route
    endpoint: Endpoint
    query: QueryDecoder[Any]
    needs_no_scheduler: bool
    is_audited: bool


class Application:
    """The ASGI application of a scheduler."""

    def __init__(
        self,
        endpoints: Sequence[Endpoints],
        gate: Gate,
        metrics: Metrics,
        scheduler: Scheduler,
        web_app: WebApp,
    ) -> None:
        self._gate = gate
        self._web_app = web_app
        self._counter = metrics.requests
        self.scheduler = self._scheduler = scheduler
        self._events = next((one for one in endpoints if isinstance(one, EventEndpoints)), None)
        self._router: Router[_Target] = Router()
        for part in endpoints:
            for route in routes_of(type(part)):
                target = _Target(
                    route,
                    getattr(part, route.endpoint),
                    QueryDecoder(route.query),
                    route.place is Place.HERE,
                    route.method not in ("GET", "HEAD") and route.action not in NOT_AUDITED,
                )
                self._router.add(route.method, route.path, target, is_deep=route.is_deep)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[REQUEST_ID] = begin_request(scope["headers"]).encode()
        response = await self._respond(scope, receive)
        await response(scope, receive, send)

    def is_web_app(self, path: str) -> bool:
        """Whether a path is one of the web app, which needs no scheduler."""
        return not self._router.methods(path) and self._web_app.has(path)

    def admit_site_admin(self, scope: Scope) -> None:
        """Raises: Refused, Forbidden: the request is not of an admin of the site."""
        self._gate.admit(SITE, scope["method"], scope["headers"])

    async def follow(
        self, opening: StreamOpening, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a stream that the owner of its tenant has granted. It ends with its credential, as at the owner."""
        try:
            bearer = self._gate.admit(READ, scope["method"], scope["headers"])
            assert bearer is not None, "a stream needs a credential"
            assert self._events is not None, "an application has its streams"
            response = self._gate.watched(bearer, self._events.follow(opening))
        except AstraflowError as error:
            response = problem_response(error)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> AsgiApp:
        refused = self._check(scope)
        if refused is not None:
            self._counter.add("gate", str(refused.status))
            return refused
        found = self._router.find(scope["path"], scope["method"])
        if found is None:
            return await self._respond_beside(scope)
        target, params = found
        response = await self._call(target, scope, receive, params)
        status = response.status if isinstance(response, Response) else int(HTTPStatus.OK)
        self._counter.add(target.route.action, str(status))
        return response

    async def _respond_beside(self, scope: Scope) -> Response:
        """What a path without a route gets: it may be one of the web app."""
        path = scope["path"]
        if self.is_web_app(path):
            if scope["method"] in _READING:
                response = await self._web_app.respond(scope)
            else:
                response = _method_refused(_READING)
            self._counter.add("web app", str(response.status))
            return response
        missing = self._no_route(path)
        self._counter.add("none", str(missing.status))
        return missing

    def _check(self, scope: Scope) -> Response | None:
        if not self._gate.knows_host(scope["headers"]):
            message = "the Host header has a name that is not ours; allow it with allowed_hosts"
            return problem_response(Refused(errors.REQUEST_INVALID, message))
        path = scope["path"]
        if len(path) > MAX_PATH_BYTES or not path.isprintable():
            return problem_response(Refused(errors.REQUEST_INVALID, "the path cannot be read"))
        if scope["method"] not in METHODS:  # there is no CORS, so OPTIONS has no use
            return self._no_route(path)
        return None

    def _no_route(self, path: str) -> Response:
        """The path does not exist, or does not take this method."""
        known = self._router.methods(path)
        allowed = [method for method in METHODS if method in known]
        if not allowed:
            return problem_response(
                Refused(errors.REQUEST_NO_ROUTE, "there is nothing at this path")
            )
        return _method_refused(allowed)

    async def _call(
        self, target: _Target, scope: Scope, receive: Receive, params: dict[str, str]
    ) -> AsgiApp:
        route = target.route
        bearer: TokenRecord | None = None
        mark = begin_audit() if target.is_audited else None
        try:
            if not target.needs_no_scheduler:
                check_ready(self._scheduler)
            bearer = self._gate.admit(route.access, route.method, scope["headers"])
            if bearer is not None:
                self._scheduler.tenants.count_request(bearer)
            query = target.query.decode(scope["query_string"])
            response = await target.endpoint(Request(scope, receive, bearer, params, query))
            if mark is not None and not mark.is_set and bearer is not None:
                await self._scheduler.audits.keep_durably(
                    bearer.tenant, bearer.subject, route.action, _subject(params)
                )
            return response if bearer is None else self._gate.watched(bearer, response)
        except AstraflowError as error:
            who = error.bearer if isinstance(error, Forbidden) else bearer
            if who is not None and _is_due(target, mark, error):
                self._keep_refusal(route, who, params, error.code)
            self._note(error)
            return problem_response(error)
        except Exception as error:
            if bearer is not None and mark is not None and not mark.is_set:
                self._keep_refusal(route, bearer, params, errors.INTERNAL)
            return _failure(scope, error)

    def _keep_refusal(
        self, route: Route, who: TokenRecord, params: dict[str, str], code: Code
    ) -> None:
        # While nothing serves nothing can be kept, and nothing was changed.
        with suppress(Unavailable):
            self._scheduler.audits.keep(
                who.tenant, who.subject, route.action, code, _subject(params)
            )

    def _note(self, error: AstraflowError) -> None:
        """Log what failed."""
        # That it is not ready it has logged once; a probe asks every second.
        is_known = error.code is errors.SCHEDULER_NOT_READY
        if error.code.http >= HTTPStatus.INTERNAL_SERVER_ERROR and not is_known:
            _log.warning("request failed: %s", error.message, extra={"code": error.code.code})


def _method_refused(allowed: Sequence[str]) -> Response:
    named = ", ".join(allowed)
    refused = Refused(errors.REQUEST_METHOD, f"this path takes: {named}")
    return problem_response(refused, [(b"allow", named.encode())])


def _is_due(target: _Target, mark: AuditMark | None, error: AstraflowError) -> bool:
    """Whether a refusal has to be audited here. That of a role always is, unless it only wanted to read."""
    if mark is None:
        return isinstance(error, Forbidden) and target.route.method not in ("GET", "HEAD")
    return not mark.is_set


def _subject(params: dict[str, str]) -> str:
    """What a request is about: the parameters of its path, none of which is secret on an audited route."""
    return " ".join(params.values())


def _failure(scope: Scope, error: Exception) -> Response:
    """A bug: the client gets the id of its request, the log gets the reason."""
    number = current_request_id()
    _log.error(
        "request failed: %s %s",
        scope["method"],
        scope["path"],
        exc_info=error,
        extra={"code": errors.INTERNAL.code},
    )
    message = f"the reason is in the scheduler's log, at the request: {number}"
    return problem_response(AstraflowError(errors.INTERNAL, message, detail={"requestId": number}))


def make_app(
    scheduler: Scheduler,
    settings: SchedulerSettings,
    *,
    secret: Secret,
    metrics: Metrics,
    clock: Clock | None = None,
    timing: Timing | None = None,
) -> Application:
    """The application of a scheduler, to be run on its loop."""
    clock = clock or SystemClock()
    services = Services(
        scheduler=scheduler,
        settings=settings,
        clock=clock,
        cursors=Cursors([line.encode() for line in secret.lines()]),
        metrics=metrics,
        timing=timing or Timing(),
        description=cache(lambda: describe(ROUTES)),
    )
    endpoints = [kind(services) for kind in ENDPOINTS]
    gate = Gate(scheduler.credentials, settings)
    return Application(endpoints, gate, metrics, scheduler, WebApp(DIST))
