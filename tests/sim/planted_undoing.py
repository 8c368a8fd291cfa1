"""Planted bugs of branches that undo."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from astraflow.core.runs import added_tasks, compensation
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.states import TERMINAL

__all__ = ["undoforward", "undohalf", "undosooner"]


def undoforward() -> AbstractContextManager[Any]:
    """What was done first is undone first."""
    branches = compensation._branches

    def broken(run: Any, kind: Any) -> list[int]:
        return branches(run, kind)[::-1]

    return patch.object(compensation, "_branches", broken)


def undosooner() -> AbstractContextManager[Any]:
    """A branch begins when the first task of the one before has ended."""
    note_end = added_tasks.note_end

    def broken(run: Any, state: Any, index: int) -> None:
        note_end(run, state, index)
        if index == state.current and state.left:
            added_tasks.begin_branch(run, state)

    return patch("astraflow.core.runs.transitions.note_end", broken)


def undohalf() -> AbstractContextManager[Any]:
    """A cancel stops the branches too."""

    def broken(run: RunRecord, task: int) -> bool:
        return run.cancel is not None and type(run.tasks[task].state) not in TERMINAL

    return patch.object(RunRecord, "is_cancelled_at", broken)
