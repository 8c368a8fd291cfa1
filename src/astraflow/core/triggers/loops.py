"""Workflows that start each other: what can be known when one is saved, and the bound while they run.

Rule 1: a run that the end of another run has started is one deeper than that run. One that would be deeper than
        `MAX_DEPTH` is refused, and the history of the trigger says so.
Rule 2: a loop may be meant, as when only failures lead on: it is a warning, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from astraflow.core.triggers.record import TriggerRecord
from astraflow.core.workflow.definition import TriggerSpec, WorkflowTrigger

MAX_DEPTH: Final = 20
"""Longer chains are not known; a loop comes here within minutes."""


def find_loop(
    workflow_id: str, source: str, specs: Iterable[TriggerSpec], known: Iterable[TriggerRecord]
) -> list[str] | None:
    """The workflows from this one back to itself, if its end leads to `source`, which starts it. `specs`: its own
    triggers; `known`: those that are stored."""
    starts: dict[str, list[str]] = {}
    for record in known:
        spec = record.spec
        is_counted = record.state == "enabled" and record.workflow_id != workflow_id
        if isinstance(spec, WorkflowTrigger) and is_counted:
            starts.setdefault(spec.workflow_id, []).append(record.workflow_id)
    for spec in specs:
        if isinstance(spec, WorkflowTrigger) and not spec.disabled:
            starts.setdefault(spec.workflow_id, []).append(workflow_id)
    paths: dict[str, list[str]] = {workflow_id: [workflow_id]}
    waiting = [workflow_id]
    while waiting:
        here = waiting.pop(0)
        if here == source:
            return [*paths[here], workflow_id]
        for after in starts.get(here, ()):
            if after not in paths:
                paths[after] = [*paths[here], after]
                waiting.append(after)
    return None
