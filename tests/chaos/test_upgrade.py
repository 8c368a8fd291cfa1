"""A site whose nodes are upgraded one by one, taken back, and upgraded for good, under writes of all tenants.

Once by hand in every run of the tests; for more: `python -m tests.chaos --nodes 3 --fault upgrade --minutes 10`.
"""

from __future__ import annotations

import pytest

from tests.chaos.site_harness import SitePlan, run_site

SEED = 20_264


@pytest.mark.timeout(400)
async def test_a_site_is_upgraded_node_by_node_and_loses_nothing() -> None:
    plan = SitePlan(
        SEED,
        0.0,
        tenants=("acme", "globex"),
        faults=("upgrade",),
        heartbeat_ms=1_000,
        between_s=(0.5, 1.0),
        long_s=(4.0, 8.0),
    )
    verdict = await run_site(plan)
    assert verdict.is_clean, verdict.report()
    assert [one.kind for one in verdict.faults] == ["upgrade"]
    under_way, kept = verdict.kept["upgrade"]
    assert under_way == kept, verdict.report()
    assert verdict.figures.nodes["succeeded"] > 0
