"""`@node`: says of a function that it is a node type, and changes nothing else about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["NodeInfo", "info_of", "node"]

_ATTRIBUTE = "__astraflow_node__"
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class NodeInfo:
    """What the decorator was told."""

    type: str
    category: str | None = None
    label: str | None = None
    description: str | None = None
    inline: bool = False


def node(
    type: str,
    *,
    category: str | None = None,
    label: str | None = None,
    description: str | None = None,
    inline: bool = False,
) -> Callable[[_Function], _Function]:
    """Make a function the handler of a node type.

    `inline` runs a plain (not `async`) function at once on the host's loop instead of in a thread. It is for functions
    that neither wait nor compute for long: everything else in the host stands still meanwhile.
    """

    def mark(function: _Function) -> _Function:
        said = description or function.__doc__
        setattr(function, _ATTRIBUTE, NodeInfo(type, category, label, said, inline))
        return function

    return mark


def info_of(function: object) -> NodeInfo | None:
    """What `@node` was told about a function, if it was used on it."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, NodeInfo) else None
