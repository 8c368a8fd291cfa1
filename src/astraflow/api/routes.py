"""What a route is: a method and a path, who may use it, what it takes and returns, and the endpoint that does it.

A route is declared once, above its endpoint. The router, the authorization, the decoding of the query and OpenAPI are
made from this declaration, and so is which lane of a tenant is asked first (`lane_finder`).
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from astraflow.api.asgi import AsgiApp
from astraflow.api.cursors import Cursors
from astraflow.api.requests import Request
from astraflow.api.responses import STALL_S
from astraflow.clock import Clock
from astraflow.config import SchedulerSettings
from astraflow.core.contract.base import NoQuery, Query
from astraflow.core.security.policy import Access
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.service import Scheduler

Endpoint = Callable[[Request[Any]], Awaitable[AsgiApp]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[AsgiApp]])

FILE: Final = "application/octet-stream"
"""The media type of a body that is a file."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long an event stream is silent, and how long it waits for a client that does not read."""

    ping_s: float = 15.0
    stall_s: float = STALL_S


@dataclass(frozen=True, slots=True)
class Services:
    """What endpoints use."""

    scheduler: Scheduler
    settings: SchedulerSettings
    clock: Clock
    cursors: Cursors
    metrics: Metrics
    timing: Timing
    description: Callable[[], bytes]
    """The OpenAPI document."""


class Endpoints:
    """A group of endpoints, each of which declares its route."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._scheduler = services.scheduler
        self._cursors = services.cursors


@dataclass(frozen=True, slots=True)
class Header:
    """A header that a request may have."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True)
class Reply:
    """One response that an endpoint can give. `struct` is its body; without one it has none, or one of `media_type`."""

    description: str
    struct: type | None = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Place(enum.Enum):
    """Where a request is answered: by the scheduler of one lane of its tenant, or by whichever is asked."""

    HOME = "the home lane"
    RUN = "the lane of the run; the home lane, if the request names none"
    """The run is the first parameter of the path, or `runId` of the query."""
    NEW_RUN = "a lane that is chosen for the run"
    RESOURCE = "the lane of the resource"
    UPLOAD = "the lane of the resource that the signed URL is for"
    HERE = "the scheduler that is asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One action of the API."""

    method: str
    path: str
    access: Access
    tag: str
    name: str
    """The `operationId`."""
    summary: str
    text: str
    replies: Mapping[int, Reply]
    query: type[Query]
    headers: tuple[Header, ...]
    body: Any
    """The struct of the body, a union of structs, or `FILE`; None if it has no body."""
    is_body_required: bool
    is_deep: bool
    """Its one parameter is all the rest of the path, slashes included."""
    place: Place
    endpoint: str
    """The name of the method that does it."""

    @property
    def action(self) -> str:
        """How metrics and the audit name it."""
        return f"{self.method} {self.path}"


def route(
    method: str,
    path: str,
    access: Access,
    name: str,
    summary: str,
    *,
    tag: str,
    replies: Mapping[int, Reply] | type,
    text: str = "",
    query: type[Query] = NoQuery,
    headers: tuple[Header, ...] = (),
    body: Any = None,
    is_body_required: bool = True,
    is_deep: bool = False,
    place: Place | None = None,
) -> Callable[[Method], Method]:
    """Declare the route of an endpoint. `replies` may be the struct of the one response, which then has status 200.
    What names a run is answered in its lane, and all else at home, unless `place` says otherwise."""

    def declare(endpoint: Method) -> Method:
        declared = Route(
            method=method,
            path=path,
            access=access,
            tag=tag,
            name=name,
            summary=summary,
            text=text,
            replies=replies if isinstance(replies, Mapping) else {200: _usual(replies)},
            query=query,
            headers=headers,
            body=body,
            is_body_required=is_body_required,
            is_deep=is_deep,
            place=place or (Place.RUN if _names_run(path, query) else Place.HOME),
            endpoint=endpoint.__name__,
        )
        endpoint.__dict__.setdefault("routes", []).append(declared)
        return endpoint

    return declare


def _names_run(path: str, query: type[Query]) -> bool:
    return "{runId}" in path or "run_id" in query.__struct_fields__


def _usual(struct: type) -> Reply:
    return Reply((struct.__doc__ or struct.__name__).strip().partition("\n")[0], struct)


def routes_of(endpoints: type[Endpoints]) -> Iterator[Route]:
    """The routes that a class declares, in the order of its methods."""
    for member in vars(endpoints).values():
        yield from reversed(getattr(member, "routes", ()))
