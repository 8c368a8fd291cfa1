"""A simulated worker process and the hosts that run package code beside it.

Worker and host are separate processes: a paused worker's hosts run on, a dead worker's hosts die with it
(PDEATHSIG, pipe EOF), and each carries a kernel timer that the worker re-arms only up to its fence
(PROTOCOL §5.3). The planted bug `hostsurvives` takes both away.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core.agent.actions import (
    Exit,
    ForwardAnswer,
    HandUp,
    InterruptAttempt,
    KillAttempt,
    StartAttempt,
)
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.protocol import business, control
from astraflow.core.protocol.wire import Envelope, Wire
from astraflow.core.protocol.worker_events import (
    Connect,
    Credential,
    Disconnect,
    SessionSettings,
    WorkerIdentity,
)
from tests.sim.clock import Clock
from tests.sim.config import Config
from tests.sim.edges import edge, edge_time
from tests.sim.keeping import Keeping, Kept
from tests.sim.network import Connection, Network
from tests.sim.requests import MACHINE
from tests.sim.wire import SimIds, through_codec
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.checkers import Checkers
    from tests.sim.scheduler import SchedulerProcess

__all__ = ["Host", "WorkerProcess"]


class Host:
    """An attempt as the operating system sees it: a process that runs until something ends it."""

    __slots__ = (
        "attempt",
        "dispatch",
        "fence_at",
        "is_alive",
        "is_stopping",
        "made",
        "task_id",
        "worker",
    )

    def __init__(self, worker: WorkerProcess, dispatch: business.Dispatch) -> None:
        self.worker = worker
        self.dispatch = dispatch
        self.task_id = dispatch.task_id
        self.attempt = dispatch.attempt
        self.is_alive = True
        self.is_stopping = False
        self.fence_at = 0.0
        self.made: Kept | None = None


class WorkerProcess:
    """One worker instance over all its boots."""

    host_dies_with_worker = True  # planted: hostsurvives
    host_has_timer = True

    def __init__(
        self,
        world: World,
        config: Config,
        number: int,
        network: Network,
        checkers: Checkers,
        clock: Clock,
        schedulers: Callable[[], SchedulerProcess | None],
    ) -> None:
        self.world = world
        self.config = config
        self.number = number
        self.worker_id = config.worker_id(number)
        self.tenant = config.tenant_of(number)
        self.name = f"{self.tenant}/{self.worker_id}"
        self.network = network
        self.checkers = checkers
        self.clock = clock
        self.schedulers = schedulers
        self.incarnation = 0  # kept in the data folder
        self.agent: Agent | None = None
        self.is_paused = False
        self.is_gone = False  # it will never be back
        self.drained_with_work = False
        self.life = 0
        self.hosts: dict[tuple[str, int], Host] = {}
        self._conn: Connection | None = None
        self._inbox: list[tuple[str, Any]] = []
        self._tick_at: float | None = None
        self.ready_at = 0.0  # when its session was opened
        self.keeping = Keeping(self)
        # One worker of a tenant may lack the package, if another has it.
        lacks_package = config.missing_package and self.worker_id == "worker-0"
        has_package = not (lacks_package and config.workers_each > 1)
        self._packages = (
            (control.RegisteredPackage("sim", "1.0", "installed"),) if has_package else ()
        )

    # -- life -------------------------------------------------------------------------------

    def boot(self) -> None:
        if self.agent is not None or self.is_gone:
            return
        self.life += 1
        self.incarnation += 1
        # "A starting worker kills left-over hosts before it registers" (PROTOCOL §5.3).
        for host in list(self.hosts.values()):
            if self.host_dies_with_worker:
                self._end(host)
        config = self.config
        session = self.checkers.worker_session_class(
            self._identity(),
            Credential("token", "good"),
            ids=SimIds(self.world),
            rng=Random(self.world.rng.getrandbits(64)),
            settings=SessionSettings(window=config.window, checks_outgoing=config.has("poison")),
        )
        session.checkers = self.checkers
        session.process = self
        self.agent = self.checkers.agent_class(session, HeldAttempts(config.slots), self._offer)
        self.agent.tick(self.clock.now())
        self.keeping.boot()
        self._after()

    def _identity(self) -> WorkerIdentity:
        name = f"w{self.number}"
        return WorkerIdentity(self.tenant, self.worker_id, self.incarnation, name, "0.1", "sim")

    def _offer(self) -> RegisterOffer:
        installs = self.config.packages or self.config.rollouts
        features = ("pkg.install",) if installs else ()
        return RegisterOffer(
            control.Capabilities(
                control.Concurrency(self.config.slots),
                ("python",),
                features,
                MACHINE if self.config.requests else None,
            ),
            packages=self._packages + self.keeping.packages(),
        )

    def crash(self) -> None:
        """kill -9 of the worker: its memory is gone; its hosts die with it."""
        if self.agent is None:
            return
        self.world.log(f"{self.worker_id} crashes")
        self.life += 1
        self.checkers.worker_gone(self)
        self.agent = None
        self.is_paused = False
        self._inbox.clear()
        if self.host_dies_with_worker:
            for host in list(self.hosts.values()):
                self._end(host)
        self._drop_connection()

    def pause(self) -> None:
        self.is_paused = True

    def wake(self) -> None:
        if not self.is_paused:
            return
        self.is_paused = False
        inbox, self._inbox = self._inbox, []
        for kind, what in inbox:
            self._input(kind, what)
        if self.agent is not None:
            self.agent.tick(self.clock.now())
            self._after()

    def _drop_connection(self) -> None:
        if self._conn is not None:
            conn, self._conn = self._conn, None
            self.network.break_connection(conn)

    def _close_connection(self) -> None:
        assert self.agent is not None
        if self._conn is not None:
            conn, self._conn = self._conn, None
            for envelope in self.agent.take_frames():
                self.network.send(conn, False, envelope)
            self.network.close(conn)

    # -- the network's end ------------------------------------------------------------------

    def frame_arrived(self, conn: Connection, envelope: Envelope) -> None:
        if conn is self._conn:
            self._input("frame", (conn, envelope))

    def connection_broken(self, conn: Connection) -> None:
        if conn is self._conn:
            self._input("broken", conn)

    def drain(self) -> None:
        """SIGTERM."""
        if self.agent is not None and not self.is_paused:
            self.drained_with_work = bool(self.agent.attempts.working())
            self.checkers.pairs.everywhere("drains")
            self.agent.drain(self.clock.now(), 5.0)
            self._after()

    def reoffer(self) -> None:
        """A package was installed, say: the worker registers anew in mid-session."""
        if self.agent is not None and not self.is_paused:
            self.agent.reoffer(self.clock.now())
            self._after()

    def tell(self, key: str, frame_type: str, payload: Wire) -> None:
        """Say how a resource or a package is."""
        self._input("tell", (key, frame_type, payload))

    def _input(self, kind: str, what: Any) -> None:
        if self.agent is None:
            return
        if self.is_paused:
            self._inbox.append((kind, what))
            return
        now = self.clock.now()
        if kind == "frame":
            conn, envelope = what
            if conn is not self._conn:
                return
            self.agent.feed(through_codec(envelope) if self.config.with_codec else envelope, now)
        elif kind == "broken":
            if what is not self._conn:
                return
            self._conn = None
            self.agent.disconnected(now)
        elif kind == "finished":
            self.agent.finished(what, now)
        elif kind == "made":
            self.keeping.add(what)
        elif kind == "tell":
            key, frame_type, payload = what
            self.agent.tell(key, frame_type, payload, None, now)
        elif kind == "call":
            self.agent.call(what, now)
        elif kind == "gone":
            self.agent.gone(what[0], what[1], now)
        else:
            self.agent.feedback(what, now)
        self._after()

    # -- after each step --------------------------------------------------------------------

    def _after(self) -> None:
        agent = self.agent
        assert agent is not None
        while actions := agent.take_actions():
            for action in actions:
                self._act(action)
                if self.agent is None:
                    return
        if self._conn is not None:
            for envelope in agent.take_frames():
                self.network.send(self._conn, False, envelope)
        else:
            agent.take_frames()
        self._rearm()
        self._schedule_tick()

    def _act(self, action: object) -> None:
        match action:
            case StartAttempt(dispatch):
                self._start(dispatch)
            case InterruptAttempt(task_id, attempt, grace_s, _):
                self._stop(task_id, attempt, grace_s)
            case KillAttempt(task_id, attempt, _):
                self.world.after(self.world.rng.random() * 0.05, self._kill, task_id, attempt)
            case Connect(at, _):
                self.world.at(self.clock.true_time(at) + 1e-6, self._connect, self.life)
            case Disconnect():
                self._close_connection()
            case Exit(code, _):
                self._exit(code)
            case ForwardAnswer(response):
                self._answered(response)
            case HandUp(envelope):
                self.keeping.take(envelope)

    def _exit(self, code: int) -> None:
        if code == 0 and self.drained_with_work:
            self.checkers.seen("drain finished with work")
        self.crash()
        self.world.after(1.0, self.boot)

    def _connect(self, life: int) -> None:
        if life != self.life or self.agent is None or self._conn is not None:
            return
        if self.is_paused:
            self.world.after(0.1, self._connect, life)
            return
        scheduler = self.schedulers()
        if scheduler is None:
            self.agent.disconnected(self.clock.now())
            self._after()
            return
        self._conn = self.network.connect(self, scheduler)
        scheduler.accept_connection(self._conn)
        self.agent.connected(self.clock.now())
        self._after()

    def _schedule_tick(self) -> None:
        assert self.agent is not None
        deadline = self.agent.deadline()
        if deadline is None:
            self._tick_at = None
            return
        when = max(self.clock.true_time(deadline) + 1e-9, self.world.now + 1e-6)
        if self._tick_at is None or when < self._tick_at or self._tick_at <= self.world.now:
            self._tick_at = when
            self.world.at(when, self._tick, self.life, when)

    def _tick(self, life: int, when: float) -> None:
        if life != self.life or self.agent is None or when != self._tick_at:
            return
        self._tick_at = None
        if self.is_paused:
            return  # waking ticks
        self.agent.tick(self.clock.now())
        self._after()

    # -- hosts ------------------------------------------------------------------------------

    def _rearm(self) -> None:
        """Re-arm the kernel timers of hosts whose fence has moved."""
        assert self.agent is not None
        for held in self.agent.attempts.working():
            host = self.hosts.get((held.task_id, held.attempt))
            if host is not None and host.fence_at != held.fence_at:
                host.fence_at = held.fence_at
                if self.host_has_timer:
                    when = self.clock.true_time(held.fence_at) + 0.01
                    self.world.at(when, self._kernel_timer, host, held.fence_at)

    def _kernel_timer(self, host: Host, fence_at: float) -> None:
        if host.is_alive and host.fence_at == fence_at:
            self.checkers.seen("kernel timer")
            self._end(host)

    def _start(self, dispatch: business.Dispatch) -> None:
        host = Host(self, dispatch)
        self.hosts[host.task_id, host.attempt] = host
        self.checkers.attempt_started(self, dispatch)
        if self.config.resources:
            self.checkers.resources.on_start(self, dispatch)
        rng, kind = self.world.rng, dispatch.node_type
        missing = self.keeping.lease(host) if self.config.resources else None
        if missing is not None:
            self.world.after(0.01, self._fail_lost, host, missing)
            return
        if dispatch.resource_refs and self.config.resources:
            self.checkers.resources.on_use(self, dispatch)
        if kind in ("sim.hang", "sim.endless"):
            return
        seconds = rng.expovariate(1 / 0.3)
        if kind == "sim.slow":
            seconds = 1.0 + rng.random() * 5
        if kind == "sim.long":
            seconds = 8.0 + rng.random() * 18
        if kind == "sim.wrap":
            self.world.after(seconds, self._call_next, host)
            if dispatch.resource_refs and rng.random() < 0.5:
                self.world.after(seconds + rng.random(), self._lose_used, host)
            return
        if kind == "sim.chatty":
            for index in range(rng.randint(1, 6)):
                self.world.after(seconds * index / 6, self._chat, host, index)
        if kind == "sim.crash" and rng.random() < 0.5:
            self.world.after(seconds, self.crash_host, host)
            return
        if kind == "sim.make":
            self.world.after(seconds * rng.random(), self._make, host)
        self.world.after(seconds, self._finish, host, self._outcome(kind))

    def _make(self, host: Host) -> None:
        """An attempt makes something that its worker keeps, whatever becomes of the attempt."""
        if host.is_alive:
            host.made = self.keeping.draw(host)
            self._input("made", host.made)

    def _fail_lost(self, host: Host, resource_id: str) -> None:
        """What a dispatch refers to is not there: its handler never starts."""
        if not host.is_alive:
            return
        self._end(host)
        message = f"the resource is evicted: {resource_id}"
        error = business.AttemptError("E.RESOURCE.LOST", "INFRASTRUCTURE", message, retryable=False)
        self._report(host, "FAILED", b"{}", error)

    def _lose_used(self, host: Host) -> None:
        """What a middleware uses breaks under its hands, while its call is open."""
        one = self.keeping.kept.get(host.dispatch.resource_refs[0].resource_id)
        if host.is_alive and one is not None:
            self.checkers.seen("lost with an open call")
            self.keeping.remove(one, "evicted")
            self._fail_lost(host, one.resource_id)

    def _call_next(self, host: Host) -> None:
        """A middleware calls the rest of its chain, and goes on when it is answered."""
        dispatch = host.dispatch
        if not host.is_alive:
            return
        assert dispatch.chain_index is not None
        request = business.NextRequest(
            dispatch.run_id, host.task_id, host.attempt, self.world.new_id(), dispatch.chain_index
        )
        self.checkers.calls.on_call(request)
        self._input("call", request)

    def _answered(self, response: business.NextResponse) -> None:
        host = self.hosts.get((response.task_id, response.attempt))
        if host is None:
            return
        self.checkers.seen("call answered")
        self.checkers.calls.on_answer(response)
        if self.world.chance(0.2):
            self._call_next(host)
        else:
            status = (
                "FAILED" if response.error is not None and self.world.chance(0.5) else "SUCCEEDED"
            )
            self.world.after(0.05, self._finish, host, status)

    def _outcome(self, kind: str) -> str:
        if kind == "sim.fail" or (kind == "sim.flaky" and self.world.rng.random() < 0.5):
            return "FAILED"
        return "SKIPPED" if kind == "sim.refuse_skip" else "SUCCEEDED"

    def _chat(self, host: Host, index: int) -> None:
        if not host.is_alive:
            return
        chunk = business.FeedbackChunk("log", index, f"line {index}")
        feedback = business.Feedback(
            host.dispatch.run_id, host.task_id, host.attempt, progress=index / 6, chunks=(chunk,)
        )
        self._input("feedback", feedback)

    def _finish(self, host: Host, status: str) -> None:
        if not host.is_alive:
            return
        value = msgspec.json.encode(self._value(host))
        self._end(host)
        error = None
        if status == "FAILED":
            error = business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "it failed")
        elif host.made is None and status == "SUCCEEDED" and self._poisons():
            value = b'{"v": "\\u0000"}'
        artifacts = self._list(host.made) if status == "SUCCEEDED" else ()
        self._report(host, status, value if status == "SUCCEEDED" else b"{}", error, artifacts)

    def _list(self, made: Kept | None) -> tuple[business.ResultArtifact, ...]:
        """Some files are listed by the result of the attempt that made them."""
        if made is None or made.is_memory or not self.world.chance(0.9 if made.is_durable else 0.3):
            return ()
        if self.keeping.kept.get(made.resource_id) is not made or made.end is not None:
            return ()  # it went before it was listed
        made.is_listed = True
        listed = business.ResultArtifact(
            made.resource_id,
            self.worker_id,
            "thing",
            1,
            edge_time(made.resource_id),
            metadata=self.keeping.metadata(made),
        )
        return (listed,)

    def _poisons(self) -> bool:
        return self.config.has("poison") and self.world.chance(0.1)

    def _value(self, host: Host) -> dict[str, object]:
        """The result: who made it, and a reference to what it made, or handed on."""
        value: dict[str, object] = {
            "v": [host.task_id, host.attempt],
            "edge": edge(host.task_id, host.attempt),
        }
        refs = host.dispatch.resource_refs
        if host.made is not None:
            value["r"] = host.made.ref(None if self.world.chance(0.2) else self.worker_id)
        elif host.dispatch.node_type == "sim.change" and refs:
            one = self.keeping.kept.get(refs[0].resource_id)
            if one is not None:
                one.marks[host.dispatch.node_id] = None
                value["r"] = one.ref(self.worker_id)
        return value

    def _report(
        self,
        host: Host,
        status: str,
        value: bytes,
        error: business.AttemptError | None,
        artifacts: tuple[business.ResultArtifact, ...] = (),
    ) -> None:
        result = business.Result(
            host.dispatch.run_id,
            host.task_id,
            host.attempt,
            status,  # type: ignore[arg-type]
            msgspec.Raw(value),
            artifacts,
            error=error,
        )
        self.checkers.attempt_finished(self, result)
        self._input("finished", result)

    def crash_host(self, host: Host) -> None:
        """The host process dies by itself; the worker reads its pipe to the end and tells."""
        if not host.is_alive:
            return
        self._end(host)
        error = business.AttemptError("E.RUNNER.CRASHED", "INFRASTRUCTURE", "signal 11")
        self._report(host, "FAILED", b"{}", error)

    def _stop(self, task_id: str, attempt: int, grace_s: float) -> None:
        host = self.hosts.get((task_id, attempt))
        if host is None or host.is_stopping:
            return
        host.is_stopping = True
        takes = self.world.rng.random() * (grace_s + 0.2)
        self.world.after(takes, self._stopped, host)

    def _stopped(self, host: Host) -> None:
        if host.is_alive:
            self._end(host)
            self._report(host, "CANCELLED", b"{}", None)

    def _kill(self, task_id: str, attempt: int) -> None:
        host = self.hosts.get((task_id, attempt))
        if host is not None:
            self._end(host)
        self._input("gone", (task_id, attempt))

    def _end(self, host: Host) -> None:
        host.is_alive = False
        self.hosts.pop((host.task_id, host.attempt), None)
        if host.dispatch.resource_refs:
            self.keeping.give_back(host)
        self.checkers.attempt_ended(host.task_id, host.attempt)
