"""Transitions that no fact is about: a task becomes ready, or waits again, because of what happened to others.

Rule: every such transition is a row of DERIVED, and `derive` alone carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from astraflow.core.errors import INTERNAL, Bug
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import (
    CANCELLED,
    PENDING,
    READY,
    Backoff,
    Lost,
    Pending,
    Ready,
    State,
    Succeeded,
)


class InvalidTransition(Bug):
    """A fact met a state that has no row for it: a bug of ours, told with the last facts of the run."""

    def __init__(self, run: RunRecord, task: int, cause: object) -> None:
        state = run.tasks[task].state
        recent = "\n".join(f"  {one!r}" for one in run.recent)
        super().__init__(
            INTERNAL,
            f"no transition from {state!r} by {cause!r} for task {task} of run {run.run_id}; "
            f"the run's last facts:\n{recent}",
        )


class Upstream(StrEnum):
    """What a fact about other tasks means for a task."""

    SETTLED = "all that it waits for has settled"
    REOPENED = "a task that it waits for runs again"
    TAKEN_BACK = "its outcome is gone with its worker"
    CLOSED = "its item had not begun when its scope was closed"


DERIVED: Final[Mapping[tuple[type[State], Upstream], State]] = {
    (Pending, Upstream.SETTLED): READY,
    (Pending, Upstream.REOPENED): PENDING,
    (Ready, Upstream.REOPENED): PENDING,
    (Backoff, Upstream.REOPENED): PENDING,
    (Lost, Upstream.REOPENED): PENDING,
    (Succeeded, Upstream.TAKEN_BACK): PENDING,
    (Pending, Upstream.CLOSED): CANCELLED,
}


def derive(run: RunRecord, index: int, upstream: Upstream) -> None:
    task = run.tasks[index]
    state = DERIVED.get((type(task.state), upstream))
    if state is None:
        raise InvalidTransition(run, index, upstream)
    task.state = state
    if upstream is Upstream.SETTLED:
        run.ready.append(index)
