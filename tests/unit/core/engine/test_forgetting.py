"""Workers that will not come back are forgotten with all that is kept about them; those in use never are."""

from __future__ import annotations

from astraflow.core.engine.commands import ForgetWorker
from astraflow.core.fleet.affinity import AffinityReleased
from astraflow.core.fleet.installs import InstallForgotten, InstallIntent
from astraflow.core.fleet.resources import ResourceGone, ResourceRecord
from astraflow.core.fleet.workers import (
    DrainIntent,
    WorkerBound,
    WorkerForgotten,
    WorkerLeft,
    WorkerLost,
    WorkerSeen,
)
from tests.unit.core.engine.rig import TENANT, RawWorker, Rig
from tests.unit.plans import make_plan

LOST_S = 60.0


def forget(rig: Rig, worker_id: str = "w1") -> bool:
    """Whether it was forgotten."""
    before = len(rig.recorded(WorkerForgotten))
    rig.execute(ForgetWorker(tenant=TENANT, worker_id=worker_id))
    return len(rig.recorded(WorkerForgotten)) > before


def test_a_worker_that_is_away_is_forgotten_with_all_that_it_held(rig: Rig) -> None:
    worker = rig.worker("w1")
    view = rig.engine.view
    view.resources.put(
        ResourceRecord(
            tenant=TENANT, worker_id="w1", resource_id="r1", scope="session:a", created_at=0
        )
    )
    view.installs.put(
        InstallIntent(
            tenant=TENANT,
            worker_id="w1",
            name="acme.texts",
            version="1.0",
            target="installed",
            updated_at=0,
        )
    )
    worker.crash()
    rig.wait(LOST_S)
    view.affinity.restore(TENANT, "key", "w1", rig.now, rig.now + 10 * LOST_S)
    rig.fleet.clear()
    assert forget(rig)
    assert view.workers.find(TENANT, "w1") is None
    assert view.affinity.lookup(TENANT, "key") is None
    assert list(view.resources) == []
    assert len(view.installs) == 0
    assert rig.fleet == [
        AffinityReleased(TENANT, rig.at, "key"),
        ResourceGone(TENANT, rig.at, "w1", "r1", "evicted"),
        InstallForgotten(TENANT, rig.at, "w1", "acme.texts", "1.0"),
        WorkerForgotten(TENANT, rig.at, "w1"),
    ]
    view.workers.check()
    view.resources.check()


def test_a_drain_is_forgotten_with_its_worker(rig: Rig) -> None:
    rig.engine.restore_worker(TENANT, "w1", DrainIntent("upgrade"))
    assert forget(rig)
    rig.worker("w1")
    worker = rig.engine.view.workers.find(TENANT, "w1")
    assert worker is not None and worker.drain is None and worker.is_reachable


def test_one_that_comes_back_after_all_is_a_new_one_and_works(rig: Rig) -> None:
    worker = rig.worker("w1")
    worker.crash()
    rig.wait(LOST_S)
    assert forget(rig)
    rig.fleet.clear()
    worker.boot()
    rig.wait(1.0)
    assert [one.subject for one in rig.recorded(WorkerBound)] == ["w1"]
    rig.submit(make_plan(1))
    rig.wait(1.0)
    worker.finish()
    rig.wait(1.0)
    assert rig.active() == []


def test_one_that_only_shook_hands_is_forgotten_too(rig: Rig) -> None:
    rig.engine.gateway.bind(TENANT, "w9", "somebody")
    assert forget(rig, "w9")
    assert rig.fleet == [WorkerForgotten(TENANT, rig.at, "w9")]


def test_one_that_is_there_is_kept(rig: Rig) -> None:
    rig.worker("w1")
    assert not forget(rig)
    assert rig.engine.view.workers.find(TENANT, "w1") is not None


def test_one_that_is_coming_in_is_kept(rig: Rig, raw: RawWorker) -> None:
    """Its connection has its identity before its register has arrived."""
    rig.engine.view.workers.apply(WorkerLeft(TENANT, rig.at, "w1"))
    assert not forget(rig)
    assert raw is not None


def test_one_whose_attempt_may_still_run_is_kept(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.submit(make_plan(1))
    rig.wait(0.1)
    worker.crash()
    rig.engine.view.workers.apply(WorkerLost(TENANT, rig.at, "w1"))
    assert not forget(rig)
    assert len(rig.engine.view.leases) == 1


def test_that_a_worker_is_there_can_be_written_down(rig: Rig) -> None:
    rig.worker("w1")
    rig.fleet.clear()
    rig.execute(ForgetWorker(tenant=TENANT, worker_id="w1", is_stale=False))
    assert rig.fleet == [WorkerSeen(TENANT, rig.at, "w1")]
