"""One chaos run from its start to its verdict: faults, heal, liveness, stop, reopen."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import checkers, proc
from tests.chaos.figures import Figures, measure
from tests.chaos.nemesis import FAULTS, Nemesis
from tests.chaos.supervisor import Supervisor, supervised
from tests.chaos.truth import read_truth
from tests.chaos.workload import Api, Told, Workload
from tests.processes.system import traceback_lines
from tests.processes.waiting import is_seen

__all__ = ["Plan", "Verdict", "judge", "run_chaos", "stop", "tracebacks"]

LIVENESS_S = 90.0
"""Within which everything must have ended once the faults are over: a lease, the grace of a cancel and the 15 s after
which the scheduler ends a silent one itself, the longest node, five losses in a row, and a slow machine."""
GONE_S = 10.0
MAX_FILES = 60
"""Of a process when all is quiet: a fresh scheduler has 20, a worker 15 and 8 for each host that it keeps warm."""
MAX_RSS_MIB = 200.0
"""A fresh scheduler holds 80; what it remembers of ended runs for their readers is bounded too."""

Script = Callable[[Nemesis], Awaitable[None]]


@dataclass
class Plan:
    """What to do to the system, and for how long."""

    seed: int
    seconds: float
    clients: int = 6
    nemeses: int = 1
    """So many faults at once."""
    pause_s: tuple[float, float] = (0.2, 2.5)
    faults: Sequence[str] = tuple(FAULTS)
    script: Script | None = None
    """In place of drawn faults."""
    database_url: str | None = None
    is_loud: bool = False


@dataclass
class Verdict:
    """What was found; empty lists everywhere are a pass."""

    problems: dict[str, list[str]] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)
    timeline: list[tuple[float, str]] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not any(self.problems.values())

    def report(self) -> str:
        """Everything that went wrong, and the timeline."""
        wrong = [f"{name}: {one}" for name, found in self.problems.items() for one in found]
        return "\n".join([*wrong, *(f"{at:8.2f}  {text}" for at, text in self.timeline)])


async def run_chaos(plan: Plan) -> Verdict:
    """Run a plan in a folder of its own, which is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="chaos") as name:
        folder = Path(name)
        truth_folder = folder / "truth"
        truth_folder.mkdir()
        async with (
            supervised(folder, database_url=plan.database_url, is_loud=plan.is_loud) as supervisor,
            Api(lambda: supervisor.system.url) as api,
        ):
            return await _run(plan, supervisor, api, truth_folder)


async def _run(plan: Plan, supervisor: Supervisor, api: Api, truth_folder: Path) -> Verdict:
    workload = Workload(api, truth_folder, plan.seed)
    nemesis = Nemesis(supervisor, api, truth_folder, random.Random(plan.seed))
    verdict = Verdict(timeline=supervisor.timeline)
    keeping = asyncio.create_task(supervisor.keep_alive())
    working = asyncio.create_task(workload.run(plan.clients))
    try:
        if plan.script is not None:
            await plan.script(nemesis)
        else:
            until = asyncio.get_running_loop().time() + plan.seconds
            async with asyncio.TaskGroup() as group:
                for _ in range(plan.nemeses):
                    group.create_task(nemesis.run(until, plan.pause_s, plan.faults))
        workload.is_stopping = True
        supervisor.note("healed")
        verdict.problems["not terminal"] = await _settle(working, workload)
        verdict.problems["growth"] = await _grown(supervisor)
    finally:
        working.cancel()
        keeping.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)
    _raise_of(keeping)
    await stop(supervisor, verdict)
    await _judge(plan, supervisor, workload, nemesis, truth_folder, verdict)
    return verdict


def _raise_of(task: asyncio.Task[None]) -> None:
    """A part of the harness that broke is no finding about the system."""
    if not task.cancelled() and task.exception() is not None:
        raise RuntimeError("the harness broke") from task.exception()


async def _settle(working: asyncio.Task[None], workload: Workload) -> list[str]:
    """Every client sees the end of its run."""
    done, _ = await asyncio.wait({working}, timeout=LIVENESS_S)
    if done:
        working.result()
        return []
    return [f"{one.run_id} has not ended" for one in workload.told if not one.is_over]


async def _grown(supervisor: Supervisor) -> list[str]:
    """Descriptors and memory, when everything is quiet again."""
    await is_seen(lambda: not _too_much(supervisor), GONE_S)
    return _too_much(supervisor)


def _too_much(supervisor: Supervisor) -> list[str]:
    found: list[str] = []
    for process in (supervisor.scheduler, *supervisor.workers):
        if not process.is_alive():
            continue
        files, rss = proc.files_of(process.pid), process.rss_mib
        if files > MAX_FILES:
            found.append(f"{process.name} has {files} files open")
        if rss > MAX_RSS_MIB:
            found.append(f"{process.name} holds {rss:.0f} MiB")
    return found


async def stop(supervisor: Supervisor, verdict: Verdict) -> None:
    """Told to stop, they do, with 0; and nothing of them is left."""
    wrong = []
    codes = await asyncio.gather(*(supervisor.stop(one) for one in supervisor.workers))
    owners = [one for one in supervisor.schedulers if one.is_alive()]
    codes += await asyncio.gather(*(supervisor.stop(one) for one in owners))
    for process, code in zip((*supervisor.workers, *owners), codes, strict=True):
        if code != 0:
            wrong.append(f"{process.name} ended with {code}: {process.said()[-400:]}")
    verdict.problems["bad ends"] = wrong
    await is_seen(lambda: not supervisor.system.family(), GONE_S)
    left = supervisor.system.family()
    verdict.problems["leaked processes"] = [f"{pid} {text}" for pid, text in left.items()]
    records = [one for each in supervisor.workers for one in proc.hosts_of(each.folder / "kept")]
    verdict.problems["leaked files"] = [f"a record of host {one.host_pid}" for one in records]


async def _judge(
    plan: Plan,
    supervisor: Supervisor,
    workload: Workload,
    nemesis: Nemesis,
    truth_folder: Path,
    verdict: Verdict,
) -> None:
    told = workload.told
    truth = read_truth(truth_folder)
    problems = verdict.problems
    late = judge(told, truth, verdict)
    problems["leaked leases"] = await checkers.check_store(supervisor.system.store_url, told)
    if plan.database_url is None:
        problems["damaged store"] = checkers.check_database(supervisor.system.data / "astraflow.db")
    problems["tracebacks"] = tracebacks(supervisor)
    verdict.figures = measure(told, truth, nemesis.counts, nemesis.kills, supervisor.boots)
    verdict.figures.late_starts = late


def judge(told: Sequence[Told], truth: checkers.Truth, verdict: Verdict) -> int:
    """What clients were told, against what happened. How many attempts started after the answer to a cancel."""
    problems = verdict.problems
    after_cancel, late = checkers.started_after_cancel(told, truth)
    problems["lost accepted runs"] = checkers.lost_runs(told)
    problems.setdefault("not terminal", []).extend(checkers.not_terminal(told))
    problems["results accepted twice"] = checkers.accepted_twice(told)
    problems["results without truth"] = checkers.results_without_truth(told, truth)
    problems["answered otherwise"] = checkers.answered_otherwise(told)
    problems["not undone"] = checkers.not_undone(told)
    problems["overlapping attempts"] = checkers.overlapping(truth)
    problems["attempts started twice"] = checkers.started_twice(truth)
    problems["started after cancel"] = after_cancel
    problems["went back"] = checkers.went_back(told)
    problems["broken streams"] = checkers.events_are_complete(told)
    return late


def tracebacks(supervisor: Supervisor) -> list[str]:
    """Nothing that a process says about itself is a bug of ours."""
    found = []
    for process in supervisor.system.processes:
        text = process.log.read_text(errors="replace")
        if lines := traceback_lines(text):
            at = text.find(lines[0])
            found.append(f"{process.name}: {text[max(0, at - 300) : at + 8000]}")
    return found
