"""The example workflows that come with the installation."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

NAME_FIELDS = ("name", "description")


class ShippedExample(msgspec.Struct, frozen=True):
    """One of them, byte for byte as it is in its file."""

    example_id: str
    name: str
    description: str
    node_types: tuple[str, ...]
    definition: bytes


def examples_folder() -> Path:
    """In the wheel, or in the source tree of an editable install."""
    installed = Path(str(resources.files("astraflow"))) / "shipped" / "examples"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3] / "examples"


@cache
def shipped_examples() -> dict[str, ShippedExample]:
    """All of them by id, in the order of their names. Read once: they are part of the installation."""
    found = [_read(path) for path in examples_folder().glob("*.json")]
    return {one.example_id: one for one in sorted(found, key=lambda one: one.name.lower())}


def _read(path: Path) -> ShippedExample:
    raw = path.read_bytes()
    document = msgspec.json.decode(raw)
    metadata = document.get("metadata") or {}
    name, description = (str(metadata.get(field) or "") for field in NAME_FIELDS)
    types = tuple(node["type"] for node in document["nodes"])
    return ShippedExample(path.stem, name or path.stem, description, types, raw)
