"""What a JSON Schema says about the shape of a value: whether it says anything, and the types at a path of it.

Only what is plain is read: members, items, references and `type`, `const`, `enum`. Where a schema says more than that,
nothing is known, and what is not known fits everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from astraflow.core.workflow.bindings import Path

Types = frozenset[str]
"""Names of JSON types. `integer` is a part of `number`."""

_ALL: Final = frozenset({"null", "boolean", "number", "integer", "string", "array", "object"})
_ANNOTATIONS: Final = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
)
_MAX_STEPS: Final = 64
"""References that are followed from one place."""


def is_trivial(schema: Any) -> bool:
    """Whether every object fits. False where that would take a closer look."""
    if isinstance(schema, bool):
        return schema
    for keyword, value in schema.items():
        if keyword == "type" and value in ("object", ["object"]):
            continue
        if (
            keyword == "properties"
            and isinstance(value, dict)
            and all(one in ({}, True) for one in value.values())
        ):
            continue
        if keyword not in _ANNOTATIONS:
            return False
    return True


def types_at(schema: Any, path: Path) -> Types | None:
    """The types of what is at the path, or None if nothing is known of it."""
    here = _followed(schema, schema)
    for step in path:
        here = _followed(schema, _below(here, step))
    return None if here is None else _types(here)


def items_of(schema: Any, path: Path) -> Types | None:
    """The types of the items of the list that is at the path."""
    return types_at(schema, (*path, "0"))


def may_fit(given: Types | None, wanted: Types | None) -> bool:
    """Whether a value of one of the given types can be one of the wanted. Not known: it can."""
    if given is None or wanted is None or given & wanted:
        return True
    # 1.0 is an integer, and an integer is a number.
    return bool(given & {"number", "integer"}) and bool(wanted & {"number", "integer"})


def _followed(root: Any, here: Any) -> dict[str, Any] | None:
    for _ in range(_MAX_STEPS):
        if not isinstance(here, dict):
            return None
        if "$ref" not in here:
            return here
        here = _target(root, here["$ref"])
    return None


def _target(root: Any, ref: Any) -> Any:
    here = root
    for token in str(ref).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        here = here.get(key) if isinstance(here, dict) else None
    return here


def _below(schema: dict[str, Any] | None, step: str) -> Any:
    if schema is None:
        return None
    types = _types(schema)
    if step.isdecimal() and (types == frozenset({"array"}) or "properties" not in schema):
        first = schema.get("prefixItems")
        if isinstance(first, list) and int(step) < len(first):
            return first[int(step)]
        return schema.get("items")
    members = schema.get("properties")
    if isinstance(members, dict) and step in members:
        return members[step]
    if "patternProperties" in schema:
        return None
    return schema.get("additionalProperties")


def _types(schema: dict[str, Any]) -> Types | None:
    if "type" in schema:
        named = schema["type"]
        names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        return frozenset(name for name in names if name in _ALL) or None
    if "const" in schema:
        return frozenset({type_of(schema["const"])})
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return frozenset(type_of(value) for value in schema["enum"])
    return None


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "array" if isinstance(value, list) else "object"
