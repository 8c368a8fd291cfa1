"""The two schemas of a node type, as they stand in a manifest or in a node: of its parameters and of its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw


class NodeSchemas(Struct, frozen=True, gc=False):
    """JSON Schemas as authored; empty where there is none."""

    parameters: bytes = b""
    results: bytes = b""


NO_SCHEMAS: Final = NodeSchemas()


def schemas_in(given: Mapping[str, Raw] | None, default: NodeSchemas = NO_SCHEMAS) -> NodeSchemas:
    """Those of a `schema` object. Where it has none for a side, the default's counts."""
    if not given:
        return default
    parameters = _given(given, "parameters") or default.parameters
    return NodeSchemas(parameters, _given(given, "results") or default.results)


def _given(given: Mapping[str, Raw], side: str) -> bytes:
    raw = bytes(given.get(side, b""))
    return b"" if raw == b"null" else raw
