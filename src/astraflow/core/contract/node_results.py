"""The results of the nodes of a run, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from astraflow.core.contract.runs import Node


class NodeResults(Mapping[str, Any]):
    """The results of nodes by label; a node without one, or whose label others have, too, by id.

    A key may be the id of any node.
    """

    __slots__ = ("_labels", "_nodes")

    def __init__(self, nodes: Iterable[Node]) -> None:
        ended = [one for one in nodes if one.result is not None or one.result_truncated]
        count = Counter(one.label for one in ended)
        self._nodes = {one.node_id: one for one in ended}
        self._labels = {
            one.label if one.label and count[one.label] == 1 else one.node_id: one for one in ended
        }

    def __getitem__(self, name: str) -> Any:
        """Raises: KeyError, if no node of this name has a result that is here."""
        node = self._labels.get(name) or self._nodes[name]
        if node.result_truncated:
            raise KeyError(f"{name}: the result is too large for a run; get the node")
        return node.result

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)
