"""A run and its tasks in memory: the fold of the run's facts over its plan.

Only `transitions.fold` changes these objects. Everything here is plain attributes with slots,
because a scheduler holds a hundred thousand of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from astraflow.core.contract.words import RunStatus
from astraflow.core.ids import TaskId
from astraflow.core.runs.branches import Branches
from astraflow.core.runs.facts import (
    NO_METRICS,
    ArtifactRef,
    CallOpened,
    CancelRequested,
    Fact,
    RunAccepted,
    SignalReceived,
    TaskFailure,
    WaitReason,
)
from astraflow.core.runs.scopes import Scope
from astraflow.core.runs.states import (
    ATTEMPT_UNDER_WAY,
    PENDING,
    READY,
    SUBSUMED,
    TERMINAL,
    WAITING,
    Pending,
    Ready,
    State,
)
from astraflow.core.workflow.plan import Feature, InEdge, Plan, PlanNode

RECENT_FACTS: Final = 32
"""How many of a run's last facts are kept for the timeline in an `InvalidTransition`."""

FEW_EDGES: Final = 8
NumberedEdge = tuple[int, InEdge]

_JOINING: Final = frozenset(
    {Feature.JOIN_ANY, Feature.JOIN_ALL_DONE, Feature.ERROR_PORT, Feature.CONDITION}
)
"""Without these, a task is ready when all upstream succeeded and doomed when one did not."""


class Task:
    """A node within a run."""

    __slots__ = (
        "artifacts",
        "attempt",
        "call",
        "delay_s",
        "failures",
        "finished_at",
        "former",
        "losses",
        "made_calls",
        "message",
        "metrics",
        "node",
        "open_calls",
        "progress",
        "rebuilds",
        "remaining",
        "result",
        "scope",
        "started_at",
        "state",
        "tries",
        "waiting_for",
        "worker",
    )

    def __init__(
        self,
        remaining: int,
        node: PlanNode,
        call: CallOpened | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.state: State = PENDING if remaining else READY
        self.node = node  # that is executed: its own, or the link of a chain of middlewares
        self.call = call
        self.scope = scope  # that it is inside of; a call is where its host is
        self.made_calls: list[int] | None = None  # that it opened itself, with all its attempts
        self.open_calls = 0  # calls below it that have not ended: its own, and theirs in turn
        self.remaining = remaining  # upstream tasks that are not settled yet
        self.attempt = 0  # the newest attempt ever issued; a fencing token that only grows (R6)
        self.failures = 0  # counted by the retry budget
        self.losses = 0  # counted by the loss budget
        self.tries = 0  # dispatches in a row that nobody took
        self.rebuilds = 0  # how often what it needs was made again for it
        self.worker: str | None = None
        self.delay_s = 0.0
        self.progress: float | None = None
        self.message: str | None = None
        self.metrics: Mapping[str, float] = NO_METRICS
        self.waiting_for: WaitReason | None = None
        self.started_at: int | None = None
        self.finished_at: int | None = None
        self.result: msgspec.Raw | None = None
        self.former: msgspec.Raw | None = (
            None  # the result that was taken back, until there is another
        )
        self.artifacts: Sequence[ArtifactRef] = ()

    @property
    def is_terminal(self) -> bool:
        return type(self.state) in TERMINAL

    @property
    def is_waiting(self) -> bool:
        """Whether it may be given a place, once all that it called has ended."""
        return type(self.state) in WAITING

    @property
    def is_held(self) -> bool:
        """Whether a worker may be running the current attempt."""
        return type(self.state) in ATTEMPT_UNDER_WAY


class RunRecord:
    """One execution of a workflow."""

    __slots__ = (
        "accepted",
        "answered",
        "attempt_floor",
        "calls",
        "cancel",
        "compensation",
        "dead_edges",
        "doomed",
        "edge_index",
        "error",
        "failed",
        "finished_at",
        "has_keys",
        "is_simple",
        "keys",
        "last_event",
        "open_tasks",
        "parked",
        "plan",
        "ready",
        "recent",
        "run_id",
        "scopes",
        "signal_count",
        "signal_ids",
        "signals",
        "stale",
        "started_at",
        "status",
        "takes_back",
        "tasks",
        "tenant",
        "touched",
        "undecided",
    )

    def __init__(self, plan: Plan, accepted: RunAccepted) -> None:
        self.plan = plan
        self.accepted = accepted
        self.run_id = accepted.run_id
        self.tenant = accepted.tenant
        self.attempt_floor = 0  # attempts are numbered above it; more than 0 after a restore
        self.status: RunStatus = "queued"
        self.error: TaskFailure | None = None
        self.cancel: CancelRequested | None = None
        self.started_at: int | None = None
        self.finished_at: int | None = None
        self.last_event = 0
        self.tasks = [
            Task(
                # The first task of a branch that undoes something waits for that to be asked for.
                len(parents) or int(node.branch is not None),
                plan.nodes[node.middlewares[0]] if node.middlewares else node,
            )
            for node, parents in zip(plan.nodes, plan.parents, strict=True)
        ]
        self.compensation = Branches(plan) if Feature.COMPENSATION in plan.features else None
        self.open_tasks = len(self.tasks)
        self.calls: dict[tuple[int, int, str], int] = {}  # (parent, its attempt, request) → task
        self.failed: list[int] = []  # the tasks of the plan that failed, in this order
        self.keys: dict[
            int, tuple[str | None, str | None]
        ] = {}  # concurrency and affinity, where they are expressions
        self.scopes: dict[int, Scope] = {}  # by the task whose body it is
        self.parked: dict[int, None] = {}  # the tasks that are parked, oldest first
        self.signals: dict[
            int, SignalReceived
        ] = {}  # messages that no node has taken, by their number
        self.signal_count = 0
        self.signal_ids: set[str] = set()  # of the messages whose senders named them
        self.dead_edges: set[tuple[int, int]] = (
            set()
        )  # (task, edge into it) whose condition does not hold
        # What the last fold brought about, for `decide` to advance: never stored, always drained.
        self.ready = [index for index, task in enumerate(self.tasks) if task.remaining == 0]
        self.answered: list[int] = []  # calls that have ended
        self.doomed: list[tuple[int, int]] = []  # (task that can never run, the task it is due to)
        self.undecided: list[
            tuple[int, int]
        ] = []  # (source, task) with conditional edges to evaluate
        self.touched: dict[
            int, None
        ] = {}  # owners of scopes in which an item ended or a task failed
        self.recent: deque[Fact] = deque(maxlen=RECENT_FACTS)
        self.takes_back = False  # successes have been taken back: a task may wait upstream again
        self.stale: set[int] = set()  # tasks whose attempt was given what has been taken back
        self.is_simple = not (plan.features & _JOINING)
        self.has_keys = Feature.KEY_EXPRESSION in plan.features
        self.edge_index: dict[int, dict[int, list[NumberedEdge]]] = {}
        if Feature.MIDDLEWARE in plan.features:
            self._subsume_middlewares()

    def _subsume_middlewares(self) -> None:
        for index, node in enumerate(self.plan.nodes):
            if node.host is not None:
                self.tasks[index].state = SUBSUMED
                self.open_tasks -= 1
                if index in self.ready:
                    self.ready.remove(index)

    # -- where a task stands -------------------------------------------------------------------

    def plan_of(self, task: int) -> Plan:
        """The plan that a task is a node of; not for calls."""
        scope = self.tasks[task].scope
        return self.plan if scope is None else scope.plan

    def base_of(self, task: int) -> int:
        """The number of the first task of the same plan: the tasks beside it are numbered from there."""
        scope = self.tasks[task].scope
        return 0 if scope is None else scope.base_of(task)

    def node_at(self, task: int) -> PlanNode:
        """The node of a task: of a call, that of its host."""
        host = self.host_of(task)
        scope = self.tasks[host].scope
        if scope is None:
            return self.plan.nodes[host]
        return scope.plan.nodes[(host - scope.first) % scope.width]

    def children_of(self, task: int) -> Sequence[int]:
        """The tasks that wait for this one."""
        scope = self.tasks[task].scope
        if scope is None:
            return self.plan.children[task]
        base = scope.base_of(task)
        return [base + place for place in scope.plan.children[task - base]]

    def parents_of(self, task: int) -> Sequence[int]:
        """The tasks that this one waits for."""
        scope = self.tasks[task].scope
        if scope is None:
            return self.plan.parents[task]
        base = scope.base_of(task)
        return [base + place for place in scope.plan.parents[task - base]]

    def scopes_of(self, task: int) -> Iterator[tuple[Scope, int]]:
        """The scopes that a task is inside of, innermost first, each with the item that it belongs to."""
        here = self.host_of(task)
        scope = self.tasks[here].scope
        while scope is not None:
            yield scope, scope.item_of(here)
            here = scope.owner
            scope = self.tasks[here].scope

    def is_undoing(self, task: int) -> bool:
        """Whether a task runs to undo what another has done."""
        if self.compensation is None:
            return False
        outermost = self.host_of(task)
        for scope, _ in self.scopes_of(task):
            outermost = scope.owner
        return self.plan.nodes[outermost].branch is not None

    def is_cancelled_at(self, task: int) -> bool:
        """Whether the cancel of the run is for this task: what undoes others goes on."""
        return self.cancel is not None and not self.is_undoing(task)

    def is_closing(self, task: int) -> bool:
        """Whether a scope that a task is inside of begins nothing any more."""
        return any(scope.closing is not None for scope, _ in self.scopes_of(task))

    def edges_between(self, source: int, task: int) -> list[NumberedEdge]:
        """The edges from one task of a plan to another, each with its number among those into the second. Found by an
        index where there are many: each of ten thousand sources asks for its own."""
        edges_in, place = self.tasks[task].node.edges_in, source - self.base_of(task)
        if self.tasks[task].node.host is not None:
            edges_in = self.node_at(
                task
            ).edges_in  # it runs as the outermost middleware of its node
        if len(edges_in) <= FEW_EDGES:
            return [(number, edge) for number, edge in enumerate(edges_in) if edge.source == place]
        by_source = self.edge_index.get(task)
        if by_source is None:
            by_source = self.edge_index[task] = {}
            for number, edge in enumerate(edges_in):
                by_source.setdefault(edge.source, []).append((number, edge))
        return by_source[place]

    def task_id(self, task: int) -> TaskId:
        """The id of a task on the wire; a call has one that follows from its request (PROTOCOL §10)."""
        call = self.tasks[task].call
        return TaskId(f"{self.run_id}.{task}") if call is None else call.call_id

    def host_of(self, task: int) -> int:
        """The place in the plan that a task belongs to: for a call, its host's."""
        call = self.tasks[task].call
        while call is not None:
            task = call.parent
            call = self.tasks[task].call
        return task

    def callers_of(self, task: int) -> Iterator[int]:
        """The task that called this one, the one that called that, and so on up to the host's own."""
        call = self.tasks[task].call
        while call is not None:
            yield call.parent
            call = self.tasks[call.parent].call

    def open_calls_of(self, parent: int) -> list[int]:
        """The calls that a task made itself and that have not ended."""
        made = self.tasks[parent].made_calls or ()
        return [task for task in made if not self.tasks[task].is_terminal]

    @property
    def is_terminal(self) -> bool:
        return self.status not in ("queued", "running")

    def check(self) -> None:
        """Assert what must always hold; re-derives every count from scratch (I8)."""
        open_tasks = 0
        open_calls = self._count_open_calls()
        for index, task in enumerate(self.tasks):
            terminal = task.is_terminal
            open_tasks += not terminal
            assert task.open_calls == open_calls[index], f"task {index} waits for other calls"
            if task.call is not None:
                continue
            unsettled = sum(not self.tasks[p].is_terminal for p in self.parents_of(index))
            if self.is_simple and type(task.state) is Ready:
                assert unsettled == 0, f"task {index} is ready before its upstream is settled"
            if type(task.state) is Pending:
                assert task.remaining > 0, f"task {index} is pending on nothing"
            # Apart, not their sum: an attempt that was lost and then reported its failure counts as both.
            assert task.failures <= task.attempt, (
                f"task {index} failed more often than it was tried"
            )
            assert task.losses <= task.attempt, (
                f"task {index} was lost more often than it was tried"
            )
        for owner, scope in self.scopes.items():
            self._check_scope(owner, scope)
        assert open_tasks == self.open_tasks, "the count of open tasks is not that of the tasks"
        assert not (self.is_terminal and open_tasks), "a finished run has open tasks"
        assert not self.ready, "ready tasks were not advanced"
        assert not self.doomed, "doomed tasks were not skipped"
        assert not self.answered, "ended calls were not answered"
        assert not self.touched, "ended items were not settled"

    def _check_scope(self, owner: int, scope: Scope) -> None:
        """The counts of a scope are those of its tasks, and its owner ends after all of them."""
        ended = 0
        for item in range(scope.count):
            first = scope.first_of(item)
            tasks = self.tasks[first : first + scope.width]
            left = sum(not task.is_terminal for task in tasks)
            assert scope.left[item] == left, f"item {item} of task {owner} has other open tasks"
            ended += left == 0
        assert scope.ended == ended, f"task {owner} has other ended items"
        assert scope.is_over or not self.tasks[owner].is_terminal, f"task {owner} ended too early"

    def _count_open_calls(self) -> list[int]:
        counts = [0] * len(self.tasks)
        for call in self.calls.values():
            for caller in () if self.tasks[call].is_terminal else self.callers_of(call):
                counts[caller] += 1
        return counts
