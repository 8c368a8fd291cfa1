"""Runs: what is true. Facts, the one transition table, `decide` and `fold`, and what readers see."""

from __future__ import annotations

from astraflow.core.runs.accept import accept
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.derived import InvalidTransition
from astraflow.core.runs.run import RunRecord, Task
from astraflow.core.runs.transitions import fold

__all__ = [
    "Decision",
    "InvalidTransition",
    "RunRecord",
    "Task",
    "accept",
    "decide",
    "fold",
]
