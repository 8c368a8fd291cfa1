"""Worlds in which runs wait for times, people and messages, and what must be true of them: I32.

People decide and send while the world breaks: a message that met no scheduler, or one that died before its commit, is
sent again under its own name, and counts once.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.engine.commands import DecideApproval, OperatorCommand, SendSignal
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import (
    Fact,
    RunFinished,
    SignalReceived,
    TaskDecided,
    TaskParked,
)
from astraflow.core.workflow.definition import Signal, WaitSpec
from astraflow.core.workflow.plan import DEFAULT_RETRY, ApprovalStep, ControlStep
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.core.workflow.plan import PlanNode
    from tests.sim.config import Config
    from tests.sim.scheduler import SchedulerProcess
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["People", "WaitChecker", "park_some"]

NAMES = ("paid", "shipped")


def park_some(world: World, nodes: list[PlanNode]) -> None:
    """Let the scheduler itself carry some nodes out. Of its own randomness, so that the rest of the world stays."""
    rng = Random(world.seed * 7919 + 24)
    for index, node in enumerate(nodes):
        is_plain = node.host is None and not node.middlewares and node.affinity is None
        holds = node.type in ("sim.make", "sim.change") or node.resource_refs
        uses = any(edge.write == ("use",) for edge in node.inputs)
        if not is_plain or holds or uses or rng.random() > 0.35:
            continue
        nodes[index] = msgspec.structs.replace(
            node,
            type="core.wait",
            package_name="core",
            control=_draw_step(rng),
            inputs=(),
            timeout_s=None,
            retry=DEFAULT_RETRY,
            concurrency_key=None,
            worker_labels=(),
        )


def _draw_step(rng: Random) -> ControlStep:
    chance = rng.random()
    deadline = rng.choice((None, None, 3.0, 20.0))
    if chance < 0.35:
        return ControlStep(wait=WaitSpec(seconds=rng.choice((0.0, 0.5, 5.0))))
    if chance < 0.7:
        return ControlStep(signal=Signal(rng.choice(NAMES), deadline))
    default = rng.choice((None, "approve", "reject"))
    return ControlStep(approval=ApprovalStep(timeout_s=deadline, default=default))  # type: ignore[arg-type]


class People:
    """Decide, and send messages: too early, in time, twice."""

    def __init__(
        self,
        world: World,
        config: Config,
        store: Store,
        schedulers: Callable[[], SchedulerProcess | None],
    ) -> None:
        self.world = world
        self.config = config
        self.store = store
        self.schedulers = schedulers
        self.rng = Random(world.seed * 7919 + 25)

    def start(self) -> None:
        if self.config.waits:
            self.world.after(1.0, self._act)

    def _act(self) -> None:
        self.world.after(1.0, self._act)
        for run_id, run in self.store.runs.items():
            if run.is_finished:
                continue
            for index, node in enumerate(run.plan.nodes):
                if node.control is not None and self.rng.random() < 0.4:
                    self._tell(run_id, index, node)

    def _tell(self, run_id: str, index: int, node: PlanNode) -> None:
        scheduler = self.schedulers()
        if scheduler is None:
            return
        assert node.control is not None
        first = self.store.runs[run_id].facts[0].fact
        tenant: str = first.tenant  # type: ignore[attr-defined]
        command: OperatorCommand
        if node.control.signal is not None:
            command = SendSignal(
                tenant=tenant,
                run_id=RunId(run_id),
                name=node.control.signal.name,
                signal_id=f"m{index}",
            )
        elif node.control.approval is not None:
            command = DecideApproval(
                tenant=tenant,
                run_id=RunId(run_id),
                node_id=node.node_id,
                approved=self.rng.random() < 0.5,
                role="admin",
            )
        else:
            return
        try:
            scheduler.execute(command)
        except errors.AstraflowError as refused:
            self.world.log(f"{type(command).__name__} is refused: {refused.message}")


class WaitChecker:
    """Checks each fact about waits against all that came before it."""

    def __init__(self, world: World, config: Config) -> None:
        self._world = world
        self._config = config
        self._parked: dict[tuple[str, int], TaskParked] = {}
        self._signals: dict[str, list[SignalReceived]] = {}
        self._taken: dict[str, set[int]] = {}

    def before(self, run_id: str, fact: Fact) -> None:
        if isinstance(fact, SignalReceived):
            self._receive(run_id, fact)
        elif isinstance(fact, TaskParked):
            self._parked[run_id, fact.task] = fact
            self._world.sometimes(f"parked for {fact.waiting_for.kind}")
        elif isinstance(fact, TaskDecided):
            self._decide(run_id, fact)
        elif isinstance(fact, RunFinished) and self._signals.get(run_id):
            self._world.sometimes("run with signals ended")

    def _receive(self, run_id: str, fact: SignalReceived) -> None:
        known = self._signals.setdefault(run_id, [])
        if any(one.signal_id == fact.signal_id for one in known):
            raise Violation("I32", f"a message was taken in twice: {run_id} {fact!r}")
        known.append(fact)

    def _decide(self, run_id: str, fact: TaskDecided) -> None:
        parked = self._parked.pop((run_id, fact.task), None)
        reason = None if parked is None else parked.waiting_for
        if reason is not None and reason.kind == "time" and not self._config.has("wall_jump"):
            assert reason.until is not None
            # Clocks that go at different speeds differ by a twentieth.
            if fact.at < reason.until - self._config.drift * 5_000:
                raise Violation("I32", f"a wait ended before its time: {run_id} {fact!r}")
        if fact.signal is None:
            return
        taken = self._taken.setdefault(run_id, set())
        if fact.signal in taken:
            raise Violation("I32", f"a message was given to two nodes: {run_id} {fact!r}")
        taken.add(fact.signal)
        self._world.sometimes("signal taken" if parked is not None else "early signal taken")
        name = self._signals[run_id][fact.signal].name
        if reason is not None and reason.detail != name:
            raise Violation("I32", f"a node was given the message of another: {run_id} {fact!r}")
