"""Heaps of things whose ranks change while they are in them.

A thing has one *home*, the heap that lists it, and the rank it is listed with. A rank that has grown since is corrected
when the thing comes first; one that has shrunk is listed again at once. So a change costs nothing for the things that
nobody looks at, and what is first is always right.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from typing import Any

Rank = tuple[float, ...]
"""What comes first has the smallest."""


class RankNode:
    """Something that is listed in another node, and lists others itself."""

    __slots__ = ("heap", "home", "rank")

    def __init__(self) -> None:
        self.home: RankNode | None = None
        self.rank: Rank = ()
        self.heap: list[Any] = []  # of rank and thing

    def __lt__(self, other: object) -> bool:
        """Of two with the same rank either may come first: they are the same thing, listed twice."""
        return False

    def put(self, one: RankNode, rank: Rank) -> None:
        """List a thing, or list it again if it comes earlier than it is listed."""
        if one.home is self and one.rank <= rank:
            return
        one.home = self
        one.rank = rank
        heappush(self.heap, (rank, one))

    def first(self, rank_of: Callable[[Any], Rank | None]) -> Any:
        """The first thing by its present rank. One that has none is no longer listed."""
        heap = self.heap
        while heap:
            item = heap[0]
            rank, one = item
            if one.home is not self or one.rank != rank:
                heappop(heap)  # it went elsewhere, or is listed with another rank
                continue
            present = rank_of(one)
            if present is None:
                if one.home is self:
                    one.home = None
                continue
            if present != rank:
                one.rank = present
                corrected = (present, one)
                if heap[0] is item:
                    heapreplace(heap, corrected)
                else:
                    heappush(heap, corrected)
                item = corrected
            if heap[0] is item:  # asking for a rank may list others before it
                return one
        return None

    @property
    def top(self) -> Any:
        """What `first` has just found."""
        return self.heap[0][1]
