"""python -m benchmarks [NAME …] [--json]

Each benchmark prints how long one operation takes: the best of five rounds, because on a shared machine
everything above the best is somebody else's time. See README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks import codec, tokens

ROUNDS = 5
ROUND_SECONDS = 0.2

BENCHMARKS: dict[str, Callable[[], dict[str, Callable[[], object]]]] = {
    "codec": codec.operations,
    "tokens": tokens.operations,
}


class Measured(NamedTuple):
    name: str
    microseconds: float


def measure(name: str, operation: Callable[[], object]) -> Measured:
    """Time one operation, repeated until a round is long enough to be timed."""
    repeats = 1
    while (spent := _timed(operation, repeats)) < ROUND_SECONDS / 4:
        repeats *= 2
    repeats = max(1, int(repeats * ROUND_SECONDS / spent))
    best = min(_timed(operation, repeats) for _ in range(ROUNDS))
    return Measured(name, best / repeats * 1e6)


def _timed(operation: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        operation()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(BENCHMARKS)}; all if left out")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    found = []
    for group in arguments.names or BENCHMARKS:
        for name, operation in BENCHMARKS[group]().items():
            measured = measure(f"{group}: {name}", operation)
            found.append(measured)
            if not arguments.json:
                print(f"{measured.microseconds:14,.2f} µs  {measured.name}", flush=True)
    if arguments.json:
        json.dump({each.name: round(each.microseconds, 3) for each in found}, sys.stdout, indent=2)
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
