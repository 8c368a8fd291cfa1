"""Parses docstrings: the summary, the description, and a line for each parameter and result.

Sections in Google style (`Args:`, `Returns:`) and plain lines `name: text` are recognised.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from dataclasses import dataclass, field

_SECTIONS = {
    "args": "parameters",
    "arguments": "parameters",
    "parameters": "parameters",
    "params": "parameters",
    "returns": "results",
    "return": "results",
    "results": "results",
}
_OTHERS = frozenset({"raises", "yields", "example", "examples", "note", "notes"})
_ENTRY = re.compile(r"(?P<indent>\s*)[*`]*(?P<name>\w+)[*`]*\s*(?:\([^)]*\))?\s*:\s+(?P<text>\S.*)")


@dataclass
class ParsedDocstring:
    """A docstring, taken apart."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None, parameters: Collection[str]) -> ParsedDocstring:
    """`parameters`: the names that a plain line may be about."""
    said = ParsedDocstring()
    prose: list[str] = []
    section = "prose"
    last: tuple[dict[str, str], str] | None = None
    for line in inspect.cleandoc(text or "").splitlines():
        word = line.strip().rstrip(":").lower()
        if line.strip().endswith(":") and (word in _SECTIONS or word in _OTHERS):
            section, last = _SECTIONS.get(word, "other"), None
            continue
        if section != "prose" and line and not line[0].isspace():
            section, last = "prose", None
        found = _ENTRY.fullmatch(line)
        if found and (section in ("parameters", "results") or found["name"] in parameters):
            into = said.results if section == "results" else said.parameters
            into[found["name"]] = found["text"].strip()
            last = into, found["name"]
        elif last is not None and line[:1].isspace():
            last[0][last[1]] += f" {line.strip()}"
        elif section == "prose":
            prose.append(line)
            last = None
    said.description = _paragraphs(prose)
    return said


def _paragraphs(lines: list[str]) -> str:
    """Lines of a paragraph become one; paragraphs stay apart."""
    blocks = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n\n".join(" ".join(block.split()) for block in blocks if block.strip())
