"""`python -m tests.chaos --minutes M [--seed S] [--store sqlite|postgres]`."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from dataclasses import replace

from tests.chaos.harness import Plan, Verdict, run_chaos
from tests.chaos.nemesis import FAULTS, ON_POSTGRES
from tests.processes.postgres import postgres_server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="of the fault plan and workload")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--nemeses", type=int, default=2, help="faults at once")
    parser.add_argument("--faults", help="some of: " + ", ".join(FAULTS))
    parser.add_argument("--quiet", action="store_true", help="no timeline")
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    plan = Plan(
        seed,
        asked.minutes * 60,
        clients=asked.clients,
        nemeses=asked.nemeses,
        faults=tuple(FAULTS) if asked.faults is None else tuple(asked.faults.split(",")),
        is_loud=not asked.quiet,
    )
    print(f"seed {seed}", flush=True)
    if asked.store == "sqlite":
        return _report(asyncio.run(run_chaos(plan)), seed)
    with postgres_server() as url:
        faults = plan.faults if asked.faults else (*FAULTS, *ON_POSTGRES)
        plan = replace(plan, database_url=url, faults=faults)
        return _report(asyncio.run(run_chaos(plan)), seed)


def _report(verdict: Verdict, seed: int) -> int:
    print("\n".join(verdict.figures.lines()))
    for name, found in verdict.problems.items():
        print(f"{name:<22} {len(found)}")
    for name, found in verdict.problems.items():
        for one in found[:20]:
            print(f"{name}: {one}")
    print("clean" if verdict.is_clean else f"NOT CLEAN; repeat with --seed {seed}")
    return 0 if verdict.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
