"""What the ready queue costs: a bounded number of looks for each task, however many wait, and however they differ."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from astraflow.core.dispatch.demand import Demand
from astraflow.core.dispatch.flows import Entry
from astraflow.core.dispatch.queue import ReadyQueue
from astraflow.core.ids import RunId

SLOTS = 64
LOOKS = 80
"""For a task that is placed: a few at each of the four heaps that it is in, each time that one is met."""


def wanted(**fields: Any) -> Demand:
    return Demand("acme", "pkg", "1.0", "t.node", **fields)


def push(queue: ReadyQueue, kind: str, number: int) -> None:
    run_id, demand, lock = "run1", wanted(), None
    if kind == "keys":
        lock = (f"key-{number}", None)
    elif kind == "keys that two runs share":
        run_id, lock = f"run{number % 2}", (f"key-{number // 2}", None)
    elif kind == "one key":
        lock = ("key", None)
    elif kind == "one key of many runs":
        run_id, lock = f"run{number}", ("key", None)
    elif kind == "runs":
        run_id = f"run{number}"
    elif kind == "pins":
        demand = wanted(pin=f"w{number}")
    elif kind == "sticky":
        demand = wanted(sticky=f"w{number % 7}")
    elif kind == "labels":
        demand = wanted(labels=(("host", f"h{number}"),))
    queue.push(RunId(run_id), number, demand, lock=lock)


class Workers:
    """Slots and keys, as placing sees them: every task of a pin or of labels has a worker of its own."""

    def __init__(self, queue: ReadyQueue) -> None:
        self.queue = queue
        self.running: deque[Entry] = deque()
        self.taken: set[str] = set()
        self.placed = 0

    def place(self) -> None:
        while (entry := self.queue.next()) is not None:
            has_own = entry.demand.pin is not None or bool(entry.demand.labels)
            if entry.lock is not None and entry.lock[0] in self.taken:
                self.queue.lock(entry, ("key", entry.lock[0]))
            elif len(self.running) >= SLOTS and not has_own:
                self.queue.sleep(entry, "slot")
            else:
                self.queue.served(entry)
                self.placed += 1
                self.running.append(entry)
                if entry.lock is not None:
                    self.taken.add(entry.lock[0])

    def end_one(self) -> None:
        entry = self.running.popleft()
        if entry.lock is not None:
            self.taken.discard(entry.lock[0])
            self.queue.wake(("key", entry.lock[0]))
        self.queue.wake("slot")


KINDS = (
    "alike",
    "keys",
    "keys that two runs share",
    "one key",
    "one key of many runs",
    "runs",
    "pins",
    "sticky",
    "labels",
)


@pytest.mark.parametrize("count", [1_000, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_costs_the_same_however_many_wait(kind: str, count: int) -> None:
    queue = ReadyQueue()
    for number in range(count):
        push(queue, kind, number)
    workers = Workers(queue)
    while len(queue):
        workers.place()
        workers.end_one()
    assert workers.placed == count
    assert queue.looks <= LOOKS * count, f"{queue.looks / count:.1f} looks for a task"


def test_a_demand_that_is_woken_in_vain_costs_a_bounded_number_of_looks() -> None:
    queue = ReadyQueue()
    for number in range(1_000):
        push(queue, "keys that two runs share", number)
    entry = queue.next()
    assert entry is not None
    queue.sleep(entry, "slot")
    assert queue.next() is None
    before = queue.looks
    for _ in range(1_000):
        queue.wake("slot")
        entry = queue.next()
        assert entry is not None
        queue.sleep(entry, "slot")
        assert queue.next() is None
    assert queue.looks - before <= LOOKS * 1_000
    watched = sum(len(run.watch) for run in queue._runs.values())
    assert watched <= 2, "what watches a demand is kept once"
    queue.check()
