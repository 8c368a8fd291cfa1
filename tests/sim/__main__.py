"""`python -m tests.sim`: run seeds, repeat one, or make one smaller.

python -m tests.sim --seeds 2000 [--from 0] [--jobs 2]
python -m tests.sim --seed 17 [--transcript]
python -m tests.sim --shrink 17
python -m tests.sim --demo
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.sim.config import draw
from tests.sim.demo import demo
from tests.sim.shrink import shrink
from tests.sim.simulation import Outcome, Simulation, simulate
from tests.sim.sometimes import missing
from tests.sim.world import Violation

CHUNK = 50


def _run_chunk(first: int, count: int) -> tuple[list[Outcome], dict[str, int], int, float]:
    """Some seeds in one process: the failures, what was seen, executions, CPU seconds."""
    began = time.process_time()
    failures, seen, executions = [], {}, 0
    for seed in range(first, first + count):
        outcome = simulate(seed)
        executions += outcome.executions
        for what, times in outcome.seen.items():
            seen[what] = seen.get(what, 0) + times
        if outcome.violation is not None:
            failures.append(outcome)
    return failures, seen, executions, time.process_time() - began


def run_seeds(first: int, count: int, jobs: int) -> int:
    """Run many seeds and print what they came to; the exit code."""
    began, failures, seen, executions, cpu = time.monotonic(), [], {}, 0, 0.0
    chunks = [(at, min(CHUNK, first + count - at)) for at in range(first, first + count, CHUNK)]
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
        report(outcome)
    unseen = missing(seen) if count >= 1000 else []
    rate = count / cpu * 60
    print(
        f"{count} seeds from {first}: {len(failures)} violations, {executions} executions, "
        f"{rate:.0f} seeds per CPU-minute, {time.monotonic() - began:.1f} s"
    )
    if count >= 1000:
        print(f"sometimes: {'all seen' if not unseen else 'NOT SEEN: ' + ', '.join(unseen)}")
    return 1 if failures or unseen else 0


def report(outcome: Outcome) -> None:
    """What a person needs to repeat and understand a failure."""
    seed = outcome.config.seed
    print(f"seed {seed}: {outcome.violation}")
    print(f"  {outcome.config.describe()}")
    for line in outcome.story[:40]:
        print(f"  {line}")
    print(f"  commit {_commit()}; repeat: PYTHONHASHSEED=0 python -m tests.sim --seed {seed}")


def _commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def run_one(seed: int, transcript: bool) -> int:
    simulation = Simulation(draw(seed), keep_transcript=transcript)
    violation = None
    try:
        simulation.run()
    except Violation as broken:
        violation = broken
    for line in simulation.world.transcript or ():
        print(line)
    print(simulation.config.describe())
    for line in simulation.story():
        print(line)
    print(
        f"seed {seed}: {violation or 'no violation'}, {simulation.world.steps} steps, "
        f"digest {simulation.world.digest()}"
    )
    return 0 if violation is None else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, help="how many seeds to run")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="run this one and tell its story")
    parser.add_argument("--transcript", action="store_true", help="with --seed: print every step")
    parser.add_argument("--shrink", type=int, help="find a smaller world that fails like this seed")
    parser.add_argument(
        "--demo", action="store_true", help="tell one run, with faults, as it happens"
    )
    asked = parser.parse_args()
    if asked.demo:
        return demo(sys.stdout)
    if os.environ.get("PYTHONHASHSEED") != "0":
        print("hint: set PYTHONHASHSEED=0, so that every process is the same", file=sys.stderr)
    if asked.shrink is not None:
        return shrink(asked.shrink)
    if asked.seed is not None:
        return run_one(asked.seed, asked.transcript)
    if asked.seeds is None:
        parser.error("say --seeds, --seed or --shrink")
    return run_seeds(asked.first, asked.seeds, asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
