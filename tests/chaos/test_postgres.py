"""The same promises on PostgreSQL: its connections cut, and a scheduler replaced while it is frozen."""

from __future__ import annotations

import pytest

from tests.chaos.harness import Plan, run_chaos
from tests.chaos.nemesis import Nemesis
from tests.processes.postgres import postgres_server

SEED = 20_262


async def _script(nemesis: Nemesis) -> None:
    for _ in range(3):
        await nemesis.until_working()
        await nemesis.do("terminate backends")
    await nemesis.until_working()
    await nemesis.do("take over")
    await nemesis.until_working()


@pytest.mark.timeout(240)
async def test_a_frozen_scheduler_is_replaced_and_cannot_write_when_it_wakes() -> None:
    with postgres_server() as url:
        plan = Plan(SEED, 0.0, clients=4, script=_script, database_url=url)
        verdict = await run_chaos(plan)
    print("\n".join(verdict.figures.lines()))
    assert verdict.is_clean, verdict.report()
    assert verdict.figures.nodes["succeeded"] > 0
