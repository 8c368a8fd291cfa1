"""A second, naive model of all runs, fed by every commit: I8–I11, I13–I16, I20.

It is written without the transition table on purpose: two descriptions of one thing find each other's errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.ids import is_pool
from astraflow.core.runs.decisions import MADE_AGAIN
from astraflow.core.runs.facts import (
    AttemptFailed,
    AttemptLost,
    AttemptRefused,
    CallOpened,
    CancelRequested,
    Fact,
    RunAccepted,
    RunFinished,
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
    encode_fact,
    width,
)
from astraflow.core.runs.retry import LOSS_BUDGET
from astraflow.core.workflow.plan import Feature, Plan, PlanNode
from tests.sim.conditions import ConditionChecker
from tests.sim.config import POOL_SLOTS
from tests.sim.scopes import ScopeChecker
from tests.sim.undoing import UndoChecker
from tests.sim.waits import WaitChecker
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.core.engine.batch import Batch, NumberedFact
    from tests.sim.config import Config
    from tests.sim.store import Store
    from tests.sim.world import World

__all__ = ["StateChecker", "TaskModel"]

_LIVE = TaskSucceeded | TaskReused | TaskPassed | TaskDecided
_TERMINAL = _LIVE | TaskFailed | TaskSkipped | TaskCancelled


class TaskModel:
    """What the facts say of one task."""

    __slots__ = (
        "attempt",
        "call",
        "failures",
        "former",
        "is_lent",
        "is_terminal",
        "leased_to",
        "losses",
        "lost",
        "reported",
        "result",
    )

    def __init__(self) -> None:
        self.attempt = 0
        self.failures = 0
        self.losses = 0
        self.leased_to: str | None = None
        self.reported = 0  # the newest attempt whose end was told by its worker
        self.call: CallOpened | None = None
        self.is_lent = False  # it has called, so its slot is not counted any more
        self.lost = 0  # the newest attempt that is recorded as lost
        self.is_terminal = False
        self.result: Fact | None = None
        self.former: Fact | None = None  # the last success, whatever came of it


class StateChecker:
    """Checks each committed fact against all that came before it."""

    def __init__(self, world: World, config: Config, store: Store) -> None:
        self.world = world
        self.config = config
        self.store = store
        self.tasks: dict[tuple[str, int], TaskModel] = {}
        self.next_event: dict[str, int] = {}
        self.cancelled: dict[str, str] = {}  # by run: how it must end
        self.finished: dict[str, str] = {}
        self.finished_at: dict[str, float] = {}
        self.leases: dict[tuple[str, int], TaskLeased] = {}
        self.calls: dict[str, tuple[str, int]] = {}
        self.inputs: dict[tuple[str, int], dict[int, Fact]] = {}
        self.held: dict[tuple[str, str], int] = {}
        self.keys: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self.conditions = ConditionChecker(world, self)
        self.waits = WaitChecker(world, config)
        self.scopes = ScopeChecker(world, self)
        self.undoing = UndoChecker(world, self)

    def on_commit(self, batch: Batch) -> None:
        for one in batch.facts:
            self._number(one)
            if one.run_id in self.finished:
                raise Violation("I8", f"a fact after the end of {one.run_id}: {one.fact!r}")
            self.waits.before(one.run_id, one.fact)
            self.scopes.before(one.run_id, one.fact)
            self.undoing.before(one.run_id, one.fact)
            if isinstance(one.fact, TaskFact):
                self._task(one.run_id, one.fact)
            elif isinstance(one.fact, CancelRequested):
                is_late = one.fact.reason == "deadline"
                self.cancelled[one.run_id] = "failed" if is_late else "cancelled"
            elif isinstance(one.fact, RunFinished):
                self._finish(one.run_id, one.fact)

    def tenant_of(self, run_id: str) -> str:
        first = self.store.runs[run_id].facts[0].fact
        assert isinstance(first, RunAccepted)
        return first.tenant

    def place_of(self, task_id: str) -> tuple[str, int]:
        """The run and the number of a task, by its id on the wire."""
        if task_id in self.calls:
            return self.calls[task_id]
        run_id, _, number = task_id.rpartition(".")
        return run_id, int(number)

    def task_id(self, run_id: str, task: int) -> str:
        call = self.tasks[run_id, task].call
        return f"{run_id}.{task}" if call is None else call.call_id

    def node_of(self, run_id: str, task: int) -> PlanNode:
        """The node that a task executes."""
        call = self.tasks[run_id, task].call
        place = self.home_of(run_id, task)
        plan, base = self.scopes.level(run_id, place)
        home = plan.nodes[place - base]
        if call is None:
            return plan.nodes[home.middlewares[0]] if home.middlewares else home
        return home if call.chain_index is None else plan.nodes[home.middlewares[call.chain_index]]

    def home_of(self, run_id: str, task: int) -> int:
        model = self.tasks.get((run_id, task))
        call = None if model is None else model.call
        return task if call is None else self.home_of(run_id, call.parent)

    def lease_of(self, task_id: str, attempt: int) -> TaskLeased | None:
        return self.leases.get((task_id, attempt))

    def result_of(self, run_id: str, task: int) -> Fact | None:
        model = self.tasks.get((run_id, task))
        return model.result if model is not None else None

    def given_by(self, run_id: str, task: int, is_call: bool) -> Fact | None:
        """What a task has for those downstream; a call goes on with what its chain was given."""
        model = self.tasks.get((run_id, task))
        if model is None or not is_call or isinstance(model.result, _LIVE):
            return None if model is None else model.result
        return model.former

    def _number(self, one: NumberedFact) -> None:
        expected = self.next_event.get(one.run_id, 1)
        if one.first != expected:
            raise Violation("I20", f"{one.run_id}: event {one.first} where {expected} was due")
        self.next_event[one.run_id] = expected + width(one.fact)
        self.world.log(f"{one.run_id[-4:]} {one.first} {encode_fact(one.fact).decode()}")

    def _task(self, run_id: str, fact: TaskFact) -> None:
        model = self.tasks.get((run_id, fact.task))
        if model is None:
            model = self.tasks[run_id, fact.task] = TaskModel()
        if model.is_terminal:
            raise Violation("I8", f"{run_id}.{fact.task} changed after its end: {fact!r}")
        self.conditions.before(run_id, fact)
        if isinstance(fact, TaskLeased):
            self._lease(run_id, fact, model)
            return
        if isinstance(fact, CallOpened):
            self._call(run_id, fact, model)
            return
        if isinstance(fact, TaskRebuilt):
            self._take_back(run_id, fact)
            return
        attempt = getattr(fact, "attempt", 0)
        if attempt and attempt != model.attempt:
            raise Violation("I11", f"{fact!r} is not of the current attempt {model.attempt}")
        if isinstance(fact, AttemptFailed):
            model.failures += 1
            model.reported = fact.attempt
        elif isinstance(fact, AttemptLost):
            if fact.cause == "its resource is gone":
                # Its worker told so, and it is bounded by how often that is made again.
                model.reported = fact.attempt
            else:
                model.losses += 1
                if fact.cause == MADE_AGAIN or self._waits_upstream(run_id, fact.task):
                    model.reported = fact.attempt  # its next attempt will have other inputs
            model.lost = fact.attempt
        elif isinstance(fact, AttemptRefused):
            model.reported = fact.attempt
        ends_attempt = isinstance(fact, AttemptFailed | AttemptLost | AttemptRefused)
        if ends_attempt or isinstance(fact, _TERMINAL):
            self._release(run_id, fact.task, model)
        if isinstance(fact, _TERMINAL):
            self._end(fact, model)
            model.reported = max(model.reported, attempt)
        self._budgets(run_id, fact, model)

    def _take_back(self, run_id: str, fact: TaskRebuilt) -> None:
        """Successes that end nothing after all. Nothing else that is terminal ever changes."""
        if run_id in self.cancelled:
            raise Violation("I14", f"{run_id}.{fact.task} is made again after the cancel")
        if self.tasks[run_id, fact.task].leased_to is not None:
            raise Violation("I8", f"{run_id}.{fact.task} runs and waits to be made again")
        for task in fact.again:
            model = self.tasks[run_id, task]
            if not isinstance(model.result, TaskSucceeded | TaskReused | TaskDecided):
                raise Violation("I8", f"{run_id}.{task} is made again and had not succeeded")
            model.is_terminal = False  # its result stays, for calls that are under way
        # What waits for them takes no late word of an attempt that came before.
        children = [child for task in fact.again for child in self._plan(run_id).children[task]]
        for task in (fact.task, *children):
            waiting = self.tasks.get((run_id, task))
            if waiting is not None and waiting.leased_to is None:
                waiting.reported = waiting.attempt

    def _waits_upstream(self, run_id: str, task: int) -> bool:
        """Whether something that it was given is being made again."""
        if self.tasks[run_id, task].call is not None:
            return False
        plan, base = self.scopes.level(run_id, task)
        parents = [self.tasks.get((run_id, base + one)) for one in plan.parents[task - base]]
        return any(
            one is not None and one.result is not None and not one.is_terminal for one in parents
        )

    def _plan(self, run_id: str) -> Plan:
        return self.store.runs[run_id].plan

    def _call(self, run_id: str, fact: CallOpened, model: TaskModel) -> None:
        parent = self.tasks[run_id, fact.parent]
        if parent.attempt != fact.parent_attempt or parent.leased_to is None:
            raise Violation("I11", f"a call of an attempt that is not current: {fact!r}")
        if fact.call_id in self.calls:
            raise Violation("I10", f"a request was taken twice: {fact!r}")
        model.call = fact
        self.calls[fact.call_id] = (run_id, fact.task)
        if not parent.is_lent:
            parent.is_lent = True
            self.held[self.tenant_of(run_id), parent.leased_to] -= 1

    def _lease(self, run_id: str, fact: TaskLeased, model: TaskModel) -> None:
        for task, other in self._calls_of(run_id, fact.task):
            if not other.is_terminal:
                raise Violation(
                    "I17", f"{run_id}.{fact.task} is leased while its call {task} is open"
                )
        if run_id in self.cancelled and not self.undoing.is_undoing(run_id, fact.task):
            raise Violation("I14", f"{run_id}.{fact.task} was leased after the cancel")
        if fact.attempt != model.attempt + 1:
            raise Violation("I10", f"attempt {fact.attempt} follows {model.attempt}")
        if model.leased_to is not None:
            raise Violation("I10", f"{run_id}.{fact.task} is leased to {model.leased_to} already")
        node = self.node_of(run_id, fact.task)
        plan, base = self.scopes.level(run_id, self.home_of(run_id, fact.task))
        home = self.home_of(run_id, fact.task) - base
        joins = {Feature.JOIN_ANY, Feature.JOIN_ALL_DONE, Feature.ERROR_PORT}
        is_plain = self._plan(run_id).features.isdisjoint(joins)
        if is_plain:
            for parent in [base + one for one in plan.parents[home]]:
                is_call = model.call is not None
                is_done = isinstance(self.given_by(run_id, parent, is_call), _LIVE)
                is_open = is_done and not self.tasks[run_id, parent].is_terminal
                if not is_done or (is_open and model.call is None):
                    raise Violation("I9", f"{run_id}.{fact.task} was leased before {parent}")
        if node.resource_refs and fact.worker != node.resource_refs[0].worker_id:
            raise Violation("I16", f"{run_id}.{fact.task} is pinned, and went to {fact.worker}")
        tenant = self.tenant_of(run_id)
        if node.concurrency_key is not None:
            holders = self.keys.setdefault((tenant, node.concurrency_key), [])
            if holders and holders[-1] not in self._callers_of(run_id, fact.task):
                raise Violation("I15", f"key {node.concurrency_key} is held twice")
            holders.append((run_id, fact.task))
        model.attempt = fact.attempt
        model.leased_to = fact.worker
        model.is_lent = False
        name = (self.task_id(run_id, fact.task), fact.attempt)
        self.leases[name] = fact
        # What was committed by now is what the attempt must be given (a task that joins `any` starts
        # before the rest of its upstream ends).
        upstream = plan.parents[home] if node is plan.nodes[home] else ()
        is_call = model.call is not None
        dead = {
            edge.source
            for edge in plan.nodes[home].edges_in
            if edge.is_conditional
            and edge.kind != "error"
            and not self.conditions.holds(run_id, edge)
            # What a chain was given stays, also when its source is skipped the next time.
            and not (is_call and not isinstance(self.result_of(run_id, base + edge.source), _LIVE))
        }
        results = {
            one: self.given_by(run_id, base + one, is_call) for one in upstream if one not in dead
        }
        self.inputs[name] = {one: fact for one, fact in results.items() if fact is not None}
        worker = (tenant, fact.worker)
        self.held[worker] = self.held.get(worker, 0) + 1
        slots = POOL_SLOTS if is_pool(fact.worker) else self.config.slots
        if self.held[worker] > slots:
            raise Violation("I15", f"{worker} has {self.held[worker]} leases")

    def _release(self, run_id: str, task: int, model: TaskModel) -> None:
        if model.leased_to is None:
            return
        tenant = self.tenant_of(run_id)
        if not model.is_lent:
            self.held[tenant, model.leased_to] -= 1
        model.leased_to = None
        key = self.node_of(run_id, task).concurrency_key
        if key is not None:
            self.keys[tenant, key].remove((run_id, task))

    def _calls_of(self, run_id: str, parent: int) -> list[tuple[int, TaskModel]]:
        return [
            (task, model)
            for (of_run, task), model in self.tasks.items()
            if of_run == run_id and model.call is not None and model.call.parent == parent
        ]

    def _callers_of(self, run_id: str, task: int) -> list[tuple[str, int]]:
        found = []
        call = self.tasks[run_id, task].call
        while call is not None:
            found.append((run_id, call.parent))
            call = self.tasks[run_id, call.parent].call
        return found

    def _end(self, fact: TaskFact, model: TaskModel) -> None:
        model.is_terminal = True
        model.result = fact
        if isinstance(fact, _LIVE):
            model.former = fact
        if isinstance(fact, TaskFailed):
            model.failures += 1
            if model.failures > 1:
                self.world.sometimes("retry exhausted")

    def _budgets(self, run_id: str, fact: TaskFact, model: TaskModel) -> None:
        policy = self.node_of(run_id, fact.task).retry
        if not model.is_terminal and model.failures >= policy.max_attempts:
            raise Violation(
                "I13", f"{run_id}.{fact.task} failed {model.failures} times and goes on"
            )
        if model.losses >= LOSS_BUDGET:
            raise Violation("I13", f"{run_id}.{fact.task} was lost {model.losses} times")

    def _finish(self, run_id: str, fact: RunFinished) -> None:
        nodes = self.store.runs[run_id].plan.nodes
        tasks = [task for task, node in enumerate(nodes) if node.host is None]
        tasks += [task for of_run, task in self.calls.values() if of_run == run_id]
        ended = [self.tasks.get((run_id, task)) for task in tasks]
        if not all(model is not None and model.is_terminal for model in ended):
            raise Violation("I8", f"{run_id} ended before its tasks")
        if self.cancelled.get(run_id, fact.status) != fact.status:
            raise Violation("I14", f"{run_id} was cancelled and ended {fact.status}")
        self.conditions.finish(run_id, fact)
        self.scopes.finish(run_id)
        self.finished[run_id] = fact.status
        self.finished_at[run_id] = self.world.now
