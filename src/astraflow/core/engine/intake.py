"""What the API asks of the engine: submit a run, cancel a run."""

from __future__ import annotations

from typing import Final

from astraflow.core import errors
from astraflow.core.engine.commands import CancelRun, SubmitRun
from astraflow.core.engine.effects import ReplyToCaller
from astraflow.core.engine.resources import check_refs
from astraflow.core.engine.tenants import check_quotas
from astraflow.core.engine.timers import DeadlineDue
from astraflow.core.engine.view import View
from astraflow.core.ids import RunId
from astraflow.core.runs.accept import accept
from astraflow.core.runs.commands import Cancel
from astraflow.core.runs.facts import RunAccepted
from astraflow.core.workflow.plan import walk_nodes

RESERVED_SHARE: Final = 10
"""One part in so many of the active tasks is kept for tenants that have few."""


def submit_run(view: View, request: SubmitRun) -> None:
    """Accept the run, or answer a repeated submission with the run that it made (P3)."""
    try:
        run_id = _submit(view, request)
    except errors.AstraflowError as error:
        view.batch.effects.append(ReplyToCaller(request.token, None, error))
        return
    view.batch.effects.append(ReplyToCaller(request.token, run_id))


def _check_room(view: View, tenant: str, tasks: int) -> None:
    """Raises: Unavailable, when there is no room in memory, or none for this tenant: the last tenth is for others, so
    that one tenant cannot keep all others out."""
    most = view.settings.max_active_tasks
    if view.runs.tasks + tasks > most:
        raise errors.Unavailable(errors.OVERLOADED, "too many tasks are active")
    if view.runs.of_tenant(tenant)[1] + tasks > most - most // RESERVED_SHARE:
        raise errors.Unavailable(errors.OVERLOADED, "too many tasks of this tenant are active")


def _submit(view: View, request: SubmitRun) -> RunId:
    key = request.idempotency_key
    if key is not None:
        known = view.submissions.find(request.tenant, key, request.fingerprint, view.now)
        if known is not None:
            view.count("submission deduplicated")
            return known
    check_quotas(view, request.tenant, len(request.plan.nodes))
    _check_room(view, request.tenant, len(request.plan.nodes))
    for node in walk_nodes(request.plan):
        if node.resource_refs:
            check_refs(view, request.tenant, node.resource_refs)
    accepted = RunAccepted(
        view.at,
        request.run_id,
        request.tenant,
        request.plan.workflow_id,
        request.inputs,
        request.idempotency_key,
        request.fingerprint,
        request.deadline_s,
        request.rerun_of,
        request.trace,
        request.by,
        request.corr,
        request.pinned,
        request.signal_key,
        request.depth,
        request.name,
        request.workflow_version,
        request.trigger,
    )
    decision = accept(request.plan, accepted, view.rng, request.kept)
    view.runs.add(decision.run)
    view.batch.submitted[request.run_id] = request
    if key is not None:
        view.submissions.remember(
            request.tenant, key, request.fingerprint, request.run_id, view.now
        )
    if request.deadline_s is not None:
        view.timers.set(view.now + request.deadline_s, DeadlineDue(request.run_id))
    view.apply(decision)
    return request.run_id


def cancel_run(view: View, request: CancelRun) -> None:
    """Stop the run. Once this is answered no attempt is issued (P9). A run that is not active is the
    shell's to answer from the store: it knows whether it ended or never was."""
    run = view.runs.get(request.run_id)
    if run is None or run.tenant != request.tenant:
        missing = errors.NotFound(errors.RUN_NOT_FOUND, f"no active run: {request.run_id}")
        view.batch.effects.append(ReplyToCaller(request.token, None, missing))
        return
    grace_ms = view.settings.cancel_grace_ms if request.grace_ms is None else request.grace_ms
    view.decide(run, Cancel(request.by, grace_ms))
    view.batch.effects.append(ReplyToCaller(request.token, request.run_id))
