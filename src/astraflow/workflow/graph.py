"""Order and circles of a directed graph of numbered vertices, in linear time and without recursion.

The graph is given as `successors`: for each vertex the vertices that its edges lead to, with
repetitions where there are several edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_cycles", "topological_order"]


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
    """The strongly connected components of more than one vertex, within the vertices given.

    Tarjan's algorithm with a stack of its own: a chain of 50,000 nodes must not end in a
    `RecursionError`.
    """
    allowed = set(among)
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    cycles: list[list[int]] = []
    for root in among:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        path = [(root, iter(successors[root]))]
        while path:
            vertex, targets = path[-1]
            for target in targets:
                if target not in allowed:
                    continue
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    path.append((target, iter(successors[target])))
                    break
                if target in on_stack:
                    low[vertex] = min(low[vertex], number[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[vertex])
                if low[vertex] == number[vertex]:
                    cycles.extend(_component(vertex, stack, on_stack))
    return cycles


def _component(root: int, stack: list[int], on_stack: set[int]) -> list[list[int]]:
    members = []
    while True:
        member = stack.pop()
        on_stack.discard(member)
        members.append(member)
        if member == root:
            break
    return [sorted(members)] if len(members) > 1 else []
