"""Command input: JSON files, and NAME=VALUE pairs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.jsontext import place_in, place_of

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""The API's limit for a definition."""


_CORRECT: Final = "correct the file at this position; `python3 -m json.tool FILE` reports it too"


class WorkflowFile(msgspec.Struct, frozen=True):
    """A workflow definition as bytes and decoded, and the inputs in the same file."""

    raw: bytes
    definition: Mapping[str, Any]
    inputs: Mapping[str, Any]


class _Request(msgspec.Struct, frozen=True):
    """The body of `POST /api/v1/runs`, which a file may also contain."""

    workflow: msgspec.Raw
    inputs: dict[str, Any] = {}


def unreadable(message: str, hint: str = "") -> errors.Refused:
    """The refusal of an argument or a file of the caller."""
    detail = {"hint": hint} if hint else None
    return errors.Refused(errors.INPUT_UNREADABLE, message, detail=detail)


def read_file(name: str) -> bytes:
    """Read a file; `-` is stdin.

    Raises:
        Refused: the file cannot be read, or is too large.
    """
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise unreadable(f"Cannot read {name}: {error.strerror}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise unreadable(f"{name} is larger than {MAX_FILE_BYTES // 1024**2} MiB")
    return raw


def read_definition(name: str) -> WorkflowFile:
    """Read a workflow definition, or a run request that contains one.

    Raises:
        Refused: the file contains no JSON object.
    """
    raw = read_file(name)
    found = _object(raw, name)
    if "nodes" in found or "workflow" not in found:
        return WorkflowFile(raw, found, {})
    try:
        request = msgspec.json.decode(raw, type=_Request)
    except msgspec.ValidationError as error:
        raise unreadable(f"{name} is not a run request: {error}") from error
    inner = bytes(request.workflow)
    return WorkflowFile(inner, _object(inner, name), request.inputs)


def pair_of(given: str, what: str) -> tuple[str, str]:
    """The two parts of NAME=VALUE.

    Raises:
        Refused: it is none.
    """
    name, separator, text = given.partition("=")
    if not separator or not name:
        raise unreadable(
            f"Invalid {what} {given!r}: expected NAME=VALUE", hint="write --input name=value"
        )
    return name, text


def values_of(given: list[str] | None, what: str) -> dict[str, Any]:
    """NAME=VALUE pairs without a schema: VALUE is JSON if it parses, else text.

    Raises:
        Refused: one is no pair.
    """
    values: dict[str, Any] = {}
    for name, text in (pair_of(one, what) for one in given or ()):
        try:
            values[name] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            values[name] = text
    return values


def read_object(name: str) -> dict[str, Any]:
    """Read a JSON object from a file; `-` is stdin.

    Raises:
        Refused: it has none.
    """
    return _object(read_file(name), name)


def _object(raw: bytes, name: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw)
    except UnicodeDecodeError as error:
        at = place_of(raw, error.start)
        raise unreadable(f"{name} is not JSON, {at}: not UTF-8", _CORRECT) from error
    except msgspec.DecodeError as error:
        raise unreadable(f"{name} is not JSON, {place_in(raw, str(error))}", _CORRECT) from error
    except RecursionError as error:
        raise unreadable(f"{name} is not JSON: nested too deep") from error
    if not isinstance(found, dict):
        raise unreadable(f"{name} is not a JSON object")
    return found
