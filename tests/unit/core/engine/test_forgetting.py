"""Workers that will not come back are forgotten with all that is kept about them; those in use never are."""

from __future__ import annotations

from astraflow.core.dispatch.resources import Holding
from astraflow.core.dispatch.wishes import Wish
from astraflow.core.engine.batch import (
    AffinityChanged,
    DrainWish,
    ResourceChanged,
    WishChanged,
    WorkerChanged,
    WorkerForgotten,
)
from astraflow.core.engine.forgetting import forget_worker, note_worker
from astraflow.core.protocol.events import IdentityBound
from tests.unit.core.engine.rig import TENANT, RawWorker, Rig
from tests.unit.plans import make_plan

LOST_S = 60.0


def forget(rig: Rig, worker_id: str = "w1") -> bool:
    engine = rig.engine
    done = engine.operate(
        lambda view: forget_worker(view, engine.gateway, TENANT, worker_id), rig.now, rig.at
    )
    rig.run()
    return done


def test_a_worker_that_is_away_is_forgotten_with_all_that_it_held() -> None:
    rig = Rig()
    worker = rig.worker("w1")
    view = rig.engine.view
    kept = Holding(TENANT, "w1", "r1", 0)
    kept.scope = "session:a"
    view.resources.add(kept)
    wish = Wish((TENANT, "w1", "acme.texts", "1.0"), "installed", "command", 0)
    view.wishes.put(wish)
    view.drains[TENANT, "w1"] = DrainWish()
    worker.crash()
    rig.wait(LOST_S)
    view.affinity.restore(TENANT, "key", "w1", rig.now, rig.now + 10 * LOST_S)
    rig.notices.clear()
    assert forget(rig)
    assert view.workers.find(TENANT, "w1") is None
    assert view.affinity.lookup(TENANT, "key") is None
    assert kept.state == "evicted"
    assert list(view.resources) == []
    assert len(view.wishes) == 0
    assert view.drains == {}
    assert rig.notices == [
        AffinityChanged(TENANT, "key"),
        ResourceChanged(TENANT, "w1", "r1"),
        WishChanged(wish.key),
        WorkerForgotten(TENANT, "w1"),
    ]
    view.workers.check()
    view.resources.check()


def test_one_that_comes_back_after_all_is_a_new_one_and_works() -> None:
    rig = Rig()
    worker = rig.worker("w1")
    worker.crash()
    rig.wait(LOST_S)
    assert forget(rig)
    rig.notices.clear()
    worker.boot()
    rig.wait(1.0)
    assert IdentityBound("", TENANT, "w1", "w1") in rig.notices
    rig.submit(make_plan(1))
    rig.wait(1.0)
    worker.finish()
    rig.wait(1.0)
    assert rig.active() == []


def test_one_that_only_shook_hands_is_forgotten_too() -> None:
    rig = Rig()
    rig.engine.gateway.bind(TENANT, "w9", "somebody")
    assert forget(rig, "w9")
    assert rig.notices == [WorkerForgotten(TENANT, "w9")]


def test_one_that_is_there_is_kept() -> None:
    rig = Rig()
    rig.worker("w1")
    assert not forget(rig)
    assert rig.engine.view.workers.find(TENANT, "w1") is not None


def test_one_that_is_coming_in_is_kept() -> None:
    """Its connection has its identity before its register has arrived."""
    rig = Rig()
    raw = RawWorker(rig)
    rig.engine.view.workers.set_status(rig.engine.view.workers.expect(TENANT, "w1"), "offline")
    assert not forget(rig)
    assert raw is not None


def test_one_whose_attempt_may_still_run_is_kept() -> None:
    rig = Rig()
    worker = rig.worker("w1")
    rig.submit(make_plan(1))
    rig.wait(0.1)
    worker.crash()
    rig.engine.view.workers.set_status(rig.engine.view.workers.expect(TENANT, "w1"), "lost")
    assert not forget(rig)
    assert len(rig.engine.view.leases) == 1


def test_that_a_worker_is_there_can_be_written_down() -> None:
    rig = Rig()
    rig.worker("w1")
    rig.notices.clear()
    rig.engine.operate(lambda view: note_worker(view, TENANT, "w1"), rig.now, rig.at)
    rig.run()
    assert rig.notices == [WorkerChanged(TENANT, "w1")]
