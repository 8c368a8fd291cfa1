"""Planted bugs of conditions and of failures that an edge takes up."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from astraflow.core.runs import conditions, decision, joins
from astraflow.core.runs.facts import EdgesDecided

__all__ = ["deadedges", "handledall", "handlednone", "lostdecision", "nowhen"]


def deadedges() -> AbstractContextManager[Any]:
    """Every edge leads on, whatever its condition says."""
    return patch.object(conditions, "_holds", lambda run, source, edge: True)


def nowhen() -> AbstractContextManager[Any]:
    """The condition of a node is not looked at."""
    return patch.object(conditions, "holds", lambda run, task, condition: True)


def lostdecision() -> AbstractContextManager[Any]:
    """What was decided about edges is not kept with the run: a dead edge writes its value."""

    def broken(run: Any, fact: Any) -> None:
        decide_edges(run, fact)
        run.dead_edges.clear()

    decide_edges = joins.take_decision
    return patch.dict("astraflow.core.runs.transitions._OTHERS", {EdgesDecided: broken})


def handledall() -> AbstractContextManager[Any]:
    """A run in which something failed has succeeded."""
    return patch.object(decision, "is_handled", lambda run, task: True)


def handlednone() -> AbstractContextManager[Any]:
    """A run has failed although an edge took the failure up."""
    return patch.object(decision, "is_handled", lambda run, task: False)
