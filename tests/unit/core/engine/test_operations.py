from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import (
    DrainWorker,
    OperatorCommand,
    RebindRun,
    RebindWorker,
    UndrainWorker,
)
from astraflow.core.fleet.workers import DrainIntent, WorkerDrainRequested
from astraflow.core.ids import RunId
from astraflow.core.protocol import business, control
from astraflow.core.runs.facts import AttemptLost, RunFinished, StopRequested
from astraflow.core.workflow.plan import AffinityHint, Plan
from tests.unit.core.engine.rig import TENANT, Rig, Worker
from tests.unit.plans import make_plan


def chain(count: int) -> Plan:
    return make_plan(count, [(one, one + 1) for one in range(count - 1)])


def affine(key: str) -> Plan:
    return make_plan(1, nodes={0: {"affinity": AffinityHint(key, "sticky")}})


DRAIN = DrainWorker(tenant=TENANT, worker_id="w1")
UNDRAIN = UndrainWorker(tenant=TENANT, worker_id="w1")
REBIND = RebindWorker(tenant=TENANT, worker_id="w1")


def drain(rig: Rig, reason: str = "", deadline_s: float | None = None) -> None:
    intent = DrainIntent(reason, deadline_s)
    rig.execute(DrainWorker(tenant=TENANT, worker_id="w1", intent=intent))


def drains_told(rig: Rig) -> list[control.ControlDrain]:
    return [one.payload for one in rig.carried if isinstance(one.payload, control.ControlDrain)]


def status(rig: Rig) -> str:
    worker = rig.engine.view.workers.find(TENANT, "w1")
    assert worker is not None
    return worker.shown_status


class TestDrain:
    def test_a_drained_worker_is_told_and_gets_nothing_new(self, rig: Rig, worker: Worker) -> None:
        rig.submit(chain(2))
        drain(rig, reason="upgrade", deadline_s=60.0)
        assert drains_told(rig) == [control.ControlDrain("upgrade", 60_000)]
        assert len(rig.recorded(WorkerDrainRequested)) == 1
        worker.finish()
        rig.wait(3.0)
        assert len(worker.started) == 1

    def test_a_worker_that_comes_back_is_told_again(self, rig: Rig, worker: Worker) -> None:
        drain(rig)
        worker.crash()
        worker.boot()
        rig.wait(3.0)
        assert len(drains_told(rig)) == 2

    def test_a_stored_wish_is_told_when_the_worker_first_comes(self, rig: Rig) -> None:
        rig.engine.restore_worker(TENANT, "w1", DrainIntent("kept"))
        worker = rig.worker()
        rig.submit(chain(1))
        assert drains_told(rig) == [control.ControlDrain("kept", None)]
        assert worker.started == []

    def test_undraining_lets_the_next_boot_work(self, rig: Rig, worker: Worker) -> None:
        drain(rig)
        worker.crash()
        rig.engine.execute(UNDRAIN, rig.now, rig.at)
        worker.boot()
        rig.submit(chain(1))
        rig.wait(3.0)
        assert len(worker.started) == 1

    def test_a_worker_that_has_drained_is_offline_at_once(self, rig: Rig, worker: Worker) -> None:
        rig.submit(chain(2))
        drain(rig)
        assert status(rig) == "draining"
        worker.finish()
        rig.wait(0.5)  # until its report is acknowledged
        assert worker.agent is None
        assert status(rig) == "offline"

    def test_undraining_a_worker_that_has_ended_leaves_it_offline(self, rig: Rig) -> None:
        worker = rig.worker()
        drain(rig)
        assert worker.agent is None
        rig.engine.execute(UNDRAIN, rig.now, rig.at)
        rig.submit(chain(1))
        assert status(rig) == "offline"
        assert rig.frames(business.DISPATCH) == []
        assert rig.run_of().tasks[0].attempt == 0
        worker.boot()
        rig.wait(3.0)
        assert len(worker.started) == 1

    def test_a_draining_worker_that_holds_something_keeps_its_session(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(chain(1))
        drain(rig)
        worker.cut()
        assert status(rig) == "draining"
        rig.wait(3.0)
        worker.finish()
        assert rig.active() == []
        assert isinstance(rig.facts()[-1], RunFinished)

    def test_undraining_what_is_not_drained_changes_nothing(self, rig: Rig) -> None:
        rig.worker()
        rig.fleet.clear()
        rig.execute(UNDRAIN)
        assert [type(one).__name__ for one in rig.fleet] == ["Audited"]

    def test_a_drain_whose_session_has_just_ended_is_owed(self, rig: Rig, worker: Worker) -> None:
        rig.commits = False
        rig.engine.execute(DRAIN, rig.now, rig.at)
        batch = rig.engine.take_batch(rig.now, rig.at)
        assert batch is not None
        session = rig.engine.view.workers.find(TENANT, "w1")
        assert session is not None and session.session_id is not None
        rig.engine.gateway.end(session.session_id, errors.SESSION_UNKNOWN, rig.now)
        rig.engine.committed(batch, rig.now, rig.at)
        assert rig.counted("drain not sent") == 1
        rig.commits = True
        rig.wait(5.0)
        assert len(drains_told(rig)) == 1
        assert worker.started == []

    @pytest.mark.parametrize("kind", [DrainWorker, UndrainWorker, RebindWorker])
    def test_a_worker_that_nobody_knows_is_not_found(self, kind: type[OperatorCommand]) -> None:
        rig = Rig()
        with pytest.raises(errors.NotFound) as found:
            rig.execute(kind(tenant=TENANT, worker_id="nobody"))  # type: ignore[call-arg]
        assert found.value.code is errors.WORKER_NOT_FOUND
        assert rig.fleet == [], "what is refused is not audited"


class TestRebind:
    def test_rebinding_a_run_forgets_where_it_went(self, rig: Rig, worker: Worker) -> None:
        rig.submit(chain(2))
        assert rig.engine.view.placing.bindings == {"run1": {"pkg": "w1"}}
        rig.engine.execute(RebindRun(tenant=TENANT, run_id=RunId("run1")), rig.now, rig.at)
        assert rig.engine.view.placing.bindings == {}
        assert worker.held() == [("run1.0", 1)]

    def test_with_a_restart_what_runs_is_stopped_and_begins_anew(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(make_plan(3, [(0, 1), (0, 2)]))
        worker.finish()
        rig.execute(RebindRun(tenant=TENANT, run_id=RunId("run1"), restart=True))
        stops = [fact for fact in rig.facts() if isinstance(fact, StopRequested)]
        assert [fact.why for fact in stops] == ["rebind"] * len(worker.held())
        for number in range(1, len(worker.started)):
            worker.finish(number, "CANCELLED")
        lost = [fact for fact in rig.facts() if isinstance(fact, AttemptLost)]
        assert len(lost) == len(stops) > 0
        rig.wait(6.0)
        assert {attempt for _, attempt in worker.held()} == {2}

    def test_rebinding_a_run_lets_its_affinity_go(self, rig: Rig, worker: Worker) -> None:
        rig.submit(affine("k"))
        worker.finish()
        assert rig.engine.view.affinity.keys_of(TENANT, "w1") == ["k"]
        rig.submit(affine("k"), "run2")
        rig.engine.execute(RebindRun(tenant=TENANT, run_id=RunId("run2")), rig.now, rig.at)
        assert rig.engine.view.affinity.keys_of(TENANT, "w1") == []

    def test_rebinding_a_worker_forgets_all_that_is_tied_to_it(self, rig: Rig) -> None:
        rig.worker()
        rig.submit(affine("k"))
        rig.submit(chain(1), "other", tenant="globex")
        rig.engine.view.placing.bind(RunId("other"), "pkg", "w1")  # the same name in another tenant
        rig.execute(REBIND)
        assert rig.engine.view.placing.bindings == {"other": {"pkg": "w1"}}
        assert rig.engine.view.affinity.keys_of(TENANT, "w1") == []

    def test_an_ended_run_is_not_found(self, rig: Rig) -> None:
        with pytest.raises(errors.NotFound):
            rig.engine.execute(RebindRun(tenant=TENANT, run_id=RunId("run9")), rig.now, rig.at)
