"""Clients of a simulated scheduler: they submit, cancel, and follow events, over a network that loses answers.

A client that gets no answer sends again with the same idempotency key (P3). What it was told is kept and held
against the store at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from astraflow.core import errors
from astraflow.core.contract.events import Event, NodeState, RunStatusChange
from astraflow.core.engine.commands import CancelRun, SubmitRun
from astraflow.core.engine.effects import ReplyToCaller
from astraflow.core.ids import NodeId, RunId
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of
from astraflow.core.workflow.plan import (
    AffinityHint,
    Feature,
    InEdge,
    InputEdge,
    Plan,
    PlanNode,
    ResourceRefValue,
    RetryPolicy,
    walk_nodes,
)
from tests.sim.conditions import draw_conditions
from tests.sim.config import Config
from tests.sim.features import decorate
from tests.sim.keeping import EXTRA
from tests.sim.pools import LABELS
from tests.sim.requests import ask_some
from tests.sim.scopes import enclose_some
from tests.sim.store import Store
from tests.sim.undoing import undo_some
from tests.sim.waits import park_some
from tests.sim.world import Violation, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.checkers import Checkers
    from tests.sim.scheduler import SchedulerProcess

__all__ = ["Client", "Reader", "draw_plan"]

ANSWER_TIMEOUT_S = 2.0


def draw_plan(world: World, config: Config) -> Plan:
    """A random graph: each task may depend on up to two earlier ones and reads their results."""
    rng = world.rng
    joins = rng.random() < 0.2
    parents: list[tuple[int, ...]] = []
    nodes: list[PlanNode] = []
    for index in range(config.tasks):
        count = min(index, rng.choice((0, 1, 1, 2)))
        mine = tuple(sorted(rng.sample(range(index), count)))
        parents.append(mine)
        nodes.append(_draw_node(world, config, index, mine, joins))
    if config.resources:
        _hand_on(world, config, nodes, parents)
    if config.packages:
        _want_extra(world, nodes)
    if config.pools:
        _push_some(world, nodes)
    if config.chains:
        _wrap(world, nodes, parents)
    if config.features:
        decorate(world, config, nodes, parents)
    if config.requests:
        ask_some(world, nodes)
    if config.waits:
        park_some(world, nodes)
    if config.scopes:
        enclose_some(world, config, nodes)
    if config.undoing:
        undo_some(world, config, nodes, parents)
    names = draw_conditions(world, nodes) if config.conditions else {}
    children: list[list[int]] = [[] for _ in nodes]
    for index, mine in enumerate(parents):
        for parent in mine:
            children[parent].append(index)
    features = {Feature.JOIN_ANY, Feature.JOIN_ALL_DONE, Feature.ERROR_PORT} if joins else set()
    if config.chains:
        features.add(Feature.MIDDLEWARE)
    if config.conditions:
        features.add(Feature.CONDITION)
    if config.waits:
        features.update((Feature.WAIT, Feature.SIGNAL, Feature.APPROVAL))
    if config.undoing:
        features.add(Feature.COMPENSATION)
    if config.keyed and world.seed % 3 == 0:
        features.add(Feature.KEY_EXPRESSION)
        nodes = [_with_expression(node) for node in nodes]
    if config.scopes:
        features.update((Feature.MAP, Feature.SUBGRAPH, Feature.ERROR_PORT))
    return Plan(
        workflow_id="sim",
        nodes=tuple(nodes),
        parents=tuple(parents),
        children=tuple(map(tuple, children)),
        features=frozenset(features),
        names=names,
    )


def _with_expression(node: PlanNode) -> PlanNode:
    """The same key, as the value of an expression."""
    if node.concurrency_key != "key":
        return node
    return msgspec.structs.replace(node, concurrency_key="=join(['k', 'ey'])")


def _hand_on(
    world: World, config: Config, nodes: list[PlanNode], parents: list[tuple[int, ...]]
) -> None:
    """Some nodes make a resource, some use or change what a node above them has made or handed on."""
    rng = world.rng
    for index, node in enumerate(nodes):
        makers = [one for one in parents[index] if nodes[one].type in ("sim.make", "sim.change")]
        changes: dict[str, object] = {}
        if makers and rng.random() < 0.8:
            changes["inputs"] = (*node.inputs, InputEdge(rng.choice(makers), ("r",), ("use",)))
            changes["on_resource_lost"] = rng.choice(("rebuild", "rebuild", "fail", None))
            if rng.random() < 0.4 and not config.copies:
                changes |= {"type": "sim.change", "join": "all", "disabled": False}
        elif rng.random() < 0.5:
            changes |= {"type": "sim.make", "join": "all", "disabled": False}
        elif rng.random() < 0.2:
            mode: Literal["sticky", "preferred"] = rng.choice(("sticky", "preferred"))
            changes["affinity"] = AffinityHint(f"affinity-{rng.randrange(2)}", mode)
            changes["on_resource_lost"] = rng.choice(("rebuild", "fail", None))
        nodes[index] = msgspec.structs.replace(node, **changes)


def _want_extra(world: World, nodes: list[PlanNode]) -> None:
    """Some nodes are of a package that nobody has yet."""
    name, version = EXTRA
    for index, node in enumerate(nodes):
        if world.rng.random() < 0.4 and not node.resource_refs:
            changed = {"package_name": name, "package_version": version}
            nodes[index] = msgspec.structs.replace(node, **changed)


def _push_some(world: World, nodes: list[PlanNode]) -> None:
    """Some nodes go to the pool of their tenant and nowhere else."""
    for index, node in enumerate(nodes):
        uses = any(edge.write == ("use",) for edge in node.inputs)
        is_plain = not node.resource_refs and not uses and node.affinity is None
        may_go = is_plain and node.package_name == "sim" and node.type != "sim.make"
        if may_go and world.rng.random() < 0.6:
            nodes[index] = msgspec.structs.replace(node, worker_labels=LABELS)


def _wrap(world: World, nodes: list[PlanNode], parents: list[tuple[int, ...]]) -> None:
    """Put one or two middlewares round some nodes."""
    for host in range(len(nodes)):
        if world.rng.random() > 0.4 or nodes[host].type in ("sim.make", "sim.change"):
            continue  # a middleware would answer in its place, and hand nothing on
        chain = []
        for _ in range(world.rng.randint(1, 2)):
            chain.append(len(nodes))
            parents.append(())
            nodes.append(
                PlanNode(
                    node_id=NodeId(f"n{len(nodes)}"),
                    type="sim.wrap",
                    label="wrap",
                    package_name="sim",
                    package_version="1.0",
                    parameters=b'{"from": {}}',
                    retry=RetryPolicy(world.rng.randint(1, 2), 0.2, 2.0, 2.0, 0.5),
                    host=host,
                    # The same key as its host's: a chain must not block itself.
                    concurrency_key=nodes[host].concurrency_key,
                )
            )
        nodes[host] = msgspec.structs.replace(nodes[host], middlewares=tuple(chain))


def _draw_node(
    world: World, config: Config, index: int, parents: tuple[int, ...], joins: bool
) -> PlanNode:
    rng = world.rng
    handler = rng.choice(config.handlers)
    refs: tuple[ResourceRefValue, ...] = ()
    if config.pinned and rng.random() < 0.3:
        # The last worker always has the package.
        owner = max(rng.randrange(config.workers_each), min(1, config.workers_each - 1))
        refs = (ResourceRefValue("r", f"worker-{owner}", "file"),)
    kind = "error" if joins and rng.random() < 0.15 else "data"
    return PlanNode(
        node_id=NodeId(f"n{index}"),
        type=f"sim.{handler}",
        label=handler,
        package_name="sim",
        package_version="1.0",
        parameters=b'{"from": {}}',
        inputs=tuple(InputEdge(one, ("v",), ("from", str(one))) for one in parents),
        edges_in=tuple(InEdge(one, kind) for one in parents),  # type: ignore[arg-type]
        join=rng.choice(("all", "any", "all_done")) if joins else "all",
        retry=RetryPolicy(rng.randint(1, 3), 0.2, 2.0, 2.0, 0.5),
        timeout_s=2.0 + rng.random() * 2 if handler == "hang" else None,
        concurrency_key="key" if config.keyed and rng.random() < 0.5 else None,
        resource_refs=refs,
        disabled=rng.random() < 0.02,
        idempotency="none" if rng.random() < 0.05 else "unstated",
    )


class Client:
    """Submits runs and cancels some of them."""

    def __init__(
        self,
        world: World,
        config: Config,
        store: Store,
        checkers: Checkers,
        schedulers: Callable[[], SchedulerProcess | None],
    ) -> None:
        self.world = world
        self.config = config
        self.store = store
        self.checkers = checkers
        self.schedulers = schedulers
        self.unanswered = 0

    def start(self) -> None:
        for number in range(self.config.runs):
            when = self.world.rng.random() * self.config.fault_phase_s * 0.7
            plan = draw_plan(self.world, self.config)
            self.unanswered += 1
            self.world.after(when, self._submit, number, plan, [False])

    def _submit(self, number: int, plan: Plan, done: list[bool]) -> None:
        if done[0]:
            return
        self.world.after(ANSWER_TIMEOUT_S, self._submit, number, plan, done)
        scheduler = self.schedulers()
        if scheduler is None:
            return
        request = SubmitRun(
            lambda answer: self._answered(answer, number, done),
            self.config.tenant_of(number),
            RunId(self.world.new_id()),
            plan,
            idempotency_key=f"key-{number}",
            fingerprint=f"print-{number}",
            deadline_s=self.config.deadline_of(number),
        )
        scheduler.submit(request)

    def _answered(self, answer: ReplyToCaller, number: int, done: list[bool]) -> None:
        if done[0] or (not self.store.is_healed and self.world.chance(0.2)):
            return  # told already, or the answer is lost on its way
        if isinstance(answer.error, errors.Unavailable):
            self.checkers.seen("a submission met an absent worker")
            return  # tried again like one that was not answered
        if answer.run_id is None:
            raise Violation("I7", f"submission {number} was refused: {answer.error}")
        done[0] = True
        self.unanswered -= 1
        self.checkers.told_accepted(answer.run_id, number)
        # What never ends by itself is cancelled by somebody sooner or later.
        plan = self.store.runs[answer.run_id].plan
        is_endless = any(node.type == "sim.endless" for node in walk_nodes(plan))
        if is_endless or (self.config.has("cancel") and self.world.chance(0.4)):
            delay = self.world.rng.random() * 8
            self.world.after(delay, self._cancel, answer.run_id, number, [False])

    def _cancel(self, run_id: str, number: int, done: list[bool]) -> None:
        if done[0]:
            return
        self.world.after(ANSWER_TIMEOUT_S, self._cancel, run_id, number, done)
        scheduler = self.schedulers()
        if scheduler is None:
            return

        def answered(answer: ReplyToCaller) -> None:
            if done[0]:
                return
            done[0] = True
            if answer.run_id is None:
                self.checkers.seen("cancel met a finished run")
            else:
                self.checkers.told_cancelled(run_id)

        scheduler.cancel(CancelRun(answered, self.config.tenant_of(number), RunId(run_id)))
        self._pry(scheduler, run_id, number)

    def _pry(self, scheduler: SchedulerProcess, run_id: str, number: int) -> None:
        """Somebody of another tenant tries too, and must not learn that there is such a run."""
        if self.config.tenants == 1:
            return

        def answered(answer: ReplyToCaller) -> None:
            code = answer.error and answer.error.code
            if answer.run_id is not None or code is not errors.RUN_NOT_FOUND:
                raise Violation("I22", f"a stranger was told of {run_id}: {answer}")

        scheduler.cancel(CancelRun(answered, self.config.tenant_of(number + 1), RunId(run_id)))


class Reader:
    """Follows the events of all runs as an SSE client would: with breaks, resuming by number."""

    def __init__(self, world: World, store: Store, checkers: Checkers) -> None:
        self.world = world
        self.store = store
        self.checkers = checkers
        self.last: dict[str, int] = {}
        self.statuses: dict[str, dict[str, str]] = {}
        self._place: dict[str, int] = {}
        self._places: dict[str, TaskPlaces] = {}

    def read(self) -> None:
        for run_id, run in self.store.runs.items():
            place = self._place.get(run_id, 0)
            if place and self.world.chance(0.2):
                self.checkers.seen("reader resumed")
                place = self._find(run_id)
            places = self._places.setdefault(run_id, TaskPlaces(run.plan))
            for one in run.facts[place:]:
                self._take(run_id, one.first, events_of(one.fact, one.first, places))
            self._place[run_id] = len(run.facts)
        self.world.after(5.0, self.read)

    def _find(self, run_id: str) -> int:
        """Where a reader that saw number `last` goes on: the first fact beyond it."""
        facts = self.store.runs[run_id].facts
        last = self.last.get(run_id, 0)
        return next((at for at, one in enumerate(facts) if one.first > last), len(facts))

    def _take(self, run_id: str, first: int, events: list[Event]) -> None:
        for event in events:
            expected = self.last.get(run_id, 0) + 1
            if event.id != expected:
                raise Violation("I20", f"event {event.id} of {run_id} where {expected} was due")
            self.last[run_id] = expected
            self._fold(run_id, event)

    def _fold(self, run_id: str, event: Event) -> None:
        body = event.body
        statuses = self.statuses.setdefault(run_id, {})
        if isinstance(body, NodeState):
            if body.call_id is None:  # else of a call within a chain, not of the node itself
                statuses[body.node_id] = body.status
        elif isinstance(body, RunStatusChange):
            statuses["run"] = body.status
