"""Paths of scopes: where a node inside of a map, a container or a called workflow is."""

from __future__ import annotations

from typing import Annotated

from astraflow.core.contract.base import doc

MAX_PATH_CHARS = 4_096
ScopePath = Annotated[
    str,
    doc(
        "Where the node is, if it is inside of a map or of a called workflow: its `scopePath`.",
        max_length=MAX_PATH_CHARS,
    ),
]
WithinScope = Annotated[
    str,
    doc(
        "Only what is inside of this item of a map, container or called workflow: `NODE:ITEM`, with `/` between the "
        "levels.",
        max_length=MAX_PATH_CHARS,
    ),
]


def is_within(path: str | None, scope: str) -> bool:
    """Whether a scope path is that of a scope, or of one inside of it."""
    return path is not None and (path == scope or path.startswith(f"{scope}/"))
