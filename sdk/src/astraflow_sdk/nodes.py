"""`@node`: marks a function as a node type, without changing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

_ATTRIBUTE = "__astraflow_node__"
_Function = TypeVar("_Function", bound=Callable[..., Any])
Refinements = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class NodeInfo:
    """The arguments of the decorator."""

    type: str
    category: str | None = None
    label: str | None = None
    description: str | None = None
    inline: bool = False
    tags: tuple[str, ...] = ()
    status: str | None = None
    idempotency: str | None = None
    inputs: Refinements = field(default_factory=dict)
    outputs: Refinements = field(default_factory=dict)


def node(
    type: str,
    *,
    category: str | None = None,
    label: str | None = None,
    description: str | None = None,
    inline: bool = False,
    tags: Sequence[str] = (),
    status: str | None = None,
    idempotency: str | None = None,
    inputs: Refinements | None = None,
    outputs: Refinements | None = None,
) -> Callable[[_Function], _Function]:
    """Make a function the handler of a node type.

    The palette shows `label`, `category`, `tags` and `description`; without them the docstring and the name of the
    function speak. `status` is draft, published or deprecated. `idempotency="none"`: a lost attempt that had started
    fails instead of running again.

    `inputs` and `outputs` refine what the type hints say, by the name of a parameter or of a result:
    `inputs={"text": {"label": "Your text", "component": "text", "options": {"rows": 5}, "schema": {"maxLength": 80}}}`;
    `"port": False` leaves the port out. `outputs` also names the results of a function whose hint does not.

    `inline` runs a plain (not `async`) function at once on the host's loop instead of in a thread. It is for functions
    that neither wait nor compute for long: everything else in the host stands still meanwhile.
    """

    def mark(function: _Function) -> _Function:
        said = description or function.__doc__
        info = NodeInfo(
            type,
            category,
            label,
            said,
            inline,
            tuple(tags),
            status,
            idempotency,
            dict(inputs or {}),
            dict(outputs or {}),
        )
        setattr(function, _ATTRIBUTE, info)
        return function

    return mark


def info_of(function: object) -> NodeInfo | None:
    """What `@node` was told about a function, if it was used on it."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, NodeInfo) else None
