"""Leases that end, dispatches nobody took, stops nobody confirmed, deadlines."""

from __future__ import annotations

from astraflow.core import errors
from astraflow.core.agent.actions import InterruptAttempt, KillAttempt
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.wire import AttemptRef
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    AttemptStarted,
    CancelRequested,
    RunFinished,
    StopRequested,
    TaskCancelled,
    TaskFailed,
    TaskFailure,
    TaskLeased,
    TaskSucceeded,
)
from astraflow.core.runs.states import Stopping
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.plans import make_plan, retrying

TIMEOUT = TaskFailure("E.RUNNER.TIMEOUT", "TIMEOUT", "the attempt ran longer than allowed")


def dispatched(rig: Rig, *, taken: bool = True, **plan: object) -> RawWorker:
    """A worker by hand that was sent the only task of a run."""
    raw = RawWorker(rig)
    rig.submit(make_plan(1, **plan))  # type: ignore[arg-type]
    if taken:
        raw.take()
    rig.new_facts()
    return raw


def keep(rig: Rig, raw: RawWorker, seconds: float, *named: tuple[str, int]) -> None:
    """Let time pass while the worker heartbeats, naming these attempts."""
    end = rig.now + seconds
    while rig.now < end:
        rig.wait(min(4.0, end - rig.now))
        raw.heartbeat(*named)


class TestLeases:
    def test_an_attempt_is_lost_when_its_lease_ends_and_is_issued_elsewhere(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        rig.submit(make_plan(1))
        rig.wait(0.1)
        rig.new_facts()
        worker.crash()
        other = rig.worker("w2")
        rig.wait(29.8)
        assert rig.new_facts() == []
        rig.wait(5.3)
        lost, leased, started = rig.new_facts()
        assert isinstance(lost, AttemptLost)
        assert (lost.attempt, lost.cause) == (1, "its lease ended")
        assert leased == TaskLeased(0, 0, 2, "w2", 1, 30_000)
        assert started == AttemptStarted(0, 0, 2)
        assert other.tasks() == [("run1.0", 2)]
        assert rig.counted("lease expired") == 1

    def test_a_worker_that_heartbeats_without_the_attempt_does_not_keep_its_lease(self) -> None:
        rig = Rig()
        raw = dispatched(rig)
        keep(rig, raw, 29.9)
        assert rig.new_facts() == []
        rig.wait(0.2)
        assert rig.new_kinds() == [AttemptLost]

    def test_after_its_own_stall_the_scheduler_listens_before_it_expires(self, rig: Rig) -> None:
        """
        scheduler: asleep from t=126 to t=134; the lease ended at t=130
        worker:    its heartbeat is waiting to be read
        t=134: tick → listens; the heartbeat is read → the lease goes on
        """
        raw = dispatched(rig)
        keep(rig, raw, 26.0)
        rig.turn(8.0)
        rig.engine.tick(rig.now, rig.at)
        assert rig.counted("own stall noticed") == 1
        assert rig.counted("lease expired") == 0
        raw.heartbeat(("run1.0", 1))
        keep(rig, raw, 4.0, ("run1.0", 1))
        assert rig.new_facts() == []
        assert len(rig.engine.view.leases) == 1

    def test_a_lease_that_stays_silent_after_the_stall_expires_a_moment_later(self) -> None:
        rig = Rig()
        dispatched(rig)
        rig.engine.tick(rig.now, rig.at)
        rig.turn(40.0)
        rig.engine.tick(rig.now, rig.at)
        assert rig.counted("lease expired") == 0
        assert rig.engine.deadline() == rig.now + 1.0
        rig.wait(1.0)
        assert rig.counted("lease expired") == 1


class TestWithdraw:
    def test_a_dispatch_that_is_not_acknowledged_in_time_is_withdrawn(self, rig: Rig) -> None:
        raw = dispatched(rig, taken=False)
        rig.wait(4.9)
        assert rig.new_facts() == []
        rig.wait(0.2)
        assert rig.new_facts() == [StopRequested(0, 0, 1, "withdraw", 0)]
        assert raw.of(business.ExecCancel) == [
            business.ExecCancel(RunId("run1"), TaskId("run1.0"), 1, "withdraw", 0)
        ]

    def test_one_that_was_acknowledged_is_not(self, rig: Rig) -> None:
        raw = dispatched(rig)
        keep(rig, raw, 12.0, ("run1.0", 1))
        assert rig.new_facts() == []
        assert raw.of(business.ExecCancel) == []

    def test_one_whose_attempt_is_over_is_not(self, rig: Rig) -> None:
        raw = dispatched(rig, taken=False)
        raw.result("run1.0")
        rig.new_facts()
        rig.wait(6.0)
        assert rig.new_facts() == []

    def test_one_whose_commit_took_too_long_is_withdrawn_before_it_is_sent(self, rig: Rig) -> None:
        """
        leased, and the commit takes 6 s: at 5 s the attempt is withdrawn
        commit done → the dispatch leaves, the cancel right behind it
        """
        raw = RawWorker(rig)
        rig.commits = False
        rig.submit(make_plan(1))
        rig.wait(4.0)
        raw.heartbeat()
        rig.wait(2.0)
        rig.commits = True
        rig.commit()
        rig.run()
        sent = [frame.type for frame in raw.inbox if frame.seq is not None]
        assert sent == [business.DISPATCH, business.CANCEL]
        assert isinstance(rig.task().state, Stopping)

    def test_proof_a_refusal(self) -> None:
        rig, raw = self.withdrawn()
        raw.refuse("run1.0")
        assert self.codes(rig) == ["E.DISPATCH.STALE"]

    def test_proof_a_terminal_report(self) -> None:
        rig, raw = self.withdrawn()
        raw.result("run1.0", status="CANCELLED")
        assert self.codes(rig) == ["E.DISPATCH.WITHDRAWN"]

    def test_a_withdrawn_attempt_that_succeeded_all_the_same_has_succeeded(self) -> None:
        rig, raw = self.withdrawn()
        raw.result("run1.0")
        assert rig.new_kinds() == [TaskSucceeded, RunFinished]

    def test_proof_the_cancel_acknowledged_and_a_later_heartbeat_without_the_attempt(self) -> None:
        """
        scheduler                   worker
        dispatch (seq 0)  ─────▶    taken late
        cancel (seq 1)    ─────▶
                          ◀─────    heartbeat, ack 0, without it: made before the cancel was taken, no proof
                          ◀─────    ack 1
                          ◀─────    heartbeat, ack 1, naming it: it still runs, no proof
                          ◀─────    heartbeat, ack 1, without it: proof
        """
        rig, raw = self.withdrawn()
        raw.take(1)
        rig.new_facts()
        raw.heartbeat()
        assert rig.new_facts() == []
        raw.take(2)
        rig.wait(0.1)
        raw.heartbeat(("run1.0", 1))
        assert rig.new_facts() == []
        rig.wait(0.1)
        raw.heartbeat()
        [refused] = rig.new_facts()
        assert isinstance(refused, AttemptRefused)
        assert refused.message == "withdrawn: its worker took the cancel and does not have it"
        assert len(rig.engine.view.leases) == 0

    def test_proof_a_register_of_a_new_session_without_it(self) -> None:
        rig, _ = self.withdrawn()
        session_id = rig.engine.gateway.session_of("acme", "w1")
        assert session_id is not None
        rig.engine.gateway.end(SessionId(session_id), errors.SESSION_UNKNOWN, rig.now)
        RawWorker(rig)
        assert self.codes(rig) == ["E.DISPATCH.WITHDRAWN"]

    def test_a_register_of_a_new_session_with_it_is_no_proof(self) -> None:
        rig, _ = self.withdrawn()
        session_id = rig.engine.gateway.session_of("acme", "w1")
        assert session_id is not None
        rig.engine.gateway.end(SessionId(session_id), errors.SESSION_UNKNOWN, rig.now)
        raw = RawWorker(rig, inflight=(AttemptRef(TaskId("run1.0"), 1),))
        assert rig.new_facts() == []
        assert [one.reason for one in raw.of(business.ExecCancel)] == ["withdraw"]

    def test_proof_the_end_of_the_lease(self) -> None:
        rig, raw = self.withdrawn()
        keep(rig, raw, 129.9 - rig.now)
        assert rig.new_facts() == []
        rig.wait(0.2)
        [refused] = rig.new_facts()
        assert isinstance(refused, AttemptRefused)
        assert refused.message == "withdrawn: its lease ended"

    def test_proof_the_frame_never_reached_the_socket(self) -> None:
        """The window is one frame: the second dispatch waits behind the first, which is not taken."""
        rig = Rig(window=1)
        RawWorker(rig)
        rig.submit(make_plan(2))
        rig.new_facts()
        rig.wait(5.1)
        facts = rig.new_facts()
        assert StopRequested(0, 0, 1, "withdraw", 0) in facts
        [refused] = [fact for fact in facts if isinstance(fact, AttemptRefused)]
        assert (refused.task, refused.code) == (1, "E.DISPATCH.WITHDRAWN")
        assert refused.message == "the dispatch never reached the socket"

    def test_without_proof_no_new_attempt_is_issued(self) -> None:
        rig, raw = self.withdrawn()
        keep(rig, raw, 20.0, ("run1.0", 1))
        assert [one.attempt for one in raw.of(business.Dispatch)] == [1]
        assert isinstance(rig.task().state, Stopping)

    @staticmethod
    def withdrawn() -> tuple[Rig, RawWorker]:
        rig = Rig()
        raw = dispatched(rig, taken=False)
        rig.wait(4.0)
        raw.heartbeat()
        rig.wait(1.1)
        assert rig.new_facts() == [StopRequested(0, 0, 1, "withdraw", 0)]
        return rig, raw

    @staticmethod
    def codes(rig: Rig) -> list[str]:
        return [fact.code for fact in rig.new_facts() if isinstance(fact, AttemptRefused)]


class TestCancel:
    def test_a_worker_that_confirms_ends_the_run(self, rig: Rig, worker: Worker) -> None:
        rig.submit(make_plan(1))
        rig.cancel(grace_ms=2000)
        assert worker.of(InterruptAttempt) == [InterruptAttempt(TaskId("run1.0"), 1, 2.0, "cancel")]
        worker.finish(status="CANCELLED")
        assert rig.new_facts()[-2:] == [TaskCancelled(0, 0, 1), RunFinished(0, "cancelled")]

    def test_a_stop_that_nobody_confirms_is_ended_without_the_workers_word(self, rig: Rig) -> None:
        raw = dispatched(rig)
        rig.cancel(grace_ms=2000)
        keep(rig, raw, 16.9, ("run1.0", 1))
        assert rig.new_facts() == [
            CancelRequested(0, ""),
            StopRequested(0, 0, 1, "cancel", 2000),
        ]
        rig.wait(0.2)
        error = TaskFailure("E.CANCEL_TIMEOUT", "CANCELLED", "the worker did not confirm")
        failed, finished = rig.new_facts()
        assert isinstance(failed, TaskFailed)
        assert (failed.error.category, failed.error.message) == (error.category, error.message)
        assert failed.error.code == errors.CANCEL_TIMEOUT.code
        assert not failed.confirmed
        assert finished == RunFinished(0, "cancelled")
        assert raw.heartbeat(("run1.0", 1)).stop == (AttemptRef(TaskId("run1.0"), 1),)

    def test_a_stop_that_was_confirmed_in_time_is_not_overdue(self, rig: Rig) -> None:
        raw = dispatched(rig)
        rig.cancel(grace_ms=0)
        raw.result("run1.0", status="CANCELLED")
        rig.new_facts()
        keep(rig, raw, 20.0)
        assert rig.new_facts() == []

    def test_a_lease_that_ends_during_a_cancel_cancels_without_confirmation(self, rig: Rig) -> None:
        dispatched(rig)
        rig.cancel()
        rig.new_facts()
        rig.wait(29.9)
        assert rig.new_facts() == []
        rig.wait(1.2)
        assert rig.new_facts() == [
            TaskCancelled(0, 0, 1, confirmed=False),
            RunFinished(0, "cancelled"),
        ]

    def test_a_worker_without_a_session_is_told_when_it_is_back(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(make_plan(1))
        rig.wait(0.1)
        session_id = rig.engine.gateway.session_of("acme", "w1")
        assert session_id is not None
        worker.is_online = False
        rig.engine.gateway.end(SessionId(session_id), errors.SESSION_UNKNOWN, rig.now)
        rig.engine.tick(rig.now, rig.at)
        rig.run()
        rig.cancel(grace_ms=1000)
        assert rig.frames(business.CANCEL) == []
        worker.is_online = True
        rig.wait(3.0)
        assert worker.of(InterruptAttempt) == [InterruptAttempt(TaskId("run1.0"), 1, 1.0, "cancel")]


class TestTimeouts:
    def test_the_worker_ends_an_attempt_at_its_timeout_before_the_scheduler_does(self) -> None:
        rig = Rig()
        worker = rig.worker()
        rig.submit(make_plan(1, nodes={0: {"timeout_s": 10.0}}))
        assert worker.started[0].constraints.timeout_ms == 10_000
        rig.wait(10.1)
        assert worker.of(InterruptAttempt) == [
            InterruptAttempt(TaskId("run1.0"), 1, 0.0, "timeout")
        ]
        worker.finish(status="CANCELLED")
        failed = rig.new_facts()[-2]
        assert failed == TaskFailed(0, 0, 1, TIMEOUT)
        rig.wait(20.0)
        assert rig.new_facts() == []

    def test_the_scheduler_steps_in_when_the_worker_does_not(self) -> None:
        rig = Rig(cancel_grace_ms=1000)
        raw = dispatched(rig, nodes={0: {"timeout_s": 10.0}})
        keep(rig, raw, 14.9, ("run1.0", 1))
        assert rig.new_facts() == []
        keep(rig, raw, 0.2, ("run1.0", 1))
        assert rig.new_facts() == [StopRequested(0, 0, 1, "timeout", 1000)]
        keep(rig, raw, 16.1, ("run1.0", 1))
        assert rig.new_facts() == [
            TaskFailed(0, 0, 1, TIMEOUT, confirmed=False),
            RunFinished(0, "failed", TIMEOUT),
        ]

    def test_a_stop_that_is_overdue_is_not_proof_enough_for_a_new_attempt(self) -> None:
        """
        timeout → stop asked for → overdue: the lease is revoked, the worker is told to kill at each heartbeat
        lease end → failed, and only then attempt 2
        """
        rig = Rig(cancel_grace_ms=1000, resource_grace_s=5.0)
        raw = dispatched(rig, nodes={0: retrying(timeout_s=10.0)})
        keep(rig, raw, 15.1, ("run1.0", 1))
        keep(rig, raw, 16.1, ("run1.0", 1))
        rig.new_facts()
        assert rig.counted("a new attempt needs proof that this one has ended") == 1
        assert raw.heartbeat(("run1.0", 1)).stop == (AttemptRef(TaskId("run1.0"), 1),)
        [lease] = rig.engine.view.leases
        left = lease.until - rig.now
        keep(rig, raw, left - 0.1, ("run1.0", 1))
        assert rig.new_facts() == []
        keep(rig, raw, 0.2, ("run1.0", 1))
        [failed] = rig.new_facts()
        assert isinstance(failed, AttemptFailed)
        keep(rig, raw, 1.5)
        assert [one.attempt for one in raw.of(business.Dispatch)] == [1, 2]

    def test_a_real_worker_kills_what_was_revoked(self) -> None:
        rig = Rig(cancel_grace_ms=0, timeout_slack_s=0.0, stop_overdue_s=1.0)
        worker = rig.worker()
        rig.submit(make_plan(1, nodes={0: retrying(timeout_s=10.0)}))
        rig.wait(18.0)
        assert worker.of(KillAttempt) == [KillAttempt(TaskId("run1.0"), 1, "no longer leased")]


class TestDeadline:
    def test_a_run_that_does_not_end_by_its_deadline_fails(self, rig: Rig) -> None:
        worker = rig.worker(slots=1)
        rig.submit(make_plan(2), deadline_s=10.0)
        rig.wait(9.9)
        rig.new_facts()
        rig.wait(0.2)
        assert rig.new_facts() == [
            CancelRequested(0, "", "deadline"),
            StopRequested(0, 0, 1, "cancel", 30_000),
            TaskCancelled(0, 1, 0),
        ]
        worker.finish(status="CANCELLED")
        finished = rig.new_facts()[-1]
        assert isinstance(finished, RunFinished)
        assert finished.status == "failed"
        assert finished.error is not None
        assert finished.error.code == errors.TIMEOUT.code

    def test_the_deadline_of_a_run_that_has_ended_does_nothing(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(make_plan(1), deadline_s=10.0)
        worker.finish()
        rig.new_facts()
        rig.wait(11.0)
        assert rig.new_facts() == []


class TestLinks:
    def test_a_worker_whose_connection_is_gone_gets_nothing_new(self, rig: Rig) -> None:
        first, second = rig.worker("w1"), rig.worker("w2")
        first.crash()
        for number in range(4):
            rig.submit(make_plan(1), f"run{number}")
        assert len(second.tasks()) == 4
        assert rig.counted("link lost") == 1

    def test_what_waited_to_be_sent_to_it_goes_to_others_at_once(self) -> None:
        """A window of one: the first dispatch is on its way, the others never left."""
        rig = Rig(window=1)
        raw = RawWorker(rig, "w1")
        rig.submit(make_plan(3))
        assert [one.task_id for one in raw.of(business.Dispatch)] == ["run1.0"]
        second = rig.worker("w2")
        rig.engine.closed(raw.conn, rig.now, rig.at)
        rig.wait(1.0)
        assert sorted(second.tasks()) == [("run1.1", 2), ("run1.2", 2)]
        assert rig.task(0).is_held

    def test_a_dispatch_whose_link_is_lost_before_its_commit_goes_to_others(self, rig: Rig) -> None:
        first = rig.worker("w1")
        rig.commits = False
        rig.submit(make_plan(1))
        first.crash()
        rig.commits = True
        rig.commit()
        second = rig.worker("w2")
        rig.wait(1.0)
        assert second.tasks() == [("run1.0", 2)]

    def test_a_session_that_is_resumed_has_work_again(self, rig: Rig) -> None:
        worker = rig.worker("w1")
        worker.cut()
        entry = rig.engine.view.workers.find("acme", "w1")
        assert entry is not None
        rig.submit(make_plan(1))
        rig.wait(3.0)
        assert worker.tasks() == [("run1.0", 1)]
        assert entry.is_connected
        assert not rig.engine.view.workers.disconnected
