"""Compensation: undoing what was done, when a run fails or is cancelled.

Rule 1: it begins when everything else has ended: with a failure that nobody took up, at the deadline of the run
        (`onFailure`), or after a cancel (`onCancel`). A run that succeeds skips its branches.
Rule 2: what succeeded is undone, the last first: one branch after the other, each to its end.
Rule 3: a branch that fails does not keep the others from running. The run ends as it would have without them.
Rule 4: a cancel does not stop a branch: half undone is worse than done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.runs.facts import CompensationBegan, TaskSkipped
from astraflow.core.runs.joins import is_handled

if TYPE_CHECKING:
    from astraflow.core.contract.words import CompensationKind
    from astraflow.core.runs.decision import Decision
    from astraflow.core.runs.run import RunRecord


def compensate(decision: Decision) -> None:
    """Begin to undo, once all that the run itself had to do has ended."""
    run = decision.run
    state = run.compensation
    if state is None or state.kind is not None or state.open == 0 or run.open_tasks > state.open:
        return
    kind = _kind_of(run)
    branches = () if kind is None else tuple(_branches(run, kind))
    if kind is not None and branches:
        decision.record(CompensationBegan(decision.at, kind, branches))
    code = errors.TASK_NOT_NEEDED.code
    for root, members in state.branches.items():
        if root not in branches:
            for task in members:
                if not run.tasks[task].is_terminal:
                    decision.record(TaskSkipped(decision.at, task, code))


def _kind_of(run: RunRecord) -> CompensationKind | None:
    if run.cancel is not None:
        return "failure" if run.cancel.reason == "deadline" else "cancel"
    is_failed = any(not is_handled(run, task) for task in run.failed)
    return "failure" if is_failed else None


def _branches(run: RunRecord, kind: CompensationKind) -> list[int]:
    """The branches that are to run, in their order."""
    assert run.compensation is not None
    found = []
    for task in reversed(run.compensation.done):
        node = run.plan.nodes[task]
        root = node.on_failure if kind == "failure" else node.on_cancel
        if root is not None:
            found.append(root)
    return found
