"""Accepting a run: a new one, or a re-run of part of an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from astraflow.core.runs.decision import Decision, advance
from astraflow.core.runs.facts import PINNED, ArtifactRef, RunAccepted, TaskReused
from astraflow.core.runs.run import RunRecord
from astraflow.core.workflow.plan import Plan

if TYPE_CHECKING:
    from random import Random

    import msgspec

ReusedResult = tuple["msgspec.Raw", tuple[ArtifactRef, ...]]
ReusedResults = Mapping[int, ReusedResult]
"""Committed results that a re-run keeps, by task."""


def accept(
    plan: Plan, accepted: RunAccepted, rng: Random, kept: ReusedResults | None = None
) -> Decision:
    """Start a run. With `kept`, the tasks named there have results already: from `accepted.rerun_of`, or pinned."""
    run = RunRecord(plan, accepted)
    decision = Decision(run, accepted.at, rng)
    decision.record(accepted)
    for task, (result, artifacts) in sorted((kept or {}).items()):
        source = PINNED if task in accepted.pinned else accepted.rerun_of
        assert source is not None, "what is kept is from a run, or pinned"
        decision.record(TaskReused(accepted.at, task, source, result, artifacts))
    run.ready = [task for task in run.ready if not run.tasks[task].is_terminal]
    advance(decision)
    return decision


def downstream(plan: Plan, tasks: Iterable[int]) -> set[int]:
    """The given tasks and everything that depends on them: what a re-run from there repeats."""
    found = set(tasks)
    pending = sorted(found)
    while pending:
        for child in plan.children[pending.pop()]:
            if child not in found:
                found.add(child)
                pending.append(child)
    return found
