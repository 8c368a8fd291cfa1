"""The OpenAPI 3.1 document, made from the routes and the structs that they declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from astraflow.api.routes import FILE, Reply, Route
from astraflow.core.contract import schema
from astraflow.core.contract.system import Problem
from astraflow.core.contract.workflows import Definition
from astraflow.core.security.policy import Access

_PARAMETER: Final = re.compile(r"\{([^}]+)\}")
_DESCRIPTION: Final = (
    "AstraFlow runs workflows. Every request but the health checks carries a token. Lists are pages with cursors. "
    "Every refusal is a problem document (RFC 9457) with a code that never changes its meaning. A query parameter that "
    "a route does not have is refused."
)
_EVENTS: Final = "text/event-stream"


def describe(routes: Sequence[Route]) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document(routes))


def document(routes: Sequence[Route]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "AstraFlow",
            "version": "1",
            "description": _DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name} for name in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": _problem()},
            "schemas": schema.components([Problem, Definition, *_structs(routes)]),
        },
    }


def _structs(routes: Iterable[Route]) -> Iterable[type]:
    for route in routes:
        bodies = (route.body, *(reply.struct for reply in route.replies.values()))
        yield from (one for one in bodies if isinstance(one, type))


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "description": " ".join(filter(None, (route.text, _roles(route.access)))),
    }
    parameters = [*_path_parameters(route), *schema.parameters(route.query), *_headers(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        media_type = FILE if route.body == FILE else "application/json"
        operation["requestBody"] = {
            "required": route.is_body_required,
            "content": {media_type: _content(None if route.body == FILE else route.body)},
        }
    replies = {str(status): _reply(reply) for status, reply in route.replies.items()}
    if "400" in replies:
        # What is no request for this route (a path that cannot be read) is refused before it is reached.
        replies["400"]["content"].setdefault("application/problem+json", _content(Problem))
    operation["responses"] = {**replies, "default": {"$ref": "#/components/responses/Problem"}}
    if route.access.is_public or not route.access.roles:
        operation["security"] = []
    elif route.access.is_signed:
        operation["security"] = [{"bearer": []}, {}]
    return operation


def _roles(access: Access) -> str:
    roles = ", ".join(sorted(access.roles))
    if access.is_public:
        return "Needs no token."
    if access.is_task:
        return "The token of the attempt is the key."
    if not access.roles:
        return "The signed URL is the key: a token is not needed and does not help."
    return f"{'A signed URL needs no token. ' if access.is_signed else ''}Roles: {roles}."


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "The id; it may contain slashes." if route.is_deep else f"The {name}.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 256},
        }
        for name in _PARAMETER.findall(route.path)
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "in": "header",
            "required": False,
            "description": one.description,
            "schema": dict(one.schema),
        }
        for one in route.headers
    ]


def _reply(reply: Reply) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": reply.description}
    if reply.headers:
        shown["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in reply.headers.items()
        }
    if reply.struct is not None or reply.media_type != "application/json":
        shown["content"] = {reply.media_type: _content(reply.struct)}
    if reply.media_type == _EVENTS:
        # OpenAPI 3.1 has no word for the items of a stream; the schemas have names for generators to find.
        events = [schema.ref(name) for name in (schema.RUN_STREAM, schema.TENANT_STREAM)]
        shown["content"][_EVENTS]["x-events"] = {"oneOf": events}
    return shown


def _content(struct: type | None) -> dict[str, Any]:
    if struct is None:
        return {"schema": {"type": "string"}}
    content: dict[str, Any] = {"schema": schema.ref(struct.__name__)}
    example = schema.example_of(struct)
    if example is not None:
        content["example"] = example
    return content


def _problem() -> dict[str, Any]:
    return {
        "description": "It was not done; `code` says why.",
        "content": {"application/problem+json": _content(Problem)},
    }
