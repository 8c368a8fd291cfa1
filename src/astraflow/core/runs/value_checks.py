"""Values of a run against the schemas of its plan: what a task is given, and what it returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.expressions.stored_value import VALUE_MARK
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.workflow.value_schemas import Violation, find_schema

if TYPE_CHECKING:
    from astraflow.core.runs.run import RunRecord


def input_failure(run: RunRecord, task: int, parameters: bytes) -> TaskFailure | None:
    """Why a task cannot run with these parameters. Only a node that is given something has a schema in its plan."""
    place = run.tasks[task].node.parameters_schema
    if place is None:
        return None
    found = _violations(run, task, place, parameters)
    if not found:
        return None
    message = f"the parameters do not fit the schema of the node: {told(found)}"
    return TaskFailure(errors.TASK_INPUT_INVALID.code, "CONFIGURATION", message, retryable=False)


def result_violations(run: RunRecord, task: int, result: msgspec.Raw) -> list[Violation]:
    """What does not fit in a result."""
    place = run.tasks[task].node.results_schema
    return [] if place is None else _violations(run, task, place, bytes(result))


def told(found: list[Violation]) -> str:
    """Violations in one sentence: the first one, and how many more there are."""
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{first.pointer or '/'}: {first.message}{more}"


def _violations(run: RunRecord, task: int, place: int, text: bytes) -> list[Violation]:
    if VALUE_MARK in text:
        return []  # what is stored by reference is not here to be checked
    schema = find_schema(run.plan_of(run.host_of(task)).schemas[place])
    return [] if schema is None else schema.violations(msgspec.json.decode(text))
