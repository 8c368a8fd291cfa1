from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.workflow.graph import find_cycles, topological_order

graphs = st.integers(1, 9).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, size - 1), max_size=4), min_size=size, max_size=size
    )
)


def reachable(successors: list[list[int]], start: int) -> set[int]:
    seen: set[int] = set()
    pending = list(successors[start])
    while pending:
        vertex = pending.pop()
        if vertex not in seen:
            seen.add(vertex)
            pending.extend(successors[vertex])
    return seen


def test_the_order_starts_with_the_first_sources_and_goes_breadth_first() -> None:
    assert topological_order([[], [3], [3, 4], [], [0]]) == [1, 2, 3, 4, 0]


def test_a_cycle_and_what_follows_it_is_left_out_of_the_order() -> None:
    successors = [[1], [2], [1, 3], []]
    assert topological_order(successors) == [0]
    assert find_cycles(successors, [1, 2, 3]) == [[1, 2]]


def test_a_chain_of_many_nodes_does_not_exhaust_the_stack() -> None:
    count = 20_000
    ring = [[(vertex + 1) % count] for vertex in range(count)]
    assert find_cycles(ring, range(count)) == [list(range(count))]


@given(graphs)
def test_order_and_cycles_agree_with_reachability(successors: list[list[int]]) -> None:
    order = topological_order(successors)
    reach = [reachable(successors, vertex) for vertex in range(len(successors))]
    behind = {
        v
        for v, r in enumerate(reach)
        if any(v in reach[c] for c in range(len(reach)) if c in reach[c]) or v in r
    }
    assert set(order) == set(range(len(successors))) - behind
    position = {vertex: place for place, vertex in enumerate(order)}
    for vertex in order:
        for target in successors[vertex]:
            assert target not in position or position[vertex] < position[target]
    rest = [vertex for vertex in range(len(successors)) if vertex not in position]
    mutual = {
        tuple(sorted(w for w in range(len(reach)) if w in reach[v] and v in reach[w]))
        for v in rest
        if v in reach[v]
    }
    assert {tuple(cycle) for cycle in find_cycles(successors, rest)} == {
        members for members in mutual if len(members) > 1
    }
