"""A short run of everything, with a fixed plan."""

from __future__ import annotations

from tests.chaos.harness import Plan, run_chaos
from tests.chaos.nemesis import BEYOND_LEASE_S, POINTS, Nemesis

SEED = 20_261


async def _script(nemesis: Nemesis) -> None:
    """Every fault that a machine can be expected to do to us, once."""
    supervisor = nemesis.supervisor
    for fault in ("kill host", "kill worker", "cut", "kill guard"):
        await nemesis.until_working()
        await nemesis.do(fault)
    assert {"host", "worker", "guard"} <= {kill.kind for kill in nemesis.kills}
    await nemesis.until_working()
    await supervisor.freeze(supervisor.workers[0], BEYOND_LEASE_S)
    died = await nemesis.kill_scheduler_at(*((point, 8) for point in POINTS))
    assert died == len(POINTS), "a scheduler never came to its point"
    await nemesis.until_working()


async def test_promises_hold_while_processes_are_killed_frozen_and_cut_off() -> None:
    verdict = await run_chaos(Plan(SEED, 0.0, clients=4, script=_script))
    print("\n".join(verdict.figures.lines()))
    assert verdict.is_clean, verdict.report()
    figures = verdict.figures
    assert figures.runs >= 4
    assert figures.nodes["succeeded"] > 0, "a run in which nothing succeeds proves nothing"
    assert figures.resumes > 0, "no stream was resumed"
