"""When facts are written that the release before cannot read (`core.facts_version`).

Rule 1: they are written when every node reads them that was seen within `KNOWN_S`. One that has said goodbye does not
        count. The store looks once more, while no node can join (`store.cluster.raise_facts`).
Rule 2: the owner of the home shard raises the version when this has been so for a while: until then nodes can go back
        to the release before.
Rule 3: a node that was away for longer finds at its next look, or at its next claim, that it reads less, and ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from astraflow.core.cluster.shards import NodeSeen

KNOWN_S: Final = 60.0
"""A node that was not seen for so long is not waited for. It lost its shards long before."""


def read_by_all(nodes: Iterable[NodeSeen]) -> int | None:
    """Up to which version every known node reads facts; None: there is no such node."""
    return min((node.facts_version for node in nodes if node.seen_s <= KNOWN_S), default=None)


class FactsRaise:
    """The rule of one node. Times are of its own steady clock."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._wanted = 0
        self._since = 0.0

    def decide(self, nodes: Iterable[NodeSeen], written: int, now: float) -> int | None:
        """The version to raise to after a look at the store; None: it stays."""
        wanted = read_by_all(nodes)
        if wanted is None or wanted <= written:
            self._wanted = 0
            return None
        if wanted != self._wanted:
            self._wanted, self._since = wanted, now
        return wanted if now - self._since >= self._wait_s else None
