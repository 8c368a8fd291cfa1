"""The description of the API, OpenAPI 3.1, made from the table of routes: what is not in the table is not described."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from astraflow.api.examples import PROBLEM
from astraflow.api.routes import Doc, Reply, Route
from astraflow.api.schemas import SCHEMAS
from astraflow.core.security.policy import PUBLIC, SIGNED, TABLE

__all__ = ["describe", "document"]

_PARAMETER: Final = re.compile(r"\{([^}]+)\}")
_SAYS: Final = (
    "AstraFlow runs workflows. Every request but the health checks carries a token; lists are pages with cursors; "
    "every refusal is a problem document (RFC 9457) with a code that never changes its meaning."
)


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
            "description": _SAYS,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name} for name in dict.fromkeys(route.doc.tag for route in routes)],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": _problem()},
            "schemas": dict(SCHEMAS),
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    doc = route.doc
    operation: dict[str, Any] = {
        "operationId": doc.name,
        "tags": [doc.tag],
        "summary": doc.summary,
        "description": " ".join(filter(None, (doc.text, _roles(route.action)))),
    }
    parameters = [*_path_parameters(route.path), *_parameters(doc)]
    if parameters:
        operation["parameters"] = parameters
    if doc.body is not None:
        operation["requestBody"] = {
            "required": doc.body_required,
            "content": {doc.body_type: _content(doc.body or None, doc.body_example)},
        }
    replies: dict[str, Any] = {str(status): _reply(reply) for status, reply in doc.replies.items()}
    operation["responses"] = {**replies, "default": {"$ref": "#/components/responses/Problem"}}
    if route.action in PUBLIC or not TABLE[route.action]:
        operation["security"] = []
    elif route.action in SIGNED:
        operation["security"] = [{"bearer": []}, {}]
    return operation


def _roles(action: str) -> str:
    if action in PUBLIC:
        return "Needs no token."
    if action in SIGNED and not TABLE[action]:
        return "The link is the key: no token is needed, and none helps."
    if action in SIGNED:
        return f"A signed link needs no token. Roles: {', '.join(sorted(TABLE[action]))}."
    return f"Roles: {', '.join(sorted(TABLE[action]))}."


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"the {name}",
            "schema": {"type": "string", "minLength": 1, "maxLength": 256},
        }
        for name in _PARAMETER.findall(path)
    ]


def _parameters(doc: Doc) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "in": one.place,
            "required": False,
            "description": one.says,
            "schema": dict(one.schema),
        }
        for one in doc.parameters
    ]


def _reply(reply: Reply) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": reply.says}
    if reply.headers:
        shown["headers"] = {
            name: {"description": says, "schema": {"type": "string"}}
            for name, says in reply.headers.items()
        }
    has_body = reply.schema or reply.example is not None or reply.media_type != "application/json"
    if has_body:
        shown["content"] = {reply.media_type: _content(reply.schema, reply.example)}
    return shown


def _content(schema: str | None, example: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "schema": {"$ref": f"#/components/schemas/{schema}"} if schema else {"type": "string"}
    }
    if example is not None:
        content["example"] = example
    return content


def _problem() -> dict[str, Any]:
    return {
        "description": "it was not done; `code` says why",
        "content": {"application/problem+json": _content("Problem", PROBLEM)},
    }
