"""Both ends of a session, fed with whatever a link could bring.

An input is lines: each is a frame, or an order to the harness:

    @cut     the connection breaks, and a new one is opened
    @4.5     so many seconds pass, with a tick at every deadline on the way

The harness is a caller that does what the documentation of the two objects says. What is checked: no
exception, the object's own `check()` after every line, and every frame that it wants to send is
one that the other side can read.

The first inputs are a real conversation of the two with each other. Ids are counted, not drawn, so
that a recorded frame answers the same frame when it is replayed.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Final

from msgspec import Raw

from astraflow.core import errors
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, codec, control, events
from astraflow.core.protocol import worker_events as worker
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import AttemptRef, Envelope, Unreadable
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import SessionTokens
from tests.unit.core.protocol.pair import CountedIds

__all__ = ["conversation", "run_gateway", "run_worker_session"]

MAX_LINES: Final = 200
MAX_TICKS: Final = 500
MAX_STEP_S: Final = 60.0
LINK_DELAY_S: Final = 0.01
WALL: Final = 1_800_000_000.0
TS: Final = "2026-01-15T10:00:00.000Z"
TENANT: Final = "acme"

IDENTITY: Final = worker.WorkerIdentity(TENANT, "w-1", 1, "one", "0.1.0", "host")
CREDENTIAL: Final = worker.Credential("token", "good")
REGISTER: Final = control.Register(control.Capabilities(control.Concurrency(4)))
DISPATCH: Final = business.Dispatch(
    run_id=RunId("r"),
    task_id=TaskId("t"),
    attempt=1,
    failures=0,
    node_id="n",
    node_type="core.noop",
    package=business.PackageId("core", "1.0.0"),
    parameters=Raw(b"{}"),
    lease=business.LeaseGrant(30_000, "0" * 26),
)
SECONDS: Final = 25
CUT_AT: Final = 7
DRAIN_AT: Final = 4
RING: Final = KeyRing({"k1": b"0123456789abcdef0123456789abcdef"}, "k1")


class End:
    """What the two harnesses have in common: time, and a record of what they were given."""

    def __init__(self) -> None:
        self.now = 0.0
        self.given: list[bytes] = []
        self.sent: list[bytes] = []

    def give(self, line: bytes) -> None:
        """Take one line of an input."""
        self.given.append(line)
        self.now += LINK_DELAY_S
        if line == b"@cut":
            self.cut()
        elif line.startswith(b"@"):
            self.wait(line[1:])
        else:
            try:
                envelope = codec.decode(line)
            except codec.BadFrame as error:
                self.bad_frame(error)
            else:
                self.feed(envelope)
        self.serve()
        self.check()

    def wait(self, text: bytes) -> None:
        """Let time pass, with a tick at every deadline on the way."""
        try:
            seconds = float(text)
        except ValueError:
            return
        until = self.now + max(0.0, min(seconds, MAX_STEP_S))
        for _ in range(MAX_TICKS):
            due = self.deadline()
            if due is None or due > until:
                self.now = until
                return
            self.now = max(self.now, due)
            self.tick()
            self.serve()
            self.check()
        raise AssertionError("the deadline does not move")

    def send(self, envelope: Envelope) -> None:
        raw = codec.encode(envelope, TS)
        read = codec.decode(raw)
        assert not isinstance(read.payload, Unreadable), f"we sent what nobody can read: {raw!r}"
        self.sent.append(raw)

    def feed(self, envelope: Envelope) -> None:
        raise NotImplementedError

    def bad_frame(self, error: codec.BadFrame) -> None:
        raise NotImplementedError

    def cut(self) -> None:
        raise NotImplementedError

    def deadline(self) -> float | None:
        raise NotImplementedError

    def tick(self) -> None:
        raise NotImplementedError

    def serve(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError


class WorkerEnd(End):
    """A worker's session, and a caller that takes and reports at once."""

    def __init__(self) -> None:
        super().__init__()
        self.session = WorkerSession(IDENTITY, CREDENTIAL, ids=CountedIds("1"), rng=Random(1))
        self.session.connected(self.now)
        self.serve()

    def feed(self, envelope: Envelope) -> None:
        self.session.feed(envelope, self.now)

    def bad_frame(self, error: codec.BadFrame) -> None:
        self.session.bad_frame(error, self.now)

    def cut(self) -> None:
        self.session.disconnected(self.now)
        self.serve()
        self.session.connected(self.now)

    def deadline(self) -> float | None:
        return self.session.deadline()

    def tick(self) -> None:
        self.session.tick(self.now)

    def check(self) -> None:
        self.session.check()

    def serve(self) -> None:
        while found := self.session.take_events():
            for event in found:
                self._handle(event)
        for frame in self.session.take_frames():
            self.send(frame)

    def _handle(self, event: worker.WorkerEvent) -> None:
        session = self.session
        if isinstance(event, worker.RegisterWanted):
            session.register(REGISTER, self.now)
        elif isinstance(event, worker.HeartbeatDue):
            session.heartbeat(control.Heartbeat(), self.now)
        elif isinstance(event, worker.DrainAsked):
            session.taken(event.seq)
            session.finished(self.now)
        elif isinstance(event, worker.Poisoned):
            failure = business.ExecError(RunId("r"), TaskId("t"), 1, "E.RESULT.INVALID")
            session.replace(event.frame_id, business.EXEC_ERROR, failure, "t")
        elif isinstance(event, worker.CommandDelivered):
            session.taken(event.seq)
            if isinstance(event.envelope.payload, business.Dispatch) and session.is_open:
                self._report(event.envelope.payload)
        elif isinstance(event, worker.CommandRefused) and event.envelope.seq is not None:
            session.taken(event.envelope.seq)

    def _report(self, dispatch: business.Dispatch) -> None:
        result = business.Result(dispatch.run_id, dispatch.task_id, dispatch.attempt, "SUCCEEDED")
        with suppress(errors.Unavailable):  # documented: no session, or a full queue
            self.session.send(business.RESULT, result, dispatch.task_id, self.now)


class GatewayEnd(End):
    """A scheduler's gateway, and an engine that commits at once."""

    def __init__(self) -> None:
        super().__init__()
        self.gateway = Gateway(
            scheduler_id="s-1",
            ids=CountedIds("2"),
            rng=Random(2),
            settings=events.GatewaySettings(),
            authenticate=_authenticate,
            tokens=SessionTokens(RING),
        )
        self._heartbeats = 0
        self._conn = 0
        self._open()

    def feed(self, envelope: Envelope) -> None:
        self.gateway.feed(self._conn, envelope, self.now, WALL + self.now)

    def bad_frame(self, error: codec.BadFrame) -> None:
        self.gateway.bad_frame(self._conn, error, self.now)

    def cut(self) -> None:
        self.gateway.closed(self._conn, self.now)
        self._open()

    def deadline(self) -> float | None:
        return self.gateway.deadline()

    def tick(self) -> None:
        self.gateway.tick(self.now, WALL + self.now)

    def check(self) -> None:
        self.gateway.check()

    def _open(self) -> None:
        self._conn += 1
        self.gateway.opened(self._conn, self.now)

    def serve(self) -> None:
        while found := self.gateway.take_events():
            for event in found:
                self._handle(event)
        for output in self.gateway.take_output():
            if isinstance(output, events.SendFrame):
                self.send(output.envelope)
            elif output.conn == self._conn:
                self.cut()

    def _handle(self, event: events.GatewayEvent) -> None:
        gateway = self.gateway
        if isinstance(event, events.RegisterArrived):
            gateway.accept(event.session_id, self.now, WALL + self.now)
        elif isinstance(event, events.HeartbeatArrived):
            stop = (AttemptRef(TaskId("t"), 1),) if event.heartbeat.attempts else ()
            gateway.answer_heartbeat(event.session_id, event.frame_id, stop, self.now)
            self._act(event.session_id)
        elif isinstance(event, events.Delivered | events.FrameRefused) and event.seq is not None:
            gateway.committed(event.session_id, (event.seq,))

    def _act(self, session_id: str) -> None:
        """Something to do for the worker, so that both directions carry frames."""
        self._heartbeats += 1
        with suppress(errors.Unavailable):  # documented: no session, or a full queue
            if self._heartbeats == DRAIN_AT:
                self.gateway.drain(SessionId(session_id), "enough", self.now)
            elif self._heartbeats < DRAIN_AT:
                self.gateway.send(SessionId(session_id), business.DISPATCH, DISPATCH, "t", self.now)


def run_worker_session(raw: bytes) -> None:
    """A worker survives its scheduler."""
    _run(WorkerEnd(), raw)


def run_gateway(raw: bytes) -> None:
    """A scheduler survives its workers."""
    _run(GatewayEnd(), raw)


def _run(end: End, raw: bytes) -> None:
    for line in raw.split(b"\n")[:MAX_LINES]:
        end.give(line)


def _authenticate(
    handshake: control.Handshake, tenant: str, certificate: object, wall: float
) -> events.Principal:
    return events.Principal("ann", tenant, "worker")


def conversation() -> tuple[bytes, bytes]:
    """Let the two talk; return what the worker and what the gateway was given, as inputs."""
    one, other = WorkerEnd(), GatewayEnd()
    for second in range(SECONDS):
        if second == CUT_AT:
            one.give(b"@cut")
            other.give(b"@cut")
        while one.sent or other.sent:
            up, one.sent = one.sent, []
            down, other.sent = other.sent, []
            for raw in up:
                other.give(raw)
            for raw in down:
                one.give(raw)
        one.give(b"@1")
        other.give(b"@1")
    return b"\n".join(one.given), b"\n".join(other.given)
