"""The runs that are active, and the calls that are open in them."""

from __future__ import annotations

from collections.abc import Iterator

from astraflow.core.ids import RunId, TaskId
from astraflow.core.runs.run import RunRecord


def split_task_id(task_id: TaskId) -> tuple[RunId, int] | None:
    """The run and the place of a task, or None if it is not one of our ids."""
    run_id, _, number = task_id.rpartition(".")
    if not run_id or not number.isascii() or not number.isdecimal() or len(number) > 9:
        return None
    return RunId(run_id), int(number)


class ActiveRuns:
    """By run id. `tasks` counts the tasks of all of them, calls left out."""

    def __init__(self) -> None:
        self._runs: dict[RunId, RunRecord] = {}
        self._calls: dict[TaskId, tuple[RunId, int]] = {}  # the ids of calls → run, task
        self._of_tenant: dict[str, tuple[int, int]] = {}
        self._sizes: dict[RunId, int] = {}  # the tasks of each run that are counted
        self.tasks = 0

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[RunRecord]:
        return iter(self._runs.values())

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._runs

    def __getitem__(self, run_id: RunId) -> RunRecord:
        return self._runs[run_id]

    def get(self, run_id: RunId) -> RunRecord | None:
        return self._runs.get(run_id)

    def of_tenant(self, tenant: str) -> tuple[int, int]:
        """How many runs a tenant has, and how many tasks they have."""
        return self._of_tenant.get(tenant, (0, 0))

    def add(self, run: RunRecord) -> None:
        self._runs[run.run_id] = run
        runs, tasks = self.of_tenant(run.tenant)
        self._of_tenant[run.tenant] = (runs + 1, tasks)
        self._sizes[run.run_id] = 0
        self.count_tasks(run)

    def remove(self, run: RunRecord) -> None:
        del self._runs[run.run_id]
        count = self._sizes.pop(run.run_id)
        self.tasks -= count
        runs, tasks = self._of_tenant.pop(run.tenant)
        if runs > 1:
            self._of_tenant[run.tenant] = (runs - 1, tasks - count)
        for task in run.tasks:
            if task.call is not None:
                del self._calls[task.call.call_id]

    def count_tasks(self, run: RunRecord) -> None:
        """Count the tasks of a run, those too that were added since."""
        more = len(run.tasks) - len(run.calls) - self._sizes[run.run_id]
        self._sizes[run.run_id] += more
        self.tasks += more
        runs, tasks = self._of_tenant[run.tenant]
        self._of_tenant[run.tenant] = (runs, tasks + more)

    def add_call(self, call_id: TaskId, run: RunRecord, task: int) -> None:
        self._calls[call_id] = (run.run_id, task)

    def find_call(self, call_id: TaskId) -> tuple[RunRecord, int] | None:
        place = self._calls.get(call_id)
        return None if place is None else (self._runs[place[0]], place[1])

    @property
    def calls(self) -> list[TaskId]:
        """The ids of the calls of active runs."""
        return list(self._calls)

    def find_waiting(self, run_id: RunId, task: int) -> RunRecord | None:
        """The run of a task that was queued, unless what became of another ended the wait: one item that fails ends
        its map, and one resource is made again for all that wait for it."""
        run = self._runs.get(run_id)
        return run if run is not None and run.tasks[task].is_waiting else None

    def find_task(self, tenant: str, task_id: TaskId) -> tuple[RunRecord, int] | None:
        """An active task of this tenant. Another tenant's looks the same as none (P15)."""
        place = self._calls.get(task_id) or split_task_id(task_id)
        run = self._runs.get(place[0]) if place is not None else None
        if run is None or place is None or run.tenant != tenant or place[1] >= len(run.tasks):
            return None
        return run, place[1]
