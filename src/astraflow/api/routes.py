"""What a route is: an action, the endpoint that does it, and its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from litestar.types import ASGIApp, Method

from astraflow.api.cursors import Cursors
from astraflow.api.ports import SchedulerPort
from astraflow.api.requests import Call
from astraflow.clock import Clock
from astraflow.config import SchedulerSettings
from astraflow.observe.metrics import Metrics

__all__ = ["PAGED", "Doc", "Endpoint", "Parameter", "Parts", "Reply", "Route", "ok"]

Endpoint = Callable[[Call], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What endpoints are made of."""

    scheduler: SchedulerPort
    settings: SchedulerSettings
    clock: Clock
    cursors: Cursors
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query, or a header."""

    name: str
    says: str
    schema: Mapping[str, Any]
    place: str = "query"
    example: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer that an endpoint can give. `schema` names a schema of `api.schemas`."""

    says: str
    schema: str | None = None
    example: Any = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Doc:
    """The description of a route: what OpenAPI shows."""

    name: str
    tag: str
    summary: str
    replies: Mapping[int, Reply]
    text: str = ""
    parameters: Sequence[Parameter] = ()
    body: str | None = None
    body_required: bool = True
    body_example: Any = None
    body_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Route:
    """One action of the API."""

    method: Method
    path: str
    endpoint: Endpoint
    doc: Doc
    is_deep: bool = False
    """Its one parameter is all the rest of the path, slashes included."""

    @property
    def action(self) -> str:
        """The name of its row in the table of authorization."""
        return f"{self.method} {self.path}"


def ok(schema: str, example: Any, says: str = "it", **headers: str) -> dict[int, Reply]:
    """The usual answer."""
    return {200: Reply(says, schema, example, headers=headers)}


_LIMIT: Final = Parameter(
    "limit",
    "how many, 50 if nothing is said; more than 200 counts as 200",
    {"type": "integer", "minimum": 1},
)
_CURSOR: Final = Parameter(
    "cursor", "`nextCursor` of the page before", {"type": "string", "maxLength": 2_048}
)
PAGED: Final = (_LIMIT, _CURSOR)
"""The parameters of every list."""
