"""The engine as its shell sees it: commit, then speak; silence; deadlines."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.engine.batch import Batch
from astraflow.core.engine.engine import earliest
from astraflow.core.fleet.workers import WorkerLost
from astraflow.core.ids import SessionId
from astraflow.core.protocol import business, codec, control, limits
from astraflow.core.runs.facts import (
    AttemptLost,
    AttemptRefused,
    RunAccepted,
    RunStarted,
    TaskFailed,
    TaskLeased,
)
from tests.unit.core.engine.rig import RawWorker, Rig, Worker
from tests.unit.plans import make_plan


def end_session(rig: Rig) -> None:
    session_id = rig.engine.gateway.session_of("acme", "w1")
    assert session_id is not None
    rig.engine.gateway.end(SessionId(session_id), errors.SESSION_UNKNOWN, rig.now)


@pytest.mark.parametrize(
    ("times", "first"),
    [((), None), ((None, None), None), ((None, 3.0, 2.0, None), 2.0), ((0.0, 1.0), 0.0)],
)
def test_the_earliest_of_some_times_is_the_first_that_is_there(
    times: tuple[float | None, ...], first: float | None
) -> None:
    assert earliest(*times) == first


class TestCommitThenSpeak:
    def test_a_lease_is_committed_before_its_frame_leaves(self, rig: Rig, worker: Worker) -> None:
        """
        submit → decided: accepted, started, leased
                 nothing is on the wire, nobody is answered
        commit → the answer, and the dispatch
        """
        rig.commits = False
        rig.submit(make_plan(1))
        assert rig.pending is not None
        kinds = [type(one.fact) for one in rig.pending.facts]
        assert kinds == [RunAccepted, RunStarted, TaskLeased]
        assert rig.frames(business.DISPATCH) == []
        assert rig.replies == []
        rig.commit()
        rig.run()
        assert worker.tasks() == [("run1.0", 1)]
        assert [answer.run_id for answer in rig.replies] == ["run1"]

    def test_a_report_is_acknowledged_when_it_is_committed(self, rig: Rig, worker: Worker) -> None:
        rig.submit(make_plan(1))
        rig.wait(0.1)
        rig.commits = False
        worker.finish()
        rig.wait(1.0)
        assert len(worker.live.attempts.reports()) == 1
        rig.commits = True
        rig.commit()
        rig.wait(1.0)
        assert worker.live.attempts.is_empty

    def test_heartbeats_are_answered_while_a_commit_takes_its_time(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(make_plan(1))
        rig.wait(0.1)
        rig.commits = False
        rig.submit(make_plan(1, nodes={0: {"package_name": "elsewhere"}}), "run2")
        rig.wait(60.0)
        assert worker.held() == [("run1.0", 1)]
        assert rig.connections == 1
        assert rig.counted("lease expired") == 0

    def test_what_is_decided_during_a_commit_is_in_the_next_batch(self, rig: Rig) -> None:
        rig.commits = False
        rig.submit(make_plan(1), "run1")
        rig.submit(make_plan(1), "run2")
        assert rig.pending is not None
        assert {one.run_id for one in rig.pending.facts} == {"run1"}
        rig.commit()
        rig.run()
        assert rig.pending is not None
        assert "run2" in {one.run_id for one in rig.pending.facts}

    def test_with_nothing_to_commit_there_is_no_batch(self, rig: Rig) -> None:
        assert rig.engine.take_batch(rig.now, rig.at) is None
        assert Batch().is_empty

    def test_a_dispatch_whose_lease_was_lost_during_the_commit_is_not_sent(self, rig: Rig) -> None:
        """
        leased to boot 1, the commit is under way
        its session ends, it registers anew without the attempt → lost
        commit done → the frame must not leave: the attempt is over
        """
        RawWorker(rig)
        rig.commits = False
        rig.submit(make_plan(1))
        end_session(rig)
        raw = RawWorker(rig)
        rig.commits = True
        rig.commit()
        rig.run()
        assert rig.frames(business.DISPATCH) == []
        assert any(isinstance(fact, AttemptLost) for fact in rig.facts())
        rig.wait(0.5)
        assert [one.attempt for one in raw.of(business.Dispatch)] == [2]

    def test_a_dispatch_whose_session_ended_during_the_commit_never_left(self, rig: Rig) -> None:
        RawWorker(rig)
        rig.commits = False
        rig.submit(make_plan(1))
        end_session(rig)
        rig.commits = True
        rig.commit()
        rig.run()
        [refused] = [fact for fact in rig.facts() if isinstance(fact, AttemptRefused)]
        assert (refused.code, refused.counted) == ("E.SESSION.UNKNOWN", True)
        assert len(rig.engine.view.leases) == 0
        raw = RawWorker(rig)
        rig.wait(0.5)
        assert [one.attempt for one in raw.of(business.Dispatch)] == [2]

    def test_a_dispatch_that_no_frame_can_carry_fails_its_task(self, rig: Rig) -> None:
        rig.worker()
        large = b'{"v":"' + b"x" * limits.MAX_FRAME_BYTES + b'"}'
        rig.submit(make_plan(1, nodes={0: {"parameters": large}}))
        [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
        assert failed.error.code == "E.DISPATCH.INVALID"

    def test_a_stop_whose_session_ended_during_the_commit_is_owed(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        raw.take()
        rig.commits = False
        rig.cancel()
        end_session(rig)
        rig.commits = True
        rig.commit()
        rig.run()
        assert rig.counted("stop not sent") == 1
        assert rig.frames(business.CANCEL) == []

    def test_a_stop_of_an_attempt_that_ended_during_the_commit_is_sent_and_not_waited_for(
        self, rig: Rig, raw: RawWorker
    ) -> None:
        """The cancel crosses the report: the worker finds nothing to stop, nobody waits for its ack."""
        rig.submit(make_plan(1))
        raw.take()
        rig.commits = False
        rig.cancel()
        raw.result("run1.0")
        rig.commits = True
        rig.commit()
        rig.run()
        assert len(rig.frames(business.CANCEL)) == 1
        assert len(rig.engine.view.sent) == 0
        assert rig.active() == []


class TestOwnership:
    def test_past_its_right_to_speak_the_engine_closes_its_sockets_and_gives_nothing_away(
        self,
    ) -> None:
        rig = Rig(shard_ttl_s=10.0)
        worker = rig.worker()
        rig.wait(5.9)
        assert rig.closed == []
        rig.wait(0.2)
        assert rig.closed == [limits.CLOSE_TRY_LATER]
        rig.submit(make_plan(1))
        rig.wait(2.0)
        assert worker.tasks() == []
        assert not worker.live.session.is_ready
        assert rig.frames(business.DISPATCH) == []
        assert not any(isinstance(fact, TaskLeased) for fact in rig.facts())

    def test_it_says_so_once(self) -> None:
        rig = Rig(shard_ttl_s=10.0)
        rig.worker()
        rig.wait(6.1)
        closed = len(rig.closed)
        rig.engine.tick(rig.now, rig.at)
        rig.engine.tick(rig.now, rig.at)
        rig.run()
        assert len(rig.closed) == closed

    def test_no_heartbeat_is_answered_past_the_right_to_speak(self) -> None:
        rig = Rig(shard_ttl_s=10.0)
        raw = RawWorker(rig)
        rig.wait(4.0)
        before = len(raw.inbox)
        rig.turn(3.0)
        frame = control.Heartbeat()
        raw.send(control.HEARTBEAT, frame)
        answers = [one for one in raw.inbox[before:] if one.type == control.ACK]
        assert answers == []

    def test_a_renewed_owner_speaks_again(self) -> None:
        rig = Rig(shard_ttl_s=10.0)
        worker = rig.worker()
        rig.wait(6.1)
        rig.submit(make_plan(1))
        rig.ownership.renewed(rig.now)
        rig.wait(4.0)
        assert worker.tasks() == [("run1.0", 1)]

    def test_the_end_of_the_right_to_speak_is_a_deadline(self) -> None:
        rig = Rig(shard_ttl_s=10.0)
        assert rig.engine.deadline() == 106.0
        rig.wait(7.0)
        assert rig.engine.deadline() is None


class TestInputs:
    def test_a_bad_frame_ends_its_connection_and_not_the_session(self, rig: Rig) -> None:
        worker = rig.worker()
        rig.submit(make_plan(1))
        bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "not JSON")
        assert worker.conn is not None
        rig.engine.bad_frame(worker.conn, bad, rig.now, rig.at)
        rig.run()
        assert rig.closed == [limits.CLOSE_PROTOCOL_ERROR]
        rig.wait(3.0)
        assert worker.live.session.is_ready
        worker.finish()
        assert rig.active() == []

    def test_who_came_and_who_was_let_in_is_handed_up_with_the_batch(self, rig: Rig) -> None:
        worker = rig.worker()
        kinds = [type(fact).__name__ for fact in rig.fleet]
        assert sorted(kinds) == ["Audited", "Audited", "WorkerBound", "WorkerRegistered"]
        worker.crash()
        rig.wait(20.0)
        assert [one.worker_id for one in rig.recorded(WorkerLost)] == [worker.worker_id]

    def test_a_fact_names_the_frame_or_command_that_it_was_decided_for(self, rig: Rig) -> None:
        raw = RawWorker(rig)
        rig.submit(make_plan(1))
        raw.take()
        raw.result("run1.0")
        causes = {type(one.fact).__name__: one.cause for one in rig.store}
        assert causes["RunAccepted"] == "run1"
        assert causes["TaskSucceeded"] is not None
        assert causes["TaskSucceeded"].startswith(raw.conn)
        assert causes["TaskLeased"] is None, "placing is nobody's command"

    def test_time_does_not_go_back(self, rig: Rig) -> None:
        with pytest.raises(AssertionError, match="does not go back"):
            rig.engine.tick(rig.now - 1.0, rig.at)

    def test_an_idle_engine_has_no_deadline(self) -> None:
        assert Rig().engine.deadline() is None

    def test_an_engine_with_tasks_that_wait_looks_at_them_again(self) -> None:
        rig = Rig(say_waiting_after_s=2.0)
        rig.submit(make_plan(1))
        rig.wait(0.1)
        assert rig.engine.deadline() == pytest.approx(102.0)
