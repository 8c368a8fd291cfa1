"""Converts type hints to JSON Schema, for parameters and results."""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import datetime
import enum
import json
import os
import pathlib
import types
import typing
from collections.abc import Mapping
from typing import Any

MULTILINE = "multiline"
"""`Annotated[str, "multiline"]`: a text of several lines. Any other text in an `Annotated` is a description."""
NO_DEFAULT = object()

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    type(None): {"type": "null"},
    pathlib.Path: {"type": "string"},
    pathlib.PurePath: {"type": "string"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array", "uniqueItems": True},
    frozenset: {"type": "array", "uniqueItems": True},
    Any: {},
    object: {},
}
_ARRAYS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "description": "description",
}
"""As the markers of other libraries name their limits: `annotated_types.Ge(0)`, `msgspec.Meta(ge=0)`."""
_LENGTHS = {"minLength": "minItems", "maxLength": "maxItems"}
UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_NEVER = object()


class HintError(ValueError):
    """A type hint that has no JSON Schema."""


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type hint.

    Raises:
        HintError: it is none of those that JSON has a word for.
    """
    hint, said = split_annotated(hint)
    schema = _schema(hint)
    for word in said:
        schema.update(_said(word, schema))
    return schema


def split_annotated(hint: Any) -> tuple[Any, list[Any]]:
    """A hint without its `Annotated`, `Required`, `NotRequired` and names, and what those have said."""
    said: list[Any] = []
    while True:
        if hasattr(hint, "__metadata__"):
            said = [*hint.__metadata__, *said]
            hint = hint.__origin__
        elif getattr(typing.get_origin(hint), "_name", "") in ("Required", "NotRequired"):
            (hint,) = typing.get_args(hint)
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint, said


def is_object(hint: Any) -> bool:
    """Whether what a hint describes is an object with named members."""
    return isinstance(hint, type) and (typing.is_typeddict(hint) or dataclasses.is_dataclass(hint))


def _schema(hint: Any) -> dict[str, Any]:
    if isinstance(hint, collections.abc.Hashable) and hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return _union(arguments)
    if origin is typing.Literal:
        return _choice(list(arguments))
    if origin in _OBJECTS or hint in _OBJECTS:
        return _mapping(arguments)
    if origin in _ARRAYS or hint in _ARRAYS:
        return _array(origin or hint, arguments)
    if isinstance(hint, type):
        return _class(hint)
    raise HintError(f"{_name(hint)} has no form in JSON")


def _class(hint: type) -> dict[str, Any]:
    if issubclass(hint, enum.Enum):
        return _choice([member.value for member in hint])
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        required: Any = getattr(hint, "__required_keys__", hints)
        return _members(hints, [name for name in hints if name in required], {})
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = [one for one in dataclasses.fields(hint) if one.init]
        defaults = {one.name: _field_default(one) for one in fields}
        needed = [name for name, value in defaults.items() if value is _NEVER]
        return _members({one.name: hints[one.name] for one in fields}, needed, defaults)
    if issubclass(hint, os.PathLike):
        return {"type": "string"}
    for plain in (bool, int, float, str):
        if issubclass(hint, plain):
            return dict(_PLAIN[plain])
    raise HintError(f"{_name(hint)} has no form in JSON")


def _members(
    hints: Mapping[str, Any], required: list[str], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    properties = {}
    for name, hint in hints.items():
        properties[name] = schema_of(hint)
        value = default_of(defaults.get(name, _NEVER))
        if value is not NO_DEFAULT:
            properties[name]["default"] = value
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _field_default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _NEVER


def _union(arguments: tuple[Any, ...]) -> dict[str, Any]:
    parts = [schema_of(one) for one in arguments if one is not type(None)]
    if len(parts) == len(arguments):
        return {"anyOf": parts}
    if len(parts) > 1:
        return {"anyOf": [*parts, {"type": "null"}]}
    (only,) = parts
    if "enum" in only:
        only["enum"] = [*only["enum"], None]
    if isinstance(only.get("type"), str):
        only["type"] = [only["type"], "null"]
    elif only:
        return {"anyOf": [only, {"type": "null"}]}
    return only


def _choice(values: list[Any]) -> dict[str, Any]:
    for value in values:
        if default_of(value) is NO_DEFAULT:
            raise HintError(f"{value!r} has no form in JSON")
    kinds = {type(value) for value in values}
    schema: dict[str, Any] = {"enum": values}
    if len(kinds) == 1 and (kind := kinds.pop()) in (str, int, float, bool):
        return {"type": _PLAIN[kind]["type"], **schema}
    return schema


def _mapping(arguments: tuple[Any, ...]) -> dict[str, Any]:
    if not arguments:
        return {"type": "object"}
    key, value = arguments
    if split_annotated(key)[0] not in (str, Any):
        raise HintError(f"the keys of an object are texts, not {_name(key)}")
    inner = schema_of(value)
    return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}


def _array(origin: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    if origin in (set, frozenset):
        schema["uniqueItems"] = True
    if origin is tuple and arguments and arguments[-1] is not ...:
        parts = [schema_of(one) for one in arguments]
        return {**schema, "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    inner = schema_of(arguments[0]) if arguments else {}
    return {**schema, "items": inner} if inner else schema


def _said(word: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What one argument of an `Annotated` adds."""
    if word == MULTILINE:
        return {}
    if isinstance(word, str):
        return {"description": word}
    if isinstance(word, Mapping):
        return dict(word)
    found = {key: getattr(word, name, None) for name, key in _LIMITS.items()}
    kept = {key: value for key, value in found.items() if isinstance(value, int | float | str)}
    if "array" in (schema.get("type") or ()):
        kept = {_LENGTHS.get(key, key): value for key, value in kept.items()}
    return kept


def default_of(value: Any) -> Any:
    """A default as JSON; NO_DEFAULT if it has no form there."""
    if value is _NEVER:
        return NO_DEFAULT
    try:
        return json.loads(json.dumps(value, default=as_json, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return NO_DEFAULT


def as_json(value: Any) -> Any:
    """For `json.dumps(default=…)`: what hints know a form for. Raises TypeError for all else."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(type(value).__name__)


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
