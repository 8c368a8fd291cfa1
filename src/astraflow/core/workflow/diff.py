"""What differs between two definitions of a workflow, by what its author sees: nodes, edges, inputs, settings.

1. Nodes are matched by their id, edges by theirs, or by their ends where they have none.
2. Where a node stands on the canvas is listed apart: it changes nothing that runs.
3. A draft may be of any shape. A list whose items cannot be matched is compared by place, among the settings.
4. `before` and `after` are plain JSON values; a list that is missing is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from astraflow.core.json_diff import MAX_DIFFERENCES, ValueDiff, differences, is_equal

Document = Mapping[str, Any]
_PARTS: Final = ("inputs", "outputs", "triggers")
_LISTS: Final = ("nodes", "edges")


class ItemDiff(msgspec.Struct, frozen=True, kw_only=True):
    """A node or an edge that is in both, and what changed in it; pointers are into the item."""

    id: str
    label: str = ""
    changes: list[ValueDiff]


class ItemHead(msgspec.Struct, frozen=True, kw_only=True):
    """A node or an edge that is in one of the two."""

    id: str
    label: str = ""
    type: str = ""


class ListDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the nodes, or of the edges."""

    added: list[ItemHead] = []
    removed: list[ItemHead] = []
    changed: list[ItemDiff] = []
    is_reordered: bool = False
    """The items that are in both stand in another order."""


class DefinitionDiff(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs. `settings` is whatever is none of the others; pointers are into the definition."""

    nodes: ListDiff
    edges: ListDiff
    moved: list[ItemDiff]
    inputs: list[ValueDiff]
    outputs: list[ValueDiff]
    triggers: list[ValueDiff]
    settings: list[ValueDiff]
    is_truncated: bool = False
    """There are more changes than are listed."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, positions included."""
        lists = (self.nodes, self.edges)
        parts = (self.moved, self.inputs, self.outputs, self.triggers, self.settings)
        return not any(parts) and not any(
            one.added or one.removed or one.changed or one.is_reordered for one in lists
        )


class _Budget:
    """How many changes may still be listed."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.is_exceeded = False

    def differences(self, before: Any, after: Any, pointer: str = "") -> list[ValueDiff]:
        found, has_more = differences(before, after, pointer, self.left)
        self.left -= len(found)
        self.is_exceeded = self.is_exceeded or has_more
        return found


def diff_definitions(
    before: Document, after: Document, limit: int = MAX_DIFFERENCES
) -> DefinitionDiff:
    """What changed from one definition to the other; at most `limit` changes of values are listed."""
    budget = _Budget(limit)
    settings: list[ValueDiff] = []
    lists: dict[str, ListDiff] = {}
    moved: list[ItemDiff] = []
    keys = {"nodes": _node_key, "edges": _edge_key}
    for name in _LISTS:
        one, other = (_keyed(document.get(name), keys[name]) for document in (before, after))
        if one is None or other is None:
            lists[name] = ListDiff()
            settings += budget.differences(before.get(name), after.get(name), f"/{name}")
            continue
        if name == "nodes":
            moved = _moves(one, other, budget)
        lists[name] = _diff_items(one, other, budget)
    parts = {
        name: budget.differences(
            _or_empty(before, name, after), _or_empty(after, name, before), f"/{name}"
        )
        for name in _PARTS
    }
    settings += budget.differences(_rest(before), _rest(after))
    return DefinitionDiff(
        nodes=lists["nodes"],
        edges=lists["edges"],
        inputs=parts["inputs"],
        outputs=parts["outputs"],
        triggers=parts["triggers"],
        moved=moved,
        settings=settings,
        is_truncated=budget.is_exceeded,
    )


def _or_empty(document: Document, name: str, other: Document) -> Any:
    """What is left out or null means the same as nothing in it."""
    value = document.get(name)
    if value is not None:
        return value
    return [] if isinstance(other.get(name), list) else {}


def _rest(document: Document) -> dict[str, Any]:
    listed = (*_PARTS, *_LISTS)
    return {name: value for name, value in document.items() if name not in listed}


def _keyed(
    items: Any, key_of: Callable[[dict[str, Any]], str | None]
) -> dict[str, dict[str, Any]] | None:
    """The items by their keys; None if they are not objects with a key each."""
    found: dict[str, dict[str, Any]] = {}
    if items is not None and not isinstance(items, list):
        return None
    for item in items or ():
        key = key_of(item) if isinstance(item, dict) else None
        if key is None or key in found:
            return None
        found[key] = item
    return found


def _node_key(node: dict[str, Any]) -> str | None:
    known = node.get("id")
    return known if isinstance(known, str) else None


def _edge_key(edge: dict[str, Any]) -> str | None:
    known = edge.get("id")
    if isinstance(known, str):
        return known
    ends = [edge.get("source"), edge.get("target")]
    if not all(isinstance(end, dict) and isinstance(end.get("node"), str) for end in ends):
        return None
    return " -> ".join(_end_text(end) for end in ends if isinstance(end, dict))


def _end_text(end: dict[str, Any]) -> str:
    return f"{end['node']}.{end['port']}" if end.get("port") else str(end["node"])


def _diff_items(
    before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]], budget: _Budget
) -> ListDiff:
    changed: list[ItemDiff] = []
    for key, item in before.items():
        if key in after:
            changes = budget.differences(_content(item), _content(after[key]))
            if changes:
                changed.append(ItemDiff(id=key, label=_text(after[key], "label"), changes=changes))
    both = [key for key in before if key in after]
    return ListDiff(
        added=[_item_head(key, item) for key, item in after.items() if key not in before],
        removed=[_item_head(key, item) for key, item in before.items() if key not in after],
        changed=changed,
        is_reordered=both != [key for key in after if key in before],
    )


def _content(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "position"}


def _moves(
    before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]], budget: _Budget
) -> list[ItemDiff]:
    found: list[ItemDiff] = []
    for key, item in before.items():
        if key not in after:
            continue
        place, other = item.get("position"), after[key].get("position")
        if not is_equal(place, other):
            changes = budget.differences(place, other, "/position")
            found.append(ItemDiff(id=key, label=_text(after[key], "label"), changes=changes))
    return found


def _item_head(key: str, item: dict[str, Any]) -> ItemHead:
    return ItemHead(id=key, label=_text(item, "label"), type=_text(item, "type"))


def _text(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""
