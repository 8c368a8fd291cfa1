"""The agent: fences, sessions, reports, drain, against a real gateway."""

from __future__ import annotations

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.agent.actions import (
    Exit,
    ForwardAnswer,
    HandUp,
    InterruptAttempt,
    KillAttempt,
    StartAttempt,
)
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, codec, control, limits
from astraflow.core.protocol.events import (
    Delivered,
    HeartbeatArrived,
    RegisterArrived,
    SlotsArrived,
)
from astraflow.core.protocol.send_window import QueueFull
from astraflow.core.protocol.session_states import SessionState
from astraflow.core.protocol.wire import AttemptRef, Envelope, Sender, Unreadable
from astraflow.core.protocol.worker_events import (
    Credential,
    HungerTold,
    LanesTold,
    SessionReady,
    SlotsAnswered,
)
from astraflow.core.protocol.worker_session import WorkerSession
from tests.unit.core.agent.desk import Desk
from tests.unit.core.protocol.pair import (
    GOOD_TOKEN,
    TENANT,
    CountedIds,
    frame_of_worker,
    handshake,
)


def refusals(desk: Desk) -> list[tuple[str, int, str]]:
    return [(one.task_id, one.attempt, one.code) for one in desk.delivered(business.ExecError)]


def results(desk: Desk) -> list[tuple[str, int, str]]:
    return [(one.task_id, one.attempt, one.status) for one in desk.delivered(business.Result)]


class TestDispatch:
    def test_a_dispatch_is_started_and_its_result_is_held_until_it_is_committed(self) -> None:
        desk = Desk()
        desk.commits = False
        desk.dispatch(1)
        [start] = desk.take_actions()
        assert isinstance(start, StartAttempt)
        assert start.dispatch.task_id == "run1.1"
        desk.finish(1)
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")]
        assert desk.reports() == [("run1.1", 1)]
        desk.gateway.committed(SessionId(desk.session_id), (0,))
        desk.wait(0.1)
        assert desk.reports() == []

    def test_a_dispatch_that_is_running_is_not_started_again(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.dispatch(1)
        assert desk.started() == [("run1.1", 1)]
        assert refusals(desk) == []

    def test_the_result_of_a_finished_dispatch_is_sent_again(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.finish(1)
        desk.dispatch(1)
        assert desk.started() == [("run1.1", 1)]
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")] * 2
        for seq in (0, 1):
            desk.gateway.committed(SessionId(desk.session_id), (seq,))
        desk.wait(0.1)
        assert desk.reports() == []

    def test_a_stale_attempt_is_refused(self, desk: Desk) -> None:
        desk.dispatch(1, 2)
        desk.finish(1, 2)
        desk.dispatch(1, 1)
        assert desk.started() == [("run1.1", 2)]
        assert refusals(desk) == [("run1.1", 1, "E.DISPATCH.STALE")]
        assert desk.agent.counters == {"refused: E.DISPATCH.STALE": 1}

    def test_a_lease_since_a_frame_that_was_never_sent_is_refused(self, desk: Desk) -> None:
        desk.dispatch(1, since="made up")
        assert desk.started() == []
        assert refusals(desk) == [("run1.1", 1, "E.DISPATCH.STALE")]

    def test_frames_about_packages_and_resources_are_handed_up(self, desk: Desk) -> None:
        install = business.PkgInstall("pkg", "1.0", "https://example.org/p", "0" * 64)
        desk.send(business.PKG_INSTALL, install)
        [action] = desk.take_actions()
        assert isinstance(action, HandUp)
        assert action.envelope.payload == install

    def test_an_unreadable_frame_is_counted(self, desk: Desk) -> None:
        bad = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/run_id", "is missing")
        sender = Sender("scheduler", "sched-1")
        frame = Envelope(business.DISPATCH, "bad", "", TENANT, sender, bad, None, 0)
        desk.agent.feed(frame, desk.now)
        desk.run()
        assert desk.agent.counters == {"unreadable frame": 1}


class TestFence:
    def test_without_answers_an_attempt_is_killed_at_its_fence_and_not_reported(self) -> None:
        """
        worker                     scheduler
        heartbeat h1 (t=100) ─────▶ answered
                             ◀───── dispatch since h1
        heartbeats …         ──✕    lost
        t=118: kill, no report
        """
        desk = Desk()
        desk.dispatch(1)
        desk.take_actions()
        desk.is_heard = False
        desk.wait(17.9)
        assert desk.take_actions() == []
        desk.wait(0.2)
        assert desk.take_actions() == [KillAttempt(TaskId("run1.1"), 1, "fence")]
        assert desk.agent.counters["self-fenced"] == 1
        desk.gone(1)
        assert desk.agent.attempts.is_empty
        assert results(desk) == []

    def test_the_fence_counts_from_when_the_answered_heartbeat_was_sent(self, desk: Desk) -> None:
        """
        The heartbeat of about t=105 is sent, and answered at t=107. Nothing later is answered, so the fence is
        18 s after the sending, not after the answer.
        """
        desk.dispatch(1)
        desk.answers = False
        while len(desk.heartbeats()) < 2:
            desk.wait(0.05)
        sent_at = desk.now
        desk.wait(2.0)
        arrived = [one for one in desk.events if isinstance(one, HeartbeatArrived)][-1]
        desk.gateway.answer_heartbeat(SessionId(desk.session_id), arrived.frame_id, (), desk.now)
        desk.run()
        [held] = desk.agent.attempts.working()
        assert held.fence_at == pytest.approx(sent_at + 18.0, abs=0.06)
        assert held.fence_at < desk.now + 18.0 - 1.9

    def test_hearing_the_scheduler_does_not_move_the_fence(self, desk: Desk) -> None:
        """A one-way partition: dispatches arrive, heartbeats do not."""
        desk.dispatch(1)
        [held] = desk.agent.attempts.working()
        before = held.fence_at
        desk.answers = False
        desk.wait(2.0)
        desk.dispatch(2)
        assert held.fence_at == before

    def test_answered_heartbeats_keep_an_attempt_alive(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.wait(120.0)
        assert desk.held() == [("run1.1", 1)]
        assert desk.started() == [("run1.1", 1)]
        assert "self-fenced" not in desk.agent.counters

    def test_after_a_stall_the_fence_is_checked_before_any_frame_is_handled(self) -> None:
        """The worker sleeps past its fence; the answer to its heartbeat is read only then."""
        desk = Desk()
        desk.dispatch(1)
        desk.take_actions()
        desk.turn(18.5)
        answer = control.ControlAck(desk.since)
        sender = Sender("scheduler", "sched-1")
        desk.agent.feed(Envelope(control.ACK, "late", "", TENANT, sender, answer), desk.now)
        assert KillAttempt(TaskId("run1.1"), 1, "fence") in desk.agent.take_actions()

    def test_a_worker_that_fenced_registers_only_when_all_it_killed_is_dead(self) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.dispatch(2)
        desk.is_heard = False
        desk.wait(18.5)
        desk.is_heard = True
        desk.wait(5.0)
        assert len(desk.registers()) == 1
        desk.gone(1)
        desk.wait(1.0)
        assert len(desk.registers()) == 1
        desk.gone(2)
        desk.wait(5.0)
        assert [one.inflight for one in desk.registers()] == [(), ()]
        assert desk.agent.session.is_ready

    def test_an_attempt_that_ends_while_it_is_killed_is_not_reported(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.is_heard = False
        desk.wait(18.5)
        desk.is_heard = True
        desk.finish(1)
        assert desk.agent.attempts.is_empty
        desk.wait(10.0)
        assert results(desk) == []

    def test_a_held_report_is_not_fenced(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.finish(1)
        desk.is_heard = False
        desk.wait(60.0)
        assert desk.reports() == [("run1.1", 1)]
        assert not any(isinstance(one, KillAttempt) for one in desk.actions)


class TestStops:
    def test_an_attempt_that_an_answer_names_is_killed_at_once(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.dispatch(2)
        desk.take_actions()
        desk.stop = (
            AttemptRef(TaskId("run1.1"), 1),
            AttemptRef(TaskId("run1.2"), 9),
            AttemptRef(TaskId("run1.7"), 1),
        )
        desk.wait(6.0)
        assert desk.take_actions() == [KillAttempt(TaskId("run1.1"), 1, "no longer leased")]
        desk.gone(1)
        assert desk.held() == [("run1.2", 1)]
        assert desk.agent.session.is_ready  # a stop is not a fence: the session goes on

    def test_a_cancel_asks_the_host_with_its_grace(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.take_actions()
        desk.cancel(1, grace_ms=2500)
        desk.cancel(1, grace_ms=2500)
        assert desk.take_actions() == [InterruptAttempt(TaskId("run1.1"), 1, 2.5, "cancel")]
        desk.finish(1, status="CANCELLED")
        assert results(desk) == [("run1.1", 1, "CANCELLED")]

    def test_a_cancel_of_an_unknown_attempt_refuses_a_later_dispatch(self, desk: Desk) -> None:
        desk.cancel(1)
        desk.dispatch(1)
        assert desk.started() == []
        assert refusals(desk) == [("run1.1", 1, "E.DISPATCH.STALE")]
        desk.dispatch(1, 2)
        assert desk.started() == [("run1.1", 2)]

    def test_a_cancel_does_not_touch_a_report(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.finish(1)
        desk.take_actions()
        desk.cancel(1)
        assert desk.take_actions() == []
        assert desk.reports() == [("run1.1", 1)]

    def test_an_attempt_that_runs_too_long_is_stopped_and_fails_with_a_timeout(self) -> None:
        desk = Desk()
        desk.dispatch(1, timeout_ms=3000)
        desk.take_actions()
        desk.wait(2.9)
        assert desk.take_actions() == []
        desk.wait(0.2)
        assert desk.take_actions() == [InterruptAttempt(TaskId("run1.1"), 1, 0.0, "timeout")]
        desk.finish(1, status="CANCELLED")
        [result] = desk.delivered(business.Result)
        assert (result.status, result.error.code) == ("FAILED", "E.RUNNER.TIMEOUT")
        assert result.error.category == "TIMEOUT"

    def test_a_result_that_was_ready_when_the_stop_came_is_kept(self, desk: Desk) -> None:
        desk.dispatch(1, timeout_ms=3000)
        desk.wait(3.1)
        desk.finish(1)
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")]


class TestHosts:
    def test_the_end_of_an_attempt_that_is_not_held_is_counted(self, desk: Desk) -> None:
        desk.finish(1)
        desk.dispatch(2)
        desk.commits = False
        desk.finish(2)
        desk.finish(2)
        assert desk.agent.counters == {"end of an attempt that is not held": 2}
        assert len(results(desk)) == 1

    def test_the_death_of_what_was_not_killed_changes_nothing(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.gone(1)
        desk.gone(7)
        assert desk.held() == [("run1.1", 1)]

    def test_feedback_of_a_running_attempt_is_sent(self, desk: Desk) -> None:
        desk.dispatch(1)
        feedback = business.Feedback(RunId("run1"), TaskId("run1.1"), 1, progress=0.5)
        desk.agent.feedback(feedback, desk.now)
        desk.run()
        assert desk.delivered(business.Feedback) == [feedback]

    def test_feedback_of_what_is_over_or_without_a_session_is_dropped(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.finish(1)
        desk.agent.feedback(business.Feedback(RunId("run1"), TaskId("run1.1"), 1), desk.now)
        desk.agent.feedback(business.Feedback(RunId("run1"), TaskId("run1.7"), 1), desk.now)
        desk.dispatch(2)
        desk.is_online = False
        desk.lose_session()
        assert desk.warnings[-1].code == "E.SESSION.UNKNOWN"
        desk.agent.feedback(business.Feedback(RunId("run1"), TaskId("run1.2"), 1), desk.now)
        assert desk.agent.counters == {"feedback dropped": 3}
        assert desk.delivered(business.Feedback) == []


class TestReports:
    def test_a_result_finished_while_offline_is_sent_when_the_link_is_back(self) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.cut()
        desk.finish(1)
        assert results(desk) == []
        desk.wait(5.0)
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")]
        desk.wait(1.0)
        assert desk.agent.attempts.is_empty

    def test_a_report_is_held_across_sessions_and_sent_again_in_the_new_one(self) -> None:
        """
        worker                        scheduler
        result          ─────▶        delivered, not committed
                        ◀─────        reset: the session is unknown
        register (held: result) ────▶ accepted
        result          ─────▶        delivered again, committed
        """
        desk = Desk()
        desk.commits = False
        desk.dispatch(1)
        desk.finish(1)
        desk.lose_session()
        desk.wait(5.0)
        assert desk.registers()[-1].held_results == (AttemptRef(TaskId("run1.1"), 1),)
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")] * 2
        desk.gateway.committed(SessionId(desk.session_id), (0,))
        desk.wait(1.0)
        assert desk.agent.attempts.is_empty

    def test_a_result_without_a_session_waits_for_one(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.is_online = False
        desk.lose_session()
        desk.finish(1)
        assert desk.reports() == [("run1.1", 1)]
        desk.is_online = True
        desk.wait(40.0)
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")]

    def test_the_inventory_names_what_runs_and_what_is_held(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.dispatch(2)
        desk.finish(1)
        desk.lose_session()
        desk.wait(3.0)
        register = desk.registers()[-1]
        assert register.inflight == (AttemptRef(TaskId("run1.2"), 1),)
        assert register.held_results == (AttemptRef(TaskId("run1.1"), 1),)

    def test_a_resumed_session_does_not_send_reports_twice(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.finish(1)
        desk.cut()
        desk.wait(3.0)
        assert desk.agent.session.is_ready
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")]
        assert len(desk.registers()) == 1

    @pytest.mark.parametrize(
        ("value", "code"),
        [
            (b'{"v": "\\u0000"}', "E.RESULT.INVALID"),
            (b'"' + b"x" * limits.MAX_FRAME_BYTES + b'"', "E.RESULT.TOO_LARGE"),
        ],
    )
    def test_a_result_that_cannot_be_sent_becomes_a_failure(self, value: bytes, code: str) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.finish(1, result=msgspec.Raw(value))
        [result] = desk.delivered(business.Result)
        assert (result.status, result.error.code) == ("FAILED", code)
        assert result.error.retryable is False
        assert desk.agent.counters == {"unsendable result": 1}

    def test_a_result_that_closes_the_link_twice_is_replaced_by_a_failure(self, desk: Desk) -> None:
        """
        worker                   scheduler
        result r   ─────▶        cannot be read: close 1002
        resume, r  ─────▶        again: close 1002
        resume, FAILED under the seq of r ─────▶ committed
        """
        desk.dispatch(1)
        desk.unread = {business.RESULT}
        desk.finish(1)
        _close_twice(desk)
        assert desk.agent.counters == {"poisoned frame": 1}
        desk.unread = set()
        desk.wait(10.0)
        [result] = desk.delivered(business.Result)
        assert (result.status, result.error.code) == ("FAILED", "E.RESULT.INVALID")
        assert result.error.retryable is False
        assert desk.agent.attempts.is_empty

    def test_poisoned_feedback_is_counted_and_replaces_nothing(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.unread = {business.FEEDBACK}
        desk.agent.feedback(
            business.Feedback(RunId("run1"), TaskId("run1.1"), 1, progress=0.5), desk.now
        )
        _close_twice(desk)
        assert desk.agent.counters == {"poisoned frame": 1}
        assert desk.held() == [("run1.1", 1)]


class TestSessions:
    def test_a_changed_offer_is_registered_in_the_open_session(self, desk: Desk) -> None:
        desk.agent.reoffer(desk.now)
        desk.run()
        assert [one.first for one in desk.events if isinstance(one, RegisterArrived)] == [
            True,
            False,
        ]
        desk.is_online = False
        desk.cut()
        desk.agent.reoffer(desk.now)
        desk.run()
        assert len(desk.registers()) == 2

    def test_an_offer_that_changed_without_a_connection_is_told_when_the_session_goes_on(
        self, desk: Desk
    ) -> None:
        desk.is_online = False
        desk.cut()
        desk.agent.reoffer(desk.now)
        desk.run()
        assert len(desk.registers()) == 1
        desk.is_online = True
        desk.wait(10.0)
        assert len(desk.registers()) == 2

    def test_heartbeats_name_every_attempt_and_report(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.dispatch(2)
        desk.finish(2)
        desk.wait(6.0)
        assert desk.heartbeats()[-1].attempts == (
            AttemptRef(TaskId("run1.1"), 1),
            AttemptRef(TaskId("run1.2"), 1),
        )

    def test_a_worker_that_holds_attempts_stays_away_for_two_seconds_at_most(self) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.is_online = False
        desk.cut()
        for _ in range(10):
            assert desk.connect_at is not None
            assert desk.connect_at - desk.now <= limits.BACKOFF_HELD_CAP_S
            desk.wait(1.0)
        assert desk.held() == [("run1.1", 1)]

    def test_a_superseded_worker_kills_its_work_and_exits(self, desk: Desk) -> None:
        """Another process with this identity connects; this one does not fight back."""
        desk.dispatch(1)
        desk.dispatch(2)
        desk.stop = (AttemptRef(TaskId("run1.2"), 1),)
        desk.wait(5.0)
        desk.take_actions()
        desk.gateway.opened(99, desk.now)
        greeting = frame_of_worker(control.HANDSHAKE, handshake(incarnation=2), CountedIds("9"))
        desk.gateway.feed(99, greeting, desk.now, desk.wall)
        desk.run()
        assert desk.take_actions() == [
            KillAttempt(TaskId("run1.1"), 1, "superseded"),
            Exit(1, "another process has this worker's identity"),
        ]
        assert desk.agent.session.state is SessionState.CLOSED
        desk.gone(1)
        desk.gone(2)
        assert desk.take_actions() == []

    def test_a_bad_frame_ends_the_connection_and_the_session_is_resumed(self, desk: Desk) -> None:
        desk.dispatch(1)
        bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "not JSON")
        desk.agent.bad_frame(bad, desk.now)
        desk.run()
        desk.wait(3.0)
        assert desk.agent.session.is_ready
        assert len(desk.registers()) == 1
        assert desk.held() == [("run1.1", 1)]

    def test_an_error_of_the_peer_is_counted(self, desk: Desk) -> None:
        sender = Sender("scheduler", "sched-1")
        error = control.ControlError("frame", "E.CMD.UNKNOWN")
        desk.agent.feed(Envelope(control.ERROR, "e1", "", TENANT, sender, error), desk.now)
        assert desk.agent.counters == {"frame rejected by the scheduler": 1}

    def test_the_deadline_is_the_first_of_session_fence_and_drain(self, desk: Desk) -> None:
        heartbeat_at = desk.agent.deadline()
        assert heartbeat_at is not None
        desk.dispatch(1, timeout_ms=1000)
        desk.wait(0.5)
        assert desk.agent.deadline() == pytest.approx(101.0)
        desk.agent.drain(desk.now, 0.2)
        desk.run()
        assert desk.agent.deadline() is not None
        assert desk.agent.deadline() <= desk.now + 0.2  # type: ignore[operator]

    def test_an_agent_that_was_just_made_asks_for_a_connection(self) -> None:
        desk = Desk(opens=False)
        assert desk.agent.deadline() is None
        desk.run()
        assert desk.agent.session.is_ready

    def test_a_new_credential_is_presented_in_the_open_session(self, desk: Desk) -> None:
        session_id = desk.agent.session.session_id
        desk.agent.rotate(Credential("token", "renewed"), desk.now)
        desk.run()  # nobody here knows it: the session is over
        desk.agent.rotate(Credential("token", GOOD_TOKEN), desk.now)
        desk.wait(60.0)
        assert desk.agent.session.is_ready
        assert desk.agent.session.session_id != session_id


class TestDrain:
    def test_a_worker_without_work_drains_at_once(self, desk: Desk) -> None:
        desk.agent.drain(desk.now)
        desk.run()
        assert desk.take_actions() == [Exit(0, "drained")]
        assert desk.agent.session.state is SessionState.CLOSED

    def test_a_draining_worker_says_so_takes_nothing_and_finishes_what_runs(self) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.take_actions()
        desk.agent.drain(desk.now)
        desk.run()
        assert desk.heartbeats()[-1].draining
        desk.dispatch(2)
        assert refusals(desk) == [("run1.2", 1, "E.DISPATCH.DRAINING")]
        desk.wait(60.0)
        assert desk.take_actions() == []
        desk.finish(1)
        desk.wait(1.0)
        assert results(desk) == [("run1.1", 1, "SUCCEEDED")]
        assert desk.take_actions() == [Exit(0, "drained")]

    def test_it_does_not_end_before_its_report_is_committed(self, desk: Desk) -> None:
        desk.commits = False
        desk.dispatch(1)
        desk.agent.drain(desk.now)
        desk.finish(1)
        desk.wait(1.0)
        assert desk.exit is None
        desk.gateway.committed(SessionId(desk.session_id), (0,))
        desk.wait(1.0)
        assert desk.exit == Exit(0, "drained")

    def test_it_does_not_end_before_its_refusal_is_committed(self, desk: Desk) -> None:
        """PROTOCOL §2: "close when `ack_seq` covers the outbox": a refusal is in it too."""
        desk.dispatch(1)
        desk.commits = False
        desk.agent.drain(desk.now)
        desk.dispatch(2)
        desk.finish(1)
        assert len(refusals(desk)) == 1
        [seq] = [
            one.seq
            for one in desk.events
            if isinstance(one, Delivered) and isinstance(one.envelope.payload, business.Result)
        ]
        desk.gateway.committed(SessionId(desk.session_id), (1 - seq,))
        desk.gateway.committed(SessionId(desk.session_id), (seq,))
        desk.wait(1.0)
        assert desk.exit == Exit(0, "drained")

    def test_a_refusal_that_is_not_committed_keeps_an_empty_worker_from_ending(self) -> None:
        desk = Desk()
        desk.commits = False
        desk.dispatch(1, since="made up")
        desk.agent.drain(desk.now)
        desk.run()
        assert desk.exit is None
        desk.gateway.committed(SessionId(desk.session_id), (0,))
        desk.wait(1.0)
        assert desk.exit == Exit(0, "drained")

    def test_at_the_deadline_what_runs_is_stopped_and_reported_as_drained(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.dispatch(2)
        desk.cancel(2)
        desk.take_actions()
        desk.agent.drain(desk.now, 4.0)
        desk.wait(3.9)
        assert desk.take_actions() == []
        desk.wait(0.2)
        assert desk.take_actions() == [InterruptAttempt(TaskId("run1.1"), 1, 0.0, "drain")]
        desk.finish(1, status="CANCELLED")
        [result] = desk.delivered(business.Result)
        assert (result.status, result.error.code) == ("FAILED", "E.TASK.DRAINED")
        assert result.error.category == "INFRASTRUCTURE"

    def test_a_scheduler_can_ask_for_a_drain_with_a_deadline(self, desk: Desk) -> None:
        desk.dispatch(1)
        desk.take_actions()
        desk.gateway.drain(SessionId(desk.session_id), "upgrade", desk.now, 4.0)
        desk.run()
        assert desk.agent.session.state is SessionState.DRAINING
        desk.wait(4.1)
        assert desk.take_actions() == [InterruptAttempt(TaskId("run1.1"), 1, 0.0, "drain")]
        desk.finish(1, status="CANCELLED")
        desk.wait(1.0)
        assert desk.exit == Exit(0, "drained")

    def test_a_worker_that_drains_without_a_link_ends_when_it_holds_nothing(self) -> None:
        desk = Desk()
        desk.is_online = False
        desk.cut()
        desk.agent.drain(desk.now)
        desk.run()
        assert desk.exit == Exit(0, "drained")


def _close_twice(desk: Desk) -> None:
    """The scheduler closes the link over a frame that it cannot read, twice."""
    for _ in range(2):
        assert desk.conn is not None
        bad = codec.BadFrame(limits.CLOSE_PROTOCOL_ERROR, "not JSON")
        desk.gateway.bad_frame(desk.conn, bad, desk.now)
        desk.run()
        desk.wait(3.0)
        assert desk.agent.session.is_ready


class TestCalls:
    def request(self, request_id: str = "a", attempt: int = 1) -> business.NextRequest:
        return business.NextRequest(RunId("run1"), TaskId("run1.1"), attempt, request_id, 0)

    def response(self, request_id: str = "a", attempt: int = 1) -> business.NextResponse:
        return business.NextResponse(
            RunId("run1"), TaskId("run1.1"), attempt, request_id, msgspec.Raw(b"7")
        )

    def calling(self, *request_ids: str) -> Desk:
        """A desk whose agent runs an attempt that has made these calls."""
        desk = Desk()
        desk.dispatch(1)
        for request_id in request_ids:
            desk.agent.call(self.request(request_id), desk.now)
        desk.run()
        desk.take_actions()
        return desk

    def answer(self, desk: Desk, request_id: str = "a", attempt: int = 1) -> None:
        response = self.response(request_id, attempt)
        desk.send(business.NEXT_RESPONSE, response, response.task_id)

    def test_a_call_is_sent(self) -> None:
        desk = self.calling("a", "b")
        assert desk.delivered(business.NextRequest) == [self.request("a"), self.request("b")]

    def test_an_answer_is_given_to_the_attempt_once(self) -> None:
        desk = self.calling("a")
        self.answer(desk)
        self.answer(desk)
        assert desk.take_actions() == [ForwardAnswer(self.response())]
        assert desk.agent.counters == {"answer that nobody waits for": 1}

    @pytest.mark.parametrize(("request_id", "attempt"), [("other", 1), ("a", 2)])
    def test_an_answer_to_another_request_or_attempt_is_counted(
        self, request_id: str, attempt: int
    ) -> None:
        desk = self.calling("a")
        self.answer(desk, request_id, attempt)
        assert desk.take_actions() == []
        assert desk.agent.counters == {"answer that nobody waits for": 1}

    def test_an_unanswered_call_is_repeated_in_a_new_session(self) -> None:
        desk = self.calling("a", "b")
        self.answer(desk, "a")
        desk.events.clear()
        desk.lose_session()
        desk.wait(5.0)
        assert desk.agent.session.is_ready
        assert desk.delivered(business.NextRequest) == [self.request("b")]

    def test_a_call_is_not_repeated_where_the_session_goes_on(self) -> None:
        desk = self.calling("a")
        desk.cut()
        desk.wait(5.0)
        assert desk.agent.session.is_ready
        assert desk.delivered(business.NextRequest) == [self.request("a")]

    def test_a_call_without_a_session_is_sent_in_the_next(self) -> None:
        desk = self.calling()
        desk.is_online = False
        desk.lose_session()
        desk.agent.call(self.request(), desk.now)
        desk.run()
        assert desk.delivered(business.NextRequest) == []
        desk.is_online = True
        desk.wait(10.0)
        assert desk.delivered(business.NextRequest) == [self.request()]

    def test_a_call_of_an_attempt_that_does_not_run_is_counted(self) -> None:
        desk = self.calling()
        desk.agent.call(self.request("a", 2), desk.now)
        desk.cancel(1)
        desk.agent.call(self.request("b"), desk.now)
        desk.finish(1, status="CANCELLED")
        desk.agent.call(self.request("c"), desk.now)
        desk.run()
        assert desk.delivered(business.NextRequest) == []
        assert desk.agent.counters == {"call of an attempt that does not run": 3}

    def test_an_attempt_that_ended_waits_for_no_answers(self) -> None:
        desk = self.calling("a")
        desk.finish(1)
        desk.take_actions()
        desk.events.clear()
        desk.lose_session()
        desk.wait(5.0)
        assert desk.delivered(business.NextRequest) == []
        self.answer(desk)
        assert desk.take_actions() == []

    @pytest.mark.parametrize("is_online", [True, False])
    def test_a_call_that_no_frame_can_carry_is_answered_with_an_error(
        self, is_online: bool
    ) -> None:
        desk = self.calling("a")
        if not is_online:
            desk.is_online = False
            desk.lose_session()
        large = msgspec.Raw(b'"' + b"x" * limits.MAX_FRAME_BYTES + b'"')
        request = business.NextRequest(RunId("run1"), TaskId("run1.1"), 1, "b", 0, large)
        desk.agent.call(request, desk.now)
        desk.is_online = True
        desk.wait(10.0)
        [answer] = desk.take_actions()
        assert isinstance(answer, ForwardAnswer)
        assert answer.response.request_id == "b"
        assert answer.response.error is not None
        assert answer.response.error.code == "E.NEXT.INVALID"
        assert desk.agent.counters["unsendable call"] == 1
        assert {one.request_id for one in desk.delivered(business.NextRequest)} == {"a"}


class TestAFullQueue:
    """What finds no room in the send queue: feedback is shed, the rest waits for the next ack."""

    def refuse(self, *args: object, **fields: object) -> str:
        raise QueueFull(1)

    def test_a_call_is_sent_when_there_is_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.dispatch(2)
        desk.dispatch(3)
        with monkeypatch.context() as patch:
            patch.setattr(WorkerSession, "send", self.refuse)
            for number in (1, 2):
                request = business.NextRequest(RunId("run1"), TaskId(f"run1.{number}"), 1, "a", 0)
                desk.agent.call(request, desk.now)
        desk.cancel(2)  # it does not wait for an answer any more
        assert desk.delivered(business.NextRequest) == []
        desk.finish(3)
        desk.wait(0.1)
        assert [one.task_id for one in desk.delivered(business.NextRequest)] == ["run1.1"]
        assert desk.agent.counters == {"call waits for room": 2}

    def test_a_call_that_waits_for_room_is_sent_once_in_a_new_session(
        self, monkeypatch: pytest.MonkeyPatch, desk: Desk
    ) -> None:
        desk.dispatch(1)
        desk.dispatch(2)
        with monkeypatch.context() as patch:
            patch.setattr(WorkerSession, "send", self.refuse)
            desk.agent.call(
                business.NextRequest(RunId("run1"), TaskId("run1.1"), 1, "a", 0), desk.now
            )
        desk.lose_session()
        desk.wait(5.0)
        desk.finish(2)
        desk.wait(0.1)
        assert [one.task_id for one in desk.delivered(business.NextRequest)] == ["run1.1"]

    def test_a_report_is_sent_when_there_is_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        desk = Desk()
        desk.dispatch(1)
        desk.dispatch(2)
        with monkeypatch.context() as patch:
            patch.setattr(WorkerSession, "send", self.refuse)
            desk.finish(1)
        assert results(desk) == []
        desk.finish(2)
        desk.wait(0.1)
        assert results(desk) == [("run1.2", 1, "SUCCEEDED"), ("run1.1", 1, "SUCCEEDED")]
        assert desk.agent.counters == {"report waits for room": 1}

    def test_feedback_is_shed(self, monkeypatch: pytest.MonkeyPatch, desk: Desk) -> None:
        desk.dispatch(1)
        with monkeypatch.context() as patch:
            patch.setattr(WorkerSession, "send", self.refuse)
            desk.agent.feedback(business.Feedback(RunId("run1"), TaskId("run1.1"), 1), desk.now)
        desk.run()
        assert desk.delivered(business.Feedback) == []
        assert desk.agent.counters == {"feedback dropped": 1}


class TestLanes:
    def test_a_register_says_how_many_slots_are_for_the_lane(self) -> None:
        assert [one.slots for one in Desk().registers()] == [None]
        assert [one.slots for one in Desk(lane=2, slots=1).registers()] == [1]

    def test_what_the_scheduler_says_of_lanes_goes_to_the_shell(self, desk: Desk) -> None:
        others = (control.LanePlace(1, "ws://b/ws/worker"),)
        session = SessionId(desk.session_id)
        desk.gateway.tell(session, control.LANES, control.Lanes(others), desk.now)
        desk.gateway.tell(session, control.HUNGER, control.Hunger(7, 2), desk.now)
        desk.run()
        assert desk.take_actions() == [LanesTold(others), HungerTold(7, 2)]
        assert [type(one) for one in desk.words] == [SessionReady]

    def test_slots_are_told_and_answered(self, desk: Desk) -> None:
        desk.agent.give_slots(3, desk.now)
        desk.run()
        (arrived,) = [one for one in desk.events if isinstance(one, SlotsArrived)]
        assert arrived.slots == 3
        desk.gateway.answer(arrived.session_id, arrived.frame_id, desk.now)
        desk.run()
        assert desk.take_actions() == [SlotsAnswered(arrived.frame_id)]

    def test_a_session_that_is_given_up_while_the_connection_is_gone_is_not_resumed(
        self, desk: Desk
    ) -> None:
        desk.dispatch(1)
        desk.is_online = False
        desk.cut()
        before = desk.session_id
        desk.agent.give_up_session(desk.now)
        desk.is_online = True
        desk.wait(3)
        assert desk.session_id != before
        assert [one.inflight for one in desk.registers()][-1] == (AttemptRef(TaskId("run1.1"), 1),)
        assert desk.held() == [("run1.1", 1)]

    def test_a_session_that_is_given_up_while_it_is_open_begins_anew(self, desk: Desk) -> None:
        before = desk.session_id
        desk.agent.give_up_session(desk.now)
        desk.run()
        desk.wait(3)
        assert desk.session_id != before
        assert desk.agent.session.is_ready

    def test_a_drain_by_another_lane_than_the_home_drains_nothing(self) -> None:
        desk = Desk(lane=1)
        desk.gateway.drain(SessionId(desk.session_id), "enough", desk.now)
        desk.run()
        desk.dispatch(1)
        assert desk.started() == [("run1.1", 1)]
        assert not desk.agent.attempts.is_draining
