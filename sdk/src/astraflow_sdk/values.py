"""Converts JSON values to the types of hints and back: Enum, Path, dataclass and so on."""

from __future__ import annotations

import base64
import binascii
import collections.abc
import dataclasses
import datetime
import enum
import json
import os
import pathlib
import typing
from collections.abc import Callable
from typing import Any

from astraflow_sdk.errors import DataQualityError
from astraflow_sdk.hints import UNIONS, as_json, split_annotated

Reader = Callable[[Any], Any]
"""Makes of a JSON value what the hint says. Raises ValueError or TypeError if that cannot be."""


def readers_of(function: Callable[..., Any]) -> dict[str, Reader]:
    """For each parameter whose hint promises more than JSON has, what makes it of the JSON."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}  # hints that nobody can read promise nothing
    found = {name: reader_of(hint) for name, hint in hints.items() if name != "return"}
    return {name: _named(name, reader) for name, reader in found.items() if reader is not None}


def _named(name: str, reader: Reader) -> Reader:
    def read(value: Any) -> Any:
        try:
            return reader(value)
        except (ValueError, TypeError, KeyError) as problem:
            raise DataQualityError(
                f"the parameter {name} is not what it must be: {problem}"
            ) from None

    return read


def reader_of(hint: Any) -> Reader | None:
    """None if JSON has it already."""
    hint, _ = split_annotated(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return _optional([one for one in arguments if one is not type(None)], arguments)
    if origin in (list, collections.abc.Sequence) and arguments:
        return _each(list, reader_of(arguments[0]))
    if origin is dict and len(arguments) == 2:
        return _members(reader_of(arguments[1]))
    for kind in (set, frozenset, tuple):
        if hint is kind or origin is kind:
            return _collection(kind, arguments)
    return _class_reader(hint) if isinstance(hint, type) else None


def _class_reader(hint: type) -> Reader | None:
    if issubclass(hint, enum.Enum):
        return lambda value: _member(hint, value)
    if hint is bytes:
        return _only_text(_from_base64)
    if issubclass(hint, pathlib.PurePath):
        return _only_text(hint)
    if hint is datetime.datetime or hint is datetime.date:
        # Python 3.10 does not know that Z is UTC.
        return _only_text(lambda text: hint.fromisoformat(text.replace("Z", "+00:00")))
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint)
    return None


def _member(hint: type[enum.Enum], value: Any) -> enum.Enum:
    try:
        return hint(value)
    except ValueError:
        known = ", ".join(repr(one.value) for one in hint)
        raise ValueError(f"{value!r} is none of {known}") from None


def _only_text(reader: Reader) -> Reader:
    """What is no text came as something else, a reference to a resource for example, and stays so."""
    return lambda value: reader(value) if isinstance(value, str) else value


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(f"not base64: {problem}") from None


def _optional(kinds: list[Any], arguments: tuple[Any, ...]) -> Reader | None:
    if len(kinds) != 1 or len(arguments) == len(kinds):
        return None  # which one of several it is, only the handler can tell
    reader = reader_of(kinds[0])
    return None if reader is None else (lambda value: None if value is None else reader(value))


def _each(kind: type, reader: Reader | None) -> Reader | None:
    if reader is None:
        return None
    return lambda value: kind(map(reader, value)) if isinstance(value, list) else value


def _members(reader: Reader | None) -> Reader | None:
    if reader is None:
        return None
    return lambda value: (
        {key: reader(one) for key, one in value.items()} if isinstance(value, dict) else value
    )


def _collection(kind: type, arguments: tuple[Any, ...]) -> Reader:
    is_uniform = len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is ...)
    reader = reader_of(arguments[0]) if is_uniform else None
    return _each(kind, reader or (lambda value: value)) or kind


def _dataclass(hint: type) -> Reader:
    hints = typing.get_type_hints(hint, include_extras=True)
    readers = {one.name: reader_of(hints[one.name]) for one in dataclasses.fields(hint) if one.init}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        given = {}
        for name, reader in readers.items():
            if name in value:
                given[name] = value[name] if reader is None else reader(value[name])
        return hint(**given)

    return read


def plain_value(value: Any) -> Any:
    """A result as JSON has it: dataclasses become objects, members of an Enum their values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json.loads(json.dumps(dataclasses.asdict(value), default=as_json, allow_nan=False))
    if isinstance(value, enum.Enum):
        return value.value
    return os.fspath(value) if isinstance(value, pathlib.PurePath) else value
