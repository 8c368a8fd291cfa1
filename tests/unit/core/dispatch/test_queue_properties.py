"""The ready queue against a model that looks at every entry each time, as a queue without heaps would.

The model knows which tasks wait, in which order they were queued, which demands sleep and which keys are taken. What is
next is then found by brute force: of all live tasks whose demand is awake and whose key is free, one whose tenant has
the smallest tag, of those one whose run has, and of that run the first by priority and age.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.flows import Entry, Lock
from astraflow.core.dispatch.queue import ReadyQueue
from astraflow.core.ids import RunId

RUNS = {"a1": "acme", "a2": "acme", "a3": "acme", "b1": "other", "b2": "other"}
PACKAGES = ("pkg", "tool")
PLACES = ("here", "there")
LOCKS = (None, None, ("k1", None), ("k2", None), ("k2", "chain"))

runs = st.sampled_from(sorted(RUNS))
tasks = st.integers(0, 5) | st.integers(0, 32)
packages = st.sampled_from(PACKAGES)
places = st.sampled_from(PLACES)


class Waiting(NamedTuple):
    """A queued task as the model knows it."""

    order: int
    demand: Demand
    priority: int
    ready_at: float | None
    lock: Lock | None

    @property
    def locked(self) -> tuple[Demand, Lock | None]:
        return self.demand, self.lock


class QueueMachine(RuleBasedStateMachine):
    """Any order of pushes, alone and together, delays, services, sleeps, wakes and forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ReadyQueue()
        self.waiting: dict[tuple[str, int], Waiting] = {}
        self.asleep: dict[Demand, str] = {}
        self.taken: dict[tuple[Demand, Lock | None], str] = {}
        self.weights = dict.fromkeys(RUNS.values(), 1.0)
        self.pushed = 0
        self.now = 0.0

    # -- the model ----------------------------------------------------------------------------

    def ready(self) -> dict[tuple[str, int], Waiting]:
        """The tasks that may be served now."""
        return {
            name: one
            for name, one in self.waiting.items()
            if one.ready_at is None
            and one.demand not in self.asleep
            and one.locked not in self.taken
        }

    def tags_of(self, run_id: RunId) -> tuple[float, float]:
        tenant = self.queue._tenants[RUNS[run_id]]
        return tenant.tag, self.queue._runs[run_id].tag

    def check_is_next(self, entry: Entry) -> None:
        """The entry is live, its flows are the least served, and it is the first of its run."""
        ready = self.ready()
        chosen = ready[entry.run_id, entry.task]
        assert chosen.demand == entry.demand
        least = min(self.tags_of(RunId(run_id)) for run_id, _ in ready)
        assert self.tags_of(entry.run_id) == least
        rivals = [
            (-one.priority, one.order)
            for (run_id, _), one in ready.items()
            if run_id == entry.run_id
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
        lock=st.sampled_from(LOCKS),
    )
    def push(
        self, run: str, task: int, package: str, priority: int, delay: int | None, lock: Lock | None
    ) -> None:
        demand = Demand(RUNS[run], package, "1.0", "t.node")
        ready_at = None if delay is None else self.now + delay
        self.queue.push(RunId(run), task, demand, priority=priority, ready_at=ready_at, lock=lock)
        self.pushed += 1
        self.waiting[run, task] = Waiting(self.pushed, demand, priority, ready_at, lock)

    @rule(
        run=runs,
        package=packages,
        priority=st.integers(-1, 1),
        start=st.integers(0, 12),
        count=st.integers(1, 20),
        gap=st.none() | st.integers(0, 20),
    )
    def push_all(
        self, run: str, package: str, priority: int, start: int, count: int, gap: int | None
    ) -> None:
        demand = Demand(RUNS[run], package, "1.0", "t.node")
        together = [task for task in range(start, start + count) if task != gap]
        together = [task for task in together if (run, task) not in self.waiting]
        if not together:
            return
        self.queue.push_all(RunId(run), together, demand, priority)
        for task in together:
            self.pushed += 1
            self.waiting[run, task] = Waiting(self.pushed, demand, priority, None, None)

    @rule(run=runs)
    def forget_run(self, run: str) -> None:
        self.queue.forget_run(RunId(run))
        self.waiting = {name: one for name, one in self.waiting.items() if name[0] != run}

    @rule(run=runs, task=tasks, worker=st.sampled_from((None, "w1", "w2")))
    def set_demand(self, run: str, task: int, worker: str | None) -> None:
        was = self.waiting.get((run, task))
        if was is None:
            return
        self.queue.set_demand(RunId(run), task, sticky=worker)
        demand = msgspec.structs.replace(was.demand, sticky=worker)
        if was.ready_at is None and demand != was.demand:
            self.pushed += 1
            was = was._replace(order=self.pushed)
        self.waiting[run, task] = was._replace(demand=demand)

    @rule(run=runs, task=tasks)
    def forget(self, run: str, task: int) -> None:
        self.queue.forget(RunId(run), task)
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
    def lock(self, place: str) -> None:
        entry = self.take_next()
        if entry is not None and entry.lock is not None:
            self.queue.lock(entry, place)
            self.taken[entry.demand, entry.lock] = place

    @rule(place=places)
    def wake(self, place: str) -> None:
        self.queue.wake(place)
        self.taken = {one: where for one, where in self.taken.items() if where != place}
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
        # What nobody waits for any more may have been forgotten, and is awake when it comes again.
        self.asleep = {one: at for one, at in self.asleep.items() if one in self.queue._pools}
        self.taken = {
            (demand, lock): at
            for (demand, lock), at in self.taken.items()
            if demand in self.queue._pools and lock in self.queue._pools[demand].locks
        }
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
