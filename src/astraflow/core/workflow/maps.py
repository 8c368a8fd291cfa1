"""The settings of a map as the rules and the planner read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core.workflow.bindings import BadPath, Path, compile_path
from astraflow.core.workflow.definition import is_expression
from astraflow.core.workflow.plan import MapStep

if TYPE_CHECKING:
    from astraflow.core.workflow.definition import MapOver

ITEM: Final = "item"
INDEX: Final = "index"
ERRORS: Final = "errors"
"""Where a map that collects has the errors of its items."""
RESERVED: Final = frozenset(
    {"inputs", "nodes", "run", "secrets", "results", "error", "container", INDEX}
)
"""Names that expressions read already."""
DEFAULT_CONCURRENCY: Final = 1_000
"""Items of one map under way at once, where the author names no number: enough for hundreds of workers."""


def list_path(over: str) -> Path:
    """Where the list stands in the parameters. Raises: BadPath."""
    path = compile_path(over)
    return path[1:] if path[0] == "parameters" and len(path) > 1 else path


def item_name(over: MapOver) -> str:
    return over.item or ITEM


def item_path(over: MapOver) -> Path | None:
    """Where an item is written in the parameters, if it is."""
    if over.item is not None:
        return (over.item,)
    try:
        return None if is_expression(over.over) else list_path(over.over)
    except BadPath:
        return None  # it was reported


def map_step(over: MapOver) -> MapStep:
    """What the scheduler does for a sound setting."""
    is_text = is_expression(over.over)
    return MapStep(
        path=None if is_text else list_path(over.over),
        over=over.over[1:] if is_text else None,
        target=item_path(over),
        item=item_name(over),
        collect=over.collect,
        concurrency=over.concurrency or DEFAULT_CONCURRENCY,
    )


def collected(over: MapStep, results: list[bytes], failed: list[Any] | None) -> msgspec.Raw:
    """The result of a map, put together from the bytes of its items."""
    body = b"{" + msgspec.json.encode(over.collect) + b":[" + b",".join(results) + b"]"
    if failed is not None:
        body += b"," + msgspec.json.encode(ERRORS) + b":" + msgspec.json.encode(failed)
    return msgspec.Raw(body + b"}")
