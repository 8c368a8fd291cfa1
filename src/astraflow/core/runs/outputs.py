"""The declared outputs of a run, read from the committed results of its nodes.

Nothing is stored for them: the results are, and the plan says what to read. Every declared output is there once the run
has succeeded; it is null where its node did not succeed, or where the result has no such value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from astraflow.core.runs.states import Succeeded
from astraflow.core.workflow.bindings import MISSING
from astraflow.core.workflow.plan import read_port

if TYPE_CHECKING:
    from astraflow.core.runs.run import RunRecord
    from astraflow.core.workflow.plan import PlanOutput

NULL: Final = msgspec.Raw(b"null")
MAX_OUTPUTS_BYTES: Final = 4 * 1024 * 1024
"""Of all outputs of a run as they are shown; a larger one is null, and its node has it."""


class Outputs(msgspec.Struct, frozen=True):
    """The outputs of a run by name, and whether some are too large to be shown."""

    values: dict[str, msgspec.Raw]
    is_truncated: bool


def outputs_of(run: RunRecord) -> Outputs | None:
    """None for a run that has not succeeded, or whose workflow declares none."""
    if run.status != "succeeded" or not run.plan.outputs:
        return None
    decoded: dict[int, Any] = {}
    values: dict[str, msgspec.Raw] = {}
    left, is_truncated = MAX_OUTPUTS_BYTES, False
    for one in run.plan.outputs:
        value = _value(run, one, decoded)
        left -= len(value)
        if left < 0:
            value, left, is_truncated = NULL, left + len(value), True
        values[one.name] = value
    return Outputs(values, is_truncated)


def _value(run: RunRecord, output: PlanOutput, decoded: dict[int, Any]) -> msgspec.Raw:
    task = run.tasks[output.source]
    if type(task.state) is not Succeeded or task.result is None:
        return NULL
    if output.source not in decoded:
        decoded[output.source] = msgspec.json.decode(task.result)
    value = read_port(output, decoded[output.source])
    return NULL if value is MISSING else msgspec.Raw(msgspec.json.encode(value))
