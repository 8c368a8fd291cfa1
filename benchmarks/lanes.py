"""What a fleet loses when its slots are divided among lanes: simulated, with the real division of slots.

Three policies get the same arrivals: one pool of all slots, a share for each lane that never changes, and workers that
divide their slots by hunger (`core.agent.slots`, told as `core.engine.lanes` tells it). Every message takes its time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from astraflow.core.agent.slots import SlotDivision
from astraflow.core.engine.lanes import LOOK_S, NO_HUNGER, LaneTable, TenantLanes
from astraflow.core.protocol.control import HOME_LANE, Hunger
from benchmarks.figures import Figure

WORKERS: Final = 40
SLOTS: Final = 8
LANES: Final = 4
SKEW: Final = 2.0
TASK_S: Final = 1.0
TASKS_OF_A_RUN: Final = 8
MESSAGE_S: Final = 0.002
HEARTBEAT_S: Final = 5.0
WARM_S, UNTIL_S = 30.0, 230.0
TENANT: Final = "tenant"


class Arrival(msgspec.Struct, frozen=True):
    """A run, all of whose tasks can start at once."""

    at: float
    lane: int
    durations: tuple[float, ...]


class Outcome(msgspec.Struct):
    """What a policy made of the arrivals."""

    waits: list[float] = []
    busy_s: float = 0.0
    changes: int = 0
    most: int = 0
    """Attempts held at once by one worker."""

    @property
    def mean_wait_ms(self) -> float:
        return sum(self.waits) / len(self.waits) * 1000

    @property
    def utilisation(self) -> float:
        return self.busy_s / (WORKERS * SLOTS * (UNTIL_S - WARM_S))


def arrivals(load: float, seed: int) -> list[Arrival]:
    """Runs of all lanes; the first lane has most."""
    rng = Random(seed)
    weights = [1 / (lane + 1) ** SKEW for lane in range(LANES)]
    per_s = load * WORKERS * SLOTS / (TASK_S * TASKS_OF_A_RUN)
    found: list[Arrival] = []
    now = 0.0
    while (now := now + rng.expovariate(per_s)) < UNTIL_S:
        lane = rng.choices(range(LANES), weights)[0]
        count = rng.randint(1, 2 * TASKS_OF_A_RUN - 1)
        durations = tuple(rng.expovariate(1 / TASK_S) for _ in range(count))
        found.append(Arrival(now, lane, durations))
    return found


class Clock:
    """Things to do, in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now + seconds, self._count, call))

    def run(self) -> None:
        while self._due:
            self.now, _, call = heapq.heappop(self._due)
            call()


class Engine:
    """Places the tasks of one lane: each on the worker that has most room."""

    def __init__(self, fleet: Fleet, lane: int, share: int) -> None:
        self.fleet = fleet
        self.lane = lane
        self.slots = [share] * WORKERS
        self.used = [0] * WORKERS
        self.waiting: deque[tuple[int, float, float]] = deque()
        self.tasks_of: dict[int, int] = {}
        self.table = LaneTable()
        self.table.put(TENANT, TenantLanes(lane))
        self.is_looking = False

    def submit(self, run: int, arrival: Arrival) -> None:
        self.tasks_of[run] = len(arrival.durations)
        self.waiting.extend((run, arrival.at, one) for one in arrival.durations)
        self.place()

    def place(self) -> None:
        while self.waiting:
            room = [(self.slots[one] - self.used[one], -one) for one in range(WORKERS)]
            most, worker = max(room)
            if most <= 0:
                break
            run, at, duration = self.waiting.popleft()
            self.tasks_of[run] -= 1
            if not self.tasks_of[run]:
                del self.tasks_of[run]
            self.used[-worker] += 1
            self.fleet.dispatch(self.lane, -worker, at, duration)
        self.look_later()

    def freed(self, worker: int) -> None:
        self.used[worker] -= 1
        self.place()

    def told(self, worker: int, slots: int) -> None:
        self.slots[worker] = slots
        self.place()

    def look_later(self) -> None:
        if self.fleet.divides and not self.is_looking:
            self.is_looking = True
            self.fleet.clock.after(LOOK_S, self.look)

    def look(self) -> None:
        self.is_looking = False
        for worker in range(WORKERS):
            is_full = self.used[worker] >= self.slots[worker]
            hunger = Hunger(len(self.waiting), len(self.tasks_of))
            hunger = hunger if is_full and self.waiting else NO_HUNGER
            if self.table.is_news(TENANT, str(worker), hunger):
                self.fleet.tell_hunger(self.lane, worker, hunger)

    def heartbeat(self, worker: int) -> None:
        self.table.tell_again(TENANT, str(worker))
        self.look_later()


class Fleet:
    """All workers, and the engines of the lanes."""

    def __init__(self, lanes: int, *, divides: bool) -> None:
        self.clock = Clock()
        self.divides = divides
        self.outcome = Outcome()
        self.engines = [Engine(self, lane, SLOTS // lanes) for lane in range(lanes)]
        self.held = [[0] * lanes for _ in range(WORKERS)]
        self.workers = [self._worker(number) for number in range(WORKERS)] if divides else []

    def _worker(self, number: int) -> SlotDivision:
        slots = SlotDivision(SLOTS)
        self.engines[HOME_LANE].slots[number] = SLOTS
        for lane in range(1, len(self.engines)):
            slots.add(lane)
        for lane in range(1, len(self.engines)):
            self.engines[lane].slots[number] = slots.registered(lane)
            slots.opened(lane, is_resumed=False)
        self._tell_slots(number, slots)
        for lane in range(len(self.engines)):
            first = HEARTBEAT_S * (number + lane / LANES) / WORKERS
            self.clock.after(first, lambda lane=lane: self._heartbeat(number, lane))  # type: ignore[misc]
        return slots

    def _heartbeat(self, number: int, lane: int) -> None:
        self.engines[lane].heartbeat(number)
        if self.clock.now < UNTIL_S or any(engine.waiting for engine in self.engines):
            self.clock.after(HEARTBEAT_S, lambda: self._heartbeat(number, lane))

    def dispatch(self, lane: int, worker: int, at: float, duration: float) -> None:
        self.clock.after(MESSAGE_S, lambda: self._begin(lane, worker, at, duration))

    def _begin(self, lane: int, worker: int, at: float, duration: float) -> None:
        now = self.clock.now
        if at >= WARM_S:
            self.outcome.waits.append(now - at)
        self.outcome.busy_s += max(0.0, min(now + duration, UNTIL_S) - max(now, WARM_S))
        self._hold(lane, worker, 1)
        self.outcome.most = max(self.outcome.most, sum(self.held[worker]))
        self.clock.after(duration, lambda: self._end(lane, worker))

    def _end(self, lane: int, worker: int) -> None:
        self.clock.after(MESSAGE_S, lambda: self.engines[lane].freed(worker))
        self._hold(lane, worker, -1)

    def _hold(self, lane: int, worker: int, more: int) -> None:
        self.held[worker][lane] += more
        if self.divides:
            self.workers[worker].held(lane, self.held[worker][lane])
            self._tell_slots(worker, self.workers[worker])

    def tell_hunger(self, lane: int, worker: int, hunger: Hunger) -> None:
        def hear() -> None:
            self.workers[worker].hungry(lane, hunger.tasks, hunger.runs)
            self._tell_slots(worker, self.workers[worker])

        self.clock.after(MESSAGE_S, hear)

    def _tell_slots(self, worker: int, slots: SlotDivision) -> None:
        for change in slots.take_changes():
            self.outcome.changes += 1
            self.clock.after(
                MESSAGE_S,
                lambda change=change: self._take_slots(worker, change.lane, change.slots),  # type: ignore[misc]
            )

    def _take_slots(self, worker: int, lane: int, count: int) -> None:
        self.engines[lane].told(worker, count)
        self.clock.after(MESSAGE_S, lambda: self._answer(worker, lane))

    def _answer(self, worker: int, lane: int) -> None:
        self.workers[worker].answered(lane)
        self._tell_slots(worker, self.workers[worker])

    def run(self, runs: list[Arrival]) -> Outcome:
        for number, one in enumerate(runs):
            engine = self.engines[one.lane % len(self.engines)]
            self.clock.after(one.at, lambda e=engine, n=number, a=one: e.submit(n, a))  # type: ignore[misc]
        self.clock.run()
        return self.outcome


def figures() -> list[Figure]:
    found: list[Figure] = []
    for load in (0.8, 0.95):
        runs = arrivals(load, seed=1)
        pool = Fleet(1, divides=False).run(runs)
        static = Fleet(LANES, divides=False).run(runs)
        divided = Fleet(LANES, divides=True).run(runs)
        assert divided.most <= SLOTS, "a worker holds more than it has slots"
        share = divided.utilisation / pool.utilisation
        found += [
            Figure(f"load {load}: one pool: mean wait", pool.mean_wait_ms, "ms"),
            Figure(f"load {load}: fixed shares: mean wait", static.mean_wait_ms, "ms"),
            Figure(f"load {load}: divided by hunger: mean wait", divided.mean_wait_ms, "ms"),
            Figure("of one pool", divided.mean_wait_ms / pool.mean_wait_ms, "times"),
            Figure(f"load {load}: one pool: utilisation", pool.utilisation, ""),
            Figure(f"load {load}: fixed shares: utilisation", static.utilisation, ""),
            Figure(f"load {load}: divided by hunger: utilisation", divided.utilisation, ""),
            Figure("of one pool", share, "times", 0.95, at_least=True),
            Figure(f"load {load}: changes of slots", divided.changes / UNTIL_S, "/s"),
        ]
    return found
