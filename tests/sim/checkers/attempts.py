"""Attempts as they really run: I9 (inputs), I10 (once), I12 (acknowledged means stored), I17 (never two at once)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from astraflow.core.protocol import business
from astraflow.core.runs.facts import TaskCancelled, TaskDecided, TaskFailed, TaskSucceeded
from tests.sim.requests import RequestChecker
from tests.sim.world import Violation

if TYPE_CHECKING:
    from tests.sim.checkers.state import StateChecker
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["AttemptChecker", "Worker"]


_LOSSES = ("E.TASK.DRAINED", "E.TASK.HOST_LOST")
"""Reports that cost an attempt, and are no failure of it."""


class Worker(Protocol):
    """What the checkers know of a worker instance, in every tier."""

    tenant: str
    worker_id: str
    name: str
    incarnation: int
    ready_at: float


class AttemptChecker:
    """Ground truth that only the world knows: what ran where, and when."""

    def __init__(self, world: World, store: Store, state: StateChecker) -> None:
        self.world = world
        self.store = store
        self.state = state
        self.started: dict[tuple[str, int], None] = {}
        self.running: dict[str, dict[int, str]] = {}
        self.executions = 0
        self.requests = RequestChecker(world, self._is_given_up)

    def on_start(self, worker: Worker, dispatch: business.Dispatch) -> None:
        name = (dispatch.task_id, dispatch.attempt)
        if self.state.tenant_of(dispatch.run_id) != worker.tenant:
            raise Violation("I22", f"attempt {name} reached {worker.name}")
        if name in self.started:
            raise Violation("I10", f"attempt {name} started twice")
        self.started[name] = None
        self.executions += 1
        others = self.running.setdefault(dispatch.task_id, {})
        if others:
            raise Violation("I17", f"attempt {name} starts on {worker.name} beside {others}")
        others[dispatch.attempt] = worker.name
        lease = self.state.lease_of(*name)
        if lease is None:
            raise Violation("I10", f"attempt {name} started without a stored lease")
        if (lease.worker, lease.incarnation) != (worker.worker_id, worker.incarnation):
            raise Violation(
                "I10",
                f"attempt {name} was leased to {lease.worker} boot {lease.incarnation} and "
                f"started on {worker.worker_id} boot {worker.incarnation}",
            )
        if isinstance(dispatch, business.Dispatch):  # hosts of tier C are told less
            self.requests.on_start((worker.tenant, worker.worker_id), dispatch)
        self._check_inputs(dispatch)

    def _check_inputs(self, dispatch: business.Dispatch) -> None:
        parameters = msgspec.json.decode(dispatch.parameters)
        given = parameters["from"]
        run_id, task = self.state.place_of(dispatch.task_id)
        self.state.scopes.check_given(run_id, task, parameters)
        committed = self.state.inputs[dispatch.task_id, dispatch.attempt]
        expected = {
            str(parent): msgspec.json.decode(fact.result)["v"]
            for parent, fact in committed.items()
            if isinstance(fact, TaskSucceeded | TaskDecided) and _has_value(fact)
        }
        if "item" in parameters:
            scope = self.state.scopes.scope_of(run_id, self.state.home_of(run_id, task))
            assert scope is not None
            expected = scope.given["from"]  # what its map was given
        if given != expected:
            raise Violation("I9", f"{dispatch.task_id} was given {given}, not {expected}")

    def _is_given_up(self, task_id: str, attempt: int) -> bool:
        run_id, task = self.state.place_of(task_id)
        return any(
            isinstance(one.fact, TaskFailed | TaskCancelled)
            and (one.fact.task, one.fact.attempt, one.fact.confirmed) == (task, attempt, False)
            for one in self.store.runs[run_id].facts
        )

    def on_end(self, task_id: str, attempt: int) -> None:
        self.running.get(task_id, {}).pop(attempt, None)
        self.requests.on_end(task_id, attempt)

    def on_result_acked(self, task_id: str, attempt: int, report: business.Result) -> None:
        """I12: the store holds that result, or a newer attempt, or a terminal state. A report that only
        says that the worker stopped the attempt is held as its loss."""
        task = self.state.tasks.get(self.state.place_of(task_id))
        if task is None or task.is_terminal or task.attempt > attempt:
            return
        if task.reported == attempt:
            return
        was_stopped = report.error is not None and report.error.code in _LOSSES
        if task.lost == attempt and (report.status == "CANCELLED" or was_stopped):
            return
        raise Violation("I12", f"the report of {task_id} attempt {attempt} was acked and is gone")


def _has_value(fact: TaskSucceeded | TaskDecided) -> bool:
    """Whether those downstream are given something: a wait has no value, a node with a body has one."""
    return "v" in msgspec.json.decode(fact.result)
