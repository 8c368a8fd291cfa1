"""Any small run under anything that may happen to it, beside a model made of dicts.

The model knows nothing of states or facts: which tasks ended and how, how many attempts each was given,
and which attempts a worker may still speak for. From the plan it says by itself which tasks may be leased.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from astraflow.core import errors
from astraflow.core.categories import Category
from astraflow.core.runs.commands import (
    Cancel,
    Fail,
    LeaseTask,
    Lose,
    Progress,
    Refuse,
    Report,
    RunCommand,
    Start,
    StopOverdue,
    TimeOut,
    Wait,
    Withdraw,
)
from astraflow.core.runs.consequences import EnqueueTask, FinishRun
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import (
    Chunk,
    Fact,
    TaskFailure,
    WaitReason,
    decode_fact,
    encode_fact,
)
from astraflow.core.runs.places import TaskPlaces
from astraflow.core.runs.projections import events_of, view_run
from astraflow.core.runs.retry import DISPATCH_TRIES, LOSS_BUDGET
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.transitions import replay
from astraflow.core.workflow.plan import Plan
from tests.unit.plans import AT, JOINING, make_plan, retrying, start

ENDS = frozenset({"succeeded", "failed", "skipped", "cancelled"})
WORKERS = ("w1", "w2")

HAPPENINGS: dict[str, Callable[[int, int, str], RunCommand]] = {
    "taken": Start,
    "told of": lambda task, attempt, worker: Progress(task, attempt, worker, 0.5),
    "printed": lambda task, attempt, worker: Progress(
        task, attempt, worker, chunks=(Chunk("log", 0, "line"),)
    ),
    "stale": lambda task, attempt, worker: Refuse(
        task, attempt, worker, errors.DISPATCH_STALE.code
    ),
    "drained": lambda task, attempt, worker: Refuse(
        task, attempt, worker, errors.DISPATCH_DRAINING.code
    ),
    "lost": lambda task, attempt, worker: Lose(task, attempt, "silence"),
    "withdrawn": lambda task, attempt, worker: Withdraw(task, attempt),
    "too long": lambda task, attempt, worker: TimeOut(task, attempt, 500),
    "not stopped": lambda task, attempt, worker: StopOverdue(task, attempt),
}
"""What may happen to an attempt beside its report: (task, attempt, worker) → the command."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Up to six nodes with edges downwards, joins, error edges, disabled nodes and retries."""
    count = draw(st.sampled_from((4, 6, 5, 3, 2, 1)))
    pairs = [(one, other) for other in range(count) for one in range(other)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    is_joining = draw(st.booleans())
    error_edges = [pair for pair in chosen if is_joining and draw(st.booleans())]
    nodes: dict[int, dict[str, Any]] = {}
    for index in range(count):
        fields = retrying(draw(st.sampled_from((3, 2, 1))))
        fields["disabled"] = draw(st.integers(0, 9)) == 9
        fields["idempotency"] = draw(st.sampled_from(("unstated", "unstated", "unstated", "none")))
        if is_joining:
            fields["join"] = draw(st.sampled_from(("all", "any", "all_done")))
        nodes[index] = fields
    return make_plan(
        count,
        [pair for pair in chosen if pair not in error_edges],
        nodes=nodes,
        error_edges=error_edges,
        features=JOINING if is_joining else frozenset(),
    )


class RunMachine(RuleBasedStateMachine):
    """One run. Rules give commands, sensible and not; invariants hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.run: RunRecord
        self.facts: list[Fact] = []
        self.issued: dict[int, int] = {}
        self.leased_to: dict[int, str] = {}
        self.ended: dict[str, str] = {}
        self.enqueued: set[int] = set()
        self.is_cancelled = False
        self.finishes = 0

    @initialize(plan=plans())
    def accept(self, plan: Plan) -> None:
        self.issued = dict.fromkeys(range(len(plan.nodes)), 0)
        self._take(start(plan))

    def _give(self, command: RunCommand) -> Decision:
        was_over = self.run.is_terminal
        decision = decide(self.run, command, AT, Random(5))
        assert not (was_over and (decision.facts or decision.consequences))
        self._take(decision)
        return decision

    def _take(self, decision: Decision) -> None:
        self.run = decision.run
        self.facts += decision.facts
        if decision.ignored is not None:
            assert decision.facts == []
            assert decision.consequences == []
        for effect in decision.consequences:
            if isinstance(effect, EnqueueTask):
                assert not self.is_cancelled
                self.enqueued.add(effect.task)
            self.finishes += isinstance(effect, FinishRun)
        for node in view_run(self.run).nodes:
            node_id, status = node.node_id, node.status
            assert self.ended.get(node_id, status) == status, "what ended has changed"
            if status in ENDS:
                self.ended[node_id] = status

    def _may_begin(self, task: int) -> bool:
        """Whether the plan lets a task run, told from the ends of its upstream alone."""
        node = self.run.plan.nodes[task]
        ends = [self._end(edge.source) for edge in node.edges_in]
        passed = [self.run.plan.nodes[edge.source].disabled for edge in node.edges_in]
        live = [
            end == ("failed" if edge.kind == "error" else "skipped" if is_off else "succeeded")
            for edge, end, is_off in zip(node.edges_in, ends, passed, strict=True)
        ]
        if node.join == "all_done":
            return all(end is not None for end in ends)
        return not live or (any(live) if node.join == "any" else all(live))

    def _end(self, task: int) -> str | None:
        return self.ended.get(self.run.plan.nodes[task].node_id)

    def _pick(self, number: int) -> int:
        """Mostly a task that was given out and has not ended, by leasing what waits; sometimes any."""
        if number % 4 != 3:
            self.lease_all_that_waits(WORKERS[number % 2])
        live = [
            index
            for index, issued in self.issued.items()
            if issued and self._end(index) is None and number < 90
        ]
        return live[number % len(live)] if live else number % len(self.run.tasks)

    def _speaker(self, index: int, is_other: bool) -> str:
        """The worker of the newest attempt, or another one."""
        worker = self.leased_to.get(index, "w1")
        return next(one for one in WORKERS if (one != worker) == is_other)

    task = st.integers(0, 99)
    back = st.sampled_from((0,) * 9 + (1,))  # mostly the newest attempt, sometimes the one before
    other = st.sampled_from((False,) * 9 + (True,))

    @rule(worker=st.sampled_from(WORKERS))
    def lease_all_that_waits(self, worker: str) -> None:
        for index in sorted(self.enqueued):
            self._lease(index, worker)

    @rule(number=task, worker=st.sampled_from(WORKERS))
    def lease_any(self, number: int, worker: str) -> None:
        self._lease(number % len(self.run.tasks), worker)

    def _lease(self, index: int, worker: str) -> None:
        may_begin = self._may_begin(index)
        decision = self._give(LeaseTask(index, worker, 1, 30_000))
        if decision.ignored is None:
            assert not self.is_cancelled
            assert may_begin
            assert index in self.enqueued
            self.issued[index] += 1
            self.leased_to[index] = worker
            self.enqueued.discard(index)

    @rule(
        number=task,
        back=back,
        other=other,
        status=st.sampled_from(("SUCCEEDED", "SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED")),
        category=st.sampled_from(("USER_CODE", "DATA_QUALITY")),
        drained=st.booleans(),
    )
    def report(
        self,
        number: int,
        back: int,
        other: bool,
        status: Any,
        category: Category,
        drained: bool,
    ) -> None:
        index = self._pick(number)
        code = errors.TASK_DRAINED.code if drained else "E.RUNNER.FAILURE"
        error = TaskFailure(code, category) if status == "FAILED" else None
        attempt = self.issued[index] - back
        decision = self._give(
            Report(index, attempt, self._speaker(index, other), status, error=error)
        )
        if back and self.issued[index]:
            assert decision.ignored is not None, "a report of an older attempt had an effect"

    @rule(number=task, back=back, other=other, what=st.sampled_from(sorted(HAPPENINGS)))
    def happen(self, number: int, back: int, other: bool, what: str) -> None:
        index = self._pick(number)
        worker = self._speaker(index, other)
        self._give(HAPPENINGS[what](index, self.issued[index] - back, worker))

    @rule(number=task, kind=st.sampled_from(("slot", "package")))
    def wait(self, number: int, kind: Any) -> None:
        self._give(Wait(self._pick(number), WaitReason(kind)))

    @rule(number=task, dice=st.integers(0, 9))
    def fail(self, number: int, dice: int) -> None:
        if dice == 9:
            error = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE")
            self._give(Fail(self._pick(number), error))

    @precondition(lambda self: len(self.facts) > 10)
    @rule(reason=st.sampled_from(("user_requested", "deadline")))
    def cancel(self, reason: str) -> None:
        self.is_cancelled = True
        self._give(Cancel("ann", 500, reason))

    @invariant()
    def the_run_checks_itself(self) -> None:
        self.run.check()

    @invariant()
    def attempts_grow_by_one_at_every_lease_and_never_else(self) -> None:
        assert {index: task.attempt for index, task in enumerate(self.run.tasks)} == self.issued

    @invariant()
    def budgets_hold(self) -> None:
        for node, task in zip(self.run.plan.nodes, self.run.tasks, strict=True):
            assert task.failures < node.retry.max_attempts
            assert task.losses < LOSS_BUDGET
            assert task.tries < DISPATCH_TRIES

    @invariant()
    def the_run_has_ended_exactly_when_its_tasks_have(self) -> None:
        is_over = len(self.ended) == len(self.run.tasks)
        assert self.run.is_terminal == is_over
        assert self.finishes == is_over

    @invariant()
    def an_open_task_can_go_on(self) -> None:
        """It waits upstream, stands in the queue, or a worker may be running it."""
        for index, task in enumerate(self.run.tasks):
            if task.is_terminal or task.is_held:
                continue
            if index not in self.enqueued:
                assert any(self._end(parent) is None for parent in self.run.plan.parents[index])

    @invariant()
    def events_have_no_gap_and_fold_to_the_statuses_of_the_view(self) -> None:
        view = view_run(self.run)
        seen: dict[str, str] = {}
        first, shown = 1, TaskPlaces(self.run.plan)
        for fact in self.facts:
            for event in events_of(fact, first, shown):
                assert event.id == first
                first += 1
                if event.type in ("node.state", "run.status"):
                    seen[event.scope.node_id or "run"] = event.body.status
        assert view.last_event == first - 1
        assert seen["run"] == view.status
        for node in view.nodes:
            if node.status not in ("pending", "ready"):
                assert seen[node.node_id] == node.status

    @invariant()
    def replay_of_the_stored_facts_is_the_live_run(self) -> None:
        again = replay(self.run.plan, [decode_fact(encode_fact(fact)) for fact in self.facts])
        again.check()
        assert view_run(again) == view_run(self.run)
        assert [task.state for task in again.tasks] == [task.state for task in self.run.tasks]
        budgets = [(task.tries, task.losses, task.delay_s) for task in self.run.tasks]
        assert [(task.tries, task.losses, task.delay_s) for task in again.tasks] == budgets


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
