"""Registers, heartbeats, acks and the ends of sessions."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.agent.actions import InterruptAttempt, KillAttempt
from astraflow.core.engine.sessions import (
    offer_of,
    on_heartbeat,
    on_missed,
    on_session_ended,
)
from astraflow.core.fleet.workers import Offer
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.control import HeartbeatMetrics as Metrics
from astraflow.core.protocol.events import HeartbeatArrived, Missed, SessionEnded
from astraflow.core.protocol.wire import AttemptRef
from astraflow.core.runs.facts import (
    AttemptLost,
    AttemptStarted,
    RunFinished,
    TaskFailed,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.runs.states import Lost, Running, Stopping
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.plans import make_plan


def end_session(rig: Rig, worker_id: str = "w1") -> None:
    """The gateway drops the session; the worker is told that it is unknown."""
    session_id = rig.engine.gateway.session_of("acme", worker_id)
    assert session_id is not None
    rig.engine.gateway.end(SessionId(session_id), errors.SESSION_UNKNOWN, rig.now)
    rig.engine.tick(rig.now, rig.at)
    rig.run()


def running(rig: Rig, **plan: object) -> Worker:
    """A worker that has taken the only task of a run."""
    worker = rig.worker()
    rig.submit(make_plan(1, **plan))  # type: ignore[arg-type]
    rig.wait(0.1)
    assert isinstance(rig.task().state, Running)
    rig.new_facts()
    return worker


class TestOffers:
    def test_only_whole_packages_count(self) -> None:
        packages = [
            control.RegisteredPackage("a", "1.0", "installed"),
            control.RegisteredPackage("a", "2.0", "installed"),
            control.RegisteredPackage("a", "3.0", "installing"),
            control.RegisteredPackage("b", "1.0", "failed"),
        ]
        register = control.Register(
            control.Capabilities(
                control.Concurrency(3, {"t.gpu": 1}), ("python",), ("pkg.install",)
            ),
            packages=tuple(packages),
            labels={"zone": "eu"},
        )
        assert offer_of(register) == Offer(
            3,
            {"a": frozenset({"1.0", "2.0"})},
            frozenset({"python"}),
            frozenset({"pkg.install"}),
            {"zone": "eu"},
            {"t.gpu": 1},
        )


class TestFirstRegister:
    def test_what_is_in_the_inventory_is_rebound(self, rig: Rig) -> None:
        worker = running(rig)
        end_session(rig)
        rig.wait(3.0)
        assert rig.new_facts() == []
        [lease] = rig.engine.view.leases
        assert lease.session_id == worker.live.session.session_id
        worker.finish()
        assert rig.new_facts()[-1] == RunFinished(0, "succeeded")
        assert worker.tasks() == [("run1.0", 1)]

    def test_rebinding_is_the_start_of_an_attempt_whose_ack_was_lost(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        rig.new_facts()
        end_session(rig)
        assert raw.inbox == []
        RawWorker(rig, inflight=(AttemptRef(TaskId("run1.0"), 1),))
        assert rig.new_facts() == [AttemptStarted(0, 0, 1)]

    def test_what_is_not_in_the_inventory_is_lost_at_once(self, rig: Rig) -> None:
        RawWorker(rig)
        rig.submit(make_plan(1))
        rig.new_facts()
        end_session(rig)
        RawWorker(rig)
        [lost] = rig.new_facts()
        assert isinstance(lost, AttemptLost)
        assert lost.cause == "its worker registered without it"
        assert isinstance(rig.task().state, Lost)

    def test_a_held_result_is_rebound_and_its_report_counts(self, rig: Rig) -> None:
        worker = running(rig)
        worker.is_heard = False
        worker.finish()
        end_session(rig)
        worker.is_heard = True
        rig.wait(5.0)
        assert rig.new_kinds() == [TaskSucceeded, RunFinished]
        assert worker.tasks() == [("run1.0", 1)]

    def test_a_new_boot_whose_old_session_is_over_loses_what_it_does_not_have(self) -> None:
        rig = Rig()
        worker = running(rig)
        worker.crash()
        rig.wait(16.0)
        assert rig.new_facts() == []
        worker.boot()
        rig.wait(0.1)
        [lost] = [fact for fact in rig.new_facts() if isinstance(fact, AttemptLost)]
        assert lost.cause == "its worker registered without it"

    def test_a_displaced_incarnation_keeps_its_leases_until_they_end(self, rig: Rig) -> None:
        """
        boot 1: runs run1.0 #1, its session is alive
        boot 2: takes the identity over and registers without it: two processes may be running
        lease end: only now is attempt 2 issued
        """
        worker = running(rig)
        granted_until = next(iter(rig.engine.view.leases)).until
        worker.conn = None  # the old process goes on, and so does its connection
        worker.boot()
        rig.wait(1.0)
        assert rig.new_facts() == []
        rig.wait(granted_until - rig.now - 0.01)
        assert rig.new_facts() == []
        rig.wait(0.02)
        [lost] = rig.new_facts()
        assert isinstance(lost, AttemptLost)
        assert lost.cause == "its lease ended"

    def test_a_boot_beside_a_live_one_loses_nothing_at_once(self, rig: Rig) -> None:
        """The same, frame by frame: the first connection is open when the second boot registers without the attempt."""
        first = RawWorker(rig)
        rig.submit(make_plan(1))
        first.take()
        rig.new_facts()
        [lease] = rig.engine.view.leases
        RawWorker(rig, incarnation=2)
        assert rig.new_facts() == [], "the first boot may still run it"
        assert list(rig.engine.view.leases) == [lease]
        rig.wait(lease.until - rig.now + 0.01)
        [lost, *_] = rig.new_facts()
        assert isinstance(lost, AttemptLost)
        assert lost.cause == "its lease ended"

    def test_what_a_restarted_worker_had_is_lost_as_soon_as_it_registers(self, rig: Rig) -> None:
        """P11: its connection is gone, and its next boot has killed what it left behind."""
        worker = running(rig)
        worker.crash()
        worker.boot()
        rig.wait(0.01)
        [lost] = rig.new_facts()
        assert isinstance(lost, AttemptLost)
        assert lost.cause == "its worker registered without it"

    def test_what_is_no_longer_current_is_cancelled(self, rig: Rig) -> None:
        raw = RawWorker(
            rig, inflight=(AttemptRef(TaskId("run9.0"), 3), AttemptRef(TaskId("nonsense"), 1))
        )
        assert raw.of(business.ExecCancel) == [
            business.ExecCancel(RunId("run9"), TaskId("run9.0"), 3, "not current", 0),
            business.ExecCancel(RunId("nonsense"), TaskId("nonsense"), 1, "not current", 0),
        ]

    def test_an_attempt_that_belongs_to_another_worker_is_cancelled(self, rig: Rig) -> None:
        running(rig)
        liar = RawWorker(rig, "w2", inflight=(AttemptRef(TaskId("run1.0"), 1),))
        assert liar.of(business.ExecCancel) == [
            business.ExecCancel(RunId("run1"), TaskId("run1.0"), 1, "not current", 0)
        ]
        [lease] = rig.engine.view.leases
        assert lease.worker_id == "w1"

    def test_a_stop_is_asked_for_again_in_the_new_session(self, rig: Rig) -> None:
        """PROTOCOL §5.7: "nothing S→W lives only in a window"."""
        worker = running(rig)
        worker.hears = False
        rig.cancel(grace_ms=20_000)
        worker.hears = True
        end_session(rig)
        assert worker.of(InterruptAttempt) == []
        rig.wait(3.0)
        assert worker.of(InterruptAttempt) == [
            InterruptAttempt(TaskId("run1.0"), 1, 20.0, "cancel")
        ]
        assert isinstance(rig.task().state, Stopping)

    def test_a_stop_that_was_taken_in_an_old_session_proves_nothing_in_the_new_one(self) -> None:
        """
        session 1: takes the cancel of run2 as its frame 2
        session 2: is sent the cancel of run1 as 0, 1 … and that of run2 after it; says it has taken fewer
        """
        rig = Rig()
        first = RawWorker(rig, slots=8)
        for number in (1, 2):
            rig.submit(make_plan(1), f"run{number}")
        first.take()
        rig.cancel("run2", grace_ms=20_000)
        end_session(rig)
        held = (AttemptRef(TaskId("run1.0"), 1), AttemptRef(TaskId("run2.0"), 1))
        second = RawWorker(rig, inflight=held, slots=8)
        second.take()  # the cancel of run2 is frame 0 of this session
        [stopped] = [one for one in rig.engine.view.leases if one.stop_taken_seq is not None]
        assert (stopped.run.run_id, stopped.stop_taken_seq) == ("run2", 0)
        rig.cancel("run1", grace_ms=20_000)
        end_session(rig)
        third = RawWorker(rig, inflight=held, slots=8)
        cancels = [one.task_id for one in third.of(business.ExecCancel)]
        assert cancels == ["run1.0", "run2.0"]
        third.take(1)
        rig.new_facts()
        third.heartbeat(("run1.0", 1))
        assert rig.new_facts() == [], "it has not taken the cancel of run2 in this session"
        third.take(2)
        third.heartbeat(("run1.0", 1))
        assert rig.active() == ["run1"]


class TestLaterRegister:
    def test_it_replaces_what_the_worker_offers_and_loses_nothing(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        rig.submit(make_plan(1, nodes={0: {"package_name": "new"}}), "run2")
        assert [one.task_id for one in raw.of(business.Dispatch)] == ["run1.0"]
        rig.new_facts()
        raw.register(packages={"pkg": "1.0", "new": "1.0"})
        assert [type(fact) for fact in rig.new_facts() if fact.at == 0][-1] is TaskLeased
        assert [one.task_id for one in raw.of(business.Dispatch)] == ["run1.0", "run2.0"]
        assert len(rig.engine.view.leases) == 2

    def test_it_does_not_lift_a_drain(self, rig: Rig, raw: RawWorker) -> None:
        raw.heartbeat(draining=True)
        raw.register()
        rig.submit(make_plan(1))
        assert raw.of(business.Dispatch) == []
        raw.heartbeat()
        assert len(raw.of(business.Dispatch)) == 1


class TestHeartbeats:
    def test_a_heartbeat_renews_what_it_names_and_nothing_else(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(2))
        raw.take()
        for _ in range(6):
            rig.wait(4.0)
            assert raw.heartbeat(("run1.0", 1)).stop == ()
        until = {lease.task_id: lease.until for lease in rig.engine.view.leases}
        assert until[TaskId("run1.0")] == rig.now + 30.0
        assert until[TaskId("run1.1")] == 130.0

    def test_what_it_names_and_does_not_hold_is_answered_with_stop(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        rig.wait(1.0)
        answer = raw.heartbeat(("run1.0", 1), ("run1.0", 7), ("run9.0", 1))
        assert answer.stop == (AttemptRef(TaskId("run1.0"), 7), AttemptRef(TaskId("run9.0"), 1))

    def test_a_worker_kills_what_was_ended_without_its_word(self) -> None:
        rig = Rig(stop_overdue_s=1.0)
        worker = running(rig)
        rig.cancel(grace_ms=0)
        rig.wait(1.1)
        assert rig.active() == []
        rig.wait(6.0)
        assert worker.of(KillAttempt) == [KillAttempt(TaskId("run1.0"), 1, "no longer leased")]
        assert worker.held() == []

    @pytest.mark.parametrize(
        ("pressed", "between", "relieved"),
        [
            (Metrics(mem_pct=90), Metrics(mem_pct=87), Metrics(mem_pct=84)),
            (Metrics(disk_pct=95), Metrics(disk_pct=92), Metrics(disk_pct=89)),
        ],
    )
    def test_a_worker_short_of_memory_or_disk_gets_nothing_new_until_it_has_room(
        self, pressed: Metrics, between: Metrics, relieved: Metrics, rig: Rig, raw: RawWorker
    ) -> None:
        """The mark that lifts it is lower than the one that sets it: it does not flap in between."""
        raw.heartbeat(metrics=between)
        assert rig.counted("worker pressed") == 0
        raw.heartbeat(metrics=pressed)
        rig.submit(make_plan(1))
        rig.wait(1.0)
        raw.heartbeat(metrics=between)
        assert raw.of(business.Dispatch) == []
        rig.wait(1.0)
        raw.heartbeat(metrics=relieved)
        assert len(raw.of(business.Dispatch)) == 1
        assert rig.counted("worker relieved") == 1

    def test_a_draining_worker_gets_nothing_until_it_stops_draining(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        raw.heartbeat(draining=True)
        rig.submit(make_plan(1))
        assert raw.of(business.Dispatch) == []
        raw.heartbeat(draining=False)
        assert len(raw.of(business.Dispatch)) == 1

    def test_the_lease_of_a_dispatch_counts_from_the_newest_heartbeat(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.wait(20.0)
        rig.submit(make_plan(1))
        heartbeats = [one.id for one in worker.sent if one.type == control.HEARTBEAT]
        assert worker.started[0].lease == business.LeaseGrant(30_000, heartbeats[-1])

    def test_a_heartbeat_of_a_session_that_is_not_the_workers_renews_nothing(self) -> None:
        rig = Rig()
        RawWorker(rig)
        rig.submit(make_plan(1))
        rig.turn(1.0)
        named = control.Heartbeat(
            attempts=(AttemptRef(TaskId("run1.0"), 1), AttemptRef(TaskId("run9.9"), 1))
        )
        for session_id, worker_id in (("former", "w1"), ("s1", "unknown")):
            event = HeartbeatArrived(
                SessionId(session_id), "acme", worker_id, named, "frame", rig.now, None
            )
            assert on_heartbeat(rig.engine.view, event) == ()
        [lease] = rig.engine.view.leases
        assert lease.until == 130.0


class TestProofs:
    def test_a_heartbeat_from_before_the_cancel_was_taken_proves_nothing(self, rig: Rig) -> None:
        """The worker made its list of attempts before it took the cancel, and the frames crossed."""
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        raw.take()
        rig.cancel(grace_ms=20_000)
        raw.take()
        rig.new_facts()
        [lease] = rig.engine.view.leases
        assert lease.stop_taken_seq == 1
        raw.taken = 0
        raw.heartbeat()
        assert rig.new_facts() == []
        assert list(rig.engine.view.leases) == [lease]
        raw.taken = 1
        raw.heartbeat()
        assert rig.active() == [], "now it is proved that it does not run"


class TestSilence:
    def test_after_two_missed_heartbeats_nothing_new_is_sent(self, rig: Rig) -> None:
        worker = rig.worker()
        worker.is_heard = False
        rig.wait(9.9)
        assert rig.counted("heartbeat missed") == 1
        rig.wait(1.0)
        assert rig.counted("heartbeat missed") == 2
        rig.submit(make_plan(1))
        rig.wait(1.0)
        assert worker.tasks() == []
        worker.is_heard = True
        rig.wait(3.0)
        assert worker.tasks() == [("run1.0", 1)]
        assert len([one for one in worker.sent if one.type == control.REGISTER]) == 1

    def test_a_degraded_worker_is_online_again_at_its_next_heartbeat(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.wait(10.1)
        entry = rig.engine.view.workers.find("acme", "w1")
        assert entry is not None
        before = entry.status
        raw.heartbeat()
        assert (before, entry.status) == ("degraded", "online")

    def test_after_three_the_session_ends_and_no_lease_does(self, rig: Rig) -> None:
        worker = running(rig)
        worker.crash()
        rig.wait(15.1)
        entry = rig.engine.view.workers.find("acme", "w1")
        assert entry is not None
        assert (entry.status, entry.session_id) == ("lost", None)
        assert len(rig.engine.view.leases) == 1
        assert rig.new_facts() == []

    def test_a_session_that_is_ended_otherwise_is_offline(self, rig: Rig, worker: Worker) -> None:
        worker.is_online = False
        end_session(rig)
        entry = rig.engine.view.workers.find("acme", "w1")
        assert entry is not None
        assert entry.status == "offline"

    def test_what_happened_to_a_former_session_does_not_touch_the_present_one(self) -> None:
        rig = Rig()
        rig.worker()
        view = rig.engine.view
        for worker_id in ("w1", "unknown"):
            on_missed(view, Missed(SessionId("former"), "acme", worker_id, 2))
            on_session_ended(
                view, SessionEnded(SessionId("former"), "acme", worker_id, "E.X", True)
            )
        entry = view.workers.find("acme", "w1")
        assert entry is not None
        assert entry.status == "online"
        assert view.workers.find("acme", "unknown") is None


class TestAcks:
    def test_the_ack_of_a_dispatch_is_the_start_of_its_attempt(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        rig.new_facts()
        raw.take()
        assert rig.new_facts() == [AttemptStarted(0, 0, 1)]

    def test_the_ack_of_a_frame_whose_attempt_is_over_changes_nothing(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        raw.result("run1.0")
        rig.new_facts()
        raw.take()
        assert rig.new_facts() == []


def test_the_worker_of_another_tenant_with_the_same_id_is_another_worker(rig: Rig) -> None:
    one = rig.worker("w1", slots=1)
    two = rig.worker("w1", tenant="other", slots=1)
    rig.submit(make_plan(1))
    rig.submit(make_plan(1), "run2", "other")
    assert (one.tasks(), two.tasks()) == ([("run1.0", 1)], [("run2.0", 1)])
    one.finish()
    two.fail()
    assert [type(rig.facts(run)[-1]) for run in ("run1", "run2")] == [RunFinished, RunFinished]
    assert any(isinstance(fact, TaskFailed) for fact in rig.facts("run2"))


def test_a_session_opens_only_when_what_its_register_came_to_is_committed(rig: Rig) -> None:
    RawWorker(rig)
    rig.submit(make_plan(1))
    end_session(rig)
    rig.commits = False
    raw = RawWorker(rig)
    assert raw.of(control.SessionAccept) == []
    rig.commits = True
    rig.commit()
    rig.run()
    assert len(raw.of(control.SessionAccept)) == 1
