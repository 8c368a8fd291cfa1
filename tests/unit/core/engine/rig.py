"""One real engine and some real agents, in memory, with a clock that is turned by hand.

The wire is perfect until a test cuts it or lets frames vanish on it. Commits are done at once unless a test
holds them back. `check()` is called on everything after every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from astraflow.core import errors
from astraflow.core.agent.actions import (
    Action,
    Exit,
    KillAttempt,
    StartAttempt,
)
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.engine.batch import Batch, NumberedFact
from astraflow.core.engine.commands import CancelRun, OperatorCommand, SubmitRun
from astraflow.core.engine.effects import (
    Effect,
    ReplyToCaller,
    SendDispatch,
    SendExport,
    SendInstall,
    ShellEffect,
)
from astraflow.core.engine.engine import Engine
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.fleet.facts import FleetFact
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.events import GatewaySettings, Principal, SendFrame
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import (
    AckInfo,
    AttemptRef,
    Envelope,
    MachineAmounts,
    Sender,
    is_sequenced,
)
from astraflow.core.protocol.worker_events import Connect, Credential, Disconnect, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.core.runs.facts import Fact
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.workflow.plan import Plan
from tests.unit.core.protocol.pair import CountedIds, PlainTokens
from tests.unit.plans import AT

TENANT = "acme"


def authenticate(
    handshake: control.Handshake, tenant: str, certificate: object, wall: float
) -> Principal | errors.Code:
    return Principal(handshake.worker.worker_instance_id, tenant, "worker")


class Worker:
    """One worker: its agent, its connection, and hosts that do what the test says."""

    def __init__(self, rig: Rig, worker_id: str, tenant: str = TENANT, **offer: Any) -> None:
        self.rig = rig
        self.worker_id = worker_id
        self.tenant = tenant
        self.incarnation = 0
        self.slots: int = offer.pop("slots", 4)
        self.is_online = True  # whether a connection can be opened
        self.is_heard = True  # whether what it sends arrives
        self.hears = True  # whether what is sent to it arrives
        self.dies = True  # whether a killed host is gone at once
        self.conn: str | None = None
        self.connect_at: float | None = None
        self.started: list[business.Dispatch] = []
        self.actions: list[Action] = []
        self.sent: list[Envelope] = []
        self.exit: Exit | None = None
        self.offer = _offer(self.slots, **offer)
        self.agent: Agent | None = None
        self.boot()

    # -- what a test does ---------------------------------------------------------------------

    def boot(self) -> None:
        """A new process of this worker, with nothing in memory."""
        self.incarnation += 1
        self.exit = None
        who = WorkerIdentity(
            self.tenant, self.worker_id, self.incarnation, self.worker_id, "0.1", "box"
        )
        session = WorkerSession(
            who,
            Credential("token", "good"),
            ids=CountedIds(f"{self.worker_id}-{self.incarnation}-"),
            rng=Random(2),
        )
        self.agent = Agent(session, HeldAttempts(self.slots), lambda: self.offer)
        self.agent.tick(self.rig.now)

    def crash(self) -> None:
        """kill -9, seen at once by the scheduler's socket."""
        self.agent = None
        self.connect_at = None
        self._break()

    def cut(self) -> None:
        """The connection breaks; both sides see it."""
        self._break()
        self.live.disconnected(self.rig.now)

    @property
    def live(self) -> Agent:
        assert self.agent is not None
        return self.agent

    def finish(
        self,
        number: int = -1,
        status: str = "SUCCEEDED",
        value: object = None,
        error: business.AttemptError | None = None,
        artifacts: tuple[business.ResultArtifact, ...] = (),
    ) -> None:
        """The host of the attempt that was started as this one ends it."""
        dispatch = self.started[number]
        raw = msgspec.Raw(msgspec.json.encode({} if value is None else {"v": value}))
        self.live.finished(
            business.Result(
                dispatch.run_id,
                dispatch.task_id,
                dispatch.attempt,
                status,  # type: ignore[arg-type]
                raw,
                artifacts,
                error=error,
            ),
            self.rig.now,
        )
        self.rig.run()

    def fail(self, number: int = -1, **fields: Any) -> None:
        error = business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "boom", **fields)
        self.finish(number, "FAILED", error=error)

    def send(self, frame_type: str, payload: object, corr: str | None = None) -> None:
        """A frame of the worker's own, as the session would send it."""
        self.live.session.send(frame_type, payload, corr, self.rig.now)
        self.rig.run()

    def of(self, kind: type) -> list[Any]:
        """The actions of one kind, so far."""
        return [action for action in self.actions if isinstance(action, kind)]

    def tasks(self) -> list[tuple[str, int]]:
        """What was started, in order."""
        return [(one.task_id, one.attempt) for one in self.started]

    def held(self) -> list[tuple[str, int]]:
        return [(one.task_id, one.attempt) for one in self.live.attempts.working()]

    # -- inside -------------------------------------------------------------------------------

    def arrives(self, frame: Envelope) -> None:
        if self.hears and self.agent is not None:
            self.agent.feed(frame, self.rig.now)

    def closes(self) -> None:
        self.conn = None
        if self.agent is not None:
            self.agent.disconnected(self.rig.now)

    def _break(self) -> None:
        conn, self.conn = self.conn, None
        if conn is not None:
            self.rig.conns.pop(conn, None)
            self.rig.engine.closed(conn, self.rig.now, self.rig.at)

    def _is_gone(self) -> bool:
        return self.agent is None

    def step(self) -> bool:
        """Carry out what the agent asks for; True if there was something."""
        if self.agent is None:
            return False
        agent, now = self.agent, self.rig.now
        busy = False
        deadline = agent.deadline()
        if deadline is not None and deadline <= now:
            agent.tick(now)
            busy = agent.deadline() != deadline
        actions = agent.take_actions()
        for action in actions:
            self.actions.append(action)
            self._act(action)
            if self._is_gone():
                return True
        if self.connect_at is not None and self.connect_at <= now and self.conn is None:
            self.connect_at = None
            self._connect()
            busy = True
        frames = agent.take_frames()
        for frame in frames:
            self.sent.append(frame)
            if self.conn is not None and self.is_heard:
                self.rig.engine.receive(self.conn, frame, now, self.rig.at)
        agent.check()
        return busy or bool(actions) or bool(frames)

    def _connect(self) -> None:
        if not self.is_online:
            self.live.disconnected(self.rig.now)
            return
        self.rig.connections += 1
        self.conn = f"{self.worker_id}#{self.rig.connections}"
        self.rig.conns[self.conn] = self
        self.rig.engine.opened(self.conn, self.rig.now)
        self.live.connected(self.rig.now)

    def _act(self, action: Action) -> None:
        now = self.rig.now
        match action:
            case Connect(at, _):
                self.connect_at = at
            case Disconnect():
                for frame in self.live.take_frames():
                    self.sent.append(frame)
                    if self.conn is not None and self.is_heard:
                        self.rig.engine.receive(self.conn, frame, now, self.rig.at)
                self._break()
                self.live.disconnected(now)
            case StartAttempt(dispatch):
                self.started.append(dispatch)
            case KillAttempt(task_id, attempt, _) if self.dies:
                self.live.gone(task_id, attempt, now)
            case Exit():
                self.exit = action
                self.crash()


class RawWorker:
    """A worker that does nothing by itself: every frame is the test's."""

    def __init__(
        self,
        rig: Rig,
        worker_id: str = "w1",
        *,
        tenant: str = TENANT,
        incarnation: int = 1,
        inflight: tuple[AttemptRef, ...] = (),
        lane: int = 0,
        given: int | None = None,
        **offer: Any,
    ) -> None:
        """`given`: the slots that it gives the lane."""
        self.rig = rig
        self.worker_id = worker_id
        self.tenant = tenant
        self._given = given
        self.inbox: list[Envelope] = []
        self.taken: int | None = None  # what it says it has taken
        self._next_seq = 0
        rig.connections += 1
        self.conn = f"{worker_id}#{rig.connections}"
        self._ids = CountedIds(self.conn)
        rig.conns[self.conn] = self
        rig.engine.opened(self.conn, rig.now)
        about = control.HandshakeWorker(worker_id, incarnation, worker_id, "0.1", "box")
        proof = control.Auth("token", "good")
        self.send(control.HANDSHAKE, control.Handshake(2, proof, about, lane))
        self.register(*inflight, **offer)

    def send(
        self, frame_type: str, payload: object, corr: str | None = None, ack: AckInfo | None = None
    ) -> None:
        seq = None
        if is_sequenced(frame_type):
            seq, self._next_seq = self._next_seq, self._next_seq + 1
        sender = Sender("worker", self.worker_id)
        frame_id = self._ids.new()
        frame = Envelope(frame_type, frame_id, "", self.tenant, sender, payload, corr, seq, ack)
        self.rig.engine.receive(self.conn, frame, self.rig.now, self.rig.at)
        self.rig.run()

    def register(self, *inflight: AttemptRef, **offer: Any) -> None:
        made = _offer(offer.pop("slots", 4), **offer)
        register = control.Register(
            made.capabilities, (), made.packages, made.labels, tuple(inflight), (), self._given
        )
        self.send(control.REGISTER, register)

    def heartbeat(
        self,
        *named: tuple[str, int],
        draining: bool = False,
        metrics: control.HeartbeatMetrics | None = None,
    ) -> control.ControlAck:
        """Sends a heartbeat that names these attempts and says what was taken; its answer."""
        attempts = tuple(AttemptRef(TaskId(task_id), attempt) for task_id, attempt in named)
        ack = AckInfo(True, self.taken, self._arrived(), 256)
        measured = metrics or control.HeartbeatMetrics()
        heartbeat = control.Heartbeat(True, draining, attempts, measured)
        self.send(control.HEARTBEAT, heartbeat, None, ack)
        answers = [
            frame.payload
            for frame in self.inbox
            if isinstance(frame.payload, control.ControlAck) and frame.payload.for_ is not None
        ]
        return answers[-1]

    def _arrived(self) -> str:
        """The bitmap of what arrived and is not taken: it is not sent again."""
        first = -1 if self.taken is None else self.taken
        seqs = {frame.seq for frame in self.inbox if frame.seq is not None and frame.seq > first}
        return f"{sum(1 << (seq - first - 1) for seq in seqs):x}"

    def take(self, count: int | None = None) -> None:
        """Acknowledge the commands that arrived, or the first so many of this session."""
        seqs = [frame.seq for frame in self.inbox if frame.seq is not None]
        self.taken = max(seqs) if count is None else count - 1
        ack = control.ControlAck(ack_seq=self.taken, recv_window=256)
        self.send(control.ACK, ack)

    def result(
        self, task_id: str, attempt: int = 1, status: str = "SUCCEEDED", **fields: Any
    ) -> None:
        run_id = task_id.rpartition(".")[0]
        made = business.Result(run_id, task_id, attempt, status, **fields)  # type: ignore[arg-type]
        self.send(business.RESULT, made, task_id)

    def refuse(self, task_id: str, attempt: int = 1, code: str = "E.DISPATCH.STALE") -> None:
        run_id = task_id.rpartition(".")[0]
        refusal = business.ExecError(RunId(run_id), TaskId(task_id), attempt, code, "no")
        self.send(business.EXEC_ERROR, refusal, task_id)

    def of(self, kind: type) -> list[Any]:
        """The payloads of one kind that arrived, in order, each frame once."""
        frames = {frame.id: frame.payload for frame in self.inbox}
        return [payload for payload in frames.values() if isinstance(payload, kind)]

    def arrives(self, frame: Envelope) -> None:
        self.inbox.append(frame)

    def closes(self) -> None:
        self.inbox.clear()


def _offer(
    slots: int,
    packages: Mapping[str, str] | None = None,
    runtimes: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
    per_node_limits: dict[str, int] | None = None,
    features: tuple[str, ...] = (),
    has: MachineAmounts | None = None,
) -> RegisterOffer:
    return RegisterOffer(
        control.Capabilities(
            control.Concurrency(slots, per_node_limits or {}), runtimes, features, has
        ),
        packages=tuple(
            control.RegisteredPackage(name, version, "installed")
            for name, version in (packages or {"pkg": "1.0"}).items()
        ),
        labels=labels or {},
    )


def _signed(effect: Effect) -> Effect:
    """As the shell does: add the URLs and the secrets. One whose name is `gone` has been deleted."""
    if isinstance(effect, SendInstall):
        package = effect.package
        return msgspec.structs.replace(
            effect, url=f"https://repo.example/{package.name}-{package.version}.cwx"
        )
    if isinstance(effect, SendExport):
        return msgspec.structs.replace(effect, url=f"https://up.example/{effect.resource[2]}")
    if isinstance(effect, SendDispatch) and effect.dispatch.secrets is not None:
        if "gone" in effect.dispatch.secrets:
            refusal = (errors.SECRET_NOT_FOUND.code, "no such secret: gone")
            return msgspec.structs.replace(effect, refusal=refusal)
        values = {name: f"{name} of {effect.tenant}" for name in effect.dispatch.secrets}
        dispatch = msgspec.structs.replace(effect.dispatch, secrets=values)
        return msgspec.structs.replace(effect, dispatch=dispatch)
    if isinstance(effect, SendDispatch) and effect.copies:
        refs = tuple(
            ref
            if copy is None
            else msgspec.structs.replace(
                ref,
                metadata=msgspec.Raw(
                    b'{"copyUrl":"https://down.example/%b"}' % copy.resource_id.encode()
                ),
            )
            for ref, copy in zip(effect.dispatch.resource_refs, effect.copies, strict=True)
        )
        dispatch = msgspec.structs.replace(effect.dispatch, resource_refs=refs)
        return msgspec.structs.replace(effect, dispatch=dispatch)
    return effect


class RiggedGateway(Gateway):
    """A gateway that may be told what it cannot send."""

    refuse: Callable[[str, Any], None] | None = None
    """Raises what `send` is to raise of this frame type and payload."""

    def send(
        self, session_id: SessionId, frame_type: str, payload: object, corr: str | None, now: float
    ) -> str:
        if self.refuse is not None:
            self.refuse(frame_type, payload)
        return super().send(session_id, frame_type, payload, corr, now)


class Rig:
    """The engine, its store, its workers, and the time."""

    def __init__(
        self, *, shard_ttl_s: float | None = None, window: int = 256, **settings: Any
    ) -> None:
        self.now = 100.0
        self.at = AT
        self.settings = EngineSettings(**settings)
        self.shard_ttl_s = shard_ttl_s
        self.window = window
        self.commits = True  # whether a batch is committed at once
        self.pending: Batch | None = None
        self.store: list[NumberedFact] = []
        self.fleet: list[FleetFact] = []
        self.plans: dict[str, Plan] = {}
        self.shell_effects: list[ShellEffect] = []
        self.carried: list[Envelope] = []  # to workers
        self.closed: list[int] = []  # connections that the engine closed, by their code
        self.conns: dict[str, Worker | RawWorker] = {}
        self.connections = 0
        self.lives = 0
        self.workers: dict[str, Worker] = {}
        self._told = 0
        self.engine = self._new_engine()

    def _new_engine(self) -> Engine:
        self.lives += 1
        self.ownership = Ownership(1, self.shard_ttl_s, self.now)
        self.gateway = gateway = RiggedGateway(
            scheduler_id="sched-1",
            ids=CountedIds(f"s{self.lives}-"),
            rng=Random(1),
            authenticate=authenticate,
            tokens=PlainTokens(),
            settings=GatewaySettings(
                window=self.window,
                heartbeat_interval_s=self.settings.heartbeat_interval_s,
                lease_ttl_s=self.settings.lease_ttl_s,
            ),
            may_speak=self.ownership.may_speak,
        )
        return Engine(self.settings, gateway, self.ownership, Random(1), self.now)

    # -- what a test does ---------------------------------------------------------------------

    def worker(self, worker_id: str = "w1", **fields: Any) -> Worker:
        """Start a worker and let it open its session."""
        worker = Worker(self, worker_id, **fields)
        self.workers[f"{worker.tenant}/{worker_id}"] = worker
        self.run()
        return worker

    def submit(self, plan: Plan, run_id: str = "run1", tenant: str = TENANT, **fields: Any) -> None:
        self.engine.submit(
            SubmitRun(run_id, tenant, RunId(run_id), plan, **fields), self.now, self.at
        )
        self.run()

    def cancel(self, run_id: str = "run1", tenant: str = TENANT, **fields: Any) -> None:
        request = CancelRun(f"cancel {run_id}", tenant, RunId(run_id), **fields)
        self.engine.cancel(request, self.now, self.at)
        self.run()

    def run(self) -> None:
        """Let everybody speak until nobody has more to say at this moment."""
        for _ in range(100_000):
            busy = False
            for worker in list(self.workers.values()):
                busy |= worker.step()
            busy |= self._step_engine()
            self.engine.check()
            if not busy:
                return
        raise AssertionError("they never stop talking")

    def wait(self, seconds: float) -> None:
        """Let time pass, from one thing that is due to the next."""
        end = self.now + seconds
        while self.now < end:
            due = [self.engine.deadline()]
            for worker in self.workers.values():
                if worker.agent is not None:
                    due.append(worker.agent.deadline())
                if worker.conn is None:
                    due.append(worker.connect_at)
            first = min((when for when in due if when is not None), default=end)
            self.turn(min(max(first, self.now + 1e-6), end) - self.now)
            self.run()

    def turn(self, seconds: float) -> None:
        """Turn the clock and let nobody act on it yet."""
        self.now += seconds
        self.at = AT + int((self.now - 100.0) * 1000)

    def commit(self) -> None:
        """Commit the batch that was held back."""
        batch, self.pending = self.pending, None
        assert batch is not None
        self._commit(batch)

    def restart(self) -> None:
        """The scheduler dies with everything in memory and starts again from the store."""
        for worker in self.workers.values():
            if worker.conn is not None:
                worker.conn = None
                worker.live.disconnected(self.now)
        self.conns.clear()
        self.pending = None
        self.engine = self._new_engine()
        for run_id in self.active():
            self.engine.restore(self.plans[run_id], self.facts(run_id), self.now, self.at)
        self.engine.check()

    # -- what a test looks at -----------------------------------------------------------------

    def facts(self, run_id: str = "run1") -> list[Fact]:
        """All committed facts of a run."""
        return [one.fact for one in self.store if one.run_id == run_id]

    def new_facts(self) -> list[Fact]:
        """What was committed since this was asked last, as if all at the time 0."""
        told, self._told = self._told, len(self.store)
        return [msgspec.structs.replace(one.fact, at=0) for one in self.store[told:]]

    def new_kinds(self) -> list[type[Fact]]:
        return [type(fact) for fact in self.new_facts()]

    def active(self) -> list[str]:
        finished = {one.run_id for one in self.store if type(one.fact).__name__ == "RunFinished"}
        return [run_id for run_id in self.plans if run_id not in finished]

    def run_of(self, run_id: str = "run1") -> RunRecord:
        return self.engine.view.runs[RunId(run_id)]

    def task(self, index: int = 0, run_id: str = "run1") -> Task:
        return self.run_of(run_id).tasks[index]

    @property
    def replies(self) -> list[ReplyToCaller]:
        return [one for one in self.shell_effects if isinstance(one, ReplyToCaller)]

    def execute(self, command: OperatorCommand) -> None:
        """A command of an operator. Raises: what it is refused with."""
        self.engine.execute(command, self.now, self.at)
        self.run()

    def recorded(self, *kinds: type) -> list[Any]:
        """The committed facts about the fleet, of these kinds."""
        return [fact for fact in self.fleet if isinstance(fact, kinds)]

    def frames(self, frame_type: str) -> list[Any]:
        """The payloads of one type that were put on the wire to workers."""
        return [frame.payload for frame in self.carried if frame.type == frame_type]

    def counted(self, what: str) -> int:
        return self.engine.view.counters.get(what, 0)

    # -- inside -------------------------------------------------------------------------------

    def _step_engine(self) -> bool:
        engine = self.engine
        busy = False
        deadline = engine.deadline()
        if deadline is not None and deadline <= self.now:
            engine.tick(self.now, self.at)
            busy = engine.deadline() != deadline or engine.view.placing.has_more
        if self.pending is None:
            batch = engine.take_batch(self.now, self.at)
            if batch is not None and (self.commits or not batch.facts):
                self._commit(batch)
                busy = True
            else:
                self.pending = batch
        for output in engine.take_output():
            busy = True
            worker = self.conns.get(str(output.conn))
            if isinstance(output, SendFrame):
                self.carried.append(output.envelope)
                if worker is not None:
                    worker.arrives(output.envelope)
                continue
            self.closed.append(output.code)
            if worker is not None:
                del self.conns[str(output.conn)]
                worker.closes()
        self.shell_effects += engine.take_shell_effects()
        return busy

    def _commit(self, batch: Batch) -> None:
        self.store += batch.facts
        self.fleet += (change.fact for change in batch.fleet)
        self.plans.update((run_id, one.plan) for run_id, one in batch.submitted.items())
        batch.effects[:] = map(_signed, batch.effects)
        self.engine.committed(batch, self.now, self.at)
