"""Runs: what is true. Facts, the one transition table, `decide` and `fold`, and what readers see."""

from __future__ import annotations

from astraflow.runs.accept import accept, unsupported
from astraflow.runs.decisions import Decision, decide
from astraflow.runs.run import Run, Task
from astraflow.runs.transitions import InvalidTransition, fold

__all__ = [
    "Decision",
    "InvalidTransition",
    "Run",
    "Task",
    "accept",
    "decide",
    "fold",
    "unsupported",
]
