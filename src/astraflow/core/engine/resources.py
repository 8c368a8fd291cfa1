"""Resources that workers hold: what workers report about them, and the commands to workers.

Rule 1: the worker is the one who knows. What it says of a resource is committed before it is acknowledged, and what it
        no longer has is lost to every task that waits for it, at once.
Rule 2: the end of a run ends what only it could use: memory and files that no result lists. Every worker that has some
        is told so; one that is away is told when it is back (PROTOCOL §5.7), because what it still holds is stored.
Rule 3: a task whose resource is gone fails by name, or has it made again if its node says so; it is never sent to
        another worker as if nothing had happened (P12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.dispatch.demand import Demand, refs_of
from astraflow.core.dispatch.flows import Entry
from astraflow.core.engine.commands import CloseResource, ExportResource, ExtendResource, NoteCopy
from astraflow.core.engine.effects import CopyFailed, SendExport
from astraflow.core.engine.view import View
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.fleet.resources import (
    ResourceClosed,
    ResourceCopied,
    ResourceGone,
    ResourceKey,
    ResourceListed,
    ResourceRecord,
    ResourceRegistered,
    ResourceUpdated,
)
from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import SessionId
from astraflow.core.protocol import business
from astraflow.core.runs.commands import Fail, Rebuild
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.run import RunRecord
from astraflow.core.timestamps import iso, parse_iso
from astraflow.core.workflow.plan import ResourceRefValue

UNHEARD: Final = 0
"""The incarnation of a worker that has never registered here: a scheduler that has just started is no reason to believe
that the worker has, too."""


# -- what workers tell ------------------------------------------------------------------------


def on_resource_event(
    view: View, tenant: str, worker_id: str, event: business.ResourceEvent
) -> None:
    """A worker says how one of its resources is."""
    record = view.resources.find(tenant, event.resource_id, worker_id)
    if event.state == "evicted" or event.state == "released":
        if record is not None and not _is_stored_value(record):
            view.batch.effects.append(CopyFailed(record.key, f"it is {event.state}"))
            _end(view, record, is_evicted=event.state == "evicted")
        return
    key = (tenant, view.at, worker_id, event.resource_id)
    if record is None or _is_another(record, event):
        # An id that is registered again: the former one is gone without a word of its own, and its copy with it.
        new = _new(view, tenant, worker_id, event)
        record = view.record_resource(ResourceRegistered(*key, new))
        if record.type == VALUE_TYPE:
            _request_copy(view, record)  # its worker reports the result when the copy is there
    else:
        expires_at = None if event.expires_at is None else parse_iso(event.expires_at)
        record = view.record_resource(ResourceUpdated(*key, event.size_bytes, expires_at))
    if event.state == "evicting":
        record = view.record_resource(ResourceClosed(*key))
    if event.error is not None:
        view.batch.effects.append(CopyFailed(record.key, event.error))
    if _is_orphaned(view, record):
        view.owe_cleanup(tenant, worker_id, record.scope)


def _is_stored_value(record: ResourceRecord) -> bool:
    """Whether it is a value that a committed result refers to, with a copy. The copy is the value: what its worker does
    with the file is of no matter. One that somebody closed is given up."""
    is_kept = record.is_artifact and record.blob is not None and record.state == "ready"
    return record.type == VALUE_TYPE and is_kept


def _is_another(record: ResourceRecord, event: business.ResourceEvent) -> bool:
    created = parse_iso(event.created_at) if event.created_at is not None else None
    return created is not None and event.type is not None and created != record.created_at


def _new(view: View, tenant: str, worker_id: str, event: business.ResourceEvent) -> ResourceRecord:
    package = event.package
    return ResourceRecord(
        tenant=tenant,
        worker_id=worker_id,
        resource_id=event.resource_id,
        type=event.type or "resource",
        scope=event.scope or event.run_id or "",
        run_id=event.run_id,
        node_id=event.node_id,
        package="" if package is None else f"{package.name} {package.version}",
        size_bytes=event.size_bytes,
        created_at=(parse_iso(event.created_at) if event.created_at else None) or view.at,
        expires_at=parse_iso(event.expires_at) if event.expires_at else None,
        metadata=bytes(event.metadata),
    )


def list_artifacts(
    view: View,
    run: RunRecord,
    task: int,
    worker_id: str,
    artifacts: Sequence[business.ResultArtifact],
) -> None:
    """An accepted result lists them: they outlive the run (a worker of another make may never have reported them)."""
    for artifact in artifacts:
        if artifact.inline:
            continue
        key = (run.tenant, view.at, worker_id, artifact.resource_id)
        if view.resources.find(run.tenant, artifact.resource_id, worker_id) is None:
            new = ResourceRecord(
                tenant=run.tenant,
                worker_id=worker_id,
                resource_id=artifact.resource_id,
                type=artifact.type,
                scope=run.run_id,
                run_id=run.run_id,
                node_id=run.tasks[task].node.node_id,
                size_bytes=artifact.size_bytes,
                created_at=view.at,
                expires_at=parse_iso(artifact.expires_at) if artifact.expires_at else None,
                metadata=bytes(artifact.metadata),
            )
            view.record_resource(ResourceRegistered(*key, new))
        _request_copy(view, view.record_resource(ResourceListed(*key)))


def close_unlisted(
    view: View, tenant: str, worker_id: str, artifacts: Sequence[business.ResultArtifact]
) -> None:
    """The result that lists them was not taken, so that nobody will ever ask for them. Their worker keeps them for the
    sake of that result, beyond the end of the run: it is told to let go."""
    for artifact in artifacts:
        record = view.resources.find(tenant, artifact.resource_id, worker_id)
        if record is not None and not record.is_artifact and record.state == "ready":
            _close(view, record, "the scheduler, which did not take the result")


class _Wanted(msgspec.Struct):
    durable: bool = False


def _request_copy(view: View, record: ResourceRecord) -> None:
    """A file that shall outlive its worker (`durable` in its metadata) is copied as soon as it is there."""
    if not view.settings.keeps_copies or record.blob is not None or record.package:
        return
    if record.type == VALUE_TYPE and any(
        one.blob is not None for one in view.resources.holders(record.tenant, record.resource_id)
    ):
        return  # this is itself read from the copy
    try:
        is_durable = msgspec.json.decode(record.metadata, type=_Wanted).durable
    except msgspec.DecodeError:
        return  # what an author calls `durable` may be anything
    worker = view.workers.find(record.tenant, record.worker_id)
    if is_durable and worker is not None and worker.session_id is not None:
        view.batch.effects.append(SendExport(worker.session_id, record.key))


def take_over_boot(view: View, worker: WorkerEntry) -> None:
    """The worker has started anew: what it held in memory is gone, whether it says so or not."""
    for record in view.resources.of_worker(worker.tenant, worker.worker_id):
        if record.package:
            _end(view, record, is_evicted=True)


def lose_resources(view: View, tenant: str, worker_id: str) -> None:
    """The worker is not expected back: what it held is gone, but for copies."""
    for record in view.resources.of_worker(tenant, worker_id):
        if not _is_stored_value(record):
            _end(view, record, is_evicted=True)


def _end(view: View, record: ResourceRecord, *, is_evicted: bool) -> None:
    """The resource is gone; tasks that wait for it need not wait any longer."""
    tenant, worker_id, resource_id = record.key
    state: Final = "evicted" if is_evicted else "released"
    view.record_resource(ResourceGone(tenant, view.at, worker_id, resource_id, state))
    cause = f"worker {worker_id} {state} it"
    for entry in _waiting_for(view, tenant, worker_id):
        run, task = view.runs.find_waiting(entry.run_id, entry.task), entry.task
        refs = () if run is None else refs_of(run, task)
        if run is not None and any(ref.resource_id == resource_id for ref in refs):
            lose_task(view, run, task, resource_id, cause)


def _waiting_for(view: View, tenant: str, worker_id: str) -> list[Entry]:
    return [
        entry
        for demand in view.queue.demands()
        if demand.pin == worker_id and demand.tenant == tenant
        for entry in view.queue.waiting_with(demand)
    ]


# -- what is lost ------------------------------------------------------------------------------


def lose_pinned(view: View, demand: Demand) -> None:
    """The worker that holds what these tasks need did not come back."""
    assert demand.pin is not None
    cause = f"the worker that holds it did not come back: {demand.pin}"
    for entry in view.queue.waiting_with(demand):
        run = view.runs.find_waiting(entry.run_id, entry.task)
        if run is None:
            continue
        view.count("pinned worker lost")
        refs = refs_of(run, entry.task)
        pinned = [ref for ref in view.locate(run.tenant, refs) if ref.worker_id == demand.pin]
        if _unpin_if_copied(view, run.tenant, pinned):
            view.count("resource fetched from its copy")
            view.queue.forget(run.run_id, entry.task)
            view.enqueue(run, entry.task, 0.0)
        else:
            lose_task(view, run, entry.task, pinned[0].resource_id, cause)


def _unpin_if_copied(view: View, tenant: str, refs: Sequence[ResourceRefValue]) -> bool:
    """Whether all of them have a copy, from which any worker can have them: then they no longer pin."""
    records = []
    for ref in refs:
        assert ref.worker_id is not None
        record = view.resources.find(tenant, ref.resource_id, ref.worker_id)
        if record is None or record.blob is None or not view.settings.keeps_copies:
            return False
        records.append(record)
    for record in records:
        view.resources.set_adrift(record)
    return True


def copies_for(
    view: View, tenant: str, refs: Sequence[ResourceRefValue]
) -> tuple[ResourceRecord | None, ...]:
    """For each reference the resource whose copy is to be fetched, because its own worker did not come back."""
    if not view.settings.keeps_copies:
        return ()
    copies = tuple(view.copy_of(tenant, ref) for ref in refs)
    return copies if any(copies) else ()


def lose_sticky(view: View, tenant: str, key: str, cause: str) -> None:
    """What was behind an affinity key is gone with its worker: nodes that say so fail rather than begin anew."""
    message = f"{cause}, and had the affinity key: {key}"
    error = TaskFailure(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", message, False)
    for run_id, task in view.queue.sticky_to(tenant, key):
        run = view.runs.find_waiting(run_id, task)
        if run is not None and run.tasks[task].node.on_resource_lost == "fail":
            view.queue.forget(run_id, task)
            view.decide(run, Fail(task, error))


def lose_task(view: View, run: RunRecord, task: int, resource_id: str, cause: str) -> None:
    """What a waiting task needs is gone: have it made again, or fail the task, as its node says."""
    view.queue.forget(run.run_id, task)
    if rebuilds(view, run, task):
        view.count("resource made again")
        view.decide(run, Rebuild(task, resource_id, cause))
        return
    error = TaskFailure(
        errors.RESOURCE_LOST.code, "INFRASTRUCTURE", f"{cause}: {resource_id}", False
    )
    view.decide(run, Fail(task, error))


def rebuilds(view: View, run: RunRecord, task: int) -> bool:
    """Whether the task has what it lost made again."""
    policy = run.tasks[task].node.on_resource_lost or view.settings.resource_lost
    return policy == "rebuild"


LOST_CODES = frozenset({errors.RESOURCE_LOST.code, errors.RESOURCE_EXPIRED.code})
"""What a worker says of a reference to something that it had once."""


def lost_ref(
    view: View, run: RunRecord, task: int, error: business.AttemptError | None
) -> str | None:
    """The resource for want of which an attempt failed, if its node wants it made again."""
    if error is None or error.code not in LOST_CODES or not rebuilds(view, run, task):
        return None
    refs = refs_of(run, task)
    named = [ref.resource_id for ref in refs if ref.resource_id in error.message]
    return next(iter(named or [ref.resource_id for ref in refs]), None)


# -- what is asked of workers -------------------------------------------------------------------


def _is_orphaned(view: View, record: ResourceRecord) -> bool:
    """Whether it belongs to a run that has ended, and to nobody else."""
    is_of_run = record.run_id is not None and record.scope == record.run_id
    return is_of_run and record.run_id not in view.runs and not record.is_artifact


def resend_cleanups(view: View, worker: WorkerEntry) -> None:
    """Tell a worker that is back what has ended meanwhile, and what somebody closed."""
    scopes = set()
    view.resources.worker_is_back(worker.tenant, worker.worker_id)
    for record in view.resources.of_worker(worker.tenant, worker.worker_id):
        if record.is_artifact or record.type == VALUE_TYPE:
            _request_copy(view, record)
        if _is_orphaned(view, record):
            scopes.add(record.scope)
        elif record.state == "evicting":
            _ask_to_close(view, worker, record, "closed while the worker was away")
    for scope in sorted(scopes):
        view.owe_cleanup(worker.tenant, worker.worker_id, scope)


def on_cleanup_due(view: View, tenant: str, worker_id: str, scope: str) -> None:
    """A worker that was told of the end of a run keeps what it once put into a result, whether that was taken or not;
    and it says nothing of what it lost before. So it is asked for each that is left."""
    worker = view.workers.find(tenant, worker_id)
    for record in view.resources.of_worker(tenant, worker_id):
        if worker is not None and record.scope == scope and _is_orphaned(view, record):
            view.count("cleanup asked again")
            _ask_to_close(view, worker, record, "its run has ended")


def _close(view: View, record: ResourceRecord, by: str) -> None:
    tenant, worker_id, resource_id = record.key
    view.record_resource(ResourceClosed(tenant, view.at, worker_id, resource_id))
    worker = view.workers.find(tenant, worker_id)
    if worker is not None:
        _ask_to_close(view, worker, record, f"closed by {by}")
    if _is_stored_value(record):
        # The copy is the value: its worker need not say that it has let go of the file.
        _end(view, record, is_evicted=True)


def _ask_to_close(view: View, worker: WorkerEntry, record: ResourceRecord, reason: str) -> None:
    if worker.session_id is not None:
        cleanup = business.ResourceCleanup(resource_id=record.resource_id, reason=reason)
        view.send(worker.session_id, business.RESOURCE_CLEANUP, cleanup)


# -- what operators ask ---------------------------------------------------------------------------


def close_resource(view: View, command: CloseResource) -> None:
    """Raises: Conflict, if it is gone."""
    _close(view, _get(view, command.key), command.by)


def extend_resource(view: View, command: ExtendResource) -> None:
    """Raises: Conflict, if it is gone; Unavailable, if its worker is away."""
    record = _get(view, command.key)
    session_id = _session_of(view, record)
    tenant, worker_id, resource_id = record.key
    view.record_resource(
        ResourceUpdated(tenant, view.at, worker_id, resource_id, None, command.expires_at)
    )
    touch = business.ResourceTouch(resource_id, iso(command.expires_at))
    view.send(session_id, business.RESOURCE_TOUCH, touch)


def export_resource(view: View, command: ExportResource) -> None:
    """Raises: Unavailable, if its worker is away; Conflict, if it is gone, or kept in memory, which has no bytes."""
    record = _get(view, command.key)
    if record.package:
        raise errors.Conflict(
            errors.RESOURCE_INVALID, f"kept in memory, it has no bytes: {record.resource_id}"
        )
    view.batch.effects.append(SendExport(_session_of(view, record), record.key))


def note_copy(view: View, command: NoteCopy) -> None:
    """Its bytes are where they can be read without its worker. Raises: NotFound, if it is gone meanwhile."""
    tenant, worker_id, resource_id = command.key
    if view.resources.find(tenant, resource_id, worker_id) is None:
        raise errors.NotFound(
            errors.RESOURCE_MISSING, f"the resource is not known any more: {resource_id[:80]}"
        )
    view.record_resource(ResourceCopied(tenant, view.at, worker_id, resource_id, command.blob))


def _get(view: View, key: ResourceKey) -> ResourceRecord:
    tenant, worker_id, resource_id = key
    record = view.resources.find(tenant, resource_id, worker_id)
    if record is None:
        raise errors.Conflict(errors.RESOURCE_LOST, f"the resource is gone: {resource_id[:80]}")
    return record


def _session_of(view: View, record: ResourceRecord) -> SessionId:
    worker = view.workers.find(record.tenant, record.worker_id)
    if worker is None or worker.session_id is None:
        raise errors.Unavailable(
            errors.WORKER_UNAVAILABLE, f"the worker that holds it is away: {record.worker_id}"
        )
    return worker.session_id


# -- what is submitted and stored ----------------------------------------------------------------


def check_refs(view: View, tenant: str, refs: Sequence[ResourceRefValue]) -> None:
    """Refuse a submission whose resources can not be had: seed 003 §4, "conflicting hints return HTTP 409, and an
    unavailable worker surfaces HTTP 503".

    Raises:
        Conflict: they live on several workers.
        Unavailable: the worker that holds one is away.
    """
    located = view.locate(tenant, refs)
    workers = sorted({ref.worker_id for ref in located if ref.worker_id is not None})
    if len(workers) > 1:
        raise errors.Conflict(
            errors.RESOURCE_CONFLICT,
            f"a node refers to resources of several workers: {', '.join(workers)}",
        )
    for worker_id in workers:
        worker = view.workers.find(tenant, worker_id)
        if worker is None or not worker.is_reachable:
            raise errors.Unavailable(
                errors.WORKER_UNAVAILABLE,
                f"the worker that holds a resource of the workflow is away: {worker_id}",
            )
