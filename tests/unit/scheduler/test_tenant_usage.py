from __future__ import annotations

from astraflow.core.engine.queries import TenantUsage
from astraflow.scheduler.tenant_usage import LaneUsage, joined


def test_what_lanes_use_is_added_and_a_worker_counts_once() -> None:
    home = LaneUsage(0, TenantUsage(1, 10, 2, 100, 1_000))
    further = LaneUsage(1, TenantUsage(2, 20, 2, 200, 2_000))
    assert joined([further, home]) == TenantUsage(3, 30, 2, 300, 3_000)
    assert joined([home]) == home.usage
