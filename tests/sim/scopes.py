"""Worlds whose runs have maps and containers, and what must be true of them: I40.

The bodies are small: a map of up to five items, a container of two nodes in a row, a map inside of a container. A
second description of them is kept here, by the facts alone: which tasks an item has, which items are under way, and
what each of them was given and gave back.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core.ids import NodeId
from astraflow.core.runs.facts import (
    CallOpened,
    Fact,
    ScopeClosing,
    ScopeOpened,
    TaskCancelled,
    TaskDecided,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskPassed,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.workflow.plan import (
    DEFAULT_RETRY,
    OUTER,
    BodyStep,
    ControlStep,
    InEdge,
    InputEdge,
    MapStep,
    Plan,
    PlanNode,
    PlanOutput,
    RetryPolicy,
)
from tests.sim.world import Violation

if TYPE_CHECKING:
    from tests.sim.checkers.state import StateChecker
    from tests.sim.config import Config
    from tests.sim.world import World

__all__ = ["ScopeChecker", "enclose_some"]

_LIVE = TaskSucceeded | TaskReused | TaskPassed | TaskDecided
_TERMINAL = _LIVE | TaskFailed | TaskSkipped | TaskCancelled
_PLAIN: dict[str, Any] = {
    "package_name": "core",
    "timeout_s": None,
    "retry": DEFAULT_RETRY,
    "concurrency_key": None,
    "worker_labels": (),
    "idempotency": "unstated",
}


def enclose_some(world: World, config: Config, nodes: list[PlanNode]) -> None:
    """Make maps and containers of some nodes. Of its own randomness, so that the rest of the world stays."""
    rng = Random(world.seed * 7919 + 27)
    share, maps = (0.85, 0.9) if config.stored else (0.4, 0.6)
    for index, node in enumerate(nodes):
        is_plain = node.host is None and not node.middlewares and node.affinity is None
        holds = node.type in ("sim.make", "sim.change") or node.resource_refs
        uses = any(edge.write == ("use",) for edge in node.inputs)
        if not is_plain or holds or uses or node.control is not None or rng.random() > share:
            continue
        handlers = [one for one in config.handlers if one not in ("make", "change")] or ["ok"]
        nodes[index] = _enclosed(rng, node, handlers, node.worker_labels, maps)
    if config.stored:
        _go_over_results(rng, nodes)


def _go_over_results(rng: Random, nodes: list[PlanNode]) -> None:
    """Let maps go over what the maps above them have collected."""
    for index, node in enumerate(nodes):
        kinds = {edge.source: edge.kind for edge in node.edges_in}
        above = [
            edge
            for edge in node.inputs
            if nodes[edge.source].type == "core.map" and kinds.get(edge.source) != "error"
        ]
        if node.type != "core.map" or not above or node.join != "all":
            continue
        assert node.control is not None
        assert node.control.body is not None
        assert node.control.body.map is not None
        step = msgspec.structs.replace(node.control.body.map, path=rng.choice(above).write)
        body = msgspec.structs.replace(node.control.body, map=step)
        lost: Any = rng.choice(("rebuild", "rebuild", "fail", None))
        nodes[index] = msgspec.structs.replace(
            node, control=ControlStep(body=body), on_resource_lost=lost
        )


def _enclosed(
    rng: Random,
    node: PlanNode,
    handlers: list[str],
    labels: tuple[tuple[str, str], ...],
    maps: float = 0.6,
) -> PlanNode:
    if rng.random() < maps:
        items = list(range(10, 10 + rng.choice((0, 1, 2, 3, 5))))
        parameters = msgspec.json.encode({"from": {}, "list": items})
        body = _map_of(rng, node, handlers, labels)
        kind = "core.map"
    else:
        parameters = b'{"from": {}}'
        body = _container_of(rng, node, handlers, labels)
        kind = "core.container"
    changes = {**_PLAIN, "type": kind, "parameters": parameters, "control": ControlStep(body=body)}
    return msgspec.structs.replace(node, **changes)


def _inner(
    rng: Random, name: str, handlers: list[str], labels: tuple[tuple[str, str], ...], **more: Any
) -> PlanNode:
    handler = rng.choice(handlers)
    fields: dict[str, Any] = {
        "node_id": NodeId(name),
        "type": f"sim.{handler}",
        "label": handler,
        "package_name": "sim",
        "package_version": "1.0",
        "parameters": b'{"from": {}}',
        "retry": RetryPolicy(rng.randint(1, 3), 0.2, 2.0, 2.0, 0.5),
        "timeout_s": 2.0 + rng.random() * 2 if handler == "hang" else None,
        "worker_labels": labels,
    }
    return PlanNode(**{**fields, **more})


def _plan_of(nodes: list[PlanNode], outputs: tuple[PlanOutput, ...] = ()) -> Plan:
    parents = [tuple({edge.source for edge in node.edges_in}) for node in nodes]
    children = [
        tuple(at for at, above in enumerate(parents) if here in above) for here in range(len(nodes))
    ]
    return Plan(
        workflow_id="sim",
        nodes=tuple(nodes),
        parents=tuple(parents),
        children=tuple(children),
        outputs=outputs,
    )


def _map_of(rng: Random, node: PlanNode, handlers: list[str], labels: Any) -> BodyStep:
    name = f"{node.node_id}i"
    if labels == () and rng.random() < 0.25:
        chain = [
            _inner(rng, name, handlers, labels, takes_item=True, middlewares=(1,)),
            _inner(rng, f"{name}w", ["wrap"], labels, host=0),
        ]
    else:
        chain = [_inner(rng, name, handlers, labels, takes_item=True)]
    step = MapStep(
        path=("list",), target=("item",), collect="v", concurrency=rng.choice((1, 2, 1_000))
    )
    policy: Any = rng.choice(("stop", "finish", "collect"))
    return BodyStep(plan=_plan_of(chain), map=step, policy=policy)


def _container_of(rng: Random, node: PlanNode, handlers: list[str], labels: Any) -> BodyStep:
    outer = InputEdge(OUTER, ("from",), ("outer",))
    first = _inner(rng, f"{node.node_id}a", handlers, labels, inputs=(outer,))
    if rng.random() < 0.3:
        first = msgspec.structs.replace(_enclosed(rng, first, handlers, labels), inputs=())
    kind: Any = "error" if rng.random() < 0.15 else "data"
    second = _inner(
        rng,
        f"{node.node_id}b",
        handlers,
        labels,
        inputs=(InputEdge(0, ("v",), ("from", "0")),),
        edges_in=(InEdge(0, kind),),
    )
    third = _inner(rng, f"{node.node_id}c", handlers, labels)
    outputs = (PlanOutput("v", 1, ("v",)),)
    policy: Any = rng.choice(("stop", "finish"))
    timeout_s = rng.choice((None, None, 3.0, 15.0))
    return BodyStep(
        plan=_plan_of([first, second, third], outputs), policy=policy, timeout_s=timeout_s
    )


class _Opened:
    """What the facts say of one body."""

    def __init__(self, fact: ScopeOpened, step: BodyStep, given: dict[str, Any]) -> None:
        self.fact = fact
        self.step = step
        self.width = len(step.plan.nodes)
        self.given = given
        self.items = [] if step.map is None else msgspec.json.decode(fact.items)
        self.is_closing = False
        self.is_former = False  # its node was taken back, and has another body
        self.begun: set[int] = set()

    def holds(self, task: int) -> bool:
        return self.fact.first <= task < self.fact.first + self.fact.count * self.width

    def tasks_of(self, item: int) -> list[int]:
        first = self.fact.first + item * self.width
        return [
            first + place for place, node in enumerate(self.step.plan.nodes) if node.host is None
        ]

    def item_of(self, task: int) -> int:
        return (task - self.fact.first) // self.width


class ScopeChecker:
    """Checks each fact about scopes, and about tasks inside of them, against all that came before it."""

    def __init__(self, world: World, state: StateChecker) -> None:
        self._world = world
        self._state = state
        self._opened: dict[str, list[_Opened]] = {}
        self._collected: dict[tuple[str, int], list[Any]] = {}  # by run and owner, the last time

    def level(self, run_id: str, task: int) -> tuple[Plan, int]:
        """The plan that a task which is no call is a node of, and the number of its first task."""
        scope = self.scope_of(run_id, task)
        if scope is None:
            return self._state.store.runs[run_id].plan, 0
        return scope.step.plan, scope.fact.first + scope.item_of(task) * scope.width

    def scope_of(self, run_id: str, task: int) -> _Opened | None:
        return next((one for one in self._opened.get(run_id, ()) if one.holds(task)), None)

    def before(self, run_id: str, fact: Fact) -> None:
        if isinstance(fact, ScopeOpened):
            self._open(run_id, fact)
        elif isinstance(fact, TaskRebuilt):
            for scope in self._opened.get(run_id, ()):
                scope.is_former |= scope.fact.task in fact.again
        elif isinstance(fact, ScopeClosing):
            self._owned(run_id, fact.task).is_closing = True
            self._world.sometimes("scope closed" if fact.error else "scope cancelled")
        elif isinstance(fact, TaskFact) and not isinstance(fact, CallOpened):
            self._check_task(run_id, fact)

    def _owned(self, run_id: str, owner: int) -> _Opened:
        return next(one for one in reversed(self._opened[run_id]) if one.fact.task == owner)

    def _open(self, run_id: str, fact: ScopeOpened) -> None:
        plan, base = self.level(run_id, fact.task)
        node = plan.nodes[fact.task - base]
        assert node.control is not None
        assert node.control.body is not None
        given = msgspec.json.decode(fact.parameters)
        known = self._opened.setdefault(run_id, [])
        if any(one.fact.task == fact.task and not one.is_former for one in known):
            raise Violation("I40", f"a body was opened twice: {run_id} {fact!r}")
        scope = _Opened(fact, node.control.body, given)
        known.append(scope)
        if scope.step.map is not None and scope.step.map.path != ("list",):
            self._check_list(run_id, scope)
        depth = "inner " if base else ""
        self._world.sometimes(f"{depth}{'map' if scope.step.map else 'container'} opened")

    def _check_list(self, run_id: str, scope: _Opened) -> None:
        """A map over the results of another one goes over the last that this one has collected."""
        assert scope.step.map is not None
        assert scope.step.map.path is not None
        source = int(scope.step.map.path[-1])
        told = self._state.result_of(run_id, source)
        assert isinstance(told, TaskDecided)
        value = msgspec.json.decode(told.result)["v"]
        expected = self._collected[run_id, source]
        if scope.items != expected:
            raise Violation("I40", f"{run_id}: a map goes over {scope.items}, not over {expected}")
        self._world.sometimes("map over a list" if value == expected else "map over a stored list")

    def _check_task(self, run_id: str, fact: TaskFact) -> None:
        home = self._state.home_of(run_id, fact.task)
        scope = self.scope_of(run_id, home)
        if scope is not None and isinstance(fact, TaskLeased):
            self._check_lease(run_id, fact, scope, home)
        if isinstance(fact, _TERMINAL) and fact.task == home:
            known = self._opened.get(run_id, ())
            owned = [one for one in known if one.fact.task == fact.task and not one.is_former]
            for one in owned:
                self._check_end(run_id, fact, one)

    def _check_lease(self, run_id: str, fact: TaskLeased, scope: _Opened, home: int) -> None:
        if scope.is_closing:
            raise Violation("I40", f"{run_id}.{fact.task} was leased in a scope that is closing")
        if self._is_over(run_id, scope.fact.task):
            raise Violation("I40", f"{run_id}.{fact.task} was leased after the end of its owner")
        if scope.step.map is None:
            return
        item = scope.item_of(home)
        scope.begun.add(item)
        under_way = [
            one
            for one in scope.begun
            if not all(self._is_over(run_id, task) for task in scope.tasks_of(one))
        ]
        if len(under_way) > scope.step.map.concurrency:
            raise Violation("I40", f"{run_id}: {len(under_way)} items of a map are under way")
        if len(under_way) == scope.step.map.concurrency < scope.fact.count:
            self._world.sometimes("map at its limit")

    def check_given(self, run_id: str, task: int, parameters: dict[str, Any]) -> None:
        """What an attempt was given, against what its scope was."""
        scope = self.scope_of(run_id, self._state.home_of(run_id, task))
        if scope is None or "item" not in parameters:
            return
        item = scope.item_of(self._state.home_of(run_id, task))
        if parameters["item"] != scope.items[item]:
            raise Violation("I40", f"{run_id}.{task} was given the item of another: {parameters}")

    def _is_over(self, run_id: str, task: int) -> bool:
        model = self._state.tasks.get((run_id, task))
        return model is not None and model.is_terminal

    def _check_end(self, run_id: str, fact: TaskFact, scope: _Opened) -> None:
        for item in range(scope.fact.count):
            tasks = scope.tasks_of(item)
            has_begun = any((run_id, task) in self._state.tasks for task in tasks)
            if scope.is_closing and not has_begun:
                continue  # cancelled with the fact of the closing
            if not all(self._is_over(run_id, task) for task in tasks):
                raise Violation("I40", f"{run_id}.{fact.task} ended before its item {item}")
        if not isinstance(fact, TaskDecided):
            return
        if scope.step.map is None:
            return
        results = [
            self._state.result_of(run_id, scope.tasks_of(item)[0])
            for item in range(scope.fact.count)
        ]
        is_failed = any(isinstance(one, TaskFailed | TaskCancelled) for one in results)
        if scope.step.policy != "collect" and is_failed:
            raise Violation("I40", f"{run_id}.{fact.task} succeeded with a failed item: {fact!r}")
        expected = [
            msgspec.json.decode(one.result) if isinstance(one, _LIVE) else None for one in results
        ]
        value = msgspec.json.decode(fact.result)["v"]
        self._collected[run_id, fact.task] = expected
        if isinstance(value, dict):
            value = msgspec.json.decode(self._state.store.blobs[run_id, fact.task])
            self._world.sometimes("collected by reference")
        if value != expected:
            raise Violation("I40", f"{run_id}.{fact.task} does not hold the results of its items")
        self._world.sometimes("map collected" if None not in expected else "map with errors")

    def finish(self, run_id: str) -> None:
        """The run has ended: so have all bodies."""
        for scope in self._opened.get(run_id, ()):
            if not self._is_over(run_id, scope.fact.task):
                raise Violation("I40", f"{run_id} ended with an open body: {scope.fact!r}")
