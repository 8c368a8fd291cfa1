"""Tenants in the engine: quotas, weights, and what suspending does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import ConfigureTenant, ResumeTenant, SuspendTenant
from astraflow.core.engine.wait_reasons import Reason, Reasons
from astraflow.core.fleet.resources import ResourceRecord
from astraflow.core.fleet.tenants import TenantPolicy, TenantRecord
from astraflow.core.protocol import business
from astraflow.core.protocol.control import HeartbeatMetrics, Reset
from tests.tables import each_row
from tests.unit.core.engine.rig import TENANT, RawWorker, Rig
from tests.unit.core.engine.test_intake import refusal
from tests.unit.plans import make_plan


def configure(rig: Rig, tenant: str = TENANT, *, is_new: bool = True, **policy: Any) -> None:
    command = ConfigureTenant(tenant=tenant, by="ann", policy=TenantPolicy(**policy), is_new=is_new)
    rig.engine.execute(command, rig.now, rig.at)
    rig.run()


def tell(rig: Rig, kind: Callable[..., Any]) -> None:
    rig.engine.execute(kind(tenant=TENANT, by="ann"), rig.now, rig.at)
    rig.run()


def test_a_tenant_is_made_once_and_changed_only_if_it_is_there(rig: Rig) -> None:
    for kind in (SuspendTenant, ResumeTenant):
        with pytest.raises(errors.NotFound):
            tell(rig, kind)
    with pytest.raises(errors.NotFound):
        configure(rig, is_new=False)
    configure(rig, weight=2.0)
    with pytest.raises(errors.Conflict):
        configure(rig)
    configure(rig, is_new=False, weight=3.0)
    found = rig.engine.ask.tenant(TENANT)
    assert found is not None
    assert found.policy.weight == 3.0
    assert rig.engine.ask.tenants() == [found]


def test_runs_beyond_the_quota_are_refused_until_one_has_ended(rig: Rig) -> None:
    configure(rig, max_runs=1)
    worker = rig.worker()
    rig.submit(make_plan(1))
    rig.submit(make_plan(1), "run2")
    error = refusal(rig)
    assert error.code is errors.QUOTA_RUNS
    assert error.detail == {"quota": "maxRuns", "limit": 1, "retryAfterSeconds": 5}
    rig.submit(make_plan(1), "other", tenant="elsewhere")
    assert rig.engine.ask.usage(TENANT)[:3] == (1, 1, 1)
    worker.finish()
    rig.submit(make_plan(1), "run3")
    assert [run.run_id for run in rig.engine.view.runs] == ["other", "run3"]


def test_tasks_beyond_the_quota_are_refused(rig: Rig) -> None:
    configure(rig, max_tasks=3)
    rig.submit(make_plan(2))
    rig.submit(make_plan(2), "run2")
    assert refusal(rig).code is errors.QUOTA_TASKS
    rig.submit(make_plan(1), "run3")
    assert len(rig.active()) == 2


@each_row(
    "package, policy, code",
    [
        ("", {"max_disk_bytes": 10}, errors.QUOTA_DISK),
        ("vision 1.0", {"max_memory_bytes": 10}, errors.QUOTA_MEMORY),
        ("", {"max_memory_bytes": 10}, None),
        ("vision 1.0", {"max_disk_bytes": 10}, None),
    ],
)
def test_a_tenant_whose_resources_are_full_runs_nothing_more(
    package: str, policy: dict[str, Any], code: errors.Code | None
) -> None:
    rig = Rig()
    configure(rig, **policy)
    kept = ResourceRecord(
        tenant=TENANT,
        worker_id="w1",
        resource_id="r1",
        created_at=0,
        size_bytes=10,
        package=package,
    )
    rig.engine.restore_resource(kept)
    rig.submit(make_plan(1))
    if code is None:
        assert rig.active() != []
    else:
        assert refusal(rig).code is code


def test_a_suspended_tenant_gets_nothing_until_it_is_resumed(rig: Rig) -> None:
    configure(rig)
    rig.submit(make_plan(1))
    tell(rig, SuspendTenant)
    worker = rig.worker()
    assert worker.started == []
    waits = Reasons(rig.engine.view).of(rig.run_of("run1"), 0)
    assert waits == Reason("tenant", f"tenant {TENANT} is suspended")
    rig.submit(make_plan(1), "run2")
    assert refusal(rig).code is errors.TENANT_SUSPENDED
    tell(rig, ResumeTenant)
    assert worker.tasks() == [("run1.0", 1)]


def test_more_workers_than_the_quota_are_told_to_come_back_later(rig: Rig) -> None:
    configure(rig, max_workers=1)
    RawWorker(rig, "w1")
    RawWorker(rig, "w2")
    assert resets(rig) == [("E.QUOTA.WORKERS", 30_000)]
    RawWorker(rig, "w1")  # it takes its own place
    RawWorker(rig, "w3", tenant="elsewhere")
    assert [code for code, _ in resets(rig)[1:]] == ["E.SESSION.STALE_BINDING"]
    configure(rig, is_new=False)
    RawWorker(rig, "w2")
    assert len(resets(rig)) == 2


def resets(rig: Rig) -> list[tuple[str, int | None]]:
    told = [frame.payload for frame in rig.carried if isinstance(frame.payload, Reset)]
    return [(one.code, one.retry_after_ms) for one in told]


def test_a_tenant_has_marks_of_its_own_for_auto_drain(rig: Rig) -> None:
    configure(rig, drain_mem_pct=50.0, drain_disk_pct=60.0)
    raw = RawWorker(rig, "w1")
    for metrics, is_pressed in (
        (HeartbeatMetrics(mem_pct=49), False),
        (HeartbeatMetrics(mem_pct=50), True),
        (HeartbeatMetrics(mem_pct=46), True),
        (HeartbeatMetrics(mem_pct=44), False),
        (HeartbeatMetrics(disk_pct=60), True),
        (HeartbeatMetrics(disk_pct=54), False),
    ):
        rig.wait(1.0)
        raw.heartbeat(metrics=metrics)
        worker = rig.engine.ask.worker(TENANT, "w1")
        assert worker is not None
        assert worker.is_pressed is is_pressed, metrics
    assert raw.of(business.Dispatch) == []


def test_a_stored_tenant_counts_after_a_restart(rig: Rig) -> None:
    policy = TenantPolicy(max_workers=0)
    record = TenantRecord(
        tenant=TENANT, is_suspended=True, policy=policy, created_at=1, updated_at=1
    )
    rig.engine.restore_tenant(record)
    rig.submit(make_plan(1))
    assert refusal(rig).code is errors.TENANT_SUSPENDED
    RawWorker(rig, "w1")
    assert resets(rig) == [("E.QUOTA.WORKERS", 30_000)]
