from __future__ import annotations

import random
from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.ids import SessionId, TaskId
from astraflow.core.protocol import business, control, limits, open_sessions
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.duplex import NoSession
from astraflow.core.protocol.events import (
    Acked,
    CloseConnection,
    Delivered,
    FrameRefused,
    GatewayEvent,
    GatewaySettings,
    HeartbeatArrived,
    IdentityBound,
    Missed,
    PeerError,
    Principal,
    RegisterArrived,
    SendFrame,
    SessionAudited,
    SessionEnded,
)
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.window import QueueFull
from astraflow.core.protocol.wire import AckInfo, AttemptRef, Envelope, Unreadable
from tests.tables import each_row
from tests.unit.core.protocol.pair import (
    GOOD_TOKEN,
    TENANT,
    WORKER,
    CountedIds,
    Doors,
    Kind,
    PlainTokens,
    SessionPair,
    cancel,
    frame_of_worker,
    handshake,
    register,
    result,
)


class Door:
    """A gateway, spoken to frame by frame over any number of connections."""

    def __init__(self, settings: GatewaySettings | None = None, **how: object) -> None:
        self.now = 100.0
        self.wall = 1_800_000_000.0
        self.ids = CountedIds("5")
        self.doors = Doors()
        self.tokens = PlainTokens()
        self.events: list[GatewayEvent] = []
        self.out: list[SendFrame | CloseConnection] = []
        self.gateway = Gateway(
            scheduler_id="sched-1",
            ids=CountedIds("6"),
            rng=random.Random(1),
            authenticate=self.doors,
            tokens=self.tokens,
            settings=settings,
            **how,  # type: ignore[arg-type]
        )

    def open(self, conn: int) -> None:
        self.gateway.opened(conn, self.now)
        self.drain()

    def feed(self, conn: int, frame_type: str, payload: object, **more: object) -> Envelope:
        frame = frame_of_worker(frame_type, payload, self.ids, **more)  # type: ignore[arg-type]
        self.again(conn, frame)
        return frame

    def again(self, conn: int, frame: Envelope) -> None:
        self.gateway.feed(conn, frame, self.now, self.wall)
        self.drain()

    def greet(self, conn: int, **how: object) -> Envelope:
        self.open(conn)
        worker = how.get("worker", WORKER)
        return self.feed(conn, control.HANDSHAKE, handshake(**how), worker=worker)  # type: ignore[arg-type]

    def enter(self, conn: int, **how: object) -> str:
        """Open a session; returns its id."""
        self.greet(conn, **how)
        self.feed(conn, control.REGISTER, register(), worker=how.get("worker", WORKER))
        arrived = self.last(RegisterArrived)
        assert isinstance(arrived, RegisterArrived)
        assert self.gateway.accept(arrived.session_id, self.now, self.wall)
        self.drain()
        return arrived.session_id

    def resume(self, conn: int, session_id: str, token: str, **more: object) -> None:
        self.open(conn)
        self.feed(conn, control.RESUME, control.Resume(SessionId(session_id), token), **more)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds
        self.gateway.tick(self.now, self.wall)
        self.drain()

    def drain(self) -> None:
        self.out.extend(self.gateway.take_output())
        self.events.extend(self.gateway.take_events())
        self.gateway.check()

    def last(self, kind: type[Kind]) -> Kind:
        return [event for event in self.events if isinstance(event, kind)][-1]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def answers(self, conn: int) -> list[object]:
        """The payloads sent to a connection, and the code that closed it."""
        mine = [item for item in self.out if item.conn == conn]
        return [
            item.envelope.payload if isinstance(item, SendFrame) else item.code for item in mine
        ]

    def denied(self, conn: int, code: errors.Code, close_code: int = 1008) -> control.Reset:
        """The connection's end: a reset with this code, then the close."""
        reset, closed = self.answers(conn)[-2:]
        assert isinstance(reset, control.Reset)
        assert (reset.code, closed) == (code.code, close_code)
        return reset

    def token(self, conn: int) -> str:
        accepts = [each for each in self.answers(conn) if isinstance(each, control.SessionAccept)]
        return accepts[-1].session_token


# --- the opening ---


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def session_id(door: Door) -> str:
    """Of the worker of connection 1."""
    return door.enter(1)


@pytest.mark.parametrize(
    ("frame_type", "payload"),
    [
        (control.REGISTER, register()),
        (control.HEARTBEAT, control.Heartbeat()),
        (business.RESULT, result()),
        ("control.new", Unreadable(errors.CMD_UNKNOWN, "/type", "unknown")),
    ],
)
def test_nothing_but_a_handshake_or_a_resume_comes_first(frame_type: str, payload: object) -> None:
    door = Door()
    door.open(1)
    door.feed(1, frame_type, payload)
    door.denied(1, errors.SESSION_DENIED)
    assert not door.of(Delivered)


def test_business_before_the_session_is_open_ends_it_without_effect() -> None:
    for steps in (1, 2):
        door = Door()
        door.greet(1)
        if steps == 2:
            door.feed(1, control.REGISTER, register())
        door.feed(1, business.RESULT, result(), seq=0)
        door.denied(1, errors.SESSION_DENIED)
        assert not door.of(Delivered)


def test_a_handshake_that_is_not_finished_in_time_is_closed(door: Door) -> None:
    door.open(1)
    door.greet(2)
    door.enter(3, worker="w-3")
    assert door.gateway.deadline() == door.now + 5.0
    door.tick(5.0)
    door.feed(3, control.HEARTBEAT, control.Heartbeat(), worker="w-3")
    door.tick(5.0)
    door.denied(1, errors.SESSION_DENIED)
    door.denied(2, errors.SESSION_DENIED)
    assert 1008 not in door.answers(3)


def test_an_unknown_protocol_is_told_which_are_known(door: Door) -> None:
    door.greet(1, protocol=3)
    assert door.denied(1, errors.SESSION_DENIED).reason == "protocols supported: 1, 2"


@pytest.mark.parametrize("token", ["bad", "foreign"])
def test_a_bad_token_and_one_of_another_tenant_look_the_same(token: str, door: Door) -> None:
    door.doors.known["foreign"] = Principal("subject-9", "other", "worker")
    door.greet(1, token=token)
    assert door.denied(1, errors.AUTH_INVALID_TOKEN).reason == errors.AUTH_INVALID_TOKEN.says
    audited = door.last(SessionAudited)
    assert isinstance(audited, SessionAudited)
    assert (audited.action, audited.code) == ("login", "E.AUTH.INVALID_TOKEN")


def test_the_sender_must_be_the_worker_of_the_handshake(door: Door) -> None:
    for conn, more in enumerate([{"worker": "w-2"}, {"role": "scheduler"}]):
        door.open(conn)
        door.feed(conn, control.HANDSHAKE, handshake(), **more)
        door.denied(conn, errors.SESSION_DENIED)


def test_a_handshake_that_cannot_be_read_is_answered_and_closed(door: Door) -> None:
    door.open(1)
    wrong = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload/worker", "missing")
    door.feed(1, control.HANDSHAKE, wrong)
    assert isinstance(door.answers(1)[0], control.ControlError)
    door.denied(1, errors.SESSION_DENIED)


def test_an_identity_belongs_to_the_first_subject(door: Door) -> None:
    door.doors.known["other"] = Principal("subject-2", TENANT, "worker")
    door.greet(1)
    assert door.of(IdentityBound) == [IdentityBound(SessionId(""), TENANT, WORKER, "subject-1")]
    door.greet(2, token="other")
    door.denied(2, errors.SESSION_DENIED)
    assert len(door.of(IdentityBound)) == 1


def test_an_identity_can_be_bound_again_after_a_restart(door: Door) -> None:
    door.gateway.bind(TENANT, WORKER, "subject-2")
    door.greet(1)
    door.denied(1, errors.SESSION_DENIED)


def test_a_repeated_handshake_or_register_is_answered_again(door: Door) -> None:
    greeting = door.greet(1)
    door.again(1, greeting)
    assert door.answers(1) == [control.ControlAck(greeting.id)] * 2
    first = door.feed(1, control.REGISTER, register())
    door.again(1, first)
    assert len(door.of(RegisterArrived)) == 1
    arrived = door.last(RegisterArrived)
    assert door.gateway.session_of(TENANT, WORKER) is None
    door.gateway.accept(arrived.session_id, door.now, door.wall)
    door.drain()
    door.again(1, first)
    door.again(1, greeting)
    assert door.answers(1)[-2:] == [control.ControlAck(first.id), control.ControlAck(greeting.id)]
    assert len(door.of(RegisterArrived)) == 1


def test_a_register_that_cannot_be_read_is_refused_and_may_be_sent_better(door: Door) -> None:
    door.greet(1)
    door.feed(1, control.REGISTER, Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload", "no"))
    assert isinstance(door.answers(1)[-1], control.ControlError)
    door.feed(1, control.REGISTER, register())
    assert len(door.of(RegisterArrived)) == 1


def test_a_second_register_before_the_accept_ends_the_session(door: Door) -> None:
    door.greet(1)
    sent = door.feed(1, control.REGISTER, register())
    door.again(1, sent)
    assert len(door.of(RegisterArrived)) == 1, "it was only sent again"
    door.feed(1, control.REGISTER, register())
    door.denied(1, errors.SESSION_DENIED)
    assert len(door.of(SessionEnded)) == 1


@pytest.mark.parametrize("kind", ["handshake", "heartbeat"])
def test_a_second_handshake_or_a_heartbeat_before_the_accept_is_denied(kind: str) -> None:
    door = Door()
    door.greet(1)
    door.feed(1, control.REGISTER, register())
    payload = handshake() if kind == "handshake" else control.Heartbeat()
    door.feed(1, f"control.{kind}", payload)
    door.denied(1, errors.SESSION_DENIED)
    assert len(door.of(SessionEnded)) == 1


def test_a_lower_incarnation_than_the_last_is_denied(door: Door) -> None:
    door.enter(1, incarnation=3)
    door.greet(2, incarnation=2)
    assert "new id" in door.denied(2, errors.SESSION_DENIED).reason
    door.enter(3, incarnation=3)
    door.gateway.bind(TENANT, "w-2", "subject-1", 5)
    door.greet(4, worker="w-2", incarnation=4)
    door.denied(4, errors.SESSION_DENIED)


def test_an_ack_without_recv_window_is_taken_and_keeps_the_window(door: Door) -> None:
    session_id = door.enter(1)
    for _ in range(3):
        door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)
    door.drain()
    door.feed(1, control.ACK, control.ControlAck(ack_seq=0))
    door.feed(1, control.HEARTBEAT, control.Heartbeat(), ack=AckInfo(seq=1))
    assert [event.ack_seq for event in door.of(Acked)] == [0, 1]


def test_the_accept_says_what_the_worker_must_know() -> None:
    settings = GatewaySettings(window=8, heartbeat_interval_s=2.0, lease_ttl_s=12.0)
    door = Door(settings)
    session_id = door.enter(1)
    acked, accept = door.answers(1)[-2:]
    assert isinstance(acked, control.ControlAck)
    assert accept == control.SessionAccept(
        SessionId(session_id),
        f"{session_id}|{WORKER}|{TENANT}|{door.wall + 3600}|{session_id}.1",
        "2027-01-15T09:00:00Z",
        False,
        WORKER,
        8,
        limits.MAX_FRAME_BYTES,
        2000,
        12000,
        None,
        control.SessionLimits(
            50, 10, 10_000, 5, limits.INLINE_RESULT_BYTES, 16_384, 1000, 64, 1000, 1000
        ),
    )


def test_a_session_has_the_features_that_both_sides_know() -> None:
    door = Door(GatewaySettings())
    door.greet(1)
    offered = control.Capabilities(control.Concurrency(4), (), ("new", control.FRAMES_BUNDLED))
    door.feed(1, control.REGISTER, control.Register(offered))
    arrived = door.last(RegisterArrived)
    assert isinstance(arrived, RegisterArrived)
    door.gateway.accept(arrived.session_id, door.now, door.wall)
    door.drain()
    accept = door.answers(1)[-1]
    assert isinstance(accept, control.SessionAccept)
    assert accept.features == (control.FRAMES_BUNDLED,)
    bad = control.Reset(errors.PROTOCOL_BAD_FRAME.code)
    door.feed(1, control.RESET, bad)
    door.resume(2, arrived.session_id, door.token(1))
    again = [one for one in door.answers(2) if isinstance(one, control.SessionAccept)]
    assert [(one.resumed, one.features) for one in again] == [(True, ())]


def test_lies_about_capacity_are_cut_down() -> None:
    door = Door(GatewaySettings(max_parallel=16))
    door.greet(1)
    door.feed(1, control.REGISTER, register(slots=10**9))
    arrived = door.last(RegisterArrived)
    assert isinstance(arrived, RegisterArrived)
    assert arrived.register.capabilities.concurrency.max_parallel == 16


def test_a_session_that_lost_its_connection_before_the_accept_never_was(door: Door) -> None:
    door.greet(1)
    door.feed(1, control.REGISTER, register())
    arrived = door.last(RegisterArrived)
    door.gateway.closed(1, door.now)
    door.gateway.closed(1, door.now)
    door.drain()
    assert door.of(SessionEnded) == [
        SessionEnded(arrived.session_id, TENANT, WORKER, "E.SESSION.UNKNOWN", False)
    ]
    assert not door.gateway.accept(arrived.session_id, door.now, door.wall)


def test_a_register_can_be_denied(door: Door) -> None:
    door.greet(1)
    door.feed(1, control.REGISTER, register())
    arrived = door.last(RegisterArrived)
    assert door.gateway.end(arrived.session_id, errors.SESSION_DENIED, door.now, "too old")
    door.drain()
    assert door.denied(1, errors.SESSION_DENIED).reason == "too old"
    assert not door.gateway.end(arrived.session_id, errors.SESSION_DENIED, door.now)


def test_more_connections_than_allowed_are_turned_away() -> None:
    door = Door(GatewaySettings(max_connections=1))
    door.open(1)
    door.open(2)
    door.denied(2, errors.OVERLOADED, 1013)
    door.feed(2, control.HANDSHAKE, handshake())
    assert door.gateway.counters["frames_of_closed_connections"] == 1


def test_a_gateway_that_may_not_speak_opens_nothing_and_answers_nothing() -> None:
    may = [True]
    door = Door(may_speak=lambda now: may[0])
    session_id = door.enter(1)
    token = door.token(1)
    beat = door.feed(1, control.HEARTBEAT, control.Heartbeat())
    may[0] = False
    before = len(door.out)
    assert not door.gateway.answer_heartbeat(SessionId(session_id), beat.id, (), door.now)
    assert not door.gateway.accept(SessionId(session_id), door.now, door.wall)
    door.greet(2, worker="w-2")
    door.resume(3, session_id, token)
    assert len(door.out) == before
    assert door.gateway.counters["not_spoken"] == 2


# --- taking over ---


def test_a_second_connection_takes_over_and_the_first_is_told(door: Door) -> None:
    old = door.enter(1)
    new = door.enter(2)
    door.denied(1, errors.SESSION_STALE_BINDING, 1000)
    assert door.of(SessionEnded) == [
        SessionEnded(SessionId(old), TENANT, WORKER, "E.SESSION.STALE_BINDING", False)
    ]
    assert door.gateway.session_of(TENANT, WORKER) == new
    arrived = door.last(RegisterArrived)
    assert isinstance(arrived, RegisterArrived)
    assert (arrived.previous_incarnation, arrived.displaced) == (1, False)
    door.feed(1, control.HEARTBEAT, control.Heartbeat())
    assert not door.of(HeartbeatArrived)


def test_another_incarnation_that_displaces_a_live_session_is_marked(door: Door) -> None:
    door.enter(1)
    door.enter(2, incarnation=2)
    arrived = door.last(RegisterArrived)
    assert isinstance(arrived, RegisterArrived)
    assert (arrived.incarnation, arrived.previous_incarnation, arrived.displaced) == (2, 1, True)


def test_another_incarnation_after_the_old_session_ended_displaces_nothing(door: Door) -> None:
    old = door.enter(1)
    door.gateway.end(SessionId(old), errors.SESSION_UNKNOWN, door.now)
    door.enter(2, incarnation=2)
    arrived = door.last(RegisterArrived)
    assert isinstance(arrived, RegisterArrived)
    assert (arrived.previous_incarnation, arrived.displaced) == (1, False)


def test_a_newcomer_before_the_accept_ends_the_session_that_was_opening(door: Door) -> None:
    door.greet(1)
    door.feed(1, control.REGISTER, register())
    door.greet(2)
    door.denied(1, errors.SESSION_STALE_BINDING, 1000)
    assert len(door.of(SessionEnded)) == 1


def test_a_handshake_that_leads_nowhere_leaves_the_old_session_resumable(door: Door) -> None:
    old = door.enter(1)
    token = door.token(1)
    door.greet(2)
    door.gateway.closed(2, door.now)
    door.resume(3, old, token)
    assert isinstance(door.answers(3)[0], control.SessionAccept)


def test_flapping_is_refused_with_a_time_to_wait(door: Door) -> None:
    for conn in range(limits.FLAP_MAX_TAKEOVERS + 1):
        door.enter(conn)
    door.greet(50)
    assert door.denied(50, errors.SESSION_DENIED).retry_after_ms == 30_000
    door.feed(limits.FLAP_MAX_TAKEOVERS, control.HEARTBEAT, control.Heartbeat())
    assert door.of(HeartbeatArrived)
    door.now += limits.FLAP_WINDOW_S
    door.greet(51)
    assert isinstance(door.answers(51)[-1], control.ControlAck)


# --- resuming ---


def test_a_resume_carries_on_with_what_each_side_has(door: Door, session_id: str) -> None:
    token = door.token(1)
    door.feed(1, business.RESULT, result(), seq=0, corr="task-1")
    door.gateway.committed(SessionId(session_id), (0,))
    frame_id = door.gateway.send(
        SessionId(session_id), business.CANCEL, cancel(), "task-1", door.now
    )
    door.drain()
    door.gateway.closed(1, door.now)
    door.drain()
    door.open(2)
    door.feed(2, control.RESUME, control.Resume(SessionId(session_id), token, 0))
    accept = door.answers(2)[0]
    assert isinstance(accept, control.SessionAccept)
    assert (accept.resumed, accept.session_id, accept.last_seen_seq) == (True, session_id, 0)
    assert door.of(Acked) == [Acked(SessionId(session_id), TENANT, WORKER, (frame_id,), 0)]
    assert cancel() not in door.answers(2)


def test_a_resume_sends_again_what_was_not_acknowledged(door: Door, session_id: str) -> None:
    token = door.token(1)
    door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), "task-1", door.now)
    door.drain()
    assert door.answers(1)[-1] == cancel()
    door.resume(2, session_id, token)
    assert door.answers(2)[1] == cancel()
    door.denied(1, errors.SESSION_STALE_BINDING, 1000)
    assert not door.of(SessionEnded)


def test_a_repeated_resume_is_answered_again(door: Door, session_id: str) -> None:
    door.resume(2, session_id, door.token(1))
    door.feed(2, control.RESUME, control.Resume(SessionId(session_id), door.token(2)))
    accepts = [each for each in door.answers(2) if isinstance(each, control.SessionAccept)]
    assert [each.resumed for each in accepts] == [True, True]


def test_an_unknown_session_is_refused_as_unknown() -> None:
    door, other = Door(), Door()
    session_id = door.enter(1)
    other.resume(1, session_id, door.token(1))
    other.denied(1, errors.SESSION_UNKNOWN)


def test_a_session_that_is_not_open_yet_cannot_be_resumed(door: Door) -> None:
    door.greet(1)
    door.feed(1, control.REGISTER, register())
    session_id = door.last(RegisterArrived).session_id
    token, _ = door.tokens.mint(session_id, WORKER, TENANT, f"{session_id}.1", door.wall)
    door.resume(2, session_id, token)
    door.denied(2, errors.SESSION_UNKNOWN)


@each_row(
    ("token", "more", "code"),
    [
        ("rubbish", {}, errors.AUTH_INVALID_TOKEN),
        ("{sid}|w-1|acme|1|s.1", {}, errors.AUTH_INVALID_TOKEN),
        ("other|w-1|acme|9e9|s.1", {}, errors.SESSION_DENIED),
        ("{sid}|w-1|other|9e9|s.1", {}, errors.SESSION_DENIED),
        ("{sid}|w-2|acme|9e9|s.1", {}, errors.SESSION_DENIED),
        ("{sid}|w-1|acme|9e9|s.1", {"worker": "w-2"}, errors.SESSION_DENIED),
        ("{sid}|w-1|acme|9e9|s.1", {"role": "scheduler"}, errors.SESSION_DENIED),
        ("{sid}|w-1|acme|9e9|s.1", {"tenant": "other"}, errors.SESSION_DENIED),
    ],
)
def test_a_session_token_must_fit_the_session_and_the_sender(
    token: str, more: dict[str, str], code: errors.Code
) -> None:
    door = Door()
    session_id = door.enter(1)
    door.resume(2, session_id, token.replace("{sid}", session_id), **more)
    door.denied(2, code)
    door.feed(1, control.HEARTBEAT, control.Heartbeat())
    assert door.of(HeartbeatArrived), "the session it was after is untouched"


def test_no_two_tokens_of_a_session_are_equal(door: Door, session_id: str) -> None:
    door.resume(2, session_id, door.token(1))
    assert door.token(1) != door.token(2), "both were made in one second"


def test_a_replaced_token_is_good_for_30_s_after_its_successor_was_used(door: Door) -> None:
    session_id = door.enter(1)
    first = door.token(1)
    door.resume(2, session_id, first)
    second = door.token(2)
    for _ in range(4):
        door.tick(10.0)
        door.feed(2, control.HEARTBEAT, control.Heartbeat())
    door.resume(3, session_id, first)
    assert door.token(3), "the successor was not used: nobody knows whether it arrived"
    door.resume(4, session_id, second)
    for conn, seconds in ((5, 14.0), (6, 14.0)):
        door.tick(seconds)
        door.resume(conn, session_id, first)
        assert door.token(conn)
    door.tick(2.0)
    door.resume(7, session_id, first)
    door.denied(7, errors.AUTH_INVALID_TOKEN)
    door.resume(8, session_id, second)
    assert door.token(8), "the one that was used stays good, and the session was not touched"


def test_a_session_that_resumes_without_end_keeps_few_uses(door: Door, session_id: str) -> None:
    first = door.token(1)
    for conn in range(2, 2 + limits.TOKEN_USES_KEPT + 2):
        door.resume(conn, session_id, door.token(conn - 1))
    door.resume(1000, session_id, first)
    door.denied(1000, errors.AUTH_INVALID_TOKEN)


def test_a_credential_that_was_revoked_cannot_resume(door: Door, session_id: str) -> None:
    token = door.token(1)
    door.gateway.closed(1, door.now)
    del door.doors.known[GOOD_TOKEN]
    door.resume(2, session_id, token)
    door.denied(2, errors.AUTH_INVALID_TOKEN)
    assert door.gateway.session_of(TENANT, WORKER) is None


# --- identity of frames ---


@pytest.mark.parametrize("more", [{"tenant": "other"}, {"worker": "w-2"}, {"role": "admin"}])
def test_a_frame_of_somebody_else_ends_the_session(more: dict[str, str]) -> None:
    for opened in (True, False):
        door = Door()
        if opened:
            door.enter(1)
        else:
            door.greet(1)
        door.feed(1, control.HEARTBEAT, control.Heartbeat(), **more)
        door.denied(1, errors.SESSION_DENIED)
        assert len(door.of(SessionEnded)) == opened
        audited = door.last(SessionAudited)
        assert isinstance(audited, SessionAudited)
        assert audited.action == "frame.foreign"


# --- liveness ---


def test_missed_heartbeats_warn_degrade_and_end_the_session(door: Door, session_id: str) -> None:
    door.tick(4.9)
    assert not door.of(Missed)
    door.tick(0.1)
    door.tick(5.0)
    assert door.of(Missed) == [
        Missed(SessionId(session_id), TENANT, WORKER, 1),
        Missed(SessionId(session_id), TENANT, WORKER, 2),
    ]
    door.tick(5.0)
    assert door.of(SessionEnded) == [
        SessionEnded(SessionId(session_id), TENANT, WORKER, "E.SESSION.UNKNOWN", True)
    ]
    door.denied(1, errors.SESSION_UNKNOWN)
    assert door.gateway.deadline() is None or door.gateway.deadline() != door.now


def test_a_heartbeat_starts_the_count_anew(door: Door, session_id: str) -> None:
    door.tick(7.0)
    door.feed(1, control.HEARTBEAT, control.Heartbeat())
    door.tick(4.9)
    assert len(door.of(Missed)) == 1
    door.tick(0.2)
    assert door.of(Missed)[-1] == Missed(SessionId(session_id), TENANT, WORKER, 1)


def test_a_session_outlives_its_connection_until_it_is_lost(door: Door, session_id: str) -> None:
    door.gateway.closed(1, door.now)
    door.tick(14.0)
    assert door.gateway.session_of(TENANT, WORKER) == session_id
    door.tick(1.0)
    ended = door.last(SessionEnded)
    assert isinstance(ended, SessionEnded)
    assert ended.lost
    assert door.gateway.session_of(TENANT, WORKER) is None


def test_a_heartbeat_says_what_the_worker_had_taken(door: Door, session_id: str) -> None:
    """One that carries no ack was made after what the worker acked before it."""
    door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)
    door.feed(1, control.HEARTBEAT, control.Heartbeat())
    door.feed(1, control.HEARTBEAT, control.Heartbeat(), ack=AckInfo(True, None, "0", 256))
    door.feed(1, control.HEARTBEAT, control.Heartbeat(), ack=AckInfo(True, 0, "0", 256))
    door.feed(1, control.HEARTBEAT, control.Heartbeat())
    beats = [each for each in door.of(HeartbeatArrived) if isinstance(each, HeartbeatArrived)]
    assert [each.covers(0) for each in beats] == [False, False, True, True]
    assert isinstance(door.events[-3], Acked), "the ack comes before the heartbeat that carries it"


def test_an_answer_carries_what_to_stop_and_the_window(door: Door, session_id: str) -> None:
    beat = door.feed(1, control.HEARTBEAT, control.Heartbeat())
    stop = (AttemptRef(TaskId("task-1"), 1),)
    assert door.gateway.answer_heartbeat(SessionId(session_id), beat.id, stop, door.now)
    door.drain()
    assert door.answers(1)[-1] == control.WindowAck(beat.id, None, "0", 256, stop)
    assert not door.gateway.answer_heartbeat(SessionId("gone"), beat.id, (), door.now)


def test_a_flood_of_heartbeats_is_abuse(door: Door) -> None:
    door.enter(1)
    for _ in range(limits.REFUSALS_MAX + 1):
        door.feed(1, control.HEARTBEAT, control.Heartbeat())
    assert len(door.of(HeartbeatArrived)) == limits.REFUSALS_MAX
    door.denied(1, errors.SESSION_DENIED)


def test_heartbeats_that_waited_for_a_scheduler_that_stood_still_are_no_flood(door: Door) -> None:
    door.enter(1)
    door.now += 4.0
    for _ in range(4 * limits.REFUSALS_MAX):
        door.feed(1, control.HEARTBEAT, control.Heartbeat())
    assert len(door.of(HeartbeatArrived)) == 4 * limits.REFUSALS_MAX
    assert "heartbeats_too_fast" not in door.gateway.counters


# --- frames of an open session ---


def test_frames_are_handed_up_in_order_and_acknowledged_when_committed(door: Door) -> None:
    session_id = door.enter(1)
    door.feed(1, business.RESULT, result(2), seq=1, corr="task-2")
    assert not door.of(Delivered)
    door.feed(1, business.RESULT, result(1), seq=0, corr="task-1")
    delivered = [each for each in door.of(Delivered) if isinstance(each, Delivered)]
    assert [each.envelope.corr for each in delivered] == ["task-1", "task-2"]
    door.tick(1.0)
    ack = door.answers(1)[-1]
    assert ack == control.WindowAck(None, None, "3", 256)
    assert door.gateway.committed(SessionId(session_id), (0,))
    assert door.gateway.committed(SessionId(session_id), (1,))
    door.drain()
    door.tick(0.02)
    assert door.answers(1)[-1] == control.WindowAck(None, 1, "0", 256)
    assert not door.gateway.committed(SessionId("gone"), (1,))


def test_an_acknowledgement_that_was_asked_for_comes_with_the_commit(door: Door) -> None:
    session_id = door.enter(1)
    frame = door.feed(1, business.RESULT, result(), seq=0, ack=AckInfo(True))
    assert control.WindowAck(frame.id, 0, "0", 256) not in door.answers(1)
    door.gateway.committed(SessionId(session_id), (0,))
    door.drain()
    assert door.answers(1)[-1] == control.WindowAck(frame.id, 0, "0", 256)
    door.again(1, frame)
    door.tick(0.02)
    assert door.answers(1).count(control.WindowAck(frame.id, 0, "0", 256)) == 2
    door.feed(1, business.RESULT, result(), seq=9999, ack=AckInfo(True))
    assert door.gateway._table.sessions[session_id].duplex._asked == {}


def test_a_frame_resent_in_a_new_session_is_not_handled_again_once_committed(door: Door) -> None:
    session_id = door.enter(1)
    committed = door.feed(1, business.RESULT, result(1), seq=0, corr="task-1")
    pending = door.feed(1, business.RESULT, result(2), seq=1, corr="task-2")
    door.gateway.committed(SessionId(session_id), (0,))
    door.enter(2)
    door.again(2, committed)
    door.again(2, pending)
    corrs = [each.envelope.corr for each in door.of(Delivered) if isinstance(each, Delivered)]
    assert corrs == ["task-1", "task-2", "task-2"]


def test_only_so_many_workers_are_remembered_for_what_they_sent() -> None:
    door = Door(GatewaySettings(max_connections=2))
    for number in range(4):
        door.enter(number, worker=f"w-{number}")
        door.gateway.closed(number, door.now)
    assert len(door.gateway._table._seen) == 2


def test_unsequenced_frames_with_a_seq_and_sequenced_without_are_bad() -> None:
    for more, frame_type, payload in (
        ({"seq": 0}, control.HEARTBEAT, control.Heartbeat()),
        ({}, business.RESULT, result()),
    ):
        door = Door()
        door.enter(1)
        door.feed(1, frame_type, payload, **more)
        door.denied(1, errors.PROTOCOL_BAD_FRAME, 1002)
        assert not door.of(SessionEnded)


def test_a_bad_frame_ends_the_connection_and_nothing_else(door: Door, session_id: str) -> None:
    door.enter(2, worker="w-2")
    door.gateway.bad_frame(1, BadFrame(1009, "too large"), door.now)
    door.gateway.bad_frame(1, BadFrame(1009, "too large"), door.now)
    door.drain()
    door.denied(1, errors.PROTOCOL_BAD_FRAME, 1009)
    assert door.gateway.session_of(TENANT, WORKER) == session_id
    assert 1009 not in door.answers(2)
    door.open(3)
    refusal = errors.RemoteProtocolError(errors.PROTOCOL_BAD_FRAME, "binary")
    door.gateway.bad_frame(3, refusal, door.now)
    door.drain()
    door.denied(3, errors.PROTOCOL_BAD_FRAME, 1002)


def test_a_payload_that_cannot_be_read_is_refused_and_its_seq_is_the_engines(door: Door) -> None:
    session_id = door.enter(1)
    wrong = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload/status", "no", TaskId("task-1"), 1)
    frame = door.feed(1, business.RESULT, wrong, seq=0)
    assert door.of(FrameRefused) == [
        FrameRefused(SessionId(session_id), TENANT, WORKER, 0, business.RESULT, wrong)
    ]
    assert control.ControlError(
        frame.id, "E.PROTOCOL.BAD_PAYLOAD", "no", "/payload/status"
    ) in door.answers(1)
    door.feed(1, business.RESULT, result(), seq=1)
    assert len(door.of(Delivered)) == 1


def test_a_frame_for_workers_is_refused(door: Door) -> None:
    door.enter(1)
    door.feed(1, business.CANCEL, cancel(), seq=0)
    door.feed(1, control.DRAIN, control.ControlDrain(), seq=1)
    refused = [each for each in door.of(FrameRefused) if isinstance(each, FrameRefused)]
    assert [each.unreadable.code for each in refused] == [errors.CMD_UNKNOWN] * 2


def test_ten_refusals_in_ten_seconds_end_the_session(door: Door) -> None:
    door.enter(1)
    wrong = Unreadable(errors.CMD_UNKNOWN, "/type", "unknown")
    for seq in range(limits.REFUSALS_MAX - 1):
        door.feed(1, "biz.x", wrong, seq=seq)
    door.now += 11.0
    door.feed(1, "biz.x", wrong, seq=limits.REFUSALS_MAX - 1)
    assert not door.of(SessionEnded)
    for seq in range(limits.REFUSALS_MAX, 2 * limits.REFUSALS_MAX):
        door.feed(1, "biz.x", wrong, seq=seq)
    door.denied(1, errors.SESSION_DENIED)
    assert len(door.of(SessionEnded)) == 1


def test_abuse_in_a_burst_of_buffered_frames_ends_it_once(door: Door) -> None:
    door.enter(1)
    wrong = Unreadable(errors.CMD_UNKNOWN, "/type", "unknown")
    for seq in range(limits.REFUSALS_MAX + 5, -1, -1):
        door.feed(1, "biz.x", wrong, seq=seq)
    assert len(door.of(SessionEnded)) == 1
    assert len([each for each in door.answers(1) if isinstance(each, control.Reset)]) == 1


def test_vendor_frames_are_acknowledged_and_dropped(door: Door) -> None:
    door.enter(1)
    door.feed(1, "ext.other.x", None, seq=0)
    door.feed(1, "ext.acme.x", None, seq=1)
    assert not door.of(Delivered)
    assert door.gateway.counters["ext_dropped"] == 2
    door.tick(1.0)
    assert door.answers(1)[-1] == control.WindowAck(None, 1, "0", 256)


def test_unknown_control_frames_are_acknowledged_if_asked_and_dropped(door: Door) -> None:
    door.enter(1)
    unknown = Unreadable(errors.CMD_UNKNOWN, "/type", "unknown")
    before = len(door.out)
    door.feed(1, "control.new", unknown)
    assert len(door.out) == before
    frame = door.feed(1, "control.new", unknown, ack=AckInfo(True))
    assert door.answers(1)[-1] == control.ControlAck(frame.id)
    door.feed(1, control.SESSION_ACCEPT, None)
    assert door.gateway.counters["unknown_control"] == 2
    assert door.gateway.counters["unexpected_frames"] == 1
    assert not door.of(FrameRefused)


def test_a_control_payload_that_cannot_be_read_is_answered_but_an_error_never(door: Door) -> None:
    door.enter(1)
    wrong = Unreadable(errors.PROTOCOL_BAD_PAYLOAD, "/payload", "no")
    door.feed(1, control.HEARTBEAT, wrong)
    before = len(door.out)
    door.feed(1, control.ERROR, wrong)
    assert len(door.out) == before
    assert [each.seq for each in door.of(FrameRefused) if isinstance(each, FrameRefused)] == [
        None,
        None,
    ]


def test_an_error_of_the_worker_is_handed_up(door: Door, session_id: str) -> None:
    door.feed(1, control.ERROR, control.ControlError("f-1", "E.CMD.UNKNOWN", "no", "/type"))
    assert door.of(PeerError) == [
        PeerError(SessionId(session_id), TENANT, WORKER, "f-1", "E.CMD.UNKNOWN", "no", "/type")
    ]


def test_a_reset_of_the_worker_closes_the_connection_and_keeps_the_session(door: Door) -> None:
    session_id = door.enter(1)
    door.feed(1, control.RESET, control.Reset("E.PROTOCOL.BAD_FRAME"))
    assert door.answers(1)[-1] == 1000
    assert door.gateway.session_of(TENANT, WORKER) == session_id


def test_window_acks_come_alone_or_ride_along(door: Door, session_id: str) -> None:
    sent = [
        door.gateway.send(SessionId(session_id), business.CANCEL, cancel(n), None, door.now)
        for n in range(3)
    ]
    door.drain()
    door.feed(1, control.ACK, control.WindowAck(None, 0, "0", 256))
    door.feed(1, business.RESULT, result(), seq=0, ack=AckInfo(False, 2, "0", 256))
    door.feed(1, control.ACK, control.ControlAck("something"))
    assert door.of(Acked) == [
        Acked(SessionId(session_id), TENANT, WORKER, (sent[0],), 0),
        Acked(SessionId(session_id), TENANT, WORKER, (sent[1], sent[2]), 2),
    ]


def test_a_new_bearer_token_is_checked_and_kept(door: Door, session_id: str) -> None:
    door.doors.known["newer"] = door.doors.known.pop(GOOD_TOKEN)
    frame = door.feed(1, control.HANDSHAKE, handshake("newer"))
    assert door.answers(1)[-1] == control.ControlAck(frame.id)
    token = door.token(1)
    door.resume(2, session_id, token)
    assert isinstance(door.answers(2)[0], control.SessionAccept)


def test_a_bad_new_bearer_token_ends_the_session(door: Door) -> None:
    door.enter(1)
    door.feed(1, control.HANDSHAKE, handshake("bad"))
    door.denied(1, errors.AUTH_INVALID_TOKEN)
    assert len(door.of(SessionEnded)) == 1


# --- sending ---


def test_sending_needs_an_open_session(door: Door) -> None:
    door.greet(1)
    door.feed(1, control.REGISTER, register())
    session_id = door.last(RegisterArrived).session_id
    for each in (session_id, SessionId("gone")):
        with pytest.raises(NoSession):
            door.gateway.send(each, business.CANCEL, cancel(), None, door.now)


def test_a_full_queue_pushes_back() -> None:
    door = Door(GatewaySettings(window=1, queue_limit=1, checks_outgoing=False))
    session_id = door.enter(1)
    for _ in range(2):
        door.gateway.send(SessionId(session_id), business.CANCEL, object(), None, door.now)
    with pytest.raises(QueueFull):
        door.gateway.send(SessionId(session_id), business.CANCEL, object(), None, door.now)


def test_what_the_worker_would_refuse_is_not_sent(door: Door, session_id: str) -> None:
    with pytest.raises(errors.LocalProtocolError):
        door.gateway.send(SessionId(session_id), business.CANCEL, {"task_id": 1}, None, door.now)


def test_only_a_frame_that_never_reached_the_socket_can_be_withdrawn() -> None:
    door = Door(GatewaySettings(window=1))
    session_id = door.enter(1)
    out, waiting = (
        door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)
        for _ in range(2)
    )
    door.drain()
    assert not door.gateway.withdraw(SessionId(session_id), out)
    assert door.gateway.withdraw(SessionId(session_id), waiting)
    assert not door.gateway.withdraw(SessionId("gone"), waiting)


def test_a_full_queue_is_let_into_the_window_before_a_frame_is_refused() -> None:
    door = Door(GatewaySettings(window=2, queue_limit=1))
    session_id = door.enter(1)
    for _ in range(3):  # two in the window, one in the queue, though nothing was taken in between
        door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)
    with pytest.raises(QueueFull):
        door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)


def test_a_frame_for_a_worker_that_is_away_can_be_withdrawn(door: Door, session_id: str) -> None:
    door.gateway.closed(1, door.now)
    frame_id = door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)
    door.drain()
    assert cancel() not in door.answers(1)
    assert door.gateway.withdraw(SessionId(session_id), frame_id)


def test_a_worker_that_does_not_acknowledge_loses_its_connection_not_its_session() -> None:
    door = Door(GatewaySettings(heartbeat_interval_s=60.0))
    session_id = door.enter(1)
    door.gateway.send(SessionId(session_id), business.CANCEL, cancel(), None, door.now)
    for _ in range(150):
        door.tick(0.1)
    assert door.answers(1)[-1] == 1000
    assert door.answers(1).count(cancel()) == limits.RETRANSMIT_ATTEMPTS
    assert door.gateway.session_of(TENANT, WORKER) == session_id
    assert door.gateway.counters["links_broken"] == 1


# --- ends ---


def test_ending_a_session_tells_its_worker(door: Door, session_id: str) -> None:
    assert door.gateway.end(SessionId(session_id), errors.SESSION_MOVED, door.now)
    door.drain()
    door.denied(1, errors.SESSION_MOVED)
    assert not door.gateway.end(SessionId(session_id), errors.SESSION_MOVED, door.now)


def test_a_session_that_moved_is_opened_again_where_the_scheduler_said() -> None:
    pair = SessionPair()
    pair.open()
    moved = pair.gateway.end(
        SessionId(pair.session_id),
        errors.SESSION_MOVED,
        pair.now,
        location="wss://owner.example/ws/worker",
    )
    pair.run()
    assert moved
    assert (pair.connect_at, pair.location) == (pair.now, "wss://owner.example/ws/worker")
    pair.gateway = SessionPair().gateway
    pair.open()
    assert pair.worker.session_id == pair.session_id


def test_a_session_can_be_ended_with_a_time_to_wait() -> None:
    pair = SessionPair()
    pair.open()
    pair.gateway.end(SessionId(pair.session_id), errors.OVERLOADED, pair.now, retry_after_s=7.5)
    pair.run()
    assert pair.connect_at == pytest.approx(pair.now + 7.5)


def test_revoking_ends_sessions_and_connections_whose_credential_is_over(door: Door) -> None:
    door.doors.known["other"] = Principal("subject-2", TENANT, "worker")
    door.enter(1)
    door.enter(2, worker="w-2", token="other")
    door.greet(3, worker="w-3")
    door.enter(4, worker="w-4")
    door.gateway.closed(4, door.now)
    assert door.gateway.revoke(lambda who: who.tenant == "elsewhere", door.now) == 0
    assert door.gateway.revoke(lambda who: who.subject == "subject-1", door.now) == 3
    door.drain()
    door.denied(1, errors.AUTH_INVALID_TOKEN)
    door.denied(3, errors.AUTH_INVALID_TOKEN)
    assert door.gateway.session_of(TENANT, "w-2") is not None
    assert len(door.of(SessionEnded)) == 2


def test_closing_all_keeps_the_sessions(door: Door, session_id: str) -> None:
    door.open(2)
    door.gateway.close_all()
    door.drain()
    assert door.answers(1)[-1] == door.answers(2)[-1] == 1013
    assert door.gateway.session_of(TENANT, WORKER) == session_id


def test_a_token_is_renewed_before_it_expires(door: Door, session_id: str) -> None:
    first = door.token(1)
    for _ in range(800):
        door.tick(4.2)
        door.feed(1, control.HEARTBEAT, control.Heartbeat())
    renewed = door.token(1)
    assert renewed != first
    accept = [each for each in door.answers(1) if isinstance(each, control.SessionAccept)][-1]
    assert (accept.resumed, accept.session_id) == (False, session_id)


def test_a_short_token_is_renewed_at_half_of_its_life(door: Door) -> None:
    door.tokens.life_s = 8.0
    door.enter(1)
    first = door.token(1)
    door.tick(3.9)
    assert door.token(1) == first
    door.tick(0.2)
    assert door.token(1) != first


def test_a_renewal_checks_the_credential_again(door: Door) -> None:
    door.tokens.life_s = 8.0
    door.enter(1)
    del door.doors.known[GOOD_TOKEN]
    door.tick(4.1)
    door.denied(1, errors.AUTH_INVALID_TOKEN)
    ended = door.last(SessionEnded)
    assert isinstance(ended, SessionEnded)
    assert not ended.lost


def test_timers_of_what_is_gone_do_nothing(door: Door) -> None:
    door.enter(1)
    door.enter(2)
    door.open(3)
    door.gateway.closed(3, door.now)
    events = len(door.of(SessionEnded))
    for _ in range(20):
        door.feed(2, control.HEARTBEAT, control.Heartbeat())
        door.tick(1.0)
    assert len(door.of(SessionEnded)) == events


def test_busy_sessions_do_not_pile_up_timers() -> None:
    pair = SessionPair()
    pair.open()
    for number in range(300):
        pair.sends(number)
        pair.wait(0.02, step=0.01)
    assert len(pair.gateway._pump) < 60


# --- what fails inside ---


def test_a_session_that_failed_inside_is_given_up_with_all_that_it_was_about_to_tell(
    monkeypatch: pytest.MonkeyPatch, door: Door, session_id: str
) -> None:
    other = door.enter(2, worker="w-2")
    told: list[Delivered] = []

    def failing(*args: Any) -> Delivered:
        if told:
            raise RuntimeError
        told.append(Delivered(*args))
        return told[0]

    monkeypatch.setattr(open_sessions, "Delivered", failing)
    door.feed(1, business.RESULT, result(2), seq=1, corr="task-2")
    with pytest.raises(RuntimeError):
        door.feed(1, business.RESULT, result(1), seq=0, corr="task-1")
    door.gateway.abandon(1, door.now)
    door.drain()
    door.denied(1, errors.INTERNAL)
    assert told and not door.of(Delivered)
    ended = door.last(SessionEnded)
    assert (ended.session_id, door.gateway.session_of("acme", "w-2")) == (session_id, other)
    door.gateway.abandon(1, door.now)
    assert door.gateway.counters["sessions_abandoned"] == 1


def test_a_connection_that_failed_before_it_had_a_session_is_closed(door: Door) -> None:
    door.greet(1)
    door.gateway.abandon(1, door.now)
    door.drain()
    door.denied(1, errors.INTERNAL)
