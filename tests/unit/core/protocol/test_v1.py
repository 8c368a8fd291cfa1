"""The adapter for protocol 1, against a real gateway. The engine is played by the pair."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core import errors
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, codec, control, limits
from astraflow.core.protocol import events as gateway_events
from astraflow.core.protocol.events import CloseConnection
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.v1 import attempts, frames
from astraflow.core.protocol.v1.adapter import EARLY_FRAMES, V1Adapter
from astraflow.core.protocol.v1.frames import LeasedAttempt, decode_v1, is_v1_opening
from astraflow.core.protocol.v1.link import REPEATS_KEPT, REPORTS_KEPT, instance_id_of
from astraflow.core.protocol.v1.reports import CHANNELS_COUNTED
from astraflow.core.protocol.wire import AttemptRef
from tests.unit.core.protocol.pair import GOOD_TOKEN, TENANT, CountedIds, Doors, PlainTokens

TS = "2026-01-15T10:00:00.000Z"
WORKER = "w-1"
HELLO = {"protocol": 1, "auth": {"mode": "token", "token": GOOD_TOKEN}}
Json = dict[str, Any]


def frame(kind: str, payload: Any, frame_id: str = "", worker: str = WORKER, **more: Any) -> Json:
    made = {
        "type": kind,
        "id": frame_id or f"{kind}#",
        "ts": TS,
        "tenant": TENANT,
        "sender": {"role": "worker", "id": worker},
        "payload": payload,
    }
    return made | more


def dispatch_of(run: str = "r", task: str = "r.0", attempt: int = 1, **more: Any) -> Any:
    return business.Dispatch(
        RunId(run), TaskId(task), attempt, 0, "n", "core.echo",
        business.PackageId("core", "1.0.0"), msgspec.Raw(b'{"value":1}'),
        business.LeaseGrant(30_000, "since"), **more,
    )  # fmt: skip


class OldPair:
    """A worker of protocol 1 (the test), the adapter, and a gateway."""

    def __init__(self, held: Sequence[LeasedAttempt] = ()) -> None:
        self.now = 100.0
        self.held = list(held)
        self.commits = True
        self.answers = True
        self.stop: tuple[AttemptRef, ...] = ()
        self.session = SessionId("")
        self.events: list[Any] = []
        self.got: list[Json] = []
        self.closed_with: int | None = None
        self.waiting: list[int] = []
        self.gateway = Gateway(
            scheduler_id="s-1",
            ids=CountedIds("2"),
            rng=random.Random(1),
            authenticate=Doors(),
            tokens=PlainTokens(),
        )
        self.adapter = V1Adapter(CountedIds("3"), random.Random(2), self._held)
        self.gateway.opened("c", self.now)

    def _held(self, tenant: str, worker: str) -> list[LeasedAttempt]:
        return self.held if tenant == TENANT else []

    def say(self, *said: Json) -> list[Json]:
        """Send frames; what comes back."""
        first = len(self.got)
        for one in said:
            self.adapter.from_worker(json.dumps(one).encode(), self.now, TS)
            self.settle()
        return self.got[first:]

    def settle(self) -> None:
        """Carry frames until both are silent."""
        while True:
            up = self.adapter.take_for_scheduler()
            for raw in up:
                self.gateway.feed("c", codec.decode(raw), self.now, self.now)
            self._serve()
            down = self.gateway.take_output()
            for item in down:
                if isinstance(item, CloseConnection):
                    self.closed_with = item.code
                else:
                    self.adapter.from_scheduler(codec.encode(item.envelope, TS), self.now)
            self.got += [json.loads(raw) for raw in self.adapter.take_for_worker()]
            self.adapter.check()
            if not up and not down:
                return

    def _serve(self) -> None:
        for event in self.gateway.take_events():
            self.events.append(event)
            if isinstance(event, gateway_events.RegisterArrived):
                self.session = event.session_id
                if self.commits:
                    self.gateway.accept(event.session_id, self.now, self.now)
            elif isinstance(event, gateway_events.HeartbeatArrived) and self.answers:
                self.gateway.answer_heartbeat(event.session_id, event.frame_id, self.stop, self.now)
            elif (
                isinstance(event, gateway_events.Delivered | gateway_events.FrameRefused)
                and event.seq is not None
            ):
                self.waiting.append(event.seq)
        if self.commits:
            self.commit()

    def commit(self) -> None:
        waiting, self.waiting = self.waiting, []
        for seq in waiting:
            self.gateway.committed(self.session, (seq,))

    def command(self, frame_type: str, payload: Any, corr: str | None = None) -> list[Json]:
        """The scheduler sends something; what the worker gets."""
        first = len(self.got)
        self.gateway.send(self.session, frame_type, payload, corr, self.now)
        self.settle()
        return self.got[first:]

    def dispatch(self, run: str = "r", task: str = "r.0", attempt: int = 1, **more: Any) -> Json:
        (got,) = self.command(business.DISPATCH, dispatch_of(run, task, attempt, **more), task)
        return got

    def later(self, seconds: float) -> list[Json]:
        """Time passes; what the worker gets."""
        first = len(self.got)
        end = self.now + seconds
        while True:
            due = [
                at for at in (self.adapter.deadline(), self.gateway.deadline()) if at is not None
            ]
            at = min([*due, end])
            self.now = max(self.now, min(at, end))
            self.adapter.tick(self.now, TS)
            self.gateway.tick(self.now, self.now)
            self.settle()
            if self.now >= end:
                return self.got[first:]

    def delivered(self, kind: type) -> list[Any]:
        found = [one for one in self.events if isinstance(one, gateway_events.Delivered)]
        return [one.envelope.payload for one in found if isinstance(one.envelope.payload, kind)]

    def of_kind(self, kind: type) -> list[Any]:
        return [one for one in self.events if isinstance(one, kind)]


def opened(held: Sequence[LeasedAttempt] = (), **offer: Any) -> OldPair:
    pair = OldPair(held)
    got = pair.say(frame("handshake", HELLO, "h"), frame("register", offer, "r"))
    assert [(one["type"], one["payload"]["for"]) for one in got] == [("ack", "h"), ("ack", "r")]
    return pair


def acks_of(got: list[Json]) -> list[str]:
    return [one["payload"]["for"] for one in got if one["type"] == "ack"]


def errors_of(got: list[Json]) -> list[tuple[str, str | None]]:
    found = [one["payload"] for one in got if one["type"] == "error"]
    return [(one["code"], one.get("for")) for one in found]


def result(command: Json, frame_id: str = "res", **more: Any) -> Json:
    given = command["payload"]
    payload = {"run_id": given["run_id"], "task_id": given["task_id"], "status": "SUCCEEDED"}
    numbered = {"corr": given["task_id"], "seq": command["seq"]} | more
    return frame("result", payload, frame_id, **numbered)


def ack(command: Json, **more: Any) -> Json:
    return frame("ack", {"for": command["id"], **more}, f"ack of {command['id']}")


# --- opening ---


def test_a_handshake_of_protocol_1_opens_a_session() -> None:
    pair = opened(capabilities={"concurrency": {"max_parallel": 3}}, labels={"zone": "a"})
    (event,) = pair.of_kind(gateway_events.RegisterArrived)
    assert event.worker == WORKER
    assert event.description.worker_name == WORKER
    assert event.register.capabilities.concurrency.max_parallel == 3
    assert event.register.capabilities.features == ("runtime.any",)
    assert event.register.labels == {"zone": "a"}
    assert event.incarnation == 0


def test_what_a_worker_says_of_itself_is_passed_on() -> None:
    pair = OldPair()
    worker = {"worker_instance_id": WORKER, "incarnation": 4, "version": "9", "hostname": "h"}
    hello = HELLO | {"worker": worker, "worker_id": "x", "worker_name": "shown"}
    features = {"runtimes": ["python"], "features": ["f"]}
    pair.say(frame("handshake", hello), frame("register", {"capabilities": features}))
    (event,) = pair.of_kind(gateway_events.RegisterArrived)
    said = event.description
    assert (said.worker_name, said.version, said.hostname) == ("shown", "9", "h")
    assert event.incarnation == 4
    assert event.register.capabilities.runtimes == ("python",)
    assert event.register.capabilities.features == ("f",)


@pytest.mark.parametrize(
    "payload",
    [HELLO | {"protocol": 7}, {"protocol": 1}, [], HELLO | {"worker": {"worker_instance_id": "x"}}],
)
def test_a_handshake_that_cannot_be_served_is_denied(payload: Any) -> None:
    pair = OldPair()
    got = pair.say(frame("handshake", payload, "h"))
    assert errors_of(got)[-1] == ("E.SESSION.DENIED", None)
    assert pair.closed_with == limits.CLOSE_POLICY


def test_a_wrong_token_is_told() -> None:
    pair = OldPair()
    got = pair.say(frame("handshake", HELLO | {"auth": {"token": "bad"}}))
    assert errors_of(got) == [("E.AUTH.INVALID_TOKEN", None)]
    assert pair.closed_with == limits.CLOSE_POLICY


def test_a_reset_tells_when_and_where_to_come_again() -> None:
    pair = opened()
    code = errors.SESSION_MOVED
    pair.gateway.end(pair.session, code, pair.now, location="ws://b", retry_after_s=2.0)
    pair.settle()
    said = pair.got[-1]["payload"]
    assert (said["code"], said["location"], said["retry_after_ms"]) == (code.code, "ws://b", 2000)


def test_a_bad_register_can_be_repaired() -> None:
    pair = OldPair()
    pair.say(frame("handshake", HELLO))
    got = pair.say(frame("register", {"packages": 1}, "bad"))
    assert errors_of(got) == [("E.PROTOCOL.BAD_PAYLOAD", "bad")]
    assert acks_of(pair.say(frame("register", {}, "good"))) == ["good"]


def test_what_comes_before_the_session_is_open_waits() -> None:
    pair = OldPair()
    pair.commits = False
    event = {"name": "p", "version": "1", "status": "installed"}
    early = [frame("pkg.event", event, f"b{number}") for number in range(EARLY_FRAMES + 3)]
    again = frame("register", {}, "r")
    got = pair.say(frame("handshake", HELLO, "h"), again, again, *early)
    assert acks_of(got) == ["h"]
    assert pair.adapter.counters["too_early"] == 4
    pair.commits = True
    pair.gateway.accept(pair.session, pair.now, pair.now)
    pair.settle()
    answered = acks_of(pair.got)
    assert answered[:2] == ["h", "r"] and "b0" in answered
    assert len([one for one in answered if one.startswith("b")]) == EARLY_FRAMES - 1


def test_large_early_frames_are_dropped() -> None:
    pair = OldPair()
    pair.commits = False
    pair.say(frame("handshake", HELLO), frame("register", {}))
    pair.say(frame("heartbeat", {"x": "y" * limits.MAX_FIRST_BYTES}))
    assert pair.adapter.counters["too_early"] == 1


def test_the_first_frame_says_the_protocol() -> None:
    assert is_v1_opening(b'{"type":"handshake"}')
    assert is_v1_opening(b'{"type":"result"}')
    for other in (b'{"type":"control.handshake"}', b"no", b"[]", b"\xff", b"[" * 100_000):
        assert not is_v1_opening(other)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (b"nonsense", limits.CLOSE_BAD_TEXT),
        (b"[]", limits.CLOSE_PROTOCOL_ERROR),
        (b'{"a":"\\u0000"}', limits.CLOSE_BAD_TEXT),
        (json.dumps(frame("heartbeat", {}, ts="now")).encode(), limits.CLOSE_PROTOCOL_ERROR),
        (b'{"type":"x","type":"x",' + json.dumps(frame("x", {}))[1:].encode(), 1002),
    ],
)
def test_what_is_no_frame_is_a_bad_frame(changed: bytes, code: int) -> None:
    with pytest.raises(codec.BadFrame) as caught:
        OldPair().adapter.from_worker(changed, 1.0, TS)
    assert caught.value.close_code == code


def test_a_frame_may_be_too_large_and_may_have_unknown_keys() -> None:
    raw = json.dumps(frame("heartbeat", {}, session_id="of mine")).encode()
    assert decode_v1(raw).type == "heartbeat"
    with pytest.raises(codec.BadFrame) as caught:
        decode_v1(raw, max_bytes=10)
    assert caught.value.close_code == limits.CLOSE_TOO_BIG


# --- dispatch and result ---


def test_a_dispatch_and_its_result() -> None:
    pair = opened()
    command = pair.dispatch(concurrency_key="k")
    assert (command["type"], command["seq"], command["corr"]) == ("cmd.dispatch", 1, "r.0")
    given = command["payload"]
    assert given["constraints"] == {"timeout_ms": 3_600_000}
    assert given["concurrency_key"] == "k"
    assert not {"attempt", "lease", "failures"} & set(given)
    assert not pair.of_kind(gateway_events.Acked)
    pair.say(ack(command))
    (event,) = pair.of_kind(gateway_events.Acked)
    assert event.frame_ids == (command["id"],)
    assert acks_of(pair.say(result(command))) == ["res"]
    (told,) = pair.delivered(business.Result)
    assert (told.task_id, told.attempt, told.status) == ("r.0", 1, "SUCCEEDED")


def test_a_timeout_of_the_node_is_kept() -> None:
    pair = opened()
    command = pair.dispatch(constraints=business.Constraints(5000))
    assert command["payload"]["constraints"] == {"timeout_ms": 5000}
    pair.say(ack(command))
    assert pair.adapter.deadline() is None


def test_a_result_is_an_ack_of_its_dispatch() -> None:
    pair = opened()
    pair.say(result(pair.dispatch()))
    assert len(pair.of_kind(gateway_events.Acked)) == 1
    assert pair.later(12.0) == []


def test_seq_counts_by_run() -> None:
    pair = opened()
    numbers = [
        pair.dispatch(run, f"{run}.{task}")["seq"] for task in range(2) for run in ("a", "b")
    ]
    assert numbers == [1, 1, 2, 2]


def test_a_result_beyond_the_last_dispatch_is_a_gap() -> None:
    pair = opened()
    command = pair.dispatch()
    got = pair.say(result(command, "ahead", seq=2))
    assert errors_of(got) == [("E.RESULT.SEQ_GAP", "ahead")]
    assert not pair.delivered(business.Result)
    assert acks_of(pair.say(result(command))) == ["res"]


def test_results_may_come_in_any_order() -> None:
    pair = opened()
    commands = [pair.dispatch("r", f"r.{task}") for task in range(3)]
    got = pair.say(*(result(one, one["corr"]) for one in reversed(commands)))
    assert acks_of(got) == ["r.2", "r.1", "r.0"]
    assert {one.attempt for one in pair.delivered(business.Result)} == {1}


def test_duplicates_of_task_and_seq_are_dropped_and_acked() -> None:
    pair = opened()
    command = pair.dispatch()
    pair.commits = False
    many = [result(command, f"again{number}") for number in range(REPEATS_KEPT + 2)]
    assert acks_of(pair.say(result(command), *many, result(command), many[0])) == []
    pair.commit()
    pair.settle()
    assert acks_of(pair.got)[-REPEATS_KEPT:] == ["res", *(one["id"] for one in many[:15])]
    pair.commits = True
    assert acks_of(pair.say(result(command, "late"))) == ["late"]
    assert len(pair.delivered(business.Result)) == 1


def test_the_same_frame_in_another_connection_is_the_same_frame() -> None:
    pair, other = opened(), opened()
    command = pair.dispatch()
    other.dispatch()
    pair.say(result(command, "any text"))
    other.say(result(command, "any text"))
    ids = [
        one.envelope.id for each in (pair, other) for one in each.of_kind(gateway_events.Delivered)
    ]
    assert len(ids) == 2 and len(set(ids)) == 1


def test_a_second_attempt_has_the_next_number_and_the_first_keeps_its_own() -> None:
    pair = opened()
    first = pair.dispatch(attempt=1)
    pair.say(ack(first))
    second = pair.dispatch(attempt=2)
    pair.say(ack(second))
    assert second["seq"] == 2
    pair.say(result(first, "old"), result(second, "new", seq=2))
    assert [one.attempt for one in pair.delivered(business.Result)] == [1, 2]


def test_a_result_without_a_number_means_the_newest_attempt() -> None:
    pair = opened()
    pair.say(ack(pair.dispatch(attempt=1)))
    second = pair.dispatch(attempt=2)
    pair.say(result(second, "zero", seq=0), result(second, "none", seq=None))
    assert [one.attempt for one in pair.delivered(business.Result)] == [1, 2]


def test_the_task_may_be_named_by_corr_alone() -> None:
    pair = opened()
    command = pair.dispatch()
    pair.say(frame("result", {"status": "SUCCEEDED"}, corr="r.0", seq=command["seq"]))
    (told,) = pair.delivered(business.Result)
    assert (told.run_id, told.task_id, told.attempt) == ("r", "r.0", 1)


def test_a_result_of_an_unknown_task_is_passed_on_for_the_scheduler_to_judge() -> None:
    pair = opened()
    payload = {"run_id": "x", "task_id": "x.0", "status": "SUCCEEDED"}
    assert acks_of(pair.say(frame("result", payload, "res", seq=3))) == ["res"]
    (told,) = pair.delivered(business.Result)
    assert (told.task_id, told.attempt) == ("x.0", 3)


@pytest.mark.parametrize(
    "payload", [[], {}, {"task_id": 1}, {"task_id": "", "status": "SUCCEEDED"}]
)
@pytest.mark.parametrize("kind", ["result", "feedback", "command.error", "middleware.next_request"])
def test_a_report_that_names_no_task_is_refused(kind: str, payload: Any) -> None:
    pair = opened()
    got = pair.say(frame(kind, payload, "bad", ack={"request": True}))
    assert errors_of(got) == [("E.PROTOCOL.BAD_PAYLOAD", "bad")]
    assert acks_of(got) == ["bad"]


def test_a_bad_result_names_its_attempt() -> None:
    pair = opened()
    command = pair.dispatch()
    got = pair.say(frame("result", {"status": "MAYBE"}, "bad", corr="r.0", seq=command["seq"]))
    assert errors_of(got) == [("E.PROTOCOL.BAD_PAYLOAD", "bad")]
    (refused,) = pair.of_kind(gateway_events.FrameRefused)
    assert (refused.unreadable.task_id, refused.unreadable.attempt) == ("r.0", 1)


# --- acks and retries ---


def test_a_command_is_sent_six_times_with_growing_waits() -> None:
    pair = opened()
    times: list[float] = [pair.now]
    sent = pair.command(business.PKG_UNINSTALL, business.PkgUninstall("p", "1"))
    while (at := pair.adapter.deadline()) is not None and len(times) < 10:
        pair.now = at
        pair.adapter.tick(pair.now, TS)
        pair.settle()
        if pair.got[-1]["id"] == sent[0]["id"] and len(
            [one for one in pair.got if one["id"] == sent[0]["id"]]
        ) > len(times):
            times.append(pair.now)
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert len(times) == limits.RETRANSMIT_ATTEMPTS
    for wait, base in zip(waits, (0.2, 0.4, 0.8, 1.6, 3.2), strict=True):
        assert base <= wait <= min(base * 1.25, 5.0)
    assert pair.adapter.counters["given_up"] == 1


def test_an_unacknowledged_command_delays_no_other() -> None:
    pair = opened()
    pair.command(business.PKG_INSTALL, business.PkgInstall("p", "1", "u", "s"))
    command = pair.dispatch()
    pair.say(ack(command))
    assert [one.frame_ids for one in pair.of_kind(gateway_events.Acked)][-1] == (command["id"],)


def test_a_cancel_takes_back_what_was_not_acknowledged() -> None:
    pair = opened()
    command = pair.dispatch()
    cancel = business.ExecCancel(RunId("r"), TaskId("r.0"), 1, "withdrawn")
    assert pair.command(business.CANCEL, cancel, "r.0") == []
    assert pair.adapter.counters["dispatches_withdrawn"] == 1
    assert pair.later(12.0) == []
    pair.say(frame("heartbeat", {}))
    assert pair.of_kind(gateway_events.HeartbeatArrived)[-1].heartbeat.attempts == ()
    pair.say(ack(command))
    assert pair.adapter.counters["acks_of_nothing"] == 1
    assert pair.command(business.CANCEL, cancel, "r.0") == []


def test_a_cancel_of_what_runs_is_not_told() -> None:
    pair = opened()
    pair.say(ack(pair.dispatch()))
    cancel = business.ExecCancel(RunId("r"), TaskId("r.0"), 1, "cancel")
    assert pair.command(business.CANCEL, cancel, "r.0") == []
    assert pair.adapter.counters["cancels_not_told"] == 1
    pair.say(frame("heartbeat", {}))
    named = pair.of_kind(gateway_events.HeartbeatArrived)[-1].heartbeat.attempts
    assert [(one.task_id, one.attempt) for one in named] == [("r.0", 1)]


def test_a_dispatch_that_nobody_acknowledges_is_refused_in_the_end() -> None:
    pair = opened()
    pair.dispatch()
    pair.later(14.0)
    (refusal,) = pair.delivered(business.ExecError)
    assert (refusal.task_id, refusal.code) == ("r.0", "E.DISPATCH.WITHDRAWN")


@pytest.mark.parametrize(
    "refuse",
    [
        lambda one: ack(one, ok=False),
        lambda one: ack(one, error="E.BUSY"),
        lambda one: ack(one, ok=False, error={"code": "E.BUSY"}),
        lambda one: frame("error", {"for": one["id"], "code": "E.BUSY"}),
        lambda one: frame("error", {"code": "E.BUSY"}, corr="r.0", seq=one["seq"]),
        lambda one: frame("command.error", {"code": "E.BUSY"}, corr="r.0", seq=one["seq"]),
    ],
)
def test_a_refused_dispatch_is_told(refuse: Any) -> None:
    pair = opened()
    command = pair.dispatch()
    pair.say(refuse(command))
    (refusal,) = pair.delivered(business.ExecError)
    assert (refusal.run_id, refusal.task_id, refusal.attempt) == ("r", "r.0", 1)
    assert refusal.code in ("E.BUSY", "E.CMD.UNKNOWN")
    assert pair.later(12.0) == []
    pair.say(frame("heartbeat", {}))
    assert pair.of_kind(gateway_events.HeartbeatArrived)[-1].heartbeat.attempts == ()


@pytest.mark.parametrize("how", ["ack", "error"])
def test_a_refused_install_has_failed(how: str) -> None:
    pair = opened()
    (command,) = pair.command(business.PKG_INSTALL, business.PkgInstall("p", "1", "u", "s"))
    assert command["payload"] == {"name": "p", "version": "1", "url": "u", "sha256": "s"}
    problem = {"code": "E.PKG.INVALID", "message": "no"}
    said = ack(command, error=problem)
    pair.say(said if how == "ack" else frame("error", {"for": command["id"], **problem}))
    (told,) = pair.delivered(business.PkgEvent)
    assert (told.name, told.version, told.status) == ("p", "1", "failed")
    assert b"E.PKG.INVALID" in bytes(told.details)


def test_a_refused_drain_and_other_errors_are_noted() -> None:
    pair = opened()
    pair.gateway.drain(pair.session, "enough", pair.now, 2.0)
    pair.settle()
    command = pair.got[-1]
    assert command["payload"] == {"reason": "enough", "deadline_ms": 2000}
    pair.say(ack(command, ok=False))
    assert pair.adapter.counters["commands_refused"] == 1
    pair.say(frame("error", {"code": "E.INTERNAL", "message": "oh"}, "e1"))
    pair.say(frame("error", {"for": "what", "code": "E.INTERNAL"}, "e2"))
    told = [(one.code, one.frame_id) for one in pair.of_kind(gateway_events.PeerError)]
    assert told[1] == ("E.INTERNAL", "what") and len(told) == 2
    assert pair.say(frame("error", {}), frame("ack", {"for": 1}, "bad"))[-1]["type"] == "error"


def test_resources_are_not_known_to_protocol_1() -> None:
    pair = opened()
    cleanup = business.ResourceCleanup(scope="r")
    assert pair.command(business.RESOURCE_CLEANUP, cleanup) == []
    (told,) = pair.of_kind(gateway_events.PeerError)
    assert told.code == "E.CMD.UNKNOWN"
    assert pair.of_kind(gateway_events.Acked)


# --- other reports ---


def test_feedback_is_acked_only_if_asked() -> None:
    pair = opened()
    command = pair.dispatch()
    said = {"stage": "running", "progress": 0.5}
    about = {"corr": "r.0", "seq": command["seq"]}
    assert pair.say(frame("feedback", said, "f1", **about)) == []
    assert acks_of(pair.say(frame("feedback", said, "f2", ack={"request": True}, **about))) == [
        "f2"
    ]
    assert [one.attempt for one in pair.delivered(business.Feedback)] == [1, 1]


def test_chunks_may_have_no_index() -> None:
    pair = opened()
    pair.dispatch()
    plain = [{"channel": "log", "text": text} for text in ("a", "b")]
    given = [*plain, {"channel": "err", "index": 7, "text": "c"}, {"channel": "err", "text": "d"}]
    for name in ("f1", "f2"):
        pair.say(frame("feedback", {"chunks": given}, name, corr="r.0"))
    pair.say(frame("feedback", {"run_id": "q", "chunks": plain}, "f3", corr="q.0"))
    told = [
        [(one.channel, one.index) for one in feedback.chunks]
        for feedback in pair.delivered(business.Feedback)
    ]
    assert told == [
        [("log", 0), ("log", 1), ("err", 7), ("err", 1)],
        [("log", 2), ("log", 3), ("err", 7), ("err", 3)],
        [("log", 0), ("log", 1)],
    ]


def test_of_many_channels_the_first_are_counted() -> None:
    pair = opened()
    pair.dispatch()
    given = [{"channel": str(number), "text": "x"} for number in range(CHANNELS_COUNTED + 1)]
    for name in ("f1", "f2"):
        pair.say(frame("feedback", {"chunks": given}, name, corr="r.0"))
    last = pair.delivered(business.Feedback)[-1]
    assert [one.index for one in last.chunks] == [1] * CHANNELS_COUNTED + [0]


@pytest.mark.parametrize("chunks", [5, [5], [{"text": "x"}], [{"channel": 5, "index": 0}]])
def test_chunks_that_are_none_stay_wrong(chunks: Any) -> None:
    pair = opened()
    pair.dispatch()
    got = pair.say(frame("feedback", {"chunks": chunks}, "f", corr="r.0"))
    assert [code for code, _ in errors_of(got)] == ["E.PROTOCOL.BAD_PAYLOAD"]


def test_a_null_is_as_nothing_but_in_user_data() -> None:
    capabilities = {"concurrency": {"max_parallel": 2, "per_node_limits": None}, "features": None}
    pair = opened(capabilities=capabilities, packages=None, labels=None, inflight=None)
    command = pair.dispatch()
    beat = {"healthy": True, "metrics": {"cpu_pct": None, "mem_pct": 5}, "packages": None}
    assert acks_of(pair.say(frame("heartbeat", beat, "b", flags=None, ack={"request": None})))
    said = {
        "status": "SUCCEEDED", "result": {"a": None, "b": [None]}, "error": None,
        "artifacts": [{"resource_id": "x", "worker_id": "w1", "type": "file", "inline": None,
                       "metadata": {"a": None}}],
        "duration_ms": None, "metrics": None,
    }  # fmt: skip
    assert acks_of(pair.say(frame("result", said, "res", corr="r.0", seq=command["seq"])))
    (told,) = pair.delivered(business.Result)
    assert json.loads(bytes(told.result)) == {"a": None, "b": [None]}
    assert json.loads(bytes(told.artifacts[0].metadata)) == {"a": None}


def test_an_error_may_name_no_category() -> None:
    pair = opened()
    command = pair.dispatch()
    said = {"status": "FAILED", "error": {"code": "E.X", "message": "m", "category": None}}
    assert acks_of(pair.say(frame("result", said, "res", corr="r.0", seq=command["seq"])))
    (told,) = pair.delivered(business.Result)
    assert (told.error.code, told.error.category) == ("E.X", "USER_CODE")


def test_artifacts_and_references_name_the_worker_as_it_does() -> None:
    name = {"role": "worker", "id": "the old one"}
    pair = OldPair()
    pair.say(frame("handshake", HELLO, sender=name), frame("register", {}, sender=name))
    refs = tuple(
        business.RequiredResource(number, worker, "file")
        for number, worker in (("x", instance_id_of("the old one")), ("y", "another"))
    )
    command = pair.dispatch(resource_refs=refs)
    assert [one["worker_id"] for one in command["payload"]["resource_refs"]] == [
        "the old one",
        "another",
    ]
    kept = [
        {"resource_id": "x", "worker_id": worker, "type": "file"} for worker in ("the old one", "w")
    ]
    said = {"status": "SUCCEEDED", "artifacts": kept}
    pair.say(frame("result", said, "res", sender=name, corr="r.0", seq=command["seq"]))
    (told,) = pair.delivered(business.Result)
    assert [one.worker_id for one in told.artifacts] == [instance_id_of("the old one"), "w"]


def test_a_middleware_call_is_asked_and_answered() -> None:
    pair = opened()
    pair.dispatch()
    call = {"request_id": "q", "chain_index": 0, "payload": {"a": 1}}
    assert acks_of(pair.say(frame("middleware.next_request", call, "n", corr="r.0"))) == ["n"]
    (told,) = pair.delivered(business.NextRequest)
    assert (told.request_id, told.attempt, json.loads(bytes(told.payload))) == ("q", 1, {"a": 1})
    answer = business.NextResponse(RunId("r"), TaskId("r.0"), 1, "q", msgspec.Raw(b"[1]"))
    (got,) = pair.command(business.NEXT_RESPONSE, answer, "r.0")
    assert got["type"] == "middleware.next_response"
    assert got["payload"] == {"run_id": "r", "task_id": "r.0", "request_id": "q", "result": [1]}


def test_package_events_are_passed_on() -> None:
    pair = opened()
    event = {"name": "p", "version": "1", "status": "installed"}
    assert acks_of(pair.say(frame("pkg.event", event, "p"))) == ["p"]
    assert pair.delivered(business.PkgEvent)[0].status == "installed"
    assert errors_of(pair.say(frame("pkg.event", [], "q"))) == [("E.PROTOCOL.BAD_PAYLOAD", "q")]


@pytest.mark.parametrize("kind", ["what", "x" * 256, "control.resume", "biz.exec.result"])
def test_an_unknown_type_is_refused_by_its_name(kind: str) -> None:
    pair = opened()
    got = pair.say(frame(kind, {}, "u"))
    assert errors_of(got) == [("E.CMD.UNKNOWN", "u")]
    assert got[0]["payload"]["message"] == f"unknown frame type: {kind}"


def test_ten_unknown_frames_end_the_session() -> None:
    pair = opened()
    got = pair.say(*(frame("what", {}, f"u{number}") for number in range(10)))
    assert errors_of(got)[-1] == ("E.SESSION.DENIED", None)


# --- heartbeats and what is held ---


def test_any_heartbeat_renews_all_that_was_taken() -> None:
    pair = opened()
    pair.say(ack(pair.dispatch("r", "r.0")))
    pair.dispatch("r", "r.1")
    metrics = {"cpu_pct": 5.0, "mine": 1}
    said = {"healthy": False, "metrics": metrics, "attempts": [{"task_id": "x", "attempt": 9}]}
    assert acks_of(pair.say(frame("heartbeat", said, "b"))) == ["b"]
    heartbeat = pair.of_kind(gateway_events.HeartbeatArrived)[-1].heartbeat
    assert heartbeat.attempts == (AttemptRef(TaskId("r.0"), 1),)
    assert (heartbeat.healthy, heartbeat.metrics.cpu_pct) == (False, 5.0)
    assert errors_of(pair.say(frame("heartbeat", 1, "bad"))) == [("E.PROTOCOL.BAD_PAYLOAD", "bad")]


def test_what_is_no_longer_leased_is_not_named_again() -> None:
    pair = opened()
    pair.say(ack(pair.dispatch()))
    pair.stop = (AttemptRef(TaskId("r.0"), 1), AttemptRef(TaskId("gone"), 1))
    pair.say(frame("heartbeat", {}, "b1"), frame("heartbeat", {}, "b2"))
    named = [one.heartbeat.attempts for one in pair.of_kind(gateway_events.HeartbeatArrived)]
    assert [len(one) for one in named] == [1, 0]
    assert pair.adapter.counters["stops_not_told"] == 1


HELD = [
    LeasedAttempt(RunId("r"), TaskId("r.0"), 4, has_timeout=False),
    LeasedAttempt(RunId("r"), TaskId("r.1"), 1, has_timeout=True),
]


def test_a_register_rebinds_all_that_is_leased() -> None:
    pair = opened(HELD)
    (event,) = pair.of_kind(gateway_events.RegisterArrived)
    assert [one.task_id for one in event.register.inflight] == ["r.0", "r.1"]
    command = pair.dispatch("r", "r.2")
    assert command["seq"] == 1
    payload = {"task_id": "r.0", "status": "SUCCEEDED"}
    assert acks_of(pair.say(frame("result", payload, "res", seq=17))) == ["res"]
    (told,) = pair.delivered(business.Result)
    assert (told.run_id, told.attempt) == ("r", 4)


def test_a_register_may_name_what_it_has() -> None:
    pair = opened(HELD, inflight=[{"task_id": "r.1"}, {"task_id": "other"}])
    (event,) = pair.of_kind(gateway_events.RegisterArrived)
    assert [one.task_id for one in event.register.inflight] == ["r.1"]
    assert acks_of(pair.say(frame("register", {"labels": {"a": "b"}}, "again"))) == ["again"]
    later = pair.of_kind(gateway_events.RegisterArrived)[-1]
    assert (later.first, later.register.inflight) == (False, ())


def test_the_default_timeout_ends_an_attempt() -> None:
    pair = opened(HELD)
    pair.say(ack(pair.dispatch("q", "q.0")))
    for _ in range(730):
        pair.say(frame("heartbeat", {}))
        pair.later(5.0)
    ended = pair.delivered(business.Result)
    assert [(one.task_id, one.status) for one in ended] == [("r.0", "FAILED"), ("q.0", "FAILED")]
    assert all(one.error.code == "E.RUNNER.TIMEOUT" for one in ended)
    assert {"q.0", "r.0"}.isdisjoint(acks_of(pair.got))


def test_a_timeout_waits_for_room_in_the_window() -> None:
    pair = opened()
    pair.say(ack(pair.dispatch()))
    pair.commits = False
    event = {"name": "p", "version": "1", "status": "installing"}
    pair.say(*(frame("pkg.event", event, f"p{number}") for number in range(limits.WINDOW + 5)))
    assert pair.adapter.counters["beyond_window"] >= 5
    pair.adapter.tick(pair.now + 4000.0, TS)
    assert not pair.delivered(business.Result)
    pair.commits = True
    pair.commit()
    pair.settle()
    pair.adapter.tick(pair.now + 4002.0, TS)
    pair.settle()
    assert len(pair.delivered(business.Result)) == 1


def test_unanswered_heartbeats_take_no_more_than_their_room() -> None:
    pair = opened()
    pair.answers = False
    for number in range(REPORTS_KEPT + 5):
        pair.now += 0.1
        pair.say(frame("heartbeat", {}, f"b{number}"))
    assert len(pair.adapter._link._reports) == REPORTS_KEPT


def test_the_memory_of_a_connection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "RUNS_KEPT", 3)
    monkeypatch.setattr(attempts, "RESULTS_KEPT", 3)
    pair = opened()
    for number in range(8):
        pair.say(result(pair.dispatch(f"r{number}", f"r{number}.0"), f"res{number}"))
    assert pair.dispatch("r7", "r7.1")["seq"] == 2
    assert pair.dispatch("r0", "r0.1")["seq"] == 1


def test_a_frame_that_the_gateway_repeats_is_sent_once() -> None:
    pair = opened()
    pair.dispatch()
    raw = codec.encode(
        codec.decode(json.dumps(
            frame("biz.pkg.uninstall", {"name": "p", "version": "1"},
                  "01J8ZQ5T9GQ4X7V2N3M1K0HABC", seq=1)
        ).encode()), TS)  # fmt: skip
    for _ in range(2):
        pair.adapter.from_scheduler(raw, pair.now)
    assert len(pair.adapter.take_for_worker()) == 1
    told = [codec.decode(one).payload for one in pair.adapter.take_for_scheduler()]
    acks = [one for one in told if isinstance(one, control.ControlAck)]
    assert [(one.ack_seq, one.ack_bitmap) for one in acks] == [(None, "3"), (None, "3")]


# --- whatever comes ---


_KINDS = st.sampled_from([*sorted(frames.V1_TYPES), "what", "control.heartbeat"])
_PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["r.0", "r", "SUCCEEDED", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["task_id", "run_id", "for", "code", "status", "ok", "error", "inflight"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(said=st.lists(st.tuples(_KINDS, _PAYLOADS, st.none() | st.integers(0, 3)), max_size=8))
def test_whatever_a_worker_says_the_adapter_and_the_gateway_live(said: list[Any]) -> None:
    pair = opened(HELD)
    pair.dispatch()
    for number, (kind, payload, seq) in enumerate(said):
        if pair.closed_with is not None:
            break
        pair.say(
            frame(kind, payload, f"f{number}", corr="r.0", **({} if seq is None else {"seq": seq}))
        )
        pair.later(1.0)
    pair.gateway.check()
