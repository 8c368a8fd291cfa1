"""What workers report: frames of a session, turned into commands to runs.

Every delivered frame is committed, whatever it says: a report that has no effect is acknowledged too, or its
sender would repeat it for ever (PROTOCOL §5.9).
"""

from __future__ import annotations

from astraflow import errors
from astraflow.engine.batch import CommitFrame
from astraflow.engine.packages import on_package_event
from astraflow.engine.resources import (
    close_unlisted,
    list_artifacts,
    lost_ref,
    on_resource_event,
)
from astraflow.engine.view import View
from astraflow.protocol import business
from astraflow.protocol.events import Delivered, Refused
from astraflow.runs.commands import Call, Progress, Refuse, Report
from astraflow.runs.facts import NO_METADATA, ArtifactRef, Chunk, Problem
from astraflow.runs.run import Run

__all__ = ["on_delivered", "on_refused"]


def on_delivered(view: View, event: Delivered) -> None:
    """A sequenced frame, in order, once per session."""
    payload = event.envelope.payload
    tenant, worker = event.tenant, event.worker
    if isinstance(payload, business.Result):
        _on_result(view, tenant, worker, payload)
    elif isinstance(payload, business.Feedback):
        _on_feedback(view, tenant, worker, payload)
    elif isinstance(payload, business.ExecError):
        _on_refusal(view, tenant, worker, payload)
    elif isinstance(payload, business.NextRequest):
        _on_call(view, tenant, worker, payload)
    elif isinstance(payload, business.ResourceEvent):
        on_resource_event(view, tenant, worker, payload)
    elif isinstance(payload, business.PkgEvent):
        on_package_event(view, tenant, worker, payload)
    elif isinstance(payload, business.PkgCatalog):
        view.learn(tenant, payload.manifest_sha256, bytes(payload.manifest))
    else:
        view.count(f"not handled: {event.envelope.type}")
    view.batch.effects.append(CommitFrame(event.session_id, event.seq))


def on_refused(view: View, event: Refused) -> None:
    """A frame that cannot be read. "An attempt that the payload names fails" (PROTOCOL §1)."""
    unreadable = event.unreadable
    if unreadable.task_id is not None and unreadable.attempt is not None:
        place = view.find_task(event.tenant, unreadable.task_id)
        if place is not None:
            error = Problem(
                errors.RESULT_INVALID.code,
                "USER_CODE",
                f"{unreadable.message} at {unreadable.pointer or '/'}",
                retryable=False,
            )
            run, task = place
            view.decide(run, Report(task, unreadable.attempt, event.worker, "FAILED", error=error))
    if event.seq is not None:
        view.batch.effects.append(CommitFrame(event.session_id, event.seq))


def _on_result(view: View, tenant: str, worker: str, result: business.Result) -> None:
    place = view.find_task(tenant, result.task_id)
    if place is None:
        view.count("report of an unknown task")
        close_unlisted(view, tenant, worker, result.artifacts)
        return
    run, task = place
    refusal = _refusal(view, worker, result)
    if refusal is not None:
        view.decide(run, Report(task, result.attempt, worker, "FAILED", error=refusal))
        close_unlisted(view, tenant, worker, result.artifacts)
        return
    decision = view.decide(
        run,
        Report(
            task,
            result.attempt,
            worker,
            result.status,
            result.result,
            tuple(map(_artifact, result.artifacts)),
            result.duration_ms,
            _problem(result.error) if result.error is not None else None,
            lost_ref(view, run, task, result.error),
        ),
    )
    if view.watched:
        _count_end(view, run, task, result)
    if decision.ignored is not None:
        close_unlisted(view, tenant, worker, result.artifacts)
    elif result.artifacts:
        list_artifacts(view, run, task, worker, result.artifacts)


def _count_end(view: View, run: Run, task: int, result: business.Result) -> None:
    """Of versions that are on their way to all workers it is counted how their attempts end."""
    node = run.node_of(task)
    counts = view.watched.get((run.tenant, node.package_name, node.package_version))
    if counts is not None:
        counts[0] += 1
        counts[1] += result.status == "FAILED"


def _refusal(view: View, worker: str, result: business.Result) -> Problem | None:
    """What is wrong with a result as such, whatever its attempt is."""
    code, message = errors.RESULT_INVALID, None
    for artifact in result.artifacts:
        if artifact.worker_id != worker:
            # A worker speaks for what it keeps itself: anything else is a mistake of the node, or worse.
            message = f"an artifact names another worker: {artifact.worker_id}"
        elif artifact.inline and artifact.type in view.settings.forced_reference_types:
            message = f"artifacts of this type must stay on their worker: {artifact.type}"
    if len(result.result) > view.settings.inline_limit_bytes:
        code = errors.RESULT_TOO_LARGE
        message = (
            f"the result has {len(result.result)} bytes, "
            f"allowed are {view.settings.inline_limit_bytes}: return an artifact instead"
        )
    return None if message is None else Problem(code.code, "USER_CODE", message, retryable=False)


def _on_feedback(view: View, tenant: str, worker: str, feedback: business.Feedback) -> None:
    place = view.find_task(tenant, feedback.task_id)
    if place is None:
        view.count("feedback of an unknown task")
        return
    run, task = place
    chunks = tuple(_chunk(one) for one in feedback.chunks)
    view.decide(
        run,
        Progress(
            task,
            feedback.attempt,
            worker,
            feedback.progress,
            feedback.message,
            feedback.stage,
            chunks,
            feedback.dropped,
        ),
    )


def _on_refusal(view: View, tenant: str, worker: str, refusal: business.ExecError) -> None:
    place = view.find_task(tenant, refusal.task_id)
    if place is None:
        view.count("refusal of an unknown task")
        return
    run, task = place
    if refusal.code == errors.DISPATCH_DRAINING.code:
        entry = view.workers.find(tenant, worker)
        if entry is not None:
            view.workers.set_draining(entry, True)
    view.decide(run, Refuse(task, refusal.attempt, worker, refusal.code, refusal.message))


def _on_call(view: View, tenant: str, worker: str, request: business.NextRequest) -> None:
    place = view.find_task(tenant, request.task_id)
    if place is None:
        view.count("call of an unknown task")
        return
    run, task = place
    view.decide(
        run,
        Call(
            task,
            request.attempt,
            worker,
            request.request_id,
            request.chain_index,
            request.payload,
        ),
    )


def _artifact(artifact: business.Artifact) -> ArtifactRef:
    return ArtifactRef(
        artifact.resource_id,
        artifact.worker_id,
        artifact.type,
        artifact.size_bytes,
        artifact.expires_at,
        artifact.inline,
        artifact.metadata,
    )


def _problem(error: business.TaskError) -> Problem:
    return Problem(error.code, error.category, error.message, error.retryable, error.stack)


def _chunk(told: business.Chunk) -> Chunk:
    is_object = bytes(told.metadata).startswith(b"{")
    return Chunk(
        told.channel,
        told.index,
        told.text,
        told.data_base64,
        told.mime_type or "text/plain",
        told.metadata if is_object else NO_METADATA,
    )
