"""Values that the scheduler itself stores or reads: what maps have collected, and the lists that maps go over."""

from __future__ import annotations

import msgspec

from astraflow.core import errors
from astraflow.core.engine.commands import NoteList, NoteValue
from astraflow.core.engine.operations import active_run
from astraflow.core.engine.resources import lose_task
from astraflow.core.engine.view import View
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.fleet.resources import ResourceRecord, ResourceRegistered
from astraflow.core.ids import SCHEDULER_ID
from astraflow.core.runs.commands import Collect, Fail, TakeList
from astraflow.core.runs.scope_opening import awaited_list


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


def note_list(view: View, command: NoteList) -> None:
    """The list of a map has been read, or cannot be. Raises: NotFound, if the run has ended meanwhile."""
    run = active_run(view, command.tenant, command.run_id)
    task, failure = command.task, command.failure
    if awaited_list(run, task) != command.resource_id:
        view.count("list of a map is not waited for")
    elif failure is None:
        view.decide(run, TakeList(task, command.resource_id, msgspec.Raw(command.items)))
    elif failure.code == errors.RESOURCE_LOST.code:
        lose_task(view, run, task, command.resource_id, failure.message)
    else:
        view.decide(run, Fail(task, failure))
