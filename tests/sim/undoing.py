"""Worlds whose runs undo what they have done, and what must be true of them: I41."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.ids import NodeId
from astraflow.core.runs.facts import (
    CompensationBegan,
    Fact,
    RunFinished,
    TaskDecided,
    TaskFailed,
    TaskLeased,
    TaskRebuilt,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
)
from astraflow.core.workflow.plan import InEdge, InputEdge, PlanNode, RetryPolicy
from tests.sim.world import Violation

if TYPE_CHECKING:
    from tests.sim.checkers.state import StateChecker
    from tests.sim.config import Config
    from tests.sim.world import World

__all__ = ["UndoChecker", "undo_some"]

_DONE = TaskSucceeded | TaskReused | TaskDecided


def undo_some(
    world: World, config: Config, nodes: list[PlanNode], parents: list[tuple[int, ...]]
) -> None:
    """Give some nodes a branch that undoes them, of one node or two. Of its own randomness, so that the rest of the
    world stays."""
    rng = Random(world.seed * 7919 + 29)
    known: tuple[str, ...] = ("ok", "slow", "flaky", "fail")
    handlers = [one for one in known if one in config.handlers] or ["ok"]
    for index in range(len(nodes)):
        if nodes[index].host is not None or rng.random() > 0.5:
            continue
        root = len(nodes)
        nodes.append(_undoing(rng, root, root, handlers, ()))
        parents.append(())
        if rng.random() < 0.4:
            nodes.append(_undoing(rng, root + 1, root, handlers, (root,)))
            parents.append((root,))
        kinds = rng.choice((("on_failure",), ("on_cancel",), ("on_failure", "on_cancel")))
        nodes[index] = msgspec.structs.replace(nodes[index], **dict.fromkeys(kinds, root))


def _undoing(
    rng: Random, index: int, root: int, handlers: list[str], parents: tuple[int, ...]
) -> PlanNode:
    handler = rng.choice(handlers)
    return PlanNode(
        node_id=NodeId(f"n{index}"),
        type=f"sim.{handler}",
        label=f"undo {handler}",
        package_name="sim",
        package_version="1.0",
        parameters=b'{"from": {}}',
        inputs=tuple(InputEdge(one, ("v",), ("from", str(one))) for one in parents),
        edges_in=tuple(InEdge(one, "data") for one in parents),
        retry=RetryPolicy(rng.randint(1, 2), 0.2, 2.0, 2.0, 0.5),
        branch=root,
    )


class UndoChecker:
    """Checks each fact about branches that undo against all that came before it."""

    def __init__(self, world: World, state: StateChecker) -> None:
        self._world = world
        self._state = state
        self._done: dict[str, list[int]] = {}
        self._began: dict[str, CompensationBegan] = {}

    def before(self, run_id: str, fact: Fact) -> None:
        if isinstance(fact, _DONE):
            self._done.setdefault(run_id, []).append(fact.task)
        elif isinstance(fact, TaskRebuilt):
            done = self._done.get(run_id, [])
            self._done[run_id] = [task for task in done if task not in fact.again]
        elif isinstance(fact, CompensationBegan):
            self._begin(run_id, fact)
        elif isinstance(fact, TaskLeased):
            self._lease(run_id, fact)
        elif isinstance(fact, TaskSkipped) and fact.code == errors.TASK_NOT_NEEDED.code:
            self._world.sometimes("branch not needed")
        elif isinstance(fact, RunFinished):
            self._finish(run_id, fact)

    def is_undoing(self, run_id: str, task: int) -> bool:
        """Whether a task is in a branch that undoes."""
        plan = self._state.store.runs[run_id].plan
        home = self._state.home_of(run_id, task)
        return home < len(plan.nodes) and plan.nodes[home].branch is not None

    def _wanted(self, run_id: str, kind: str) -> list[int]:
        """What must be undone, the last first."""
        nodes = self._state.store.runs[run_id].plan.nodes
        roots = []
        for task in reversed(self._done.get(run_id, [])):
            if task >= len(nodes):
                continue
            node = nodes[task]
            root = node.on_failure if kind == "failure" else node.on_cancel
            if root is not None:
                roots.append(root)
        return roots

    def _begin(self, run_id: str, fact: CompensationBegan) -> None:
        if run_id in self._began:
            raise Violation("I41", f"{run_id} is undone twice: {fact!r}")
        self._began[run_id] = fact
        if list(fact.branches) != self._wanted(run_id, fact.kind):
            raise Violation("I41", f"{run_id} undoes other things than were done: {fact!r}")
        nodes = self._state.store.runs[run_id].plan.nodes
        for task, node in enumerate(nodes):
            if node.branch is None and node.host is None and not self._is_over(run_id, task):
                raise Violation("I41", f"{run_id} is undone before {task} has ended")
        self._world.sometimes(f"undone after a {fact.kind}")

    def _is_over(self, run_id: str, task: int) -> bool:
        model = self._state.tasks.get((run_id, task))
        return model is not None and model.is_terminal

    def _lease(self, run_id: str, fact: TaskLeased) -> None:
        if not self.is_undoing(run_id, fact.task):
            return
        began = self._began.get(run_id)
        node = self._state.store.runs[run_id].plan.nodes[self._state.home_of(run_id, fact.task)]
        if began is None or node.branch not in began.branches:
            raise Violation("I41", f"{run_id}.{fact.task} undoes what need not be undone")
        before = began.branches[: began.branches.index(node.branch)]
        if not all(self._is_branch_over(run_id, root) for root in before):
            raise Violation("I41", f"{run_id}.{fact.task} undoes out of order")

    def _is_branch_over(self, run_id: str, root: int) -> bool:
        nodes = self._state.store.runs[run_id].plan.nodes
        members = [task for task, node in enumerate(nodes) if node.branch == root]
        return all(self._is_over(run_id, task) for task in members)

    def _finish(self, run_id: str, fact: RunFinished) -> None:
        nodes = self._state.store.runs[run_id].plan.nodes
        if run_id in self._began or all(node.branch is None for node in nodes):
            return
        cancelled = self._state.cancelled.get(run_id)
        kind = "failure" if fact.status == "failed" else "cancel" if cancelled else None
        if kind is not None and self._wanted(run_id, kind):
            raise Violation("I41", f"{run_id} ended {fact.status} and undid nothing")
        roots = [task for task, node in enumerate(nodes) if node.branch == task]
        ends = [self._state.result_of(run_id, task) for task in roots]
        if any(isinstance(end, TaskSucceeded | TaskFailed) for end in ends):
            raise Violation("I41", f"{run_id} undid something without a reason")
