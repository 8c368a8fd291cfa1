"""The core alone: engine, sessions, codec and rows, without sockets, disk and clock.

One worker with 64 slots runs a fan-out. The worker's side is the real agent, and is not counted. The scheduler's side
is counted by step, so that it can be compared with a profile of the whole.
"""

from __future__ import annotations

import gc
from random import Random
from time import perf_counter

import msgspec

from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.agent.actions import StartAttempt
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.engine.commands import SubmitRun
from astraflow.core.engine.engine import Engine
from astraflow.core.engine.ownership import Ownership
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.ids import RunId
from astraflow.core.protocol import business, codec, control
from astraflow.core.protocol.events import Principal, ResumeClaims, SendFrame
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.worker_events import Connect, Credential, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.core.workflow import StaticCatalog, core_manifest, decode_definition, plan_workflow
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.current import Current
from astraflow.scheduler.gauges import SchedulerGauge
from astraflow.scheduler.row_writer import RowWriter
from astraflow.ulids import Ulids
from benchmarks.figures import Figure
from benchmarks.plan_scaling import document

NODES = 5_000
SLOTS = 64
ROUNDS = 5
AT = 1_800_000_000_000
TS = "2027-01-15T08:00:00.000Z"
CONN = "c1"
BUDGET_US = 30.0
RESULT = msgspec.Raw(b'{"n":1}')
RUN_ID = RunId("01J8ZQ5T9GQ4X7V2N3M1K0HABC")
STEPS = ("decode", "receive", "place", "rows", "metrics", "effects", "encode")


class _Tokens:
    """Tokens that no worker resumes with."""

    def mint(self, *_: object) -> tuple[str, float]:
        return "token", AT / 1000 + 3600

    def verify(self, token: str, wall: float) -> ResumeClaims | errors.Code:
        return errors.AUTH_INVALID_TOKEN


def _authenticate(handshake: control.Handshake, tenant: str, *_: object) -> Principal | errors.Code:
    return Principal(handshake.worker.worker_instance_id, tenant, "worker")


class Loop:
    """A scheduler's core and one agent, joined by lists of bytes."""

    def __init__(self) -> None:
        ids = Ulids(SystemClock())
        ownership = Ownership(1, None, 0.0)
        gateway = Gateway(
            scheduler_id="s1", ids=ids, rng=Random(1), authenticate=_authenticate, tokens=_Tokens()
        )
        self.engine = Engine(EngineSettings(), gateway, ownership, Random(1), 0.0)
        self.rows = RowWriter((), (), {})
        self.gauge = SchedulerGauge(Metrics(), Current())
        self.spent = dict.fromkeys(STEPS, 0.0)
        who = WorkerIdentity("acme", "w1", 1, "w1", "0.1", "box")
        session = WorkerSession(who, Credential("token", "good"), ids=ids, rng=Random(2))
        package = control.RegisteredPackage("core", core_manifest().version, "installed")
        offer = RegisterOffer(
            control.Capabilities(control.Concurrency(SLOTS, {}), ("python",), (), None),
            packages=(package,),
            labels={},
        )
        self.agent = Agent(session, HeldAttempts(SLOTS), lambda: offer)
        self.agent.tick(0.0)

    def run(self, request: SubmitRun) -> None:
        self.engine.submit(request, 0.0, AT)
        while self.engine.has_more or self._worker_turn():
            self._scheduler_turn()
        assert request.run_id not in self.engine.view.runs, "the run has ended"

    def _worker_turn(self) -> bool:
        """What the worker does by itself; whether the scheduler was sent anything."""
        agent = self.agent
        for action in agent.take_actions():
            if isinstance(action, Connect):
                self.engine.opened(CONN, 0.0)
                agent.connected(0.0)
            elif isinstance(action, StartAttempt):
                told = action.dispatch
                result = business.Result(
                    told.run_id, told.task_id, told.attempt, "SUCCEEDED", RESULT, duration_ms=1
                )
                agent.finished(result, 0.0)
        frames = [codec.encode(frame, TS) for frame in agent.take_frames()]
        self._receive(frames)
        return bool(frames)

    def _receive(self, frames: list[bytes]) -> None:
        spent = self.spent
        for raw in frames:
            began = perf_counter()
            envelope = codec.decode(raw)
            decoded = perf_counter()
            self.engine.receive(CONN, envelope, 0.0, AT)
            spent["decode"] += decoded - began
            spent["receive"] += perf_counter() - decoded

    def _scheduler_turn(self) -> None:
        engine = self.engine
        marks = [perf_counter()]
        batch = engine.take_batch(0.0, AT)
        marks.append(perf_counter())
        if batch is not None and batch.has_facts:
            self.rows.changes_of(batch)
        marks.append(perf_counter())
        if batch is not None:
            self.gauge.committed(0.0, batch)
        marks.append(perf_counter())
        if batch is not None:
            engine.committed(batch, 0.0, AT)
        output = engine.take_output()
        engine.take_shell_effects()
        engine.deadline()
        marks.append(perf_counter())
        frames = [codec.encode(one.envelope, TS) for one in output if isinstance(one, SendFrame)]
        marks.append(perf_counter())
        for step, began, ended in zip(STEPS[2:], marks[:-1], marks[1:], strict=True):
            self.spent[step] += ended - began
        for raw in frames:
            self.agent.feed(codec.decode(raw), 0.0)


def measure() -> dict[str, float]:
    """Microseconds a node, by step; the best of some rounds."""
    catalog = StaticCatalog([core_manifest()])
    plan = plan_workflow(decode_definition(document("fan-out", NODES)), catalog)
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        loop = Loop()
        gc.collect()
        gc.disable()
        loop.run(SubmitRun("1", "acme", RUN_ID, plan))
        gc.enable()
        if not best or sum(loop.spent.values()) < sum(best.values()):
            best = loop.spent
    return {step: spent / NODES * 1e6 for step, spent in best.items()}


def figures() -> list[Figure]:
    found = measure()
    return [
        Figure("a node through the core alone", sum(found.values()), "µs", BUDGET_US),
        *(Figure(f"of it, {step}", value, "µs") for step, value in found.items()),
    ]
