from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control, events, limits
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.duplex import NoSession
from astraflow.core.protocol.events import GatewaySettings
from astraflow.core.protocol.session_states import SessionState
from astraflow.core.protocol.window import QueueFull
from astraflow.core.protocol.wire import AckInfo, AttemptRef, Envelope, Sender, Unreadable
from astraflow.core.protocol.worker_events import (
    CommandDelivered,
    CommandRefused,
    Connect,
    Credential,
    Disconnect,
    DrainAsked,
    FrameRejected,
    FramesAcked,
    HeartbeatAnswered,
    HeartbeatDue,
    Poisoned,
    RegisterWanted,
    SessionLost,
    SessionReady,
    SessionRefused,
    SessionSettings,
    Superseded,
)
from tests.tables import each_row
from tests.unit.core.protocol.pair import TENANT, CountedIds, SessionPair, cancel, register, result

IDS = CountedIds("4")


def opened(**how: object) -> SessionPair:
    pair = SessionPair(**how)  # type: ignore[arg-type]
    pair.open()
    return pair


def from_scheduler(frame_type: str, payload: object, **more: object) -> Envelope:
    sender = Sender("scheduler", "sched-1")
    return Envelope(frame_type, IDS.new(), "", TENANT, sender, payload, **more)  # type: ignore[arg-type]


def feed(pair: SessionPair, frame_type: str, payload: object, **more: object) -> Envelope:
    frame = from_scheduler(frame_type, payload, **more)
    pair.worker.feed(frame, pair.now)
    pair._settle()
    return frame


def reset(pair: SessionPair, code: errors.Code, **more: object) -> None:
    feed(pair, control.RESET, control.Reset(code.code, "because", **more))  # type: ignore[arg-type]


def state_of(pair: SessionPair) -> SessionState:
    return pair.worker.state


def token_of(pair: SessionPair) -> str:
    assert pair.worker._session is not None
    return pair.worker._session.token


def wait_of(pair: SessionPair) -> float:
    assert pair.connect_at is not None
    return pair.connect_at - pair.now


# --- opening ---


@pytest.fixture
def pair() -> SessionPair:
    return opened()


def test_a_worker_asks_for_a_connection_at_once() -> None:
    pair = SessionPair()
    assert pair.worker_events == [Connect(0.0, None)]
    assert state_of(pair) is SessionState.NEW
    assert pair.worker.deadline() is None


def test_the_opening_follows_the_example_exchange(pair: SessionPair) -> None:
    assert [frame.type for frame in pair.frames_seen] == [
        control.HANDSHAKE,
        control.ACK,
        control.REGISTER,
        control.ACK,
        control.SESSION_ACCEPT,
        control.HEARTBEAT,
        control.ACK,
    ]
    kinds = [type(event) for event in pair.worker_events]
    assert kinds == [Connect, RegisterWanted, SessionReady, HeartbeatDue, HeartbeatAnswered]
    ready = pair.worker_events[2]
    assert ready == SessionReady(
        False, SessionId(pair.session_id), 30.0, 5.0, limits.MAX_FRAME_BYTES
    )


def test_the_handshake_says_who_boots(pair: SessionPair) -> None:
    handshake = pair.sent(control.HANDSHAKE)[0].payload
    assert isinstance(handshake, control.Handshake)
    assert handshake.protocol == 2
    assert handshake.worker.incarnation == 1
    assert handshake.auth == control.Auth("token", "good")


def test_an_unanswered_opening_frame_is_sent_again_and_then_given_up() -> None:
    pair = SessionPair()
    pair.accepts = False
    pair.connect()
    pair.run()
    assert state_of(pair) is SessionState.REGISTERED
    pair.wait(9.0)
    assert len({frame.id for frame in pair.sent(control.REGISTER)}) == 1
    assert len(pair.sent(control.REGISTER)) > 2
    pair.pass_time(1.5)
    assert pair.worker.counters["handshake_timeouts"] == 1
    assert state_of(pair) is SessionState.BACKOFF


def test_a_register_that_is_wanted_but_not_given_is_not_repeated() -> None:
    pair = SessionPair()
    pair.connect()
    pair.worker.take_frames()
    handshake_id = pair.to_gateway[0].id
    pair.worker.feed(from_scheduler(control.ACK, control.ControlAck(handshake_id)), pair.now)
    assert pair.worker.take_events() == [RegisterWanted()]
    pair.worker.tick(pair.now + 3.0)
    assert pair.worker.take_frames() == []


def test_a_connection_that_cannot_be_opened_is_tried_again_later() -> None:
    pair = SessionPair()
    pair.worker.disconnected(pair.now)
    pair._settle()
    assert state_of(pair) is SessionState.BACKOFF
    assert 0.2 <= wait_of(pair) <= 0.4
    assert pair.worker.deadline() == pair.connect_at


def test_a_connection_that_is_never_reported_is_asked_for_again() -> None:
    pair = SessionPair()
    pair.worker.disconnected(pair.now)
    pair._settle()
    pair.pass_time(1.0)
    assert state_of(pair) is SessionState.NEW
    deadline = pair.worker.deadline()
    assert deadline is not None
    pair.pass_time(deadline - pair.now)
    assert state_of(pair) is SessionState.BACKOFF
    assert wait_of(pair) > 0


def test_a_second_report_of_a_connection_changes_nothing(pair: SessionPair) -> None:
    pair.worker.connected(pair.now)
    assert pair.worker.is_ready
    assert pair.worker.counters["unexpected_connections"] == 1


def test_a_connection_during_backoff_is_welcome() -> None:
    pair = SessionPair()
    pair.worker.disconnected(pair.now)
    pair.connect()
    pair.run()
    assert pair.worker.is_ready


# --- resuming ---


def test_a_cut_link_is_resumed_and_nothing_is_lost_or_repeated(pair: SessionPair) -> None:
    session_id = pair.session_id
    pair.sends(1)
    pair.cut()
    pair.sends(2)
    pair.dispatches(7)
    pair.wait(2.0)
    assert pair.worker.session_id == session_id
    assert pair.delivered() == ["task-1", "task-2"]
    assert pair.received() == ["task-7"]
    readies = [event.resumed for event in pair.worker_events if isinstance(event, SessionReady)]
    assert readies == [False, True]


def test_results_acknowledged_by_the_resume_itself_are_told(pair: SessionPair) -> None:
    frame_id = pair.sends(1)
    frame = pair.to_gateway.pop()
    assert pair.conn is not None
    pair.gateway.feed(pair.conn, frame, pair.now, pair.wall)
    pair._settle()
    pair.cut()
    assert not pair.of(FramesAcked)
    pair.wait(1.0)
    assert FramesAcked((frame_id,)) in pair.worker_events
    assert pair.delivered() == ["task-1"]


def test_what_was_delivered_but_not_taken_is_not_delivered_twice_in_a_session() -> None:
    pair = opened()
    pair.takes = False
    pair.dispatches(1)
    pair.run()
    pair.cut()
    pair.wait(1.0)
    assert pair.received() == ["task-1"]
    event = next(each for each in pair.worker_events if isinstance(each, CommandDelivered))
    pair.worker.taken(event.seq)
    pair.wait(0.1)
    acked = [each for each in pair.gateway_events if isinstance(each, events.Acked)]
    assert [each.ack_seq for each in acked] == [0]


def test_an_unknown_session_begins_anew_at_once_and_the_windows_are_gone(pair: SessionPair) -> None:
    pair.sends(1)
    pair.cut()
    pair.gateway = SessionPair().gateway
    pair.wait(1.0)
    assert pair.worker.is_ready
    assert SessionLost("E.SESSION.UNKNOWN") in pair.worker_events
    readies = [event.resumed for event in pair.worker_events if isinstance(event, SessionReady)]
    assert readies == [False, False]
    assert pair.delivered() == []


def test_a_report_sent_again_in_a_new_session_keeps_its_id_and_has_no_second_effect() -> None:
    pair = opened()
    frame_id = pair.sends(1)
    frame = pair.to_gateway.pop()
    assert pair.conn is not None
    pair.gateway.feed(pair.conn, frame, pair.now, pair.wall)
    pair._take_gateway_events()
    assert pair.delivered() == ["task-1"]
    pair.cut()
    pair.worker.fenced(pair.now)
    pair.wait(1.0)
    assert pair.worker.is_ready
    again = pair.worker.send(business.RESULT, result(1), "task-1", pair.now, frame_id=frame_id)
    assert again == frame_id
    pair.wait(0.1)
    assert pair.delivered() == ["task-1"]
    assert pair.of(FramesAcked)[-1] == FramesAcked((frame_id,))


def test_a_report_that_was_not_committed_takes_effect_when_it_is_sent_again() -> None:
    pair = opened()
    pair.commits = False
    frame_id = pair.sends(1)
    pair.run()
    pair.cut()
    pair.worker.fenced(pair.now)
    pair.wait(1.0)
    pair.commits = True
    pair.worker.send(business.RESULT, result(1), "task-1", pair.now, frame_id=frame_id)
    pair.wait(0.1)
    assert pair.delivered() == ["task-1", "task-1"]
    assert pair.of(FramesAcked)[-1] == FramesAcked((frame_id,))


def test_a_frame_is_the_same_object_whenever_it_is_sent_so_that_its_bytes_can_be_kept() -> None:
    pair = opened()
    frame_id = pair.sends(1)
    (first,) = pair.to_gateway
    pair.to_gateway.clear()
    pair.dispatches(1)
    pair.worker.feed(pair.to_worker.pop(), pair.now)
    pair.pass_time(0.3)
    again = [frame for frame in pair.to_gateway if frame.id == frame_id]
    assert [frame is first for frame in again] == [True]
    pair.cut()
    pair.wait(1.0)
    carried = [frame for frame in pair.frames_seen if frame.id == frame_id]
    assert [frame is first for frame in carried] == [True]
    assert pair.delivered() == ["task-1"]


def test_what_replaces_a_frame_has_its_id_and_seq_and_is_then_the_one_that_is_repeated() -> None:
    pair = opened()
    pair.sends(0)
    pair.run()
    frame_id = pair.sends(1)
    pair.to_gateway.clear()
    failed = business.Result(RunId("run-1"), TaskId("task-1"), 1, "FAILED")
    assert pair.worker.replace(frame_id, business.RESULT, failed, "task-1")
    pair.pass_time(0.3)
    (first,) = [frame for frame in pair.to_gateway if frame.id == frame_id]
    assert (first.seq, first.payload) == (1, failed)
    pair.to_gateway.clear()
    pair.pass_time(0.6)
    assert [frame is first for frame in pair.to_gateway if frame.id == frame_id] == [True]


def test_a_refused_session_token_on_resume_means_a_handshake_at_once(pair: SessionPair) -> None:
    pair.cut()
    pair.tokens.verify = lambda token, wall: errors.AUTH_INVALID_TOKEN  # type: ignore[method-assign]
    pair.wait(1.0)
    assert pair.worker.is_ready
    assert SessionLost("E.AUTH.INVALID_TOKEN") in pair.worker_events


def test_an_accept_of_another_session_is_ignored(pair: SessionPair) -> None:
    token = token_of(pair)
    accept = control.SessionAccept(
        SessionId("other"), "token", "2026-01-01T00:00:00Z", False, "w-1", 4, 4096, 5000, 30000
    )
    feed(pair, control.SESSION_ACCEPT, accept)
    assert pair.worker.counters["unexpected_frames"] == 1
    assert token_of(pair) == token


def test_the_smaller_window_counts() -> None:
    pair = opened(gateway_settings=GatewaySettings(window=2))
    pair.commits = False
    for number in range(5):
        pair.sends(number)
    pair.run()
    assert len(pair.delivered()) == 2


# --- resets ---


def test_a_take_over_kills_the_work_and_ends_it(pair: SessionPair) -> None:
    reset(pair, errors.SESSION_STALE_BINDING)
    assert state_of(pair) is SessionState.CLOSED
    kinds = [type(event) for event in pair.worker_events[-3:]]
    assert kinds == [SessionLost, Disconnect, Superseded]
    assert pair.worker.deadline() is None
    pair.worker.tick(pair.now + 100)
    pair.worker.disconnected(pair.now)
    pair.worker.feed(from_scheduler(control.DRAIN, control.ControlDrain(), seq=0), pair.now)
    pair.worker.fenced(pair.now)
    pair.worker.finished(pair.now)
    assert pair.worker.take_events() == []


def test_a_wrong_token_waits_at_least_thirty_seconds() -> None:
    pair = SessionPair()
    pair.worker = pair.new_worker(token="bad")
    pair.connect()
    pair.run()
    assert state_of(pair) is SessionState.BACKOFF
    assert wait_of(pair) >= 30.0
    assert not pair.of(SessionLost)


def test_a_revoked_session_is_lost_and_opened_again_with_the_usual_backoff() -> None:
    pair = opened()
    reset(pair, errors.AUTH_INVALID_TOKEN)
    assert SessionLost("E.AUTH.INVALID_TOKEN") in pair.worker_events
    assert wait_of(pair) <= 0.4


def test_retry_after_is_honoured() -> None:
    pair = SessionPair()
    pair.connect()
    reset(pair, errors.SESSION_DENIED, retry_after_ms=12_000)
    assert wait_of(pair) == pytest.approx(12.0)
    [told] = pair.of(SessionRefused)
    assert told.code == "E.SESSION.DENIED"
    assert told.again_at - pair.now == pytest.approx(12.0)


def test_a_moved_tenant_is_followed_and_a_dead_address_forgotten(pair: SessionPair) -> None:
    reset(pair, errors.SESSION_MOVED, location="ws://other")
    assert (wait_of(pair), pair.location) == (0.0, "ws://other")
    pair.pass_time(0.1)
    pair.worker.disconnected(pair.now)
    pair._settle()
    assert pair.location is None


def test_a_worker_that_is_sent_in_a_circle_waits_longer_and_longer(pair: SessionPair) -> None:
    waits = []
    for _ in range(6):
        reset(pair, errors.SESSION_MOVED, location="ws://other")
        waits.append(wait_of(pair))
        pair.pass_time(waits[-1])
        pair.worker.connected(pair.now)
        pair._settle()
    assert waits[0] == 0.0
    assert all(wait > 0 for wait in waits[2:]), waits


def test_the_confirmation_of_a_close_does_not_delay_the_next_try(pair: SessionPair) -> None:
    reset(pair, errors.SESSION_MOVED, location="ws://other")
    connects = len(pair.of(Connect))
    pair.worker.disconnected(pair.now + 1.0)
    pair._settle()
    assert len(pair.of(Connect)) == connects + 1


@each_row("early_s", [0.001, 0.0, -0.001])
@each_row("confirms", [True, False])
def test_a_try_that_fails_at_about_its_time_always_leads_to_another(
    early_s: float, confirms: bool
) -> None:
    worker = SessionPair().new_worker()
    worker.connected(100.0)
    worker.tick(110.0)
    assert Disconnect(limits.CLOSE_NORMAL) in worker.take_events()[-2:]
    at = worker.deadline()
    assert at is not None
    if confirms:
        worker.disconnected(110.0)
        assert worker.take_events() == [Connect(at, None)]
    for _ in range(5):
        now = at - early_s
        worker.tick(now)
        worker.disconnected(now)
        (event,) = worker.take_events()
        assert isinstance(event, Connect)
        assert event.at >= max(at, now)
        at = event.at
    worker.tick(at)
    worker.connected(at)
    assert worker.state is SessionState.HANDSHAKING


def test_a_close_that_is_confirmed_late_does_not_forget_where_to_go(pair: SessionPair) -> None:
    pair.worker.feed(
        from_scheduler(control.RESET, control.Reset("E.SESSION.MOVED", location="ws://other")),
        pair.now,
    )
    pair.worker.take_events()
    pair.worker.disconnected(pair.now + 1.0)
    assert pair.worker.take_events() == [Connect(pair.now + 1.0, "ws://other")]


def test_a_bad_frame_of_ours_keeps_the_session_and_the_second_time_names_the_culprit() -> None:
    pair = opened()
    session_id = pair.session_id
    frame_id = pair.sends(1)
    pair.to_gateway.clear()
    for _ in range(limits.POISON_STRIKES):
        assert not pair.of(Poisoned)
        reset(pair, errors.PROTOCOL_BAD_FRAME)
        pair.connect()
        while not pair.worker.is_ready:
            frame = pair.to_gateway.pop(0)
            assert pair.conn is not None
            pair.gateway.feed(pair.conn, frame, pair.now, pair.wall)
            pair._settle()
            pair.worker.feed(pair.to_worker.pop(0), pair.now)
        pair._settle()
        pair.to_gateway.clear()
    assert pair.of(Poisoned) == [Poisoned(frame_id)]
    failed = business.Result(RunId("run-1"), TaskId("task-1"), 1, "FAILED")
    assert pair.worker.replace(frame_id, business.RESULT, failed, "task-1")
    pair.wait(2.0)
    assert pair.session_id == session_id
    delivered = [each for each in pair.gateway_events if isinstance(each, events.Delivered)]
    assert [each.envelope.payload for each in delivered] == [failed]
    assert delivered[0].envelope.id == frame_id


def test_a_close_for_size_is_a_strike_too(pair: SessionPair) -> None:
    pair.sends(1)
    pair.worker.disconnected(pair.now, limits.CLOSE_TOO_BIG)
    pair._settle()
    pair.connect()
    pair.worker.disconnected(pair.now, limits.CLOSE_TOO_BIG)
    pair._settle()
    assert len(pair.of(Poisoned)) == 1


def test_after_a_bad_frame_the_session_has_no_bundles() -> None:
    pair = opened()
    assert pair.worker._session is not None
    pair.worker._session.features = control.FEATURES
    assert pair.worker.is_bundled
    pair.sends(1)
    pair.worker.disconnected(pair.now, limits.CLOSE_TOO_BIG)
    assert pair.worker.is_open
    assert not pair.worker.is_bundled


def test_nothing_unacknowledged_is_not_poisonous(pair: SessionPair) -> None:
    for _ in range(3):
        pair.worker.disconnected(pair.now, limits.CLOSE_TOO_BIG)
        pair.worker.connected(pair.now)
    pair._settle()
    assert not pair.of(Poisoned)
    assert not SessionPair().worker.replace("x", business.RESULT, result(), None)


def test_a_bad_frame_of_the_scheduler_closes_the_link_and_keeps_the_session() -> None:
    pair = opened()
    pair.worker.bad_frame(BadFrame(1007, "not JSON"), pair.now)
    frames = pair.worker.take_frames()
    assert [frame.type for frame in frames] == [control.RESET]
    pair._settle()
    assert Disconnect(1007) in pair.worker_events
    assert pair.worker.is_open
    pair.worker.bad_frame(BadFrame(1007, "late"), pair.now)
    assert pair.worker.counters["bad_frames"] == 1


def test_a_sequenced_frame_without_seq_is_a_bad_frame(pair: SessionPair) -> None:
    feed(pair, business.CANCEL, cancel())
    assert Disconnect(1002) in pair.worker_events


# --- heartbeats ---


def test_heartbeats_keep_coming_and_carry_what_was_taken(pair: SessionPair) -> None:
    pair.dispatches(1)
    pair.wait(20.0)
    beats = pair.sent(control.HEARTBEAT)
    assert len(beats) == 5
    assert all(beat.ack is not None and beat.ack.request for beat in beats)
    acks = [beat.ack.seq for beat in beats if beat.ack is not None]
    assert acks == [None, 0, 0, 0, 0]
    assert pair.gateway.counters == {}


def test_an_unanswered_heartbeat_closes_the_link_and_the_session_is_resumed() -> None:
    silent: list[bool] = []
    pair = SessionPair(may_speak=lambda now: not silent)
    pair.open()
    silent.append(True)
    pair.wait(9.0)
    assert pair.worker.counters["heartbeats_unanswered"] == 1
    assert not pair.worker.is_ready
    assert pair.worker.is_open
    silent.clear()
    pair.worker.held = True
    pair.wait(15.0)
    assert pair.worker.is_ready


def test_an_answer_names_its_send_time_and_what_to_stop(pair: SessionPair) -> None:
    pair.wait(4.9)
    event = [each for each in pair.worker_events if isinstance(each, HeartbeatAnswered)][-1]
    assert pair.worker.sent_at(event.frame_id) == event.sent_at
    stop = (AttemptRef(TaskId("task-1"), 1),)
    pair.beats = False
    frame_id = pair.worker.heartbeat(control.Heartbeat(), pair.now)
    feed(pair, control.ACK, control.ControlAck(frame_id, stop=stop))
    assert pair.worker_events[-1] == HeartbeatAnswered(frame_id, pair.now, stop)
    feed(pair, control.ACK, control.ControlAck(frame_id, stop=stop))
    answers = [each for each in pair.of(HeartbeatAnswered) if each == pair.worker_events[-1]]
    assert len(answers) == 1


def test_registers_have_send_times_too(pair: SessionPair) -> None:
    frame_id = pair.sent(control.REGISTER)[0].id
    assert pair.worker.sent_at(frame_id) == 100.0
    assert pair.worker.sent_at("never") is None


def test_without_a_link_a_heartbeat_and_a_register_go_nowhere() -> None:
    pair = SessionPair()
    for frame_id in (
        pair.worker.heartbeat(control.Heartbeat(), pair.now),
        pair.worker.register(register(), pair.now),
    ):
        assert pair.worker.sent_at(frame_id) is None
    assert pair.worker.take_frames() == []


def test_a_later_register_replaces_what_the_worker_offers(pair: SessionPair) -> None:
    pair.worker.register(register(slots=9), pair.now)
    pair.run()
    arrived = [each for each in pair.gateway_events if isinstance(each, events.RegisterArrived)]
    assert [each.first for each in arrived] == [True, False]
    assert arrived[1].register.capabilities.concurrency.max_parallel == 9
    assert len(pair.of(SessionReady)) == 1


# --- frames ---


def test_there_is_no_sending_without_a_session() -> None:
    pair = SessionPair()
    assert not pair.worker.is_open
    with pytest.raises(NoSession) as caught:
        pair.sends(1)
    assert caught.value.code is errors.SESSION_UNKNOWN


def test_a_result_that_the_receiver_would_refuse_is_not_queued(pair: SessionPair) -> None:
    with pytest.raises(errors.LocalProtocolError):
        pair.worker.send(business.RESULT, {"task_id": "t"}, None, pair.now)


def test_a_session_without_bytes_does_not_check_them() -> None:
    pair = opened(worker_settings=SessionSettings(checks_outgoing=False, queue_limit=1))
    pair.commits = False
    for _ in range(2):  # the window takes the first when the queue has no room for the second
        pair.worker.send("ext.acme.x", object(), None, pair.now)
    pair.worker.take_frames()
    pair.cut()
    pair.worker.send("ext.acme.x", object(), None, pair.now)
    with pytest.raises(QueueFull):
        pair.worker.send("ext.acme.x", object(), None, pair.now)


def test_feedback_waits_behind_results_unless_it_is_the_last(pair: SessionPair) -> None:
    pair.cut()
    feedback = business.Feedback(RunId("run-1"), TaskId("task-1"), 1)
    pair.worker.send(business.FEEDBACK, feedback, "feedback", pair.now)
    pair.worker.send(business.FEEDBACK, feedback, "last chunks", pair.now, feedback=False)
    pair.sends(1)
    pair.wait(1.0)
    assert pair.delivered() == ["last chunks", "task-1", "feedback"]


def test_the_last_chunks_of_an_attempt_go_before_its_result(pair: SessionPair) -> None:
    for task in ("task-1", "task-2"):
        feedback = business.Feedback(RunId("run-1"), TaskId(task), 1)
        pair.worker.send(business.FEEDBACK, feedback, task, pair.now)
    result = business.Result(RunId("run-1"), TaskId("task-1"), 1, "SUCCEEDED")
    pair.worker.send(business.RESULT, result, "task-1", pair.now)
    sent = [(frame.type, frame.corr) for frame in pair.worker.take_frames()]
    assert sent == [
        (business.FEEDBACK, "task-1"),
        (business.RESULT, "task-1"),
        (business.FEEDBACK, "task-2"),
    ]


def test_feedback_never_takes_the_last_place_of_a_result() -> None:
    pair = opened(worker_settings=SessionSettings(queue_limit=1))
    pair.cut()
    feedback = business.Feedback(RunId("run-1"), TaskId("task-1"), 1)
    pair.worker.send(business.FEEDBACK, feedback, "task-1", pair.now)
    pair.worker.send(
        business.RESULT,
        business.Result(RunId("run-1"), TaskId("task-1"), 1, "SUCCEEDED"),
        "task-1",
        pair.now,
    )
    pair.wait(1.0)
    assert pair.delivered() == ["task-1", "task-1"]


def test_a_frame_that_cannot_be_used_is_refused_and_its_seq_consumed(pair: SessionPair) -> None:
    wrong = Unreadable(
        errors.PROTOCOL_BAD_PAYLOAD, "/payload/attempt", "no", TaskId("task-1"), None
    )
    frame = feed(pair, business.CANCEL, wrong, seq=0)
    assert pair.worker_events[-1] == CommandRefused(frame, wrong)
    answer = next(each.payload for each in pair.to_gateway if each.type == control.ERROR)
    assert answer == control.ControlError(
        frame.id, "E.PROTOCOL.BAD_PAYLOAD", "no", "/payload/attempt"
    )
    feed(pair, business.CANCEL, cancel(2), seq=1, corr="task-2")
    assert pair.received() == ["task-2"]


def test_a_frame_of_the_wrong_direction_is_refused(pair: SessionPair) -> None:
    feed(pair, business.RESULT, result(), seq=0)
    refused = pair.worker_events[-1]
    assert isinstance(refused, CommandRefused)
    assert refused.unreadable.code is errors.CMD_UNKNOWN


def test_vendor_frames_are_acknowledged_counted_and_dropped(pair: SessionPair) -> None:
    feed(pair, "ext.acme.x", object(), seq=0, ack=AckInfo(True))
    assert pair.worker.counters["ext_dropped"] == 1
    answers = [each.payload for each in pair.to_gateway if each.type == control.ACK]
    assert any(isinstance(each, control.ControlAck) and each.for_ for each in answers)


def test_unknown_control_frames_are_acknowledged_if_asked_and_dropped(pair: SessionPair) -> None:
    unknown = Unreadable(errors.CMD_UNKNOWN, "/type", "unknown")
    feed(pair, "control.new", unknown)
    assert pair.to_gateway == []
    frame = feed(pair, "control.new", unknown, ack=AckInfo(True))
    assert [each.payload for each in pair.to_gateway] == [control.ControlAck(frame.id)]
    assert pair.worker.counters["unknown_control"] == 2


def test_a_control_payload_that_does_not_fit_is_answered_but_an_error_never() -> None:
    pair = opened()
    wrong = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload", "no")
    feed(pair, control.RESET, wrong)
    assert [each.type for each in pair.to_gateway] == [control.ERROR]
    feed(pair, control.ERROR, wrong)
    assert len(pair.to_gateway) == 1
    assert len(pair.of(CommandRefused)) == 2


def test_an_error_of_the_scheduler_is_handed_up(pair: SessionPair) -> None:
    feed(pair, control.ERROR, control.ControlError("f-1", "E.CMD.UNKNOWN", "no"))
    assert pair.worker_events[-1] == FrameRejected("f-1", "E.CMD.UNKNOWN", "no", None)


def test_frames_of_others_are_ignored(pair: SessionPair) -> None:
    sender = Sender("worker", "sched-1")
    pair.worker.feed(Envelope(control.RESET, IDS.new(), "", TENANT, sender, None), pair.now)
    other = Envelope(control.RESET, IDS.new(), "", "else", Sender("scheduler", "s"), None)
    pair.worker.feed(other, pair.now)
    assert pair.worker.counters["foreign_frames"] == 2
    assert pair.worker.is_ready


def test_frames_that_come_at_the_wrong_time_are_ignored() -> None:
    pair = SessionPair()
    feed(pair, control.ACK, control.ControlAck("x"))
    assert pair.worker.counters["frames_without_link"] == 1
    pair.connect()
    feed(pair, business.CANCEL, cancel(), seq=0)
    feed(pair, control.HEARTBEAT, control.Heartbeat())
    assert pair.worker.counters["unexpected_frames"] == 2
    assert state_of(pair) is SessionState.HANDSHAKING


def test_what_was_taken_in_a_former_session_is_nothing() -> None:
    pair = SessionPair()
    pair.worker.taken(5)
    assert pair.worker.counters["taken_late"] == 1
    pair.open()
    pair.worker.taken(5)
    assert pair.worker.counters["taken_late"] == 2
    pair.takes = False
    pair.dispatches(1)
    pair.run()
    pair.worker.taken(0, SessionId("a former session"))
    assert pair.worker.counters["taken_late"] == 3
    pair.worker.taken(0, SessionId(pair.session_id))
    assert pair.worker.counters["taken_late"] == 3


def test_a_silent_peer_breaks_the_link_after_six_transmissions(pair: SessionPair) -> None:
    pair.beats = False
    pair.sends(1)
    pair.to_gateway.clear()
    for _ in range(200):
        pair.pass_time(0.1)
        pair.to_gateway.clear()
        if not pair.worker.is_ready:
            break
    assert pair.worker.counters["links_broken"] == 1
    assert pair.worker.is_open


# --- fence, drain, rotation ---


def test_a_worker_that_fenced_itself_registers_anew(pair: SessionPair) -> None:
    pair.sends(1)
    pair.worker.fenced(pair.now)
    pair._settle()
    assert SessionLost(None) in pair.worker_events
    assert not pair.worker.is_open
    pair.wait(1.0)
    assert pair.worker.is_ready
    assert control.RESUME not in [frame.type for frame in pair.frames_seen]
    arrived = [each for each in pair.gateway_events if isinstance(each, events.RegisterArrived)]
    assert [(each.first, each.displaced) for each in arrived] == [(True, False), (True, False)]


def test_a_worker_that_fences_itself_while_offline_does_not_resume(pair: SessionPair) -> None:
    pair.cut()
    pair.worker.fenced(pair.now)
    pair.wait(1.0)
    assert control.RESUME not in [frame.type for frame in pair.frames_seen]
    assert pair.worker.is_ready


def test_a_drain_of_the_scheduler_is_handed_up_in_order(pair: SessionPair) -> None:
    pair.dispatches(1)
    pair.gateway.drain(SessionId(pair.session_id), "maintenance", pair.now, 2.5)
    pair.run()
    assert DrainAsked(1, "maintenance", 2.5) in pair.worker_events
    assert state_of(pair) is SessionState.DRAINING
    pair.cut()
    pair.wait(1.0)
    assert state_of(pair) is SessionState.DRAINING


def test_a_drain_without_deadline_has_none(pair: SessionPair) -> None:
    pair.gateway.drain(SessionId(pair.session_id), "", pair.now)
    pair.run()
    assert DrainAsked(0, "", None) in pair.worker_events


def test_a_drained_worker_closes_when_all_is_acknowledged(pair: SessionPair) -> None:
    beats = len(pair.sent(control.HEARTBEAT))
    pair.worker.start_drain(pair.now)
    pair.run()
    assert len(pair.sent(control.HEARTBEAT)) == beats + 1
    pair.commits = False
    pair.sends(1)
    pair.worker.finished(pair.now)
    pair.run()
    assert state_of(pair) is SessionState.DRAINING
    pair.commit(0)
    pair.wait(0.1)
    assert state_of(pair) is SessionState.CLOSED
    assert pair.worker_events[-1] == Disconnect(limits.CLOSE_NORMAL)
    assert pair.conn is None


def test_a_finished_worker_acknowledges_what_it_took_last(pair: SessionPair) -> None:
    pair.dispatches(1)
    pair.worker.feed(pair.to_worker.pop(), pair.now)
    pair._settle()
    pair.worker.finished(pair.now)
    pair._settle()
    assert [each.ack_seq for each in pair.of(events.Acked)] == [0]
    assert state_of(pair) is SessionState.CLOSED


def test_a_finished_worker_whose_link_breaks_delivers_first(pair: SessionPair) -> None:
    pair.cut()
    pair.sends(1)
    pair.worker.start_drain(pair.now)
    pair.worker.finished(pair.now)
    pair.wait(2.0)
    assert pair.delivered() == ["task-1"]
    assert state_of(pair) is SessionState.CLOSED


def test_a_finished_worker_without_a_session_ends_at_once() -> None:
    pair = SessionPair()
    pair.worker.finished(pair.now)
    assert state_of(pair) is SessionState.CLOSED


def test_a_finished_worker_that_loses_its_link_with_nothing_to_say_ends(pair: SessionPair) -> None:
    pair.commits = False
    pair.sends(1)
    pair.run()
    pair.worker.finished(pair.now)
    reset(pair, errors.SESSION_UNKNOWN)
    assert state_of(pair) is SessionState.CLOSED


def test_a_new_credential_is_presented_in_the_open_session(pair: SessionPair) -> None:
    pair.doors.known["newer"] = pair.doors.known["good"]
    pair.worker.rotate(Credential("token", "newer"), pair.now)
    pair.run()
    handshakes = [frame.payload for frame in pair.sent(control.HANDSHAKE)]
    tokens = [each.auth.token for each in handshakes if isinstance(each, control.Handshake)]
    assert tokens == ["good", "newer"]
    assert pair.worker.is_ready


def test_a_new_credential_waits_for_the_next_handshake_if_there_is_no_link() -> None:
    pair = SessionPair()
    pair.doors.known["newer"] = pair.doors.known.pop("good")
    pair.worker.rotate(Credential("token", "newer"), pair.now)
    assert pair.worker.take_frames() == []
    pair.open()


def test_a_credential_does_not_print_its_token() -> None:
    assert "secret" not in repr(Credential("token", "secret"))


def test_a_renewed_token_changes_nothing_else() -> None:
    pair = opened(tokens=None)
    before = token_of(pair)
    pair.wait(3600.0 - 290.0, step=1.0)
    assert token_of(pair) != before
    assert len(pair.of(SessionReady)) == 1


# --- time ---


def test_deadlines_alone_keep_a_session_alive_and_wake_nobody_in_vain(pair: SessionPair) -> None:
    wakes = pair.sleep(600.0)
    assert pair.worker.is_ready
    assert pair.gateway.counters == {}
    beats = len(pair.sent(control.HEARTBEAT))
    assert 120 <= beats <= 135
    assert wakes <= 4 * beats


def test_deadlines_alone_bring_a_cut_link_back_and_deliver_what_waits(pair: SessionPair) -> None:
    pair.sleep(7.0)
    pair.cut()
    for number in range(5):
        pair.sends(number)
        pair.dispatches(number)
    assert pair.sleep(2.0) < 100
    expected = [f"task-{number}" for number in range(5)]
    assert (pair.delivered(), pair.received()) == (expected, expected)
    acked = [event for event in pair.worker_events if isinstance(event, FramesAcked)]
    assert sum(len(event.frame_ids) for event in acked) == 5


def test_deadlines_alone_replace_a_half_open_link_before_the_fence(pair: SessionPair) -> None:
    """The worker's frames go nowhere, and nobody tells it."""
    conn = pair.conn
    assert conn is not None
    pair.gateway.closed(conn, pair.now)
    pair.worker.held = True
    pair.sleep(limits.LEASE_TTL_S * limits.FENCE_RATIO)
    assert pair.worker.is_ready
    assert pair.conn != conn
    assert pair.worker.counters["heartbeats_unanswered"] == 1
