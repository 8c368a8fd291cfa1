"""The ready queue against a model that looks at every entry each time.

The model knows which tasks wait, in which order they were queued, and which demands sleep. What is next is
then found by brute force: of all live tasks whose demand is awake, one whose tenant has the smallest tag,
of those one whose run has, and of that run and demand the first by priority and age.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from astraflow.dispatch.demand import Demand
from astraflow.dispatch.queue import Entry, ReadyQueue

RUNS = {"a1": "acme", "a2": "acme", "b1": "other", "b2": "other"}
PACKAGES = ("pkg", "tool")
PLACES = ("here", "there")

runs = st.sampled_from(sorted(RUNS))
tasks = st.integers(0, 5)
packages = st.sampled_from(PACKAGES)
places = st.sampled_from(PLACES)


class Waiting(NamedTuple):
    """A queued task as the model knows it."""

    order: int
    demand: Demand
    priority: int
    ready_at: float | None


class QueueMachine(RuleBasedStateMachine):
    """Any order of pushes, delays, services, sleeps, wakes and forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ReadyQueue()
        self.waiting: dict[tuple[str, int], Waiting] = {}
        self.asleep: dict[Demand, str] = {}
        self.weights = dict.fromkeys(RUNS.values(), 1.0)
        self.pushed = 0
        self.now = 0.0

    # -- the model ----------------------------------------------------------------------------

    def ready(self) -> dict[tuple[str, int], Waiting]:
        """The tasks that may be served now."""
        return {
            name: one
            for name, one in self.waiting.items()
            if one.ready_at is None and one.demand not in self.asleep
        }

    def tags_of(self, run_id: str) -> tuple[float, float]:
        tenant = self.queue._tenants[RUNS[run_id]]
        return tenant.tag, self.queue._runs[run_id].tag

    def check_is_next(self, entry: Entry) -> None:
        """The entry is live, its flows are the least served, and it is the first of its run."""
        ready = self.ready()
        chosen = ready[entry.run_id, entry.task]
        assert chosen.demand == entry.demand
        least = min(self.tags_of(run_id) for run_id, _ in ready)
        assert self.tags_of(entry.run_id) == least
        rivals = [
            (-one.priority, one.order)
            for (run_id, _), one in ready.items()
            if run_id == entry.run_id and one.demand == entry.demand
        ]
        assert (-chosen.priority, chosen.order) == min(rivals)

    def take_next(self) -> Entry | None:
        entry = self.queue.next()
        if entry is None:
            assert not self.ready(), "a task that could be served was not found"
            return None
        self.check_is_next(entry)
        return entry

    # -- rules --------------------------------------------------------------------------------

    @rule(
        run=runs,
        task=tasks,
        package=packages,
        priority=st.integers(-1, 1),
        delay=st.none() | st.integers(1, 5),
    )
    def push(self, run: str, task: int, package: str, priority: int, delay: int | None) -> None:
        demand = Demand(RUNS[run], package, "1.0", "t.node")
        ready_at = None if delay is None else self.now + delay
        self.queue.push(RUNS[run], run, task, demand, priority=priority, ready_at=ready_at)
        self.pushed += 1
        self.waiting[run, task] = Waiting(self.pushed, demand, priority, ready_at)

    @rule(run=runs, task=tasks)
    def forget(self, run: str, task: int) -> None:
        self.queue.forget(run, task)
        self.waiting.pop((run, task), None)

    @rule()
    def serve(self) -> None:
        entry = self.take_next()
        if entry is None:
            return
        tenant_tag, run_tag = self.tags_of(entry.run_id)
        self.queue.served(entry)
        del self.waiting[entry.run_id, entry.task]
        weight = self.weights[entry.tenant]
        assert self.queue._tenants[entry.tenant].tag == tenant_tag + 1.0 / weight
        flow = self.queue._runs.get(entry.run_id)
        assert flow is None or flow.tag == run_tag + 1.0

    @rule()
    def drop(self) -> None:
        entry = self.take_next()
        if entry is None:
            return
        tenant_tag, _ = self.tags_of(entry.run_id)
        self.queue.drop(entry)
        del self.waiting[entry.run_id, entry.task]
        assert self.queue._tenants[entry.tenant].tag == tenant_tag

    @rule(place=places)
    def sleep(self, place: str) -> None:
        entry = self.take_next()
        if entry is not None:
            self.queue.sleep(entry, place)
            self.asleep[entry.demand] = place

    @rule(place=places)
    def wake(self, place: str) -> None:
        self.queue.wake(place)
        self.asleep = {one: where for one, where in self.asleep.items() if where != place}

    @rule(seconds=st.integers(1, 4))
    def advance(self, seconds: int) -> None:
        self.now += seconds
        self.queue.advance(self.now)
        for name, one in self.waiting.items():
            if one.ready_at is not None and one.ready_at <= self.now:
                self.waiting[name] = one._replace(ready_at=None)

    @rule(
        tenant=st.sampled_from(sorted(set(RUNS.values()))), weight=st.sampled_from([0.5, 1.0, 2.0])
    )
    def set_weight(self, tenant: str, weight: float) -> None:
        self.queue.set_weight(tenant, weight)
        self.weights[tenant] = weight

    @precondition(lambda self: self.waiting)
    @rule()
    def serve_all_that_is_awake(self) -> None:
        expected = set(self.ready())
        served = set()
        while (entry := self.take_next()) is not None:
            self.queue.served(entry)
            del self.waiting[entry.run_id, entry.task]
            served.add((entry.run_id, entry.task))
        assert served == expected

    # -- what always holds --------------------------------------------------------------------

    @invariant()
    def counts_and_indexes_agree(self) -> None:
        self.queue.check()
        assert len(self.queue) == len(self.waiting)

    @invariant()
    def the_deadline_is_the_first_delay(self) -> None:
        delays = [one.ready_at for one in self.waiting.values() if one.ready_at is not None]
        assert self.queue.deadline() == min(delays, default=None)

    @invariant()
    def every_waiting_task_is_listed_with_its_demand(self) -> None:
        for package in PACKAGES:
            for tenant in self.weights:
                demand = Demand(tenant, package, "1.0", "t.node")
                expected = [
                    (one.order, name)
                    for name, one in self.waiting.items()
                    if one.demand == demand and one.ready_at is None
                ]
                found = [(one.run_id, one.task) for one in self.queue.waiting_with(demand)]
                assert found == [name for _, name in sorted(expected)]


QueueMachine.TestCase.settings = settings(stateful_step_count=60)
TestQueue = QueueMachine.TestCase
