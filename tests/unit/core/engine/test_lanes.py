"""A tenant with several lanes, as the engine of one of them sees it."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from astraflow.core.engine.commands import GiveUpPackage, WantPackage
from astraflow.core.engine.lanes import TenantLanes
from astraflow.core.fleet.installs import InstallProblem
from astraflow.core.fleet.versions import PublishedVersion
from astraflow.core.protocol import business, control
from astraflow.core.protocol.control import LanePlace
from astraflow.core.runs.facts import TaskFailed
from tests.unit.core.engine.rig import TENANT, RawWorker, Rig
from tests.unit.plans import make_plan

LANES = (control.SEVERAL_LANES,)
ELSEWHERE = (LanePlace(1, "ws://b.example/ws/worker"), LanePlace(2, None))


def rig_of(own: int, **settings: Any) -> Rig:
    """The engine of one lane of a tenant that has three."""
    rig = Rig(**settings)
    set_lanes(rig, TenantLanes(own, ELSEWHERE))
    return rig


def set_lanes(rig: Rig, lanes: TenantLanes | None) -> None:
    rig.engine.set_lanes(TENANT, lanes, rig.now, rig.at)
    rig.run()


def worker_in(rig: Rig, lane: int, name: str = "w1", **offer: Any) -> RawWorker:
    return RawWorker(rig, name, lane=lane, **{"features": LANES, "slots": 8, **offer})


def dispatched(worker: RawWorker) -> int:
    return len(worker.of(business.Dispatch))


def hunger(worker: RawWorker) -> list[tuple[int, int]]:
    return [(one.tasks, one.runs) for one in worker.of(control.Hunger)]


class TestSessions:
    def test_the_home_says_with_the_first_heartbeat_which_lanes_there_are(self) -> None:
        rig = rig_of(0)
        worker = worker_in(rig, 0)
        worker.heartbeat()
        assert worker.of(control.Lanes) == [control.Lanes(ELSEWHERE)]

    def test_a_change_is_told_at_once_and_none_is_not(self) -> None:
        rig = rig_of(0)
        worker = worker_in(rig, 0)
        set_lanes(rig, TenantLanes(0, ELSEWHERE))
        assert worker.of(control.Lanes) == []
        set_lanes(rig, TenantLanes(0, ELSEWHERE[:1]))
        set_lanes(rig, None)
        assert worker.of(control.Lanes) == [control.Lanes(ELSEWHERE[:1]), control.Lanes()]

    def test_another_lane_tells_of_none(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1)
        worker.heartbeat()
        set_lanes(rig, TenantLanes(1, ELSEWHERE[:1]))
        assert worker.of(control.Lanes) == []

    def test_a_session_for_another_lane_is_denied(self) -> None:
        for own, asked in ((0, 1), (1, 0), (2, 1)):
            rig = rig_of(own)
            worker_in(rig, asked)
            assert [frame.payload.code for frame in rig.carried if isinstance(frame.payload, control.Reset)] == [
                "E.SESSION.DENIED"
            ]  # fmt: skip

    def test_a_worker_that_does_not_know_lanes_serves_the_home(self) -> None:
        rig = rig_of(0)
        worker = RawWorker(rig, "w1", slots=1)
        rig.submit(make_plan(2))
        worker.heartbeat()
        assert dispatched(worker) == 1
        assert not worker.of(control.Lanes) and not worker.of(control.Hunger)

    def test_workers_of_a_tenant_that_is_elsewhere_are_sent_away(self) -> None:
        rig = Rig()
        worker = RawWorker(rig, "w1")
        rig.engine.send_away({"globex"}, rig.now, rig.at)
        rig.run()
        assert worker.of(control.Reset) == []
        rig.engine.send_away({TENANT}, rig.now, rig.at)
        rig.run()
        resets = [one.payload for one in rig.carried if isinstance(one.payload, control.Reset)]
        assert [one.code for one in resets] == ["E.SESSION.MOVED"]


class TestSlots:
    def test_no_more_is_sent_than_the_slots_of_the_lane(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, slots=8, given=2)
        rig.submit(make_plan(6))
        assert dispatched(worker) == 2
        worker.send(control.SLOTS, control.Slots(5))
        assert dispatched(worker) == 5
        worker.send(control.SLOTS, control.Slots(1))
        worker.take()
        for number in range(4):
            worker.result(worker.of(business.Dispatch)[number].task_id)
        assert dispatched(worker) == 5, "as many are held as the lane has slots"

    def test_the_answer_comes_when_the_scheduler_counts_so(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, slots=8, given=0)
        before = len(worker.of(control.ControlAck))
        worker.send(control.SLOTS, control.Slots(3))
        answers = worker.of(control.ControlAck)[before:]
        assert [one.for_ is not None for one in answers] == [True]

    def test_a_lane_never_has_more_than_the_worker(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, slots=3)
        worker.send(control.SLOTS, control.Slots(10**15))
        rig.submit(make_plan(6))
        assert dispatched(worker) == 3

    def test_with_no_slot_nothing_is_sent_and_the_worker_is_there(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=0)
        rig.submit(make_plan(1))
        assert dispatched(worker) == 0
        assert rig.engine.ask.has_packages(TENANT, [("pkg", "1.0")])
        assert not rig.engine.ask.has_packages(TENANT, [("pkg", "1.0"), ("pkg", "2.0")])


class TestHunger:
    def test_a_worker_without_a_free_slot_is_told_what_waits(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=1)
        rig.submit(make_plan(3), "run1")
        rig.submit(make_plan(2), "run2")
        rig.wait(1.0)
        assert hunger(worker)[-1] == (4, 2)
        assert rig.engine.ask.waiting(TENANT) == 4
        worker.send(control.SLOTS, control.Slots(4))
        rig.wait(1.0)
        assert hunger(worker)[-1] == (1, 1)
        worker.send(control.SLOTS, control.Slots(8))
        rig.wait(1.0)
        assert hunger(worker)[-1] == (0, 0)

    def test_a_lane_whose_shard_is_parked_asks_for_no_slots(self) -> None:
        rig = rig_of(1)
        rig.engine.set_parked(True)
        worker = worker_in(rig, 1, given=0)
        rig.submit(make_plan(3), "run1")
        rig.wait(1.0)
        worker.heartbeat()
        rig.wait(1.0)
        assert hunger(worker)[-1] == (0, 0), (
            "it is told, since it may remember what a former owner said"
        )
        assert set(hunger(worker)) == {(0, 0)}
        rig.engine.set_parked(False)
        rig.wait(1.0)
        assert hunger(worker)[-1] == (3, 1)

    def test_it_is_told_again_with_each_heartbeat(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=0)
        rig.submit(make_plan(3))
        rig.wait(1.0)
        told = len(hunger(worker))
        worker.heartbeat()
        rig.wait(1.0)
        assert len(hunger(worker)) == told + 1

    def test_that_nothing_waits_is_told_once(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=4)
        rig.wait(1.0)
        for _ in range(10):
            rig.submit(make_plan(1), f"run{rig.now}")
            worker.take()
            worker.result(worker.of(business.Dispatch)[-1].task_id)
            rig.wait(0.1)
        assert hunger(worker) == [(0, 0)]

    def test_little_changes_are_not_told(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=0)
        rig.submit(make_plan(10))
        rig.wait(1.0)
        told = len(hunger(worker))
        rig.submit(make_plan(5), "run2")
        rig.wait(1.0)
        assert len(hunger(worker)) == told
        rig.submit(make_plan(5), "run3")
        rig.wait(1.0)
        assert hunger(worker)[told:] == [(20, 3)]

    def test_what_another_package_waits_for_is_no_hunger_of_the_worker(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=0)
        rig.submit(make_plan(3, nodes={0: {"package_name": "other"}}))
        rig.wait(1.0)
        assert hunger(worker)[-1] == (2, 1)

    def test_with_a_free_slot_there_is_none(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=4)
        rig.submit(make_plan(2, nodes={0: {"package_version": "9.0"}}))
        rig.wait(1.0)
        assert all(one == (0, 0) for one in hunger(worker))

    def test_a_tenant_with_one_lane_is_told_nothing(self) -> None:
        rig = Rig()
        worker = RawWorker(rig, "w1", features=LANES, slots=1)
        rig.submit(make_plan(5))
        worker.heartbeat()
        rig.wait(1.0)
        assert not hunger(worker) and not worker.of(control.Lanes)

    def test_a_look_that_must_wait_for_a_commit_wakes_nobody_meanwhile(self) -> None:
        rig = rig_of(1)
        worker = worker_in(rig, 1, given=0)
        rig.commits = False
        rig.submit(make_plan(3))
        rig.wait(1.0)
        deadline = rig.engine.deadline()
        assert deadline is None or deadline > rig.now, "the engine would be asked without end"
        rig.commits = True
        rig.commit()
        rig.run()
        rig.wait(1.0)
        assert hunger(worker)[-1] == (3, 1)


class TestPackages:
    def test_a_lane_that_is_not_the_home_says_what_it_wants(self) -> None:
        rig = rig_of(1)
        worker_in(rig, 1, features=(*LANES, "pkg.install"))
        rig.engine.publish(PublishedVersion(TENANT, "text", "2.0", "ab" * 32, "signed"))
        rig.submit(make_plan(1, nodes={0: {"package_name": "text", "package_version": "2.0"}}))
        rig.wait(1.0)
        assert rig.engine.ask.wanted() == [(TENANT, "text", "2.0")]
        assert not [one for one in rig.carried if isinstance(one.payload, business.PkgInstall)]
        rig.engine.forget_want((TENANT, "text", "2.0"))
        assert rig.engine.ask.wanted() == []

    def test_the_home_installs_what_another_lane_wants(self) -> None:
        rig = rig_of(0)
        RawWorker(rig, "w1", features=(*LANES, "pkg.install", "runtime.any"))
        want = WantPackage(tenant=TENANT, name="text", version="2.0")
        rig.engine.execute(want, rig.now, rig.at)
        rig.run()
        assert rig.engine.ask.wanted_state(TENANT, "text", "2.0") is None, "nobody has published it"
        rig.engine.publish(PublishedVersion(TENANT, "text", "2.0", "ab" * 32, "signed"))
        rig.engine.execute(want, rig.now, rig.at)
        rig.run()
        assert rig.engine.ask.wanted_state(TENANT, "text", "2.0") == "installing"
        sent = [one for one in rig.carried if isinstance(one.payload, business.PkgInstall)]
        assert [cast("business.PkgInstall", one.payload).name for one in sent] == ["text"]

    def test_tasks_fail_when_the_home_says_that_nobody_can(self) -> None:
        rig = rig_of(1)
        worker_in(rig, 1, given=4)
        rig.submit(make_plan(2, nodes={0: {"package_name": "text"}}))
        rig.wait(1.0)
        problem = InstallProblem("E.PKG.INSTALL_FAILED")
        gone = GiveUpPackage(
            tenant=TENANT, name="text", version="1.0", code=problem.code, message="no"
        )
        rig.engine.execute(gone, rig.now, rig.at)
        rig.run()
        failed = [one for one in rig.new_facts() if isinstance(one, TaskFailed)]
        assert [one.error.code for one in failed] == ["E.PKG.INSTALL_FAILED"]
        assert msgspec.structs.asdict(failed[0].error)["retryable"] is False
