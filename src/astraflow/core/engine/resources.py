"""Resources that workers hold: what they tell of them, and what is asked of them.

Rule 1: the worker is the one who knows. What it says of a resource is committed before it is acknowledged, and what it
        no longer has is lost to every task that waits for it, at once.
Rule 2: the end of a run ends what only it could use: memory and files that no result lists. Every worker that has some
        is told so; one that is away is told when it is back (PROTOCOL §5.7), because what it still holds is stored.
Rule 3: a task whose resource is gone fails by name, or has it made again if its node says so; it is never sent to
        another worker as if nothing had happened (P12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from astraflow.core import errors
from astraflow.core.dispatch import WorkerEntry
from astraflow.core.dispatch.demand import Demand, bound_parameters, refs_of
from astraflow.core.dispatch.resources import GONE, Holding
from astraflow.core.engine.batch import ResourceChanged
from astraflow.core.engine.view import View
from astraflow.core.protocol import business
from astraflow.core.runs.commands import Fail, Rebuild
from astraflow.core.runs.facts import Problem
from astraflow.core.runs.run import Run
from astraflow.core.timestamps import parse_iso
from astraflow.core.workflow.plan import ResourceRefValue

__all__ = [
    "UNHEARD",
    "CopyLinks",
    "check_refs",
    "close_resource",
    "close_unlisted",
    "copy_metadata",
    "extend_resource",
    "list_artifacts",
    "lose_pinned",
    "lose_sticky",
    "lost_ref",
    "note_export",
    "on_cleanup_due",
    "on_resource_event",
    "owe_cleanups",
    "rebuilds",
    "request_export",
    "take_over_boot",
]


NOTHING: Final = msgspec.Raw(b"{}")
UNHEARD: Final = 0
"""The incarnation of a worker that has never registered here: a scheduler that has just started is no reason to believe
that the worker has, too."""


# -- what workers tell ------------------------------------------------------------------------


def on_resource_event(
    view: View, tenant: str, worker_id: str, event: business.ResourceEvent
) -> None:
    """A worker says how one of its resources is."""
    holding = view.resources.find(tenant, event.resource_id, worker_id)
    if event.state in ("evicted", "released"):
        if holding is not None:
            if view.copies is not None:
                view.copies.failed(holding, f"it is {event.state}")
            _forget(view, holding, "evicted" if event.state == "evicted" else "released")
        return
    if holding is not None and _is_another(holding, event):
        # Its id was registered again: the former one is gone without a word of its own, and its copy with it.
        view.resources.remove(holding)
        holding = None
    if holding is None:
        holding = _new(view, tenant, worker_id, event)
    if event.size_bytes is not None:
        holding.size_bytes = event.size_bytes
    if event.expires_at is not None:
        holding.expires_at = parse_iso(event.expires_at)
    if event.state == "evicting":
        holding.state = "evicting"
    if event.error is not None and view.copies is not None:
        view.copies.failed(holding, event.error)
    view.batch.notices.append(ResourceChanged(*holding.key))
    if _is_left_over(view, holding):
        view.owe_cleanup(tenant, worker_id, holding.scope)


def _is_another(holding: Holding, event: business.ResourceEvent) -> bool:
    created = parse_iso(event.created_at) if event.created_at is not None else None
    return created is not None and event.type is not None and created != holding.created_at


def _new(view: View, tenant: str, worker_id: str, event: business.ResourceEvent) -> Holding:
    created = parse_iso(event.created_at) if event.created_at is not None else None
    holding = Holding(tenant, worker_id, event.resource_id, created or view.at)
    holding.type = event.type or holding.type
    holding.scope = event.scope or event.run_id or ""
    holding.run_id = event.run_id
    holding.node_id = event.node_id
    holding.metadata = bytes(event.metadata)
    if event.package is not None:
        holding.package = f"{event.package.name} {event.package.version}"
    view.resources.add(holding)
    return holding


def list_artifacts(
    view: View, run: Run, task: int, worker_id: str, artifacts: Sequence[business.Artifact]
) -> None:
    """An accepted result lists them: they outlive the run (a worker of another make may never have told of them)."""
    for artifact in artifacts:
        if artifact.inline:
            continue
        holding = view.resources.find(run.tenant, artifact.resource_id, worker_id)
        if holding is None:
            holding = Holding(run.tenant, worker_id, artifact.resource_id, view.at)
            holding.type = artifact.type
            holding.scope = holding.run_id = run.run_id
            holding.node_id = run.node_of(task).node_id
            holding.size_bytes = artifact.size_bytes
            holding.expires_at = parse_iso(artifact.expires_at) if artifact.expires_at else None
            holding.metadata = bytes(artifact.metadata)
            view.resources.add(holding)
        holding.is_artifact = True
        view.batch.notices.append(ResourceChanged(*holding.key))
        _owe_copy(view, holding)


def close_unlisted(
    view: View, tenant: str, worker_id: str, artifacts: Sequence[business.Artifact]
) -> None:
    """The result that lists them was not taken, so that nobody will ever ask for them. Their worker keeps them for the
    sake of that result, beyond the end of the run: it is told to let go."""
    for artifact in artifacts:
        holding = view.resources.find(tenant, artifact.resource_id, worker_id)
        if holding is not None and not holding.is_artifact and holding.state == "ready":
            close_resource(view, holding, "the scheduler, which did not take the result")


class _Wanted(msgspec.Struct):
    durable: bool = False


def _owe_copy(view: View, holding: Holding) -> None:
    """A file that shall outlive its worker (`durable` in its metadata) is copied as soon as it is there."""
    if view.copies is None or holding.blob is not None or holding.package:
        return
    try:
        is_durable = msgspec.json.decode(holding.metadata, type=_Wanted).durable
    except msgspec.DecodeError:
        return  # what an author calls `durable` may be anything
    worker = view.workers.find(holding.tenant, holding.worker_id)
    if is_durable and worker is not None and worker.session_id is not None:
        export = business.ResourceExport(holding.resource_id, view.copies.upload(holding))
        view.send(worker.session_id, business.RESOURCE_EXPORT, export)


class CopyLinks(Protocol):
    """Where copies of resources are put and had."""

    def upload(self, holding: Holding) -> str: ...

    def download(self, holding: Holding) -> str: ...

    def failed(self, holding: Holding, why: str) -> None:
        """Its worker could not deliver it."""


def take_over_boot(view: View, worker: WorkerEntry) -> None:
    """The worker has started anew: what it held in memory is gone, whether it says so or not."""
    for holding in view.resources.of_worker(worker.tenant, worker.worker_id):
        if holding.package:
            _forget(view, holding, "evicted")


def lose_resources(view: View, tenant: str, worker_id: str) -> None:
    """The worker is not expected back: what it held is gone, but for copies."""
    for holding in view.resources.of_worker(tenant, worker_id):
        _forget(view, holding, "evicted")


def _forget(view: View, holding: Holding, state: str) -> None:
    """The resource is gone; tasks that wait for it need not wait any longer."""
    holding.state = "evicted" if state == "evicted" else "released"
    assert holding.state in GONE
    view.resources.remove(holding)
    view.gone[holding.key] = holding
    view.batch.notices.append(ResourceChanged(*holding.key))
    cause = f"worker {holding.worker_id} {'evicted' if state == 'evicted' else 'released'} it"
    for run, task in _waiting_for(view, holding.tenant, holding.worker_id):
        refs = refs_of(run, task, bound_parameters(run, task))
        if any(ref.resource_id == holding.resource_id for ref in refs):
            _lose(view, run, task, holding.resource_id, cause)


def _waiting_for(view: View, tenant: str, worker_id: str) -> list[tuple[Run, int]]:
    return [
        (view.runs[entry.run_id], entry.task)
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
        view.count("pinned worker lost")
        run = view.runs[entry.run_id]
        refs = refs_of(run, entry.task, bound_parameters(run, entry.task))
        pinned = [ref for ref in view.locate(run.tenant, refs) if ref.worker_id == demand.pin]
        if _set_adrift(view, run.tenant, pinned):
            view.count("resource fetched from its copy")
            view.queue.forget(run.run_id, entry.task)
            view.enqueue(run, entry.task, 0.0)
        else:
            _lose(view, run, entry.task, pinned[0].resource_id, cause)


def _set_adrift(view: View, tenant: str, refs: Sequence[ResourceRefValue]) -> bool:
    """Whether all of them have a copy, from which any worker can have them: then they no longer pin."""
    holdings = []
    for ref in refs:
        assert ref.worker_id is not None
        holding = view.resources.find(tenant, ref.resource_id, ref.worker_id)
        if holding is None or holding.blob is None or view.copies is None:
            return False
        holdings.append(holding)
    for holding in holdings:
        holding.is_adrift = True
    return True


def copy_metadata(view: View, tenant: str, ref: ResourceRefValue) -> msgspec.Raw:
    """What a worker needs to fetch a resource whose own worker did not come back."""
    holding = view.copy_of(tenant, ref)
    if holding is None or view.copies is None:
        return NOTHING
    copy = {"copyUrl": view.copies.download(holding), "metadata": msgspec.Raw(holding.metadata)}
    return msgspec.Raw(msgspec.json.encode(copy))


def lose_sticky(view: View, tenant: str, key: str, cause: str) -> None:
    """What was behind an affinity key is gone with its worker: nodes that say so fail rather than begin anew."""
    message = f"{cause}, and had the affinity key: {key}"
    error = Problem(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", message, False)
    for run_id, task in view.queue.sticky_to(tenant, key):
        run = view.runs.get(run_id)  # the end of another may have ended it
        if run is not None and run.node_of(task).on_resource_lost == "fail":
            view.queue.forget(run_id, task)
            view.decide(run, Fail(task, error))


def _lose(view: View, run: Run, task: int, resource_id: str, cause: str) -> None:
    view.queue.forget(run.run_id, task)
    if rebuilds(view, run, task):
        view.count("resource made again")
        view.decide(run, Rebuild(task, resource_id, cause))
        return
    error = Problem(errors.RESOURCE_LOST.code, "INFRASTRUCTURE", f"{cause}: {resource_id}", False)
    view.decide(run, Fail(task, error))


def rebuilds(view: View, run: Run, task: int) -> bool:
    """Whether the task has what it lost made again."""
    policy = run.node_of(task).on_resource_lost or view.settings.resource_lost
    return policy == "rebuild"


LOST_CODES = frozenset({errors.RESOURCE_LOST.code, errors.RESOURCE_EXPIRED.code})
"""What a worker says of a reference to something that it had once."""


def lost_ref(view: View, run: Run, task: int, error: business.TaskError | None) -> str | None:
    """The resource for want of which an attempt failed, if its node wants it made again."""
    if error is None or error.code not in LOST_CODES or not rebuilds(view, run, task):
        return None
    refs = refs_of(run, task, bound_parameters(run, task))
    named = [ref.resource_id for ref in refs if ref.resource_id in error.message]
    return next(iter(named or [ref.resource_id for ref in refs]), None)


# -- what is asked of workers -------------------------------------------------------------------


def _is_left_over(view: View, holding: Holding) -> bool:
    """Whether it belongs to a run that has ended, and to nobody else."""
    is_of_run = holding.run_id is not None and holding.scope == holding.run_id
    return is_of_run and holding.run_id not in view.runs and not holding.is_artifact


def owe_cleanups(view: View, worker: WorkerEntry) -> None:
    """Tell a worker that is back what has ended meanwhile, and what somebody closed."""
    scopes = set()
    for holding in view.resources.of_worker(worker.tenant, worker.worker_id):
        holding.is_adrift = False
        if holding.is_artifact:
            _owe_copy(view, holding)
        if _is_left_over(view, holding):
            scopes.add(holding.scope)
        elif holding.state == "evicting":
            _ask_to_close(view, worker, holding, "closed while the worker was away")
    for scope in sorted(scopes):
        view.owe_cleanup(worker.tenant, worker.worker_id, scope)


def on_cleanup_due(view: View, tenant: str, worker_id: str, scope: str) -> None:
    """A worker that was told of the end of a run keeps what it once put into a result, whether that was taken or not;
    and it says nothing of what it lost before. So it is asked for each that is left."""
    worker = view.workers.find(tenant, worker_id)
    for holding in view.resources.of_worker(tenant, worker_id):
        if worker is not None and holding.scope == scope and _is_left_over(view, holding):
            view.count("cleanup asked again")
            _ask_to_close(view, worker, holding, "its run has ended")


def close_resource(view: View, holding: Holding, by: str) -> None:
    """Let a worker let go of it; one that is away is told when it is back."""
    holding.state = "evicting"
    view.batch.notices.append(ResourceChanged(*holding.key))
    worker = view.workers.find(holding.tenant, holding.worker_id)
    if worker is not None:
        _ask_to_close(view, worker, holding, f"closed by {by}")


def _ask_to_close(view: View, worker: WorkerEntry, holding: Holding, reason: str) -> None:
    if worker.session_id is not None:
        cleanup = business.ResourceCleanup(resource_id=holding.resource_id, reason=reason)
        view.send(worker.session_id, business.RESOURCE_CLEANUP, cleanup)


def extend_resource(view: View, holding: Holding, expires_at: int, text: str) -> None:
    """Let it live until then.

    Raises:
        Unavailable: its worker is away.
    """
    worker = _reachable(view, holding)
    holding.expires_at = expires_at
    view.batch.notices.append(ResourceChanged(*holding.key))
    touch = business.ResourceTouch(holding.resource_id, text)
    view.send(worker, business.RESOURCE_TOUCH, touch)


def request_export(view: View, holding: Holding, upload_url: str) -> None:
    """Have the worker put its bytes where they can be read without it.

    Raises:
        Unavailable: its worker is away.
        Conflict: it is kept in memory, which has no bytes.
    """
    if holding.package:
        raise errors.Conflict(
            errors.RESOURCE_INVALID, f"kept in memory, it has no bytes: {holding.resource_id}"
        )
    worker = _reachable(view, holding)
    export = business.ResourceExport(holding.resource_id, upload_url)
    view.send(worker, business.RESOURCE_EXPORT, export)


def note_export(view: View, holding: Holding, blob: str) -> None:
    """Its bytes are where they can be read without its worker."""
    holding.blob = blob
    view.batch.notices.append(ResourceChanged(*holding.key))


def _reachable(view: View, holding: Holding) -> str:
    worker = view.workers.find(holding.tenant, holding.worker_id)
    if worker is None or worker.session_id is None:
        raise errors.Unavailable(
            errors.WORKER_UNAVAILABLE, f"the worker that holds it is away: {holding.worker_id}"
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
