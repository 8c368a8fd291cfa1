"""Values that the scheduler itself has stored: what maps have collected."""

from __future__ import annotations

import msgspec

from astraflow.core.engine.commands import NoteValue
from astraflow.core.engine.operations import active_run
from astraflow.core.engine.view import View
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.fleet.resources import ResourceRecord, ResourceRegistered
from astraflow.core.ids import SCHEDULER_ID
from astraflow.core.runs.commands import Collect


def note_value(view: View, command: NoteValue) -> None:
    """What a map has collected is stored: its result refers to it. Raises: NotFound, if the run has ended meanwhile."""
    run = active_run(view, command.tenant, command.run_id)
    if command.blob is None:
        view.decide(run, Collect(command.task, None, command.problem))
        return
    node_id = run.tasks[command.task].node.node_id
    # By the first task of the body: a map that is made again has another body, and another value.
    resource_id = f"{run.run_id}/{node_id}.{run.scopes[command.task].first}"
    if view.resources.find(run.tenant, resource_id, SCHEDULER_ID) is None:
        record = ResourceRecord(
            tenant=run.tenant,
            worker_id=SCHEDULER_ID,
            resource_id=resource_id,
            type=VALUE_TYPE,
            scope=run.run_id,
            run_id=run.run_id,
            node_id=node_id,
            size_bytes=command.size_bytes,
            created_at=view.at,
            is_artifact=True,
            blob=command.blob,
        )
        key = (run.tenant, view.at, SCHEDULER_ID, resource_id)
        view.record_resource(ResourceRegistered(*key, record))
    ref = {
        "resourceRef": {
            "resourceId": resource_id,
            "workerId": SCHEDULER_ID,
            "type": VALUE_TYPE,
            "sizeBytes": command.size_bytes,
        }
    }
    view.decide(run, Collect(command.task, msgspec.Raw(msgspec.json.encode(ref))))
