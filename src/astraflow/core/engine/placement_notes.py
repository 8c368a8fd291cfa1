"""What placing remembers from one turn to the next. None of it is stored."""

from __future__ import annotations

from astraflow.core.dispatch.demand import Demand
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.run import RunRecord


class PlacementNotes:
    """Bindings (the worker that a run last used for a package), watched pins, and what is left to do."""

    def __init__(self) -> None:
        self.has_more = False  # placing ended at its budget
        self.unplaceable: list[
            tuple[RunRecord, int, TaskFailure]
        ] = []  # to be failed, right after the decision
        self.unpinned: set[str] = set()  # runs with a task that was queued for the sake of a copy
        self._bindings: dict[str, dict[str, str]] = {}
        self._pins: dict[Demand, float] = {}
        self._looked: dict[Demand, None] = {}
        self._short_since: dict[Demand, float] = {}
        self._holds: dict[Demand, WorkerEntry] = {}
        self._first_since: dict[tuple[RunId, int], float] = {}

    # -- bindings: a preference only -----------------------------------------------------------

    def bind(self, run_id: RunId, package: str, worker_id: str) -> None:
        self._bindings.setdefault(run_id, {})[package] = worker_id

    def binding(self, run_id: RunId, package: str) -> str | None:
        return self._bindings.get(run_id, {}).get(package)

    def unbind_run(self, run_id: RunId) -> None:
        self._bindings.pop(run_id, None)

    def forget_run(self, run_id: RunId) -> None:
        self.unbind_run(run_id)
        self.unpinned.discard(run_id)

    def unbind_worker(self, runs: list[str], worker_id: str) -> None:
        """Drop the bindings of these runs to the worker."""
        for run_id in runs:
            bound = self._bindings.get(run_id, {})
            for package in [one for one, holder in bound.items() if holder == worker_id]:
                del bound[package]
            if not bound:
                self._bindings.pop(run_id, None)

    @property
    def bindings(self) -> dict[str, dict[str, str]]:
        return self._bindings

    # -- pins: tasks that wait for the resource of a lost worker --------------------------------

    def watch_pin(self, demand: Demand, until: float) -> None:
        self._pins[demand] = until

    def pin_until(self, demand: Demand) -> float | None:
        return self._pins.get(demand)

    def forget_pin(self, demand: Demand) -> None:
        self._pins.pop(demand, None)

    # -- demands for which an install was considered --------------------------------------------

    def is_new(self, demand: Demand) -> bool:
        """Whether no install was considered for the demand since `look_again`."""
        if demand in self._looked:
            return False
        self._looked[demand] = None
        return True

    def look_again(self) -> None:
        self._looked.clear()

    # -- tasks that stay first in their run ---------------------------------------------------------

    def lasting(
        self, first: list[tuple[RunId, int]], now: float, after_s: float
    ) -> list[tuple[RunId, int]]:
        """Those of the tasks that are first now which have been so in every round for so long."""
        since = self._first_since
        self._first_since = {one: since.get(one, now) for one in first}
        return [one for one, began in self._first_since.items() if now - began >= after_s]

    # -- workers that are held for large requests ---------------------------------------------------

    def short_since(self, demands: list[Demand], now: float, after_s: float) -> list[Demand]:
        """Those of the demands without room that have had none for so long, and for which no worker is held."""
        since = self._short_since
        self._short_since = {one: since.get(one, now) for one in demands}
        return [
            one
            for one, began in self._short_since.items()
            if now - began >= after_s and one not in self._holds
        ]

    def hold(self, demand: Demand, worker: WorkerEntry) -> None:
        self._holds[demand] = worker
        worker.held_for = demand

    def release(self, demand: Demand) -> None:
        """The demand has got a place, or is gone: the next one waits for as long again."""
        self._short_since.pop(demand, None)
        worker = self._holds.pop(demand, None)
        if worker is not None:
            worker.held_for = None

    def holds(self) -> list[tuple[Demand, WorkerEntry]]:
        return list(self._holds.items())
