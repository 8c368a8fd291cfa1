"""`python -m tests.sim`: run seeds, repeat one, or make one smaller.

python -m tests.sim --seeds 2000 [--from 0] [--jobs 2] [--tier A]
python -m tests.sim --seed 17 [--transcript] [--tier A]
python -m tests.sim --shrink 17
python -m tests.sim --demo
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.sim.cluster import missing_in_clusters
from tests.sim.demo import demo
from tests.sim.features import missing_pairs
from tests.sim.lanes import missing_in_lanes, simulate_lanes
from tests.sim.shells.simulation import simulate_shells
from tests.sim.shrink import shrink
from tests.sim.simulation import Outcome, simulate
from tests.sim.sometimes import missing, missing_in_shells
from tests.sim.sqlite.simulation import simulate_sqlite
from tests.sim.upgrades import missing_in_upgrades, simulate_nodes

CHUNK = 50
TIERS: dict[str, Callable[..., Outcome]] = {
    "A": simulate,
    "B": simulate_sqlite,
    "C": simulate_shells,
    "N": simulate_nodes,
    "L": simulate_lanes,
}
"""The core on a simulated store; the core on SQLite; the true shells in virtual time; several nodes and shards, of two
releases in every third world; several lanes of one tenant."""
ENOUGH = {"A": 1000, "B": 1000, "C": 200, "N": 50, "L": 50}
"""So many seeds must have seen everything once."""
MISSING: dict[str, Callable[[dict[str, int], int], list[str]]] = {
    "A": lambda seen, _: missing(seen),
    "B": lambda seen, _: missing(seen),
    "C": missing_in_shells,
    "N": lambda seen, _: missing_in_clusters(seen) + missing_in_upgrades(seen),
    "L": lambda seen, _: missing_in_lanes(seen),
}

ENOUGH_FOR_PAIRS = 1000
"""So many seeds must have seen every two features meet in one run."""


def _run_chunk(
    tier: str, first: int, count: int
) -> tuple[list[Outcome], dict[str, int], int, float]:
    """Some seeds in one process: the failures, what was seen, executions, CPU seconds."""
    began = time.process_time()
    failures: list[Outcome] = []
    seen: dict[str, int] = {}
    executions = 0
    for seed in range(first, first + count):
        outcome = TIERS[tier](seed)
        executions += outcome.executions
        for what, times in outcome.seen.items():
            seen[what] = seen.get(what, 0) + times
        if outcome.violation is not None:
            failures.append(outcome)
    return failures, seen, executions, time.process_time() - began


def run_seeds(tier: str, first: int, count: int, jobs: int) -> int:
    """Run many seeds and print what they came to; the exit code."""
    failures: list[Outcome] = []
    seen: dict[str, int] = {}
    began, executions, cpu = time.monotonic(), 0, 0.0
    chunks = [
        (tier, at, min(CHUNK, first + count - at)) for at in range(first, first + count, CHUNK)
    ]
    done = 0
    with ProcessPoolExecutor(jobs) as pool:
        for result in pool.map(_run_chunk, *zip(*chunks, strict=True)):
            failed, chunk_seen, ran, seconds = result
            failures += failed
            executions += ran
            cpu += seconds
            done += CHUNK
            for what, times in chunk_seen.items():
                seen[what] = seen.get(what, 0) + times
            if sys.stderr.isatty():
                print(
                    f"\r{min(done, count)}/{count} seeds, {len(failures)} failed",
                    end="",
                    file=sys.stderr,
                )
    for outcome in failures[:10]:
        report(tier, outcome)
    is_enough = count >= ENOUGH[tier]
    unseen: list[str] = []
    if is_enough:
        unseen = MISSING[tier](seen, count)
    rate = count / cpu * 60
    print(
        f"tier {tier}, {count} seeds from {first}: {len(failures)} violations, {executions} executions, "
        f"{rate:.0f} seeds per CPU-minute, {time.monotonic() - began:.1f} s"
    )
    if is_enough:
        print(f"sometimes: {'all seen' if not unseen else 'NOT SEEN: ' + ', '.join(unseen)}")
    unmet = missing_pairs(seen) if tier == "A" else []
    if tier == "A":
        print(f"pairs of features: {len(unmet)} not met{': ' if unmet else ''}{', '.join(unmet)}")
    if count >= ENOUGH_FOR_PAIRS:
        unseen += unmet
    return 1 if failures or unseen else 0


def report(tier: str, outcome: Outcome) -> None:
    """What a person needs to repeat and understand a failure."""
    seed = outcome.config.seed
    print(f"seed {seed}: {outcome.violation}")
    print(f"  {outcome.config.describe()}")
    for line in outcome.timelines[:40]:
        print(f"  {line}")
    again = f"PYTHONHASHSEED=0 python -m tests.sim --tier {tier} --seed {seed}"
    print(f"  commit {_commit()}; repeat: {again}")


def _commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def run_one(tier: str, seed: int, transcript: bool) -> int:
    outcome = TIERS[tier](seed, keep_transcript=transcript)
    for line in [*outcome.transcript, outcome.config.describe(), *outcome.timelines]:
        print(line)
    print(
        f"seed {seed}: {outcome.violation or 'no violation'}, {outcome.steps} steps, "
        f"digest {outcome.digest}"
    )
    return 0 if outcome.violation is None else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, help="how many seeds to run")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seed", type=int, help="run this seed and print the timelines of what did not end"
    )
    parser.add_argument("--transcript", action="store_true", help="with --seed: print every step")
    parser.add_argument("--shrink", type=int, help="find a smaller world that fails like this seed")
    parser.add_argument(
        "--demo", action="store_true", help="print one run, with faults, as it happens"
    )
    parser.add_argument("--tier", choices=sorted(TIERS), default="A", help="what runs in the world")
    asked = parser.parse_args()
    if asked.demo:
        return demo(sys.stdout)
    if os.environ.get("PYTHONHASHSEED") != "0":
        print("hint: set PYTHONHASHSEED=0, so that every process is the same", file=sys.stderr)
    if asked.shrink is not None:
        return shrink(asked.shrink)
    if asked.seed is not None:
        return run_one(asked.tier, asked.seed, asked.transcript)
    if asked.seeds is None:
        parser.error("say --seeds, --seed or --shrink")
    return run_seeds(asked.tier, asked.first, asked.seeds, asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
