"""python -m benchmarks [NAME …] [--minutes MINUTES] [--nodes NODES]
                        [--workers N] [--tasks N] [--readers N] [--store sqlite|postgresql] [--seconds S]

Prints every figure with its budget, and writes results/<name>.json beside this file. See README.md.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from benchmarks import (
    canvas,
    codec,
    core,
    growth,
    hosts,
    keys,
    lanes,
    load,
    maps,
    memory,
    nodes,
    packages,
    plan_scaling,
    postgres,
    runs,
    scale,
    simulation,
    soak,
    store,
    stored_growth,
    system,
    tenants,
    tokens,
    trace,
    warm_model,
    windows,
)
from benchmarks.figures import Figure, reference_ms

RESULTS = Path(__file__).resolve().parent / "results"

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "canvas": canvas.figures,
    "codec": codec.figures,
    "core": core.figures,
    "growth": growth.figures,
    "hosts": hosts.figures,
    "keys": keys.figures,
    "lanes": lanes.figures,
    "load": load.figures,
    "maps": maps.figures,
    "memory": memory.figures,
    "nodes": nodes.figures,
    "packages": packages.figures,
    "plan_scaling": plan_scaling.figures,
    "postgres": postgres.figures,
    "runs": runs.figures,
    "scale": scale.figures,
    "simulation": simulation.figures,
    "soak": soak.figures,
    "store": store.figures,
    "system": system.figures,
    "tenants": tenants.figures,
    "tokens": tokens.figures,
    "trace": trace.figures,
    "warm_model": warm_model.figures,
    "windows": windows.figures,
}


def keep(name: str, found: list[Figure], reference: float) -> None:
    """Write what was found, with what it depends on."""
    rounded = [msgspec.structs.replace(one, value=round(one.value, 3)) for one in found]
    document = {
        "benchmark": name,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "reference_ms": round(reference, 1),
        "figures": rounded,
    }
    RESULTS.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    (RESULTS / f"{name}.json").write_bytes(text + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(BENCHMARKS)}; all if left out")
    parser.add_argument("--minutes", type=float, default=soak.MINUTES, help="how long soak takes")
    parser.add_argument(
        "--nodes",
        type=int,
        default=stored_growth.NODES,
        help="finished nodes in the store of growth",
    )
    sizes = load.Sizes()
    parser.add_argument("--workers", type=int, default=sizes.workers, help="connected in load")
    parser.add_argument("--tasks", type=int, default=sizes.tasks, help="that wait in load")
    parser.add_argument("--readers", type=int, default=sizes.readers, help="of events in load")
    parser.add_argument(
        "--store", choices=("sqlite", "postgresql"), default=sizes.store, help="under load"
    )
    parser.add_argument(
        "--seconds", type=float, default=sizes.step_s, help="that a step of load may take"
    )
    arguments = parser.parse_args()
    BENCHMARKS["soak"] = partial(soak.figures, arguments.minutes)
    BENCHMARKS["growth"] = partial(growth.figures, arguments.nodes)
    chosen = {name: getattr(arguments, name) for name in ("workers", "tasks", "readers", "store")}
    BENCHMARKS["load"] = partial(
        load.figures, msgspec.structs.replace(sizes, step_s=arguments.seconds, **chosen)
    )
    unknown = set(arguments.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    for name in arguments.names or BENCHMARKS:
        reference = reference_ms()
        print(f"{name} (a million additions: {reference:.0f} ms)", flush=True)
        found = BENCHMARKS[name]()
        for figure in found:
            print(figure.line(), flush=True)
        keep(name, found, reference)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
