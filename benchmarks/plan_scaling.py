"""How planning scales: time and memory a node at 500, 5,000 and 50,000 nodes.

Prints a table, then one JSON line. The ratio is the time a node at the largest size over that at
the smallest: the budget is 1.3, because the cost of planning must stay linear.

    python benchmarks/plan_scaling.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
import tracemalloc
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from astraflow.workflow import StaticCatalog, core_manifest, decode_definition, plan_workflow

SIZES = (500, 5_000, 50_000)
LAYER = 50


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


SHAPES: dict[str, Callable[[list[str]], list[dict[str, Any]]]] = {
    "chain": chain,
    "fan-out": fan_out,
    "layered": layered,
}


def document(shape: str, count: int) -> bytes:
    ids = node_ids(count)
    nodes = [
        {"id": node, "type": "core.noop", "label": f"Step {number}", "parameters": {"n": number}}
        for number, node in enumerate(ids)
    ]
    workflow = {"id": str(uuid.UUID(int=7)), "nodes": nodes, "edges": SHAPES[shape](ids)}
    return msgspec.json.encode(workflow)


def fastest(work: Callable[[], object], rounds: int, repeat: int) -> float:
    """The best round's time for one call: what others do on the machine only adds to it."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        for _ in range(repeat):
            work()
        times.append((time.process_time() - start) / repeat)
    return min(times)


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


def measure(shape: str, count: int, rounds: int, catalog: StaticCatalog) -> dict[str, Any]:
    raw = document(shape, count)
    definition = decode_definition(raw)
    repeat = max(1, SIZES[-1] // count // 5)
    decode_s = fastest(lambda: decode_definition(raw), rounds, repeat)
    plan_s = fastest(lambda: plan_workflow(definition, catalog), rounds, repeat)
    return {
        "shape": shape,
        "nodes": count,
        "decode_ms": round(decode_s * 1e3, 2),
        "plan_ms": round(plan_s * 1e3, 2),
        "plan_us_per_node": round(plan_s / count * 1e6, 2),
        "bytes_per_node": round(bytes_a_node(definition, catalog, count)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    catalog = StaticCatalog([core_manifest()])
    rows = []
    ratios = {}
    print(
        f"{'shape':<9}{'nodes':>7}{'decode ms':>11}{'plan ms':>10}{'us/node':>9}{'bytes/node':>12}"
    )
    for shape in SHAPES:
        found = [measure(shape, count, rounds, catalog) for count in SIZES]
        for row in found:
            print(
                f"{row['shape']:<9}{row['nodes']:>7}{row['decode_ms']:>11}{row['plan_ms']:>10}"
                f"{row['plan_us_per_node']:>9}{row['bytes_per_node']:>12}"
            )
        ratios[shape] = round(found[-1]["plan_us_per_node"] / found[0]["plan_us_per_node"], 2)
        print(f"{shape:<9}ratio of time a node, {SIZES[-1]} to {SIZES[0]}: {ratios[shape]}")
        rows += found
    print(
        msgspec.json.encode({"benchmark": "plan_scaling", "rows": rows, "ratios": ratios}).decode()
    )


if __name__ == "__main__":
    main()
