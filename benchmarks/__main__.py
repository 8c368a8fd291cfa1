"""python -m benchmarks [NAME …]

Prints every figure with its budget, and writes results/<name>.json beside this file. See README.md.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks import codec, memory, plan_scaling, runs, simulation, tokens, windows
from benchmarks.figures import Figure

RESULTS = Path(__file__).resolve().parent / "results"

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "codec": codec.figures,
    "memory": memory.figures,
    "plan_scaling": plan_scaling.figures,
    "runs": runs.figures,
    "simulation": simulation.figures,
    "tokens": tokens.figures,
    "windows": windows.figures,
}


def keep(name: str, found: list[Figure]) -> None:
    """Write what was found, with what it depends on."""
    rounded = [msgspec.structs.replace(one, value=round(one.value, 3)) for one in found]
    document = {
        "benchmark": name,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "figures": rounded,
    }
    RESULTS.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    (RESULTS / f"{name}.json").write_bytes(text + b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(BENCHMARKS)}; all if left out")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    for name in arguments.names or BENCHMARKS:
        print(name, flush=True)
        found = BENCHMARKS[name]()
        for figure in found:
            print(figure.line(), flush=True)
        keep(name, found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
