"""The application: every route behind one door, every failure a problem document.

A request passes, in this order: the gate (is it for us, is the path one that can be), Litestar's router, readiness, the
door (`access`: who, and may they), the endpoint. What an endpoint raises from our catalogue is answered with its
status; all else is logged with a number and answered with 500 and that number, and nothing of what it was.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Method, Receive, Scope, Send

from astraflow.api.access import Doorkeeper, Forbidden
from astraflow.api.answers import Answer, answer_problem
from astraflow.api.cursors import Cursors
from astraflow.api.events import Timing
from astraflow.api.openapi import describe
from astraflow.api.ports import SchedulerPort
from astraflow.api.requests import Call
from astraflow.api.routes import Parts, Route
from astraflow.api.system_routes import check_ready
from astraflow.api.table import make_routes
from astraflow.clock import Clock, SystemClock
from astraflow.config import SchedulerSettings, Secret
from astraflow.core import errors
from astraflow.core.errors import AstraflowError, Refused
from astraflow.core.security.bearer import ApiTokens
from astraflow.observe.metrics import Counter, Metrics

__all__ = ["Application", "make_app"]

MAX_PATH_BYTES: Final = 2_048
ALWAYS: Final = ("/healthz", "/readyz", "/metrics")
"""What a scheduler answers that does not serve: it starts, it stands by, or its store does not answer."""
METHODS: Final[tuple[Method, ...]] = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

_log: Final = logging.getLogger(__name__)


class Application:
    """The ASGI application. `routes` are the actions that it answers."""

    def __init__(
        self,
        routes: Sequence[Route],
        doorkeeper: Doorkeeper,
        metrics: Metrics,
        scheduler: SchedulerPort,
    ) -> None:
        self.routes = tuple(routes)
        self._doorkeeper = doorkeeper
        self._counter = metrics.requests
        self._router = Litestar(
            route_handlers=[
                _handler(route, doorkeeper, metrics.requests, scheduler) for route in routes
            ],
            exception_handlers={Exception: self._answer_failure},
            openapi_config=None,
            logging_config=None,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # type: ignore[comparison-overlap]
            await self._router(scope, receive, send)
            return
        refused = self._refused_at_the_gate(scope)  # type: ignore[arg-type]
        if refused is None:
            await self._router(scope, receive, send)
            return
        self._counter.add("gate", str(refused.status))
        await refused(scope, receive, send)

    def _refused_at_the_gate(self, scope: HTTPScope) -> Answer | None:
        if not self._doorkeeper.knows_host(scope["headers"]):
            message = "the Host header names somebody else; allow the name with allowed_hosts"
            return answer_problem(Refused(errors.REQUEST_INVALID, message))
        path = scope["path"]
        if len(path) > MAX_PATH_BYTES or not path.isprintable():
            return answer_problem(Refused(errors.REQUEST_INVALID, "the path cannot be read"))
        # Litestar would answer OPTIONS by itself, past the door. Nobody needs it: there is no CORS.
        if scope["method"] not in METHODS:
            return self._refuse_method(path)
        return None

    def _refuse_method(self, path: str) -> Answer:
        allowed = [method for method in METHODS if self._takes(path, method)]
        if not allowed:
            return answer_problem(Refused(errors.REQUEST_NO_ROUTE, "there is nothing at this path"))
        refused = Refused(errors.REQUEST_METHOD, f"this path takes: {', '.join(allowed)}")
        return answer_problem(refused, [(b"allow", ", ".join(allowed).encode())])

    def _takes(self, path: str, method: Method) -> bool:
        try:
            self._router.asgi_router.handle_routing(path=path.rstrip("/") or "/", method=method)
        except HTTPException:
            return False
        return True

    def _answer_failure(self, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        """What no endpoint caught: a path that is not there, or a bug."""
        answer = self._failure(request.scope, error)
        self._counter.add("none", str(answer.status))
        return Response(
            content=answer.body,
            status_code=answer.status,
            media_type=answer.media_type.decode(),
            headers={name.decode(): value.decode() for name, value in answer.headers},
        )

    def _failure(self, scope: HTTPScope, error: Exception) -> Answer:
        if isinstance(error, MethodNotAllowedException):
            return self._refuse_method(scope["path"])
        if isinstance(error, NotFoundException):
            return answer_problem(Refused(errors.REQUEST_NO_ROUTE, "there is nothing at this path"))
        if (
            isinstance(error, HTTPException)
            and error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
        ):
            return answer_problem(Refused(errors.REQUEST_INVALID, "the request cannot be read"))
        number = secrets.token_hex(8)
        _log.error(
            "a request failed: %s %s",
            scope["method"],
            scope["path"],
            exc_info=error,
            extra={"id": number, "code": errors.INTERNAL.code},
        )
        message = f"the reason is in the scheduler's log, at the id: {number}"
        failure = AstraflowError(errors.INTERNAL, message, detail={"requestId": number})
        return answer_problem(failure)


def _handler(
    route: Route, doorkeeper: Doorkeeper, counter: Counter, scheduler: SchedulerPort
) -> HTTPRouteHandler:
    action, endpoint = route.action, route.endpoint
    is_always_answered = route.path in ALWAYS

    async def handle(request: Request[Any, Any, Any]) -> ASGIApp:
        scope = request.scope
        try:
            if not is_always_answered:
                check_ready(scheduler)
            bearer = doorkeeper.admit(action, scope["headers"])
            answer = await endpoint(Call(scope, request.receive, bearer))
        except AstraflowError as error:
            if isinstance(error, Forbidden) and route.method not in ("GET", "HEAD"):
                who = error.bearer
                scheduler.audit_refusal(who.tenant, who.subject, action, error.code)
            # That it is not ready it has said once; a probe asks every second.
            is_said = error.code is errors.SCHEDULER_NOT_READY
            if error.code.http >= HTTPStatus.INTERNAL_SERVER_ERROR and not is_said:
                _log.warning(
                    "a request was not served: %s", error.message, extra={"code": error.code.code}
                )
            answer = answer_problem(error)
        status = answer.status if isinstance(answer, Answer) else HTTPStatus.OK
        counter.add(action, str(int(status)))
        return answer

    path = route.path.replace("}", ":path}" if route.is_deep else ":str}")
    return HTTPRouteHandler(
        path, http_method=route.method, status_code=HTTPStatus.OK, name=route.doc.name
    )(handle)


def make_app(
    scheduler: SchedulerPort,
    settings: SchedulerSettings,
    *,
    tokens: ApiTokens,
    secret: Secret,
    metrics: Metrics,
    clock: Clock | None = None,
    timing: Timing | None = None,
) -> Application:
    """The application of a scheduler, to be run on its loop."""
    clock = clock or SystemClock()
    parts = Parts(
        scheduler=scheduler,
        settings=settings,
        clock=clock,
        cursors=Cursors(secret.reveal().encode()),
        metrics=metrics,
    )
    routes, system = make_routes(parts, timing or Timing())
    system.description = describe(routes)
    return Application(routes, Doorkeeper(tokens, clock, settings), metrics, scheduler)
