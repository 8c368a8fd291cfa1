"""Worlds with conditions on edges and nodes, and what must be true of them: I29, I30.

The conditions are few, and each has a second description here that does without the language of expressions. What a
condition reads of a node is the number of the attempt that succeeded.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.runs.facts import (
    EdgesDecided,
    Fact,
    RunFinished,
    TaskDecided,
    TaskFact,
    TaskFailed,
    TaskLeased,
    TaskPassed,
    TaskReused,
    TaskSkipped,
    TaskSucceeded,
)
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.core.workflow.plan import InEdge, PlanNode
    from tests.sim.checkers.state import StateChecker
    from tests.sim.world import World

__all__ = ["ConditionChecker", "draw_conditions"]

_LIVE = TaskSucceeded | TaskReused | TaskPassed | TaskDecided
ODD = "default(results.v, [0, 1])[1] % 2 == 1"
"""The first attempt succeeded, or the third; a disabled node has none, and counts as the first."""
IN_TIME = "error.category != 'TIMEOUT'"
BROKEN = "results.nope[0] == 1"
"""Has no value."""


def _odd_of(parent: int) -> str:
    return f'default(nodes["n{parent}"].results.v, [0, 1])[1] % 2 == 1'


def draw_conditions(world: World, nodes: list[PlanNode]) -> dict[str, int]:
    """Put conditions on some edges and nodes; the names that they use. Of its own randomness, so that the rest of the
    world stays as it was."""
    rng = Random(world.seed * 7919 + 22)
    names: dict[str, int] = {}
    for index, node in enumerate(nodes):
        if node.host is not None or not node.edges_in:
            continue
        edges = tuple(_with_condition(edge, rng) for edge in node.edges_in)
        conditional = [edge.is_conditional for edge in edges]
        inputs = tuple(
            msgspec.structs.replace(one, edge=_number(edges, one.source)) for one in node.inputs
        )
        changes: dict[str, object] = {"edges_in": edges}
        if any(conditional):
            changes["inputs"] = inputs
        if rng.random() < 0.25:
            parent = rng.choice(edges).source
            changes["when"] = _odd_of(parent)
            names[f"n{parent}"] = parent
        nodes[index] = msgspec.structs.replace(node, **changes)
    return names


def _number(edges: tuple[InEdge, ...], source: int) -> int | None:
    place = next(number for number, edge in enumerate(edges) if edge.source == source)
    # In these worlds an error edge carries the result of its source, if that has one.
    return place if edges[place].is_conditional and edges[place].kind != "error" else None


def _with_condition(edge: InEdge, rng: Random) -> InEdge:
    if rng.random() < 0.5:
        return edge
    if edge.kind == "error":
        return msgspec.structs.replace(edge, when=IN_TIME)
    return msgspec.structs.replace(edge, when=BROKEN if rng.random() < 0.1 else ODD)


class ConditionChecker:
    """Checks each fact about conditions against all that came before it."""

    def __init__(self, world: World, state: StateChecker) -> None:
        self._world = world
        self._state = state
        self._decided: dict[tuple[str, int, int], Fact] = {}

    def before(self, run_id: str, fact: TaskFact) -> None:
        """A fact about a task, before it counts."""
        if isinstance(fact, EdgesDecided):
            self._check_decision(run_id, fact)
        elif isinstance(fact, TaskLeased) and self._state.tasks[run_id, fact.task].call is None:
            self._check_lease(run_id, fact.task)
        elif isinstance(fact, TaskSkipped):
            self._check_skip(run_id, fact)
        elif isinstance(fact, TaskFailed) and fact.error.code == errors.TASK_EXPRESSION.code:
            self._check_failure(run_id, fact)

    def _node(self, run_id: str, task: int) -> PlanNode:
        plan, base = self._state.scopes.level(run_id, task)
        return plan.nodes[task - base]

    def _base(self, run_id: str, task: int) -> int:
        return self._state.scopes.level(run_id, task)[1]

    def holds(self, run_id: str, edge: InEdge, base: int = 0) -> bool | None:
        """Whether an edge leads on, told without the language; None: its condition has no value. `base`: the number of
        the first task beside it."""
        end = self._state.result_of(run_id, base + edge.source)
        if edge.kind == "error":
            if not isinstance(end, TaskFailed):
                return False
            return edge.when is None or end.error.category != "TIMEOUT"
        if not isinstance(end, _LIVE):
            return False
        if edge.when == BROKEN:
            return None
        return edge.when is None or _attempt(end) % 2 == 1

    def _check_decision(self, run_id: str, fact: EdgesDecided) -> None:
        end = self._state.result_of(run_id, fact.source)
        if end is None:
            raise Violation("I29", f"edges of {run_id}.{fact.source} were decided before its end")
        name = (run_id, fact.source, fact.task)
        if self._decided.get(name) is end:
            raise Violation("I29", f"edges were decided twice: {run_id} {fact!r}")
        self._decided[name] = end
        for number, edge in enumerate(self._node(run_id, fact.task).edges_in):
            if edge.source != fact.source or not edge.is_conditional:
                continue
            if (edge.kind == "error") != isinstance(end, TaskFailed):
                continue
            if bool(self.holds(run_id, edge)) != (number not in fact.dead):
                raise Violation("I29", f"a condition was decided wrongly: {run_id} {fact!r}")
            self._world.sometimes("edge taken" if number not in fact.dead else "edge not taken")

    def _check_lease(self, run_id: str, task: int) -> None:
        node, base = self._node(run_id, task), self._base(run_id, task)
        lives = [bool(self.holds(run_id, edge, base)) for edge in node.edges_in]
        if node.join == "all" and not all(lives):
            raise Violation("I29", f"{run_id}.{task} was leased, and an edge into it is dead")
        if node.join == "any" and lives and not any(lives):
            raise Violation("I29", f"{run_id}.{task} was leased, and all edges into it are dead")
        if node.when is not None and node.join == "all" and not self._when(run_id, node):
            raise Violation("I29", f"{run_id}.{task} was leased, and its condition does not hold")

    def _when(self, run_id: str, node: PlanNode) -> bool:
        assert node.when is not None
        parents = {edge.source for edge in node.edges_in}
        (parent,) = [one for one in sorted(parents) if node.when == _odd_of(one)]
        end = self._state.result_of(run_id, parent)
        return _attempt(end) % 2 == 1

    def _check_skip(self, run_id: str, fact: TaskSkipped) -> None:
        is_call = self._state.tasks[run_id, fact.task].call is not None
        node = None if is_call else self._node(run_id, fact.task)
        if fact.code == errors.TASK_CONDITION_FALSE.code:
            assert node is not None
            self._world.sometimes("condition of a node false")
            if node.when is None or self._when(run_id, node):
                raise Violation("I29", f"{run_id}.{fact.task} was skipped, and its condition holds")
        elif fact.code == errors.TASK_BRANCH_NOT_TAKEN.code:
            assert node is not None
            base = self._base(run_id, fact.task)
            edges = [edge for edge in node.edges_in if base + edge.source == fact.because]
            if all(self.holds(run_id, edge, base) for edge in edges):
                raise Violation("I29", f"{run_id}.{fact.task} was skipped, and its edges lead on")

    def _check_failure(self, run_id: str, fact: TaskFailed) -> None:
        self._world.sometimes("expression without a value")
        node = self._node(run_id, fact.task)
        if all(self.holds(run_id, edge) is not None for edge in node.edges_in):
            raise Violation("I29", f"{run_id}.{fact.task} failed, and its expressions have values")

    def finish(self, run_id: str, fact: RunFinished) -> None:
        """I30: a run has failed if a failure was taken up by nobody, and only then."""
        if run_id in self._state.cancelled:
            return
        plan = self._state.store.runs[run_id].plan
        unhandled = [
            task
            for task in range(len(plan.nodes))
            if isinstance(self._state.result_of(run_id, task), TaskFailed)
            and not self._is_handled(run_id, task)
        ]
        if bool(unhandled) != (fact.status == "failed"):
            raise Violation("I30", f"{run_id} ended {fact.status}, not handled: {unhandled}")

    def _is_handled(self, run_id: str, failed: int) -> bool:
        plan = self._state.store.runs[run_id].plan
        for child in plan.children[failed]:
            end = self._state.result_of(run_id, child)
            edges = [edge for edge in plan.nodes[child].edges_in if edge.source == failed]
            leads_on = any(edge.kind == "error" and self.holds(run_id, edge) for edge in edges)
            if leads_on and not isinstance(end, TaskSkipped):
                self._world.sometimes("failure handled")
                return True
        return False


def _attempt(end: Fact | None) -> int:
    return end.attempt if isinstance(end, TaskSucceeded) else 1
