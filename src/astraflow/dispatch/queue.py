"""The ready queue: who is next, fairly, over tenants and the runs of a tenant.

Start-time fair queueing: each tenant and each run has a tag, its virtual time. The smallest tag is
served, and serving adds 1 / weight to it, so that a fan-out of fifty thousand tasks delays nobody
else's small run. A flow that was idle begins at the present virtual time: waiting earns no credit.

Rule 1: tasks are kept by *demand*. When a demand finds no place, the whole class sleeps until something
        happens that could help it (`wake`), so that an attempt at placing costs nothing per waiting task.
Rule 2: a task stands in the queue at most once. Queueing it again replaces its ticket, and an entry
        with an old ticket is dropped when it is met.
Rule 3: a task with a delay is not in any class before its time.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from astraflow.dispatch.demand import Demand

__all__ = ["Entry", "ReadyQueue"]

DEFAULT_WEIGHT: Final = 1.0


class Entry:
    """A queued task."""

    __slots__ = ("demand", "priority", "run_id", "task", "tenant", "ticket")

    def __init__(
        self, tenant: str, run_id: str, task: int, demand: Demand, priority: int, ticket: int
    ) -> None:
        self.tenant = tenant
        self.run_id = run_id
        self.task = task
        self.demand = demand
        self.priority = priority
        self.ticket = ticket


class _Flow:
    """The virtual time of a tenant or a run, and how many of its tasks are waiting."""

    __slots__ = ("tag", "waiting", "weight")

    def __init__(self, weight: float) -> None:
        self.tag = 0.0
        self.weight = weight
        self.waiting = 0


class _Class:
    """The waiting tasks of one demand: runs by tag, tasks of a run by priority and age."""

    __slots__ = ("demand", "runs", "sleeping", "tasks")

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.runs: list[tuple[float, int, str]] = []  # (tag when pushed, ticket, run)
        self.tasks: dict[str, list[tuple[int, int, Entry]]] = {}
        self.sleeping: Hashable | None = None


class ReadyQueue:
    """All tasks that may be placed, or may be after a delay."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Flow] = {}
        self._runs: dict[str, _Flow] = {}
        self._classes: dict[Demand, _Class] = {}
        self._awake: dict[Demand, _Class] = {}
        self._asleep: dict[Hashable, dict[Demand, _Class]] = {}
        self._delayed: list[tuple[float, int, Entry]] = []
        self._tickets: dict[tuple[str, int], int] = {}
        self._next_ticket = 0
        self._now_tenant = 0.0
        self._now_run: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def push(
        self,
        tenant: str,
        run_id: str,
        task: int,
        demand: Demand,
        *,
        priority: int = 0,
        ready_at: float | None = None,
    ) -> None:
        """Queue a task, from `ready_at` on if given. Replaces an earlier entry of the task."""
        self._next_ticket += 1
        ticket = self._next_ticket
        self._tickets[run_id, task] = ticket
        entry = Entry(tenant, run_id, task, demand, priority, ticket)
        if ready_at is None:
            self._admit(entry)
        else:
            heappush(self._delayed, (ready_at, ticket, entry))

    def forget(self, run_id: str, task: int) -> None:
        """The task needs no place any more."""
        self._tickets.pop((run_id, task), None)

    def advance(self, now: float) -> None:
        """Admit the tasks whose delay has passed."""
        while self._delayed and self._delayed[0][0] <= now:
            entry = heappop(self._delayed)[2]
            if self._is_live(entry):
                self._admit(entry)

    def deadline(self) -> float | None:
        """When `advance` has something to do."""
        while self._delayed and not self._is_live(self._delayed[0][2]):
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def set_weight(self, tenant: str, weight: float) -> None:
        """A tenant with twice the weight gets twice the share while both have work waiting."""
        assert weight > 0
        self._tenant(tenant).weight = weight

    def next(self) -> Entry | None:
        """The entry to place now. Then call `served`, `sleep` (its demand has no place) or `drop`."""
        best: tuple[float, float, int] | None = None
        chosen: _Class | None = None
        for one in list(self._awake.values()):
            head = self._head(one)
            if head is None:
                self._discard(one)
                continue
            key = (self._tenants[one.demand.tenant].tag, head[0], head[1])
            if best is None or key < best:
                best, chosen = key, one
        if chosen is None:
            return None
        return chosen.tasks[chosen.runs[0][2]][0][2]

    def served(self, entry: Entry) -> None:
        """The entry got a place: take it out and charge its flows."""
        tenant = self._tenants[entry.tenant]
        run = self._runs[entry.run_id]
        self._now_tenant = max(self._now_tenant, tenant.tag)
        self._now_run[entry.tenant] = max(self._now_run.get(entry.tenant, 0.0), run.tag)
        tenant.tag += 1.0 / tenant.weight
        run.tag += 1.0 / run.weight
        self.drop(entry)

    def drop(self, entry: Entry) -> None:
        """The entry needs no place: take it out, uncharged."""
        if self._is_live(entry):
            del self._tickets[entry.run_id, entry.task]
        one = self._classes[entry.demand]
        tasks = one.tasks[entry.run_id]
        assert tasks[0][2] is entry, "only the entry that `next` gave may be taken out"
        heappop(tasks)
        self._left(entry)
        if not tasks:
            del one.tasks[entry.run_id]
            heappop(one.runs)

    def sleep(self, entry: Entry, until: Hashable) -> None:
        """No task of this demand has a place until `wake(until)`."""
        one = self._classes[entry.demand]
        self._awake.pop(entry.demand, None)
        one.sleeping = until
        self._asleep.setdefault(until, {})[entry.demand] = one

    def wake(self, key: Hashable) -> None:
        """Something happened that may give the demands that sleep on `key` a place."""
        classes = self._asleep.pop(key, None)
        if classes is None:
            return
        for demand, one in classes.items():
            one.sleeping = None
            self._awake[demand] = one

    @property
    def has_sleepers(self) -> bool:
        """Whether some demand has no place."""
        return bool(self._asleep)

    def sleepers(self) -> list[Entry]:
        """The first waiting task of each run in each class that has no place: those that should say so."""
        found: list[Entry] = []
        for classes in self._asleep.values():
            for one in classes.values():
                for tasks in one.tasks.values():
                    self._drop_dead(tasks)
                    if self._is_live(tasks[0][2]):
                        found.append(tasks[0][2])
        return found

    def _drop_dead(self, tasks: list[tuple[int, int, Entry]]) -> None:
        """Let a task that still waits come first. The last one stays: with it the run would have to leave its class."""
        while len(tasks) > 1 and not self._is_live(tasks[0][2]):
            self._left(heappop(tasks)[2])

    def demands(self) -> list[Demand]:
        """The demands that somebody may wait with."""
        return list(self._classes)

    def waiting_with(self, demand: Demand) -> list[Entry]:
        """All waiting tasks of one demand, oldest first."""
        one = self._classes.get(demand)
        if one is None:
            return []
        entries = [entry for tasks in one.tasks.values() for _, _, entry in tasks]
        return sorted(filter(self._is_live, entries), key=lambda entry: entry.ticket)

    def _admit(self, entry: Entry) -> None:
        tenant = self._tenant(entry.tenant)
        run = self._runs.get(entry.run_id)
        if run is None:
            run = self._runs[entry.run_id] = _Flow(DEFAULT_WEIGHT)
        if tenant.waiting == 0:
            tenant.tag = max(tenant.tag, self._now_tenant)
        if run.waiting == 0:
            run.tag = max(run.tag, self._now_run.get(entry.tenant, 0.0))
        tenant.waiting += 1
        run.waiting += 1
        one = self._classes.get(entry.demand)
        if one is None:
            one = self._classes[entry.demand] = _Class(entry.demand)
            self._awake[entry.demand] = one
        tasks = one.tasks.get(entry.run_id)
        if tasks is None:
            tasks = one.tasks[entry.run_id] = []
            heappush(one.runs, (run.tag, entry.ticket, entry.run_id))
        heappush(tasks, (-entry.priority, entry.ticket, entry))

    def _head(self, one: _Class) -> tuple[float, int] | None:
        """The tag and age of the next entry of a class; drops dead entries and corrects old tags."""
        while one.runs:
            tag, ticket, run_id = one.runs[0]
            tasks = one.tasks[run_id]
            while tasks and not self._is_live(tasks[0][2]):
                self._left(heappop(tasks)[2])
            if not tasks:
                del one.tasks[run_id]
                heappop(one.runs)
                continue
            run = self._runs[run_id]
            if run.tag != tag:  # it was served through another class since
                heapreplace(one.runs, (run.tag, ticket, run_id))
                continue
            return tag, ticket
        return None

    def _is_live(self, entry: Entry) -> bool:
        return self._tickets.get((entry.run_id, entry.task)) == entry.ticket

    def _left(self, entry: Entry) -> None:
        self._tenants[entry.tenant].waiting -= 1
        run = self._runs[entry.run_id]
        run.waiting -= 1
        if run.waiting == 0:
            # Its tag is not worth remembering: coming back it starts at the present time anyway.
            del self._runs[entry.run_id]

    def _discard(self, one: _Class) -> None:
        del self._awake[one.demand]
        del self._classes[one.demand]

    def _tenant(self, tenant: str) -> _Flow:
        flow = self._tenants.get(tenant)
        if flow is None:
            flow = self._tenants[tenant] = _Flow(DEFAULT_WEIGHT)
        return flow

    def check(self) -> None:
        """Assert that counts and indexes agree."""
        waiting: dict[str, int] = {}
        for demand, one in self._classes.items():
            assert (demand in self._awake) == (one.sleeping is None)
            assert {run for _, _, run in one.runs} == set(one.tasks)
            for run_id, tasks in one.tasks.items():
                waiting[run_id] = waiting.get(run_id, 0) + len(tasks)
        assert waiting == {run: flow.waiting for run, flow in self._runs.items()}
        heap = list(self._delayed)
        heapify(heap)
        assert heap[:1] == self._delayed[:1]
