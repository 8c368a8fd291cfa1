"""Results against the schema of their node type, as `result_schemas` of the engine's settings says.

A result that does not fit is still what the node returned: by default it counts, and a line in the output of the node
says what does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.runs.commands import Progress
from astraflow.core.runs.facts import Chunk, TaskFailure
from astraflow.core.runs.value_checks import result_violations, told

if TYPE_CHECKING:
    from astraflow.core.engine.view import View
    from astraflow.core.runs.run import RunRecord

CHANNEL: Final = "schema"
"""Where the lines are: a channel that no node writes to."""
_WARNING: Final = msgspec.Raw(b'{"level":"warning"}')


def check_result(
    view: View, run: RunRecord, task: int, attempt: int, worker: str, result: msgspec.Raw
) -> TaskFailure | None:
    """The failure that a successful result is by its schema, if it is one."""
    policy = view.settings.result_schemas
    if policy == "off" or run.tasks[task].node.results_schema is None:
        return None
    found = result_violations(run, task, result)
    if not found:
        return None
    view.count("result does not fit its schema")
    if policy == "fail":
        message = f"the result does not fit the schema of the node: {told(found)}"
        return TaskFailure(errors.RESULT_SCHEMA.code, "DATA_QUALITY", message)
    lines = tuple(
        [
            Chunk(CHANNEL, place, f"{one.pointer or '/'}: {one.message}", metadata=_WARNING)
            for place, one in enumerate(found)
        ]
    )
    view.decide(run, Progress(task, attempt, worker, chunks=lines))
    return None
