"""Order and circles of a directed graph of numbered vertices, in linear time and without recursion.

The graph is given as `successors`: for each vertex the vertices that its edges lead to, with
repetitions where there are several edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def topological_order(successors: Sequence[Sequence[int]]) -> list[int]:
    """The vertices, each after all that lead to it; those on or behind a circle are left out.

    The order is breadth first from the vertices without predecessors, in their own order, so that
    the same document always gives the same plan.
    """
    waiting_for = [0] * len(successors)
    for targets in successors:
        for target in targets:
            waiting_for[target] += 1
    order = [vertex for vertex, count in enumerate(waiting_for) if count == 0]
    for vertex in order:
        for target in successors[vertex]:
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                order.append(target)
    return order


def find_cycles(successors: Sequence[Sequence[int]], among: Sequence[int]) -> list[list[int]]:
    """The strongly connected components of more than one vertex that the given ones lead to.

    Tarjan's algorithm with a stack of its own: a circle of 50,000 nodes must not end in a
    `RecursionError`.
    """
    search = _Search(successors)
    for vertex in among:
        search.start(vertex)
    return search.cycles


class _Search:
    __slots__ = ("_low", "_number", "_on_stack", "_path", "_stack", "_successors", "cycles")

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        self._successors = successors
        self._number: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._stack: list[int] = []
        self._on_stack: set[int] = set()
        self._path: list[tuple[int, Iterator[int]]] = []
        self.cycles: list[list[int]] = []

    def start(self, root: int) -> None:
        if root in self._number:
            return
        self._enter(root)
        while self._path:
            self._step()

    def _enter(self, vertex: int) -> None:
        self._number[vertex] = self._low[vertex] = len(self._number)
        self._stack.append(vertex)
        self._on_stack.add(vertex)
        self._path.append((vertex, iter(self._successors[vertex])))

    def _step(self) -> None:
        """Follow the next edge of the vertex at the end of the path, or leave the vertex."""
        vertex, targets = self._path[-1]
        for target in targets:
            if target not in self._number:
                self._enter(target)
                return
            if target in self._on_stack:
                self._low[vertex] = min(self._low[vertex], self._number[target])
        self._path.pop()
        if self._path:
            above = self._path[-1][0]
            self._low[above] = min(self._low[above], self._low[vertex])
        if self._low[vertex] == self._number[vertex]:
            self._take_component(vertex)

    def _take_component(self, root: int) -> None:
        members = [self._stack.pop()]
        while members[-1] != root:
            members.append(self._stack.pop())
        self._on_stack.difference_update(members)
        if len(members) > 1:
            self.cycles.append(sorted(members))
