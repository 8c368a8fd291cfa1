"""Timers of the engine: what is to be looked at, and when. A timer that comes too late is harmless:
whoever handles it first finds out whether there is still something to do.

Those of attempts and runs end with them: a timeout of a day is no reason to keep a day's attempts in memory. They are
taken out together, when there are more of them than of all others.
"""

from __future__ import annotations

from abc import abstractmethod
from heapq import heapify, heappop, heappush

import msgspec

from astraflow.core.dispatch.demand import Demand
from astraflow.core.fleet.installs import InstallKey
from astraflow.core.ids import RunId, TaskId


class _Timer(msgspec.Struct, frozen=True):
    """The base of all timers."""


Owner = tuple[str, int]
"""What a timer is about: a task and its attempt; of a run or a call, its id and 0."""


class OwnedTimer(_Timer, frozen=True):
    """The base of those that mean nothing once what they are about has ended."""

    @property
    @abstractmethod
    def owner(self) -> Owner: ...


class AttemptTimer(OwnedTimer, frozen=True):
    """The base of those of attempts."""

    task_id: TaskId
    attempt: int

    @property
    def owner(self) -> Owner:
        return self.task_id, self.attempt


class TimeoutDue(AttemptTimer, frozen=True):
    """An attempt should have been ended by its worker by now."""


class StopDue(AttemptTimer, frozen=True):
    """A stop should have been reported by now."""


class CallDue(OwnedTimer, frozen=True):
    """A call of a middleware should have ended by now, whatever its attempts."""

    task_id: TaskId

    @property
    def owner(self) -> Owner:
        return self.task_id, 0


class ParkedDue(OwnedTimer, frozen=True):
    """A task that is parked should be looked at."""

    tenant: str
    task_id: TaskId

    @property
    def owner(self) -> Owner:
        return self.task_id, 0


class DeadlineDue(OwnedTimer, frozen=True):
    """A run should have ended by now."""

    run_id: RunId

    @property
    def owner(self) -> Owner:
        return self.run_id, 0


class PinDue(_Timer, frozen=True):
    """A lost worker that holds a resource should have come back by now."""

    demand: Demand
    due: float
    """Of the newest watch: one that was set before the worker came back in between does not count."""


class CleanupDue(_Timer, frozen=True):
    """A worker should have let go by now of what an ended run left there."""

    tenant: str
    worker_id: str
    scope: str


class InstallDue(_Timer, frozen=True):
    """An install that failed may be retried."""

    key: InstallKey


class RolloutDue(_Timer, frozen=True):
    """The rollouts that run are to be looked at."""


Timer = (
    TimeoutDue
    | StopDue
    | CallDue
    | ParkedDue
    | DeadlineDue
    | PinDue
    | CleanupDue
    | InstallDue
    | RolloutDue
)


class Timers:
    """A heap of timers; equal times keep the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._owned: dict[Owner, int] = {}  # how many each owner has
        self._dead = 0  # how many are of owners that have ended

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, when: float, timer: Timer) -> None:
        self._count += 1
        heappush(self._heap, (when, self._count, timer))
        if isinstance(timer, OwnedTimer):
            self._owned[timer.owner] = self._owned.get(timer.owner, 0) + 1

    def end(self, name: str, attempt: int = 0) -> None:
        """The attempt of a task is over, or a run is, and so are its timers."""
        self._dead += self._owned.pop((name, attempt), 0)
        if self._dead > len(self._heap) // 2:
            self._heap = [item for item in self._heap if self._is_live(item[2])]
            heapify(self._heap)
            self._dead = 0

    def _is_live(self, timer: Timer) -> bool:
        return not isinstance(timer, OwnedTimer) or timer.owner in self._owned

    def due(self, now: float) -> list[Timer]:
        """Take out what is due, in order."""
        over = []
        while self._heap and self._heap[0][0] <= now:
            timer = heappop(self._heap)[2]
            if not self._is_live(timer):
                self._dead -= 1
                continue
            over.append(timer)
            if isinstance(timer, OwnedTimer):
                left = self._owned.pop(timer.owner) - 1
                if left:
                    self._owned[timer.owner] = left
        return over

    def deadline(self) -> float | None:
        """No timer is due before this time."""
        return self._heap[0][0] if self._heap else None
