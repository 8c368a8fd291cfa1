"""JSON Schemas of the contract, for OpenAPI: what msgspec says about the structs, in the words of OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from astraflow.core.contract.base import Query, RestObject
from astraflow.core.contract.events import (
    RUN_EVENTS,
    STREAM_EVENTS,
    TENANT_EVENTS,
    EventScope,
    StreamEnd,
)

Schema = dict[str, Any]

RUN_STREAM: Final = "RunStreamEvent"
TENANT_STREAM: Final = "TenantStreamEvent"
"""The names of the unions of all events of a stream."""

_LANE: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "description": "The lane of the tenant that has numbered it, if it has several. Missing: the first.",
}
_REF: Final = "#/components/schemas/{name}"


def ref(name: str) -> Schema:
    return {"$ref": _REF.format(name=name)}


def components(structs: Iterable[type]) -> dict[str, Schema]:
    """The schemas of these structs, of all that they refer to, and of all events, by name."""
    events: set[type] = {
        *RUN_EVENTS.values(),
        *TENANT_EVENTS.values(),
        *STREAM_EVENTS.values(),
        EventScope,
    }
    known: dict[str, type] = {}
    for struct in (*structs, *sorted(events, key=lambda one: one.__name__)):
        for one in (struct, *_cases(struct)):
            known[one.__name__] = one
    single = [one for one in known.values() if not _cases(one)]
    _, made = msgspec.json.schema_components(single, ref_template=_REF)
    found = {name: _tidy(schema) for name, schema in made.items()}
    for name, struct in known.items():
        if _cases(struct):
            found[name] = {
                "description": struct.__doc__,
                "oneOf": [ref(one.__name__) for one in _cases(struct)],
            }
        if example_of(struct) is not None:
            found[name]["examples"] = [example_of(struct)]
    found.update(_event_schemas())
    return dict(sorted(found.items()))


def parameters(query: type[Query]) -> list[Schema]:
    """The query parameters of a route, as OpenAPI lists them."""
    schema = _tidy(msgspec.json.schema(query)["$defs"][query.__name__])
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": member.pop("description", ""),
            "schema": _without_null(member),
        }
        for name, member in schema["properties"].items()
    ]


def example_of(struct: type) -> Any:
    """The example beside a struct; of a page, one made of the example of its items."""
    example = struct.__dict__.get("EXAMPLE")
    items = struct.__dict__.get("__orig_bases__", ())
    if example is None and items:
        (item,) = items[0].__args__
        inner = example_of(item)
        example = {"items": [] if inner is None else [inner], "nextCursor": None}
    return example


def _cases(struct: type) -> tuple[type, ...]:
    """The structs of which one is meant, if this one stands for several."""
    cases: tuple[type, ...] = struct.__dict__.get("ONE_OF", ())
    return cases


def _tidy(schema: Schema) -> Schema:
    """Without what the readers of OpenAPI do not need, and with what some of them do."""
    schema = dict(schema)
    schema.pop("title", None)
    if "properties" in schema:
        # The server sends no null where a member may be missing; of a client it takes both.
        is_sent = "additionalProperties" not in schema
        schema["properties"] = {
            name: _optional(_tidy(member), is_sent) for name, member in schema["properties"].items()
        }
    if "items" in schema and isinstance(schema["items"], dict):
        schema["items"] = _tidy(schema["items"])
    if "anyOf" in schema:
        schema["anyOf"] = [_tidy(one) for one in schema["anyOf"]]
        schema = _nullable(schema)
    values = schema.get("enum", ())
    if values and all(isinstance(one, str) for one in values):
        schema.setdefault("type", "string")
    return schema


def _optional(schema: Schema, is_sent: bool) -> Schema:
    """A default of null is how Python says that a member may be missing."""
    if schema.get("default", ...) is not None:
        return schema
    del schema["default"]
    return _without_null(schema) if is_sent else schema


def _without_null(schema: Schema) -> Schema:
    schema = dict(schema)
    if isinstance(schema.get("type"), list):
        rest = [one for one in schema["type"] if one != "null"]
        schema["type"] = rest[0] if len(rest) == 1 else rest
    if "anyOf" in schema:
        cases = [one for one in schema.pop("anyOf") if one != {"type": "null"}]
        schema = {**schema, **cases[0]} if len(cases) == 1 else {**schema, "anyOf": cases}
    return schema


def _nullable(schema: Schema) -> Schema:
    """`{"type": ["string", "null"]}`, which generators understand better than the union of the two."""
    cases = schema["anyOf"]
    plain = [one for one in cases if one != {"type": "null"}]
    if len(cases) == 2 and len(plain) == 1 and isinstance(plain[0].get("type"), str):
        if "enum" in plain[0]:
            return schema
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return {**rest, **plain[0], "type": [plain[0]["type"], "null"]}
    return schema


def _event_schemas() -> dict[str, Schema]:
    """One schema for each body, with the types that have it; and the union of each stream."""
    found: dict[str, Schema] = {}
    for stream, table in ((RUN_STREAM, RUN_EVENTS), (TENANT_STREAM, TENANT_EVENTS)):
        cases: list[str] = []
        for types, body in _by_body(table):
            found[_event_name(body)] = _event(types, body.__name__, is_numbered=True)
            if stream == TENANT_STREAM:
                found[_event_name(body)]["properties"]["lane"] = _LANE
            cases.append(_event_name(body))
        for types, body in _by_body(STREAM_EVENTS):
            if body is not StreamEnd:
                found[_event_name(body)] = _event(types, body.__name__, is_numbered=False)
                cases.append(_event_name(body))
        found[stream] = {
            "description": "The `data` of an event of this stream, by its `type`.",
            "oneOf": [ref(name) for name in cases],
        }
    return found


def _event_name(body: type[RestObject]) -> str:
    return f"{body.__name__}Event"


def _by_body(table: Mapping[str, type[RestObject]]) -> list[tuple[list[str], type[RestObject]]]:
    bodies = dict.fromkeys(table.values())
    return [([name for name, one in table.items() if one is body], body) for body in bodies]


def _event(types: list[str], body: str, *, is_numbered: bool) -> Schema:
    number: Schema = {"type": "integer", "minimum": 1, "description": "Its number, without gaps."}
    at: Schema = {"type": "string", "format": "date-time", "description": "When it was stored."}
    members: Schema = {
        **({"id": number} if is_numbered else {}),
        "type": {"type": "string", "enum": types},
        **({"occurredAt": at} if is_numbered else {}),
        "scope": ref(EventScope.__name__),
        "data": ref(body),
    }
    return {"type": "object", "properties": members, "required": list(members)}
