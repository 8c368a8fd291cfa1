"""One text for one definition, for files in a repository: equal definitions are equal bytes, and a small change is a
small difference of lines. Keys are sorted; lists keep their order, which means something."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

MAX_SLUG_CHARS: Final = 60
_UUID: Final = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_sorted: Final = msgspec.json.Encoder(order="sorted")


def canonical(document: Mapping[str, Any]) -> bytes:
    """The text of a definition."""
    return msgspec.json.format(_sorted.encode(document), indent=2) + b"\n"


def file_name(document: Mapping[str, Any], *, is_long: bool = False) -> str:
    """The name of the file of a workflow: its name and the beginning of its id, or all of it."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    slug = _OTHER.sub("-", str(name or "").lower()).strip("-")[:MAX_SLUG_CHARS].strip("-")
    known = str(document.get("id", ""))
    return f"{slug or 'workflow'}-{known if is_long else known[:8]}.json"


def with_new_ids(document: Mapping[str, Any], new_id: Callable[[], str]) -> dict[str, Any]:
    """The same workflow with new ids for itself and its nodes, wherever they are named: edges, middlewares,
    expressions."""
    known = [str(document["id"]), *(str(node["id"]) for node in document["nodes"])]
    fresh = {old.encode(): new_id().encode() for old in dict.fromkeys(known)}
    text = _UUID.sub(lambda found: fresh.get(found[0], found[0]), _sorted.encode(document))
    changed: dict[str, Any] = msgspec.json.decode(text)
    return changed
