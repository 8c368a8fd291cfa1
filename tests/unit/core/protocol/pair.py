"""Both peers of a session against each other, as h11's ConnectionPair does it.

`SessionPair` carries frames between one `WorkerSession` and a `Gateway` over a link that is perfect
until it is cut, and calls `check()` on both after every step. The engine and the agent are played by
the pair: it registers, heartbeats, accepts and commits unless a test says otherwise.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from astraflow.core import errors
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control, worker_events
from astraflow.core.protocol import events as gateway_events
from astraflow.core.protocol.events import GatewaySettings, Principal
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import AttemptRef, Envelope, Sender
from astraflow.core.protocol.worker_events import Credential, SessionSettings, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = TypeVar("Kind")
TENANT = "acme"
WORKER = "w-1"
GOOD_TOKEN = "good"


class CountedIds:
    """Ids in order, in the shape of ULIDs."""

    def __init__(self, prefix: str = "0") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count:025d}"


class Claims(NamedTuple):
    sid: str
    wid: str
    tenant: str
    exp: float
    jti: str


class PlainTokens:
    """Session tokens in clear text."""

    def __init__(self, life_s: float = 3600.0) -> None:
        self.life_s = life_s

    def mint(
        self, session_id: str, worker_id: str, tenant: str, token_id: str, wall: float
    ) -> tuple[str, float]:
        until = wall + self.life_s
        return f"{session_id}|{worker_id}|{tenant}|{until}|{token_id}", until

    def verify(self, token: str, wall: float) -> Claims | errors.Code:
        parts = token.split("|")
        if len(parts) != 5 or float(parts[3]) < wall:
            return errors.AUTH_INVALID_TOKEN
        return Claims(parts[0], parts[1], parts[2], float(parts[3]), parts[4])


class Doors:
    """The credentials that open: token text to principal."""

    def __init__(self) -> None:
        self.known = {GOOD_TOKEN: Principal("subject-1", TENANT, "worker")}

    def __call__(
        self, handshake: control.Handshake, tenant: str, certificate: object, wall: float
    ) -> Principal | errors.Code:
        return self.known.get(handshake.auth.token or "", errors.AUTH_INVALID_TOKEN)


def identity(worker: str = WORKER, incarnation: int = 1) -> WorkerIdentity:
    return WorkerIdentity(TENANT, worker, incarnation, "worker one", "0.1.0", "box")


def register(*inflight: AttemptRef, slots: int = 4) -> control.Register:
    return control.Register(
        control.Capabilities(control.Concurrency(slots)), inflight=tuple(inflight)
    )


def result(number: int = 1, attempt: int = 1) -> business.Result:
    return business.Result(RunId("run-1"), TaskId(f"task-{number}"), attempt, "SUCCEEDED")


def cancel(number: int = 1) -> business.ExecCancel:
    return business.ExecCancel(RunId("run-1"), TaskId(f"task-{number}"), 1)


def frame_of_worker(
    frame_type: str,
    payload: object,
    ids: CountedIds,
    *,
    worker: str = WORKER,
    tenant: str = TENANT,
    role: str = "worker",
    **more: object,
) -> Envelope:
    sender = Sender(role, worker)
    return Envelope(frame_type, ids.new(), "", tenant, sender, payload, **more)  # type: ignore[arg-type]


def handshake(
    token: str = GOOD_TOKEN, worker: str = WORKER, incarnation: int = 1, protocol: int = 2
) -> control.Handshake:
    about = control.HandshakeWorker(worker, incarnation, "worker one", "0.1.0", "box")
    return control.Handshake(protocol, control.Auth("token", token), about)


class SessionPair:
    """One worker, one gateway, and the link between them."""

    def __init__(
        self,
        *,
        gateway_settings: GatewaySettings | None = None,
        worker_settings: SessionSettings | None = None,
        may_speak: Callable[[float], bool] | None = None,
        tokens: PlainTokens | None = None,
    ) -> None:
        self.now = 100.0
        self.wall = 1_800_000_000.0
        self.doors = Doors()
        self.tokens = tokens or PlainTokens()
        self.gateway = Gateway(
            scheduler_id="sched-1",
            ids=CountedIds("1"),
            rng=random.Random(1),
            authenticate=self.doors,
            tokens=self.tokens,
            settings=gateway_settings,
            may_speak=may_speak,
        )
        self.worker_settings = worker_settings
        self.worker = self.new_worker()
        self.accepts = True
        self.commits = True
        self.takes = True
        self.beats = True
        self.conn: int | None = None
        self.connections = 0
        self.connect_at: float | None = None
        self.location: str | None = None
        self.to_worker: list[Envelope] = []
        self.to_gateway: list[Envelope] = []
        self.closed_by_gateway: list[int] = []
        self.worker_events: list[worker_events.WorkerEvent] = []
        self.gateway_events: list[gateway_events.GatewayEvent] = []
        self.frames_seen: list[Envelope] = []
        self._take_worker_events()

    def new_worker(self, incarnation: int = 1, token: str = GOOD_TOKEN) -> WorkerSession:
        return WorkerSession(
            identity(incarnation=incarnation),
            Credential("token", token),
            ids=CountedIds("2" if incarnation == 1 else "3"),
            rng=random.Random(2),
            settings=self.worker_settings,
        )

    # --- what a test does ---

    @property
    def session_id(self) -> str:
        found = self.gateway.session_of(TENANT, WORKER)
        assert found is not None
        return found

    def open(self) -> None:
        """Connect and let the session open."""
        self.connect()
        self.run()
        assert self.worker.is_ready

    def connect(self) -> None:
        self.connections += 1
        self.conn = self.connections
        self.connect_at = None
        self.gateway.opened(self.conn, self.now)
        self.worker.connected(self.now)
        self._settle()

    def cut(self) -> None:
        """The link breaks; what is on the way is lost."""
        conn, self.conn = self.conn, None
        self.to_worker.clear()
        self.to_gateway.clear()
        assert conn is not None
        self.gateway.closed(conn, self.now)
        self.worker.disconnected(self.now)
        self._settle()

    def run(self) -> None:
        """Carry frames until nobody has more to say at this moment."""
        for _ in range(10_000):
            self._settle()
            if self.to_gateway:
                frame = self.to_gateway.pop(0)
                self.frames_seen.append(frame)
                if self.conn is not None:
                    self.gateway.feed(self.conn, frame, self.now, self.wall)
            elif self.to_worker:
                frame = self.to_worker.pop(0)
                self.frames_seen.append(frame)
                self.worker.feed(frame, self.now)
            else:
                return
        raise AssertionError("the peers never stop talking")

    def wait(self, seconds: float, step: float = 0.05) -> None:
        """Let time pass; reconnect when the worker wants to."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.pass_time(min(step, end - self.now))
            if self.connect_at is not None and self.now >= self.connect_at and self.conn is None:
                self.connect()
            self.run()

    def sleep(self, seconds: float) -> int:
        """Let time pass as a shell does, from deadline to deadline; returns how often it woke."""
        end, wakes = self.now + seconds, 0
        while True:
            times = [self.worker.deadline(), self.gateway.deadline()]
            if self.conn is None:
                times.append(self.connect_at)
            due = min((time for time in times if time is not None), default=end)
            if due >= end:
                self.pass_time(end - self.now)
                return wakes
            wakes += 1
            self.pass_time(max(0.0, due - self.now))
            if self.connect_at is not None and self.now >= self.connect_at and self.conn is None:
                self.connect()
            self.run()

    def pass_time(self, seconds: float) -> None:
        """Let time pass without carrying frames."""
        self.now += seconds
        self.wall += seconds
        self.worker.tick(self.now)
        self.gateway.tick(self.now, self.wall)
        self._settle()

    def sends(self, number: int) -> str:
        """The worker sends a result."""
        frame_id = self.worker.send(business.RESULT, result(number), f"task-{number}", self.now)
        self._settle()
        return frame_id

    def dispatches(self, number: int) -> str:
        """The scheduler sends a command."""
        frame_id = self.gateway.send(
            SessionId(self.session_id), business.CANCEL, cancel(number), f"task-{number}", self.now
        )
        self._settle()
        return frame_id

    def commit(self, seq: int) -> None:
        self.gateway.committed(SessionId(self.session_id), (seq,))
        self._settle()

    def delivered(self) -> list[str]:
        """The tasks of the results that reached the engine, in order."""
        return [
            event.envelope.corr or ""
            for event in self.gateway_events
            if isinstance(event, gateway_events.Delivered)
        ]

    def received(self) -> list[str]:
        """The tasks of the commands that reached the worker, in order."""
        return [
            event.envelope.corr or ""
            for event in self.worker_events
            if isinstance(event, worker_events.CommandDelivered)
        ]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """All events of one type, of both sides."""
        both = [*self.worker_events, *self.gateway_events]
        return [event for event in both if isinstance(event, kind)]

    def sent(self, frame_type: str) -> list[Envelope]:
        """All frames of a type that were carried."""
        return [frame for frame in self.frames_seen if frame.type == frame_type]

    # --- playing the layers above ---

    def _settle(self) -> None:
        """Handle events and move frames until both sides are quiet."""
        busy = True
        while busy:
            busy = self._take_worker_events() | self._take_gateway_events()
            self.to_gateway.extend(self.worker.take_frames())
            busy |= self._take_output()
        self.worker.check()
        self.gateway.check()

    def _take_worker_events(self) -> bool:
        events = self.worker.take_events()
        for event in events:
            self.worker_events.append(event)
            if isinstance(event, worker_events.Connect):
                self.connect_at, self.location = event.at, event.location
            elif isinstance(event, worker_events.Disconnect):
                self._flush_and_close()
            elif isinstance(event, worker_events.RegisterWanted):
                self.worker.register(register(), self.now)
            elif isinstance(event, worker_events.HeartbeatDue) and self.beats:
                self.worker.heartbeat(control.Heartbeat(), self.now)
            elif self.takes and isinstance(
                event, worker_events.CommandDelivered | worker_events.DrainAsked
            ):
                self.worker.taken(event.seq)
        return bool(events)

    def _flush_and_close(self) -> None:
        """The worker closes: what it sent before goes out first."""
        self.to_gateway.extend(self.worker.take_frames())
        conn, self.conn = self.conn, None
        self.to_worker.clear()
        for frame in self.to_gateway:
            self.frames_seen.append(frame)
            if conn is not None:
                self.gateway.feed(conn, frame, self.now, self.wall)
        self.to_gateway.clear()
        if conn is not None:
            self.gateway.closed(conn, self.now)
        self.worker.disconnected(self.now)

    def _take_gateway_events(self) -> bool:
        events = self.gateway.take_events()
        for event in events:
            self.gateway_events.append(event)
            if isinstance(event, gateway_events.RegisterArrived) and self.accepts:
                self.gateway.accept(event.session_id, self.now, self.wall)
            elif isinstance(event, gateway_events.HeartbeatArrived):
                self.gateway.answer_heartbeat(event.session_id, event.frame_id, (), self.now)
            elif self.commits and isinstance(
                event, gateway_events.Delivered | gateway_events.FrameRefused
            ):
                self._commit(event.session_id, event.seq)
        return bool(events)

    def _commit(self, session_id: str, seq: int | None) -> None:
        if seq is not None:
            self.gateway.committed(SessionId(session_id), (seq,))

    def _take_output(self) -> bool:
        output = self.gateway.take_output()
        for item in output:
            if item.conn != self.conn:
                continue
            if isinstance(item, gateway_events.SendFrame):
                self.to_worker.append(item.envelope)
            else:
                self._closed_by_gateway(item.code)
        return bool(output)

    def _closed_by_gateway(self, code: int) -> None:
        """The worker reads what was sent before the close, then sees it."""
        self.closed_by_gateway.append(code)
        while self.to_worker and self.conn is not None:
            frame = self.to_worker.pop(0)
            self.frames_seen.append(frame)
            self.worker.feed(frame, self.now)
            self._take_worker_events()
        if self.conn is not None:
            self.conn = None
            self.to_gateway.clear()
            self.worker.disconnected(self.now, code)
