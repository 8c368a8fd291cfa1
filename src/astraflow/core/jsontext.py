"""Where in a JSON text something is wrong: as a person's editor counts, in lines and columns."""

from __future__ import annotations

import re
from typing import Final

_BYTE: Final = re.compile(r"\(byte ([0-9]+)\)")
_TRUNCATED: Final = "Input data was truncated"


def place_of(raw: bytes, offset: int) -> str:
    """The line and the column of a byte."""
    before = raw[:offset]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    return f"line {line}, column {column}"


def place_in(raw: bytes, message: str) -> str:
    """The words of msgspec about a text that is no JSON, with the line and the column for its byte."""
    found = _BYTE.search(message)
    if found is None:
        is_cut = message.startswith(_TRUNCATED)
        return f"{place_of(raw, len(raw))}: the text ends too early" if is_cut else message
    says = message[: found.start()].removeprefix("JSON is malformed:").strip()
    return f"{place_of(raw, int(found[1]))}: {says}"
