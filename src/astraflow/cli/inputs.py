"""What a command is given: files with JSON, and `k=v`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow.core import errors
from astraflow.core.jsontext import place_in, place_of

__all__ = ["MAX_FILE_BYTES", "Given", "pairs_of", "read_definition", "read_file"]

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""What the API takes as a definition."""


_CORRECT: Final = "correct the file there; `python3 -m json.tool FILE` finds the same place"


class Given(msgspec.Struct, frozen=True):
    """A definition, as its bytes and read, and the inputs that came with it."""

    raw: bytes
    definition: Mapping[str, Any]
    inputs: Mapping[str, Any]


class _Request(msgspec.Struct, frozen=True):
    """The body of `POST /api/v1/runs` can be run from a file too."""

    workflow: msgspec.Raw
    inputs: dict[str, Any] = {}


def read_file(name: str) -> bytes:
    """The bytes of a file; `-` is stdin.

    Raises:
        Refused: it cannot be read, or is too large.
    """
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(f"cannot be read: {error.strerror}: {name}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise _unreadable(f"has more than {MAX_FILE_BYTES // 1024**2} MiB: {name}")
    return raw


def read_definition(name: str) -> Given:
    """A definition, or a request with one in it.

    Raises:
        Refused: there is no JSON object in the file.
    """
    raw = read_file(name)
    found = _object(raw, name)
    if "nodes" in found or "workflow" not in found:
        return Given(raw, found, {})
    try:
        request = msgspec.json.decode(raw, type=_Request)
    except msgspec.ValidationError as error:
        raise _unreadable(f"not a request to run something ({error}): {name}") from error
    inner = bytes(request.workflow)
    return Given(inner, _object(inner, name), request.inputs)


def pairs_of(given: list[str] | None, what: str = "an input") -> dict[str, Any]:
    """`k=v`, where v is JSON if it reads as such, else a text.

    Raises:
        Refused: naming what is not `k=v`.
    """
    pairs: dict[str, Any] = {}
    for one in given or ():
        name, separator, text = one.partition("=")
        if not separator or not name:
            raise _unreadable(f"{what} is k=v, not: {one}", hint="write --input name=value")
        try:
            pairs[name] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            pairs[name] = text
    return pairs


def _object(raw: bytes, name: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw)
    except UnicodeDecodeError as error:
        at = place_of(raw, error.start)
        raise _unreadable(f"not JSON, {at}: not UTF-8: {name}", _CORRECT) from error
    except msgspec.DecodeError as error:
        raise _unreadable(f"not JSON, {place_in(raw, str(error))}: {name}", _CORRECT) from error
    except RecursionError as error:
        raise _unreadable(f"not JSON: it is nested too deep: {name}") from error
    if not isinstance(found, dict):
        raise _unreadable(f"not a JSON object: {name}")
    return found


def _unreadable(message: str, hint: str = "") -> errors.Refused:
    detail = {"hint": hint} if hint else None
    return errors.Refused(errors.INPUT_UNREADABLE, message, detail=detail)
