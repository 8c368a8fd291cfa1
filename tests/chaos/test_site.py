"""A site with three nodes under one fault of each kind."""

from __future__ import annotations

import pytest

from tests.chaos.site_harness import SitePlan, run_site

SEED = 20_263


@pytest.mark.timeout(240)
async def test_no_fault_of_a_node_or_of_its_store_loses_or_repeats_anything() -> None:
    plan = SitePlan(
        SEED,
        0.0,
        tenants=("acme", "globex"),
        lanes=2,
        faults=("kill", "stop", "partition", "promote"),
        heartbeat_ms=1_000,
        away_s=5.0,
        between_s=(0.5, 1.0),
        long_s=(4.0, 8.0),
    )
    verdict = await run_site(plan)
    assert verdict.is_clean, verdict.report()
    assert sum(len(one.gaps_s) for one in verdict.faults) >= len(plan.faults)
    assert verdict.figures.nodes["succeeded"] > 0
