"""How planning scales: time and memory a node at 500, 5,000 and 50,000 nodes.

The *growth* is the time a node at the largest size over that at the smallest. Planning is linear, and still it is
not 1 on a real machine: 500 nodes fit into the nearest cache and 50,000 do not, and there is more for the garbage
collector to walk. How much that can be shows a bare loop over the same definition, measured beside it: one pass
over nodes and edges that makes an index, an object for each node, and the parents.
"""

from __future__ import annotations

import gc
import itertools
import tracemalloc
import uuid
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import msgspec

from astraflow.core.workflow import StaticCatalog, core_manifest, decode_definition, plan_workflow
from benchmarks.figures import Figure, cpu_seconds

SIZES = (500, 5_000, 50_000)
LAYER = 50
ROUNDS = 5
GROWTH_BUDGET = 1.3


def node_ids(count: int) -> list[str]:
    return [str(uuid.UUID(int=(1 << 127) + number)) for number in range(count)]


def edge(source: str, target: str) -> dict[str, Any]:
    return {
        "source": {"node": source, "port": "done"},
        "target": {"node": target, "port": "trigger"},
    }


def chain(ids: list[str]) -> list[dict[str, Any]]:
    return [edge(source, target) for source, target in itertools.pairwise(ids)]


def fan_out(ids: list[str]) -> list[dict[str, Any]]:
    middle = ids[1:-1]
    return [edge(ids[0], node) for node in middle] + [edge(node, ids[-1]) for node in middle]


def layered(ids: list[str]) -> list[dict[str, Any]]:
    """Layers of `LAYER` nodes; each node follows three of the layer before."""
    edges = []
    for place in range(LAYER, len(ids)):
        start = (place // LAYER - 1) * LAYER
        for step in range(3):
            edges.append(edge(ids[start + (place + step * 7) % LAYER], ids[place]))
    return edges


def alone(ids: list[str]) -> list[dict[str, Any]]:
    """No edges: everything may run at once."""
    return []


SHAPES: dict[str, Callable[[list[str]], list[dict[str, Any]]]] = {
    "chain": chain,
    "fan-out": fan_out,
    "layered": layered,
    "alone": alone,
}
MEASURED = ("chain", "fan-out", "layered")


def document(shape: str, count: int, **fields: object) -> bytes:
    """A definition of so many nodes, each with these fields besides."""
    ids = node_ids(count)
    nodes = [
        {
            "id": node,
            "type": "core.noop",
            "label": f"Step {number}",
            "parameters": {"n": number},
            **fields,
        }
        for number, node in enumerate(ids)
    ]
    workflow = {"id": str(uuid.UUID(int=7)), "nodes": nodes, "edges": SHAPES[shape](ids)}
    return msgspec.json.encode(workflow)


class Bare:
    """What the bare loop makes of a node."""

    __slots__ = ("label", "node_id", "place", "type")

    def __init__(self, node_id: str, node_type: str, label: str | None, place: int) -> None:
        self.node_id = node_id
        self.type = node_type
        self.label = label
        self.place = (place,)


def bare_loop(definition: Any) -> object:
    """The least that any planning must do: look at every node and edge once, and keep something."""
    workflow = definition.workflow
    index: dict[str, int] = {}
    nodes = []
    for place, node in enumerate(workflow.nodes):
        index[node.id] = place
        nodes.append(Bare(node.id, node.type, node.label, place))
    parents: list[list[int]] = [[] for _ in nodes]
    for one in workflow.edges:
        parents[index[one.target.node]].append(index[one.source.node])
    return nodes, list(map(tuple, parents))


def bytes_a_node(definition: Any, catalog: StaticCatalog, count: int) -> float:
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    plan = plan_workflow(definition, catalog)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(plan.nodes) == count
    return (after - before) / count


def us_a_node(shape: str, catalog: StaticCatalog) -> dict[tuple[str, int], list[float]]:
    """The times of each kind of work at each size, by round. In each round sizes and works take turns and
    have the same number of nodes to do, so that a slow while of the machine falls on all alike."""
    raws = {count: document(shape, count) for count in SIZES}
    definitions = {count: decode_definition(raw) for count, raw in raws.items()}
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for count in SIZES:
            repeats = SIZES[-1] // count
            works: dict[str, Callable[[], object]] = {
                "decode": partial(decode_definition, raws[count]),
                "plan": partial(plan_workflow, definitions[count], catalog),
                "bare": partial(bare_loop, definitions[count]),
            }
            for name, work in works.items():
                gc.collect()
                spent = cpu_seconds(work, repeats) / repeats / count * 1e6
                found.setdefault((name, count), []).append(spent)
    return found


def growth_of(largest: list[float], smallest: list[float]) -> float:
    """The median over the rounds: each is a quotient of two times that are a moment apart."""
    return median(one / other for one, other in zip(largest, smallest, strict=True))


def figures() -> list[Figure]:
    catalog = StaticCatalog([core_manifest()])
    smallest, largest = SIZES[0], SIZES[-1]
    found = []
    for shape in MEASURED:
        times = us_a_node(shape, catalog)
        growth = growth_of(times["plan", largest], times["plan", smallest])
        bare = growth_of(times["bare", largest], times["bare", smallest])
        definition = decode_definition(document(shape, largest))
        found += [
            Figure(f"{shape}: growth of planning", growth, "times", GROWTH_BUDGET),
            Figure(f"{shape}: growth of a bare loop, to compare", bare, "times"),
            Figure(
                f"{shape}: decode {largest:,} nodes, a node", min(times["decode", largest]), "µs"
            ),
            Figure(f"{shape}: plan {smallest:,} nodes, a node", min(times["plan", smallest]), "µs"),
            Figure(f"{shape}: plan {largest:,} nodes, a node", min(times["plan", largest]), "µs"),
            Figure(
                f"{shape}: plan of {largest:,} nodes, a node",
                bytes_a_node(definition, catalog, largest),
                "bytes",
            ),
        ]
    return found
