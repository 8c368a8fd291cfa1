"""One chaos run of a site from its start to its verdict."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import checkers
from tests.chaos.figures import measure, percentile
from tests.chaos.harness import Verdict, judge, stop, tracebacks
from tests.chaos.shapes import WEIGHTS, Asks, python_node
from tests.chaos.site import TENANTS, Site, site
from tests.chaos.site_faults import SITE_FAULTS, Fault, SiteNemesis
from tests.chaos.site_upgrades import reading_facts_of
from tests.chaos.truth import Line, read_truth
from tests.chaos.workload import Told, Workload
from tests.definitions import workflow
from tests.processes.postgres_pair import postgres_pair
from tests.processes.waiting import until_seen

__all__ = ["SitePlan", "SiteVerdict", "kept_attempts", "run_site"]

LIVENESS_S = 150.0
"""Within which everything must have ended: the longest attempt, twice, and a lease."""
SHARDS = range(16)
LONG_AT_ONCE = 2
CRASHES = ("abort_once", "segfault_once", "fork", "flood")
SITE_WEIGHTS = {act: weight for act, weight in WEIGHTS.items() if act not in CRASHES}
"""Nothing here ends a host: an attempt that is lost was lost by a fault of a node."""
GOALS_S = {
    "kill": 3.0,
    "stop": 9.0,
    "partition": 9.0,
    "promote": 9.0,
    "rolling": 1.0,
    "upgrade": 1.0,
}


@dataclass
class SitePlan:
    seed: int
    seconds: float
    nodes: int = 3
    tenants: tuple[str, ...] = TENANTS
    lanes: int = 1
    """Of the first tenant."""
    clients: int = 2
    """Of each tenant, beside one with long runs."""
    faults: Sequence[str] = tuple(SITE_FAULTS)
    heartbeat_ms: int | None = None
    away_s: float = 12.0
    between_s: tuple[float, float] = (3.0, 6.0)
    long_s: tuple[float, float] = (12.0, 30.0)
    is_loud: bool = False


@dataclass
class SiteVerdict(Verdict):
    faults: list[Fault] = field(default_factory=list)
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the kind of fault: long attempts that were under way, and how many of them went on under their numbers."""
    writes: int = 0

    def table(self) -> Iterable[str]:
        """A line for each kind of fault."""
        yield f"{'fault':<10} {'times':>5} {'gap p50':>8} {'max':>7} {'goal':>7}  attempts kept"
        for kind, count in Counter(one.kind for one in self.faults).items():
            gaps = [gap for one in self.faults if one.kind == kind for gap in one.gaps_s.values()]
            under_way, kept = self.kept[kind]
            half, most, goal = percentile(gaps, 0.5), max(gaps), GOALS_S[kind]
            said = "" if most <= goal and kept == under_way else "  MISSED"
            times = f"{half:6.2f} s {most:5.2f} s <={goal:3.0f} s"
            yield f"{kind:<10} {count:>5} {times}  {kept} of {under_way}{said}"
        yield f"writes by probes       {self.writes}"


async def run_site(plan: SitePlan) -> SiteVerdict:
    """Run a plan in a folder and on servers of its own, which are gone at the end."""
    with tempfile.TemporaryDirectory(prefix="chaos") as name, postgres_pair() as servers:
        rng = random.Random(plan.seed)
        if "promote" in plan.faults:
            servers.add_replica()
        async with site(
            Path(name), servers, rng, nodes=plan.nodes, tenants=plan.tenants, lanes=plan.lanes,
            heartbeat_ms=plan.heartbeat_ms, is_linked="partition" in plan.faults, is_loud=plan.is_loud,
        ) as running:  # fmt: skip
            return await _run(plan, running, rng)


async def _run(plan: SitePlan, running: Site, rng: random.Random) -> SiteVerdict:
    supervisor = running.supervisor
    verdict = SiteVerdict(timeline=supervisor.timeline)
    keeping = asyncio.create_task(supervisor.keep_alive())
    async with AsyncExitStack() as stack:
        workloads = []
        for tenant in plan.tenants:
            api = await stack.enter_async_context(running.api(tenant))
            seed = rng.randrange(2**31)
            workloads.append(
                Workload(api, running.truth, seed, weights=SITE_WEIGHTS, tenant=tenant)
            )
        long_keys: set[str] = set()
        nemesis = await stack.enter_async_context(
            SiteNemesis(running, rng, plan.away_s, plan.between_s)
        )
        working = asyncio.create_task(_work(plan, workloads, running, long_keys))
        try:
            long_ones = LONG_AT_ONCE * len(plan.tenants)
            await until_seen(lambda: len(list(running.truth.glob("long-*"))) >= long_ones)
            await nemesis.run(asyncio.get_running_loop().time() + plan.seconds, plan.faults)
            for one in workloads:
                one.is_stopping = True
            supervisor.note("healed")
            done, _ = await asyncio.wait({working}, timeout=LIVENESS_S)
            if done:
                working.result()
        finally:
            working.cancel()
            keeping.cancel()
            await asyncio.gather(working, keeping, return_exceptions=True)
    told = [one for each in workloads for one in each.told]
    await _judge(running, nemesis, told, long_keys, verdict)
    return verdict


async def _work(
    plan: SitePlan, workloads: Sequence[Workload], running: Site, long_keys: set[str]
) -> None:
    async with asyncio.TaskGroup() as group:
        for one in workloads:
            group.create_task(one.run(plan.clients))
            for _ in range(LONG_AT_ONCE):
                group.create_task(_long_runs(one, running.truth, long_keys, plan.long_s))


async def _long_runs(
    workload: Workload, truth: Path, long_keys: set[str], long_s: tuple[float, float]
) -> None:
    """One run after another whose node works for long, so that faults find it at work."""
    rng = random.Random(len(long_keys))
    while not workload.is_stopping:
        key = f"long-{time.monotonic_ns()}-{rng.randrange(2**31)}"
        made = python_node(truth, key, "slow", seconds=rng.uniform(*long_s))
        told = await workload.submit({"workflow": workflow(made)}, {made["id"]: key}, Asks())
        long_keys.add(key)
        await workload.watch(told)


async def _judge(
    running: Site,
    nemesis: SiteNemesis,
    told: Sequence[Told],
    long_keys: set[str],
    verdict: SiteVerdict,
) -> None:
    problems = verdict.problems
    problems["harness"] = nemesis.problems
    probes = [
        Told(run_id, 0, {}, tenant=writer.tenant)
        for writer in nemesis.writers.values()
        for run_id in writer.runs
    ]
    await _probes_end(running, probes)
    stored = await running.stored_runs()
    made = [(one.tenant, one.run_id) for one in (*told, *probes)]
    problems["keys with other than one run"] = checkers.made_otherwise(made, stored)
    await stop(running.supervisor, verdict)
    truth = read_truth(running.truth)
    late = judge(told, truth, verdict)
    everything = (*told, *probes)
    with reading_facts_of(running.release):
        leaked = await checkers.check_store(running.servers.url, everything, SHARDS)
    problems["leaked leases"] = leaked
    problems["tracebacks"] = tracebacks(running.supervisor)
    verdict.figures = measure(told, truth, nemesis.counts, (), running.supervisor.boots)
    verdict.figures.late_starts = late
    verdict.faults = nemesis.faults
    verdict.writes = len(probes)
    long_truth = {key: lines for key, lines in truth.items() if key in long_keys}
    for kind in {one.kind for one in nemesis.faults}:
        found = [kept_attempts(long_truth, one.at_ns) for one in nemesis.faults if one.kind == kind]
        verdict.kept[kind] = sum(one for one, _ in found), sum(one for _, one in found)


async def _probes_end(running: Site, probes: Sequence[Told]) -> None:
    """Wait for the runs of probes; those that do not end are found in the store."""
    last: dict[str, str] = {one.tenant: one.run_id for one in probes}
    for tenant, run_id in last.items():
        async with running.api(tenant) as api, asyncio.timeout(LIVENESS_S):
            while True:
                answer = await api.ask("GET", f"/api/v1/runs/{run_id}")
                if answer.status_code == 200 and answer.json()["finishedAt"] is not None:
                    break
                await asyncio.sleep(0.2)


def kept_attempts(truth: Mapping[str, Sequence[Line]], at_ns: int) -> tuple[int, int]:
    """The attempts that were under way at a time, and how many of them came to their own end."""
    under_way = kept = 0
    for lines in truth.values():
        starts = [line for line in lines if line.word == "start" and line.ns <= at_ns]
        if not starts:
            continue
        mine = [line for line in lines if line.attempt == starts[-1].attempt]
        if mine[-1].ns <= at_ns:
            continue  # it had ended, or was lost to an earlier fault
        under_way += 1
        kept += mine[-1].word in ("end", "raise")
    return under_way, kept
