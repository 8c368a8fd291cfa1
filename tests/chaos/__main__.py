"""`python -m tests.chaos --minutes M [--seed S] [--store sqlite|postgres]`, and with `--nodes N` a whole site."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from dataclasses import replace

from tests.chaos.harness import Plan, Verdict, run_chaos
from tests.chaos.nemesis import FAULTS, ON_POSTGRES
from tests.chaos.site_faults import SITE_FAULTS
from tests.chaos.site_harness import SitePlan, run_site
from tests.processes.postgres import postgres_server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="of the fault plan and workload")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--nemeses", type=int, default=2, help="faults at once")
    parser.add_argument("--faults", help="some of: " + ", ".join(FAULTS))
    parser.add_argument("--nodes", type=int, default=1, help="more than 1: a site on PostgreSQL")
    parser.add_argument(
        "--fault", choices=(*SITE_FAULTS, "all"), default="all", help="what is done to a site"
    )
    parser.add_argument("--lanes", type=int, default=1, help="of the first tenant of a site")
    parser.add_argument("--quiet", action="store_true", help="no timeline")
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    if asked.nodes > 1:
        return _run_site(asked, seed)
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


def _run_site(asked: argparse.Namespace, seed: int) -> int:
    faults = tuple(SITE_FAULTS) if asked.fault == "all" else (asked.fault,)
    plan = SitePlan(
        seed,
        asked.minutes * 60,
        nodes=asked.nodes,
        lanes=asked.lanes,
        faults=faults,
        is_loud=not asked.quiet,
    )
    print(f"seed {seed}", flush=True)
    verdict = asyncio.run(run_site(plan))
    print("\n".join(verdict.table()))
    return _report(verdict, seed)


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
