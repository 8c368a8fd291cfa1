"""Paths into JSON documents: what a port reads from results or writes into parameters.

Two spellings mean the same: `results.page.url` and `/results/page/url`. The second is a
JSON pointer (RFC 6901), so a key with a dot in it can be named.

Rules:
1. A path is compiled once, when the workflow is validated; a path that cannot be compiled is the
   author's problem and is reported with a pointer. Reading and writing never fail.
2. Empty segments, `.`, `..`, `__proto__` and `prototype` are refused: the editor walks the same
   paths in JavaScript, where the last two reach what all objects share.
3. A segment of digits is an index where the document has a list, and a key where it has an object.
4. Reading what is not there gives `MISSING`, which is not null.
5. Writing copies what it changes and shares the rest: parameters may hold values that came from
   the committed results of another task, and those must not change.
6. Where the document has nothing that could hold the segment, a new object takes its place.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from astraflow.core.workflow.limits import MAX_PATH_CHARS, MAX_PATH_INDEX, MAX_PATH_SEGMENTS

Path = tuple[str, ...]

_FORBIDDEN: Final = frozenset({"", ".", "..", "__proto__", "prototype"})


class Missing(enum.Enum):
    """The one value of this type says that a path leads nowhere."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


class BadPath(ValueError):
    """The text is not a path that may be used; the message says why."""


def compile_path(text: str) -> Path:
    """Make a `Path` of either spelling.

    Raises:
        BadPath: with the reason.
    """
    if len(text) > MAX_PATH_CHARS:
        raise BadPath(f"the path is longer than {MAX_PATH_CHARS} characters")
    is_pointer = text.startswith("/")
    segments = text[1:].split("/") if is_pointer else text.split(".")
    if len(segments) > MAX_PATH_SEGMENTS:
        raise BadPath(f"the path has more than {MAX_PATH_SEGMENTS} segments")
    if is_pointer:
        segments = [_unescape(segment) for segment in segments]
    for segment in segments:
        _check_segment(segment)
    return tuple(segments)


def _check_segment(segment: str) -> None:
    if segment in _FORBIDDEN:
        raise BadPath(f"the path has a segment that is not allowed: {segment!r}")
    if not segment.isprintable():
        raise BadPath("the path has characters that cannot be shown")
    if segment.isdecimal() and (len(segment) > 9 or int(segment) > MAX_PATH_INDEX):
        raise BadPath(f"the path has an index above {MAX_PATH_INDEX}: {segment}")


def _unescape(segment: str) -> str:
    # RFC 6901 §4: "first transforming any occurrence of the sequence '~1' to '/', and then ... '~0'
    # to '~'", in this order, so that ~01 becomes ~1.
    return segment.replace("~1", "/").replace("~0", "~")


def read(path: Path, document: Any) -> Any:
    """What the path leads to, or `MISSING`."""
    here = document
    for segment in path:
        if isinstance(here, dict):
            here = here.get(segment, MISSING)
        elif isinstance(here, list):
            here = _item(here, segment)
        else:
            return MISSING
    return here


def _item(items: list[Any], segment: str) -> Any:
    if not segment.isdecimal():
        return MISSING
    index = int(segment)
    return items[index] if index < len(items) else MISSING


def write(path: Path, document: Any, value: Any) -> Any:
    """The document with the value at the path; what was passed in stays as it was."""
    if not path:
        return value
    segment, rest = path[0], path[1:]
    if isinstance(document, list) and segment.isdecimal():
        index = int(segment)
        items = document + [None] * (index + 1 - len(document))
        items[index] = write(rest, items[index], value)
        return items
    fields = dict(document) if isinstance(document, dict) else {}
    fields[segment] = write(rest, fields.get(segment), value)
    return fields
