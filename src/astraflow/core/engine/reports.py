"""What workers report: frames of a session, turned into commands to runs.

Every delivered frame is committed, whatever it says: a report that has no effect is acknowledged too, or its
sender would repeat it for ever (PROTOCOL §5.9).
"""

from __future__ import annotations

from typing import Final

from astraflow.core import errors
from astraflow.core.engine.effects import LearnManifest
from astraflow.core.engine.packages import on_package_event
from astraflow.core.engine.resources import (
    close_unlisted,
    list_artifacts,
    lost_ref,
    on_resource_event,
)
from astraflow.core.engine.result_checks import check_result
from astraflow.core.engine.view import View
from astraflow.core.fleet.workers import WorkerDrainChanged
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.events import Delivered, FrameRefused
from astraflow.core.runs.commands import Call, Progress, Refuse, Report
from astraflow.core.runs.facts import NO_METADATA, ArtifactRef, Chunk, TaskFailure
from astraflow.core.runs.run import RunRecord

_DECISIVE: Final = frozenset({business.RESULT, business.EXEC_ERROR, business.NEXT_REQUEST})
"""What an attempt cannot go on without: its outcome, or a call that it waits for."""


def on_delivered(view: View, event: Delivered) -> None:
    """A sequenced frame, in order, once per session."""
    payload = event.envelope.payload
    tenant, worker = event.tenant, event.worker
    if isinstance(payload, business.Result):
        _on_result(view, event, payload)
    elif isinstance(payload, business.Feedback):
        _on_feedback(view, event, payload)
    elif isinstance(payload, business.ExecError):
        _on_refusal(view, event, payload)
    elif isinstance(payload, business.NextRequest):
        _on_call(view, event, payload)
    elif isinstance(payload, business.ResourceEvent):
        on_resource_event(view, tenant, worker, payload)
    elif isinstance(payload, business.PkgEvent):
        on_package_event(view, tenant, worker, payload)
    elif isinstance(payload, business.PkgCatalog):
        view.batch.effects.append(LearnManifest(tenant, bytes(payload.manifest)))
    else:
        view.count(f"not handled: {event.envelope.type}")
    view.batch.deliver(event.session_id, event.seq)


def on_refused(view: View, event: FrameRefused) -> None:
    """A frame that cannot be read. "A bad *result* or refusal fails the attempt that it names; bad feedback is dropped
    and counted, and costs the attempt nothing" (PROTOCOL §1)."""
    unreadable = event.unreadable
    if event.frame_type not in _DECISIVE:
        view.count(f"refused: {event.frame_type[:64]}")
    elif unreadable.task_id is not None and unreadable.attempt is not None:
        place = _find(view, event, unreadable.task_id)
        if place is not None:
            error = TaskFailure(
                errors.RESULT_INVALID.code,
                "USER_CODE",
                f"{unreadable.message} at {unreadable.pointer or '/'}",
                retryable=False,
            )
            run, task = place
            view.decide(run, Report(task, unreadable.attempt, event.worker, "FAILED", error=error))
    if event.seq is not None:
        view.batch.deliver(event.session_id, event.seq)


def _find(
    view: View, event: Delivered | FrameRefused, task_id: TaskId, run_id: RunId | None = None
) -> tuple[RunRecord, int] | None:
    """The task that a report is about, if it was given to this worker. "A report for a task not leased to that worker,
    of another tenant, or unknown: acked, no effect, audited, the same answer for all three" (PROTOCOL §5.9)."""
    lease = view.leases.of_task(task_id)
    if (
        lease is not None
        and lease.worker_id == event.worker
        and lease.tenant == event.tenant
        and (run_id is None or run_id == lease.run.run_id)
    ):
        return lease.run, lease.task
    place = view.runs.find_task(event.tenant, task_id)
    if place is not None:
        run, task = place
        is_of_run = run_id is None or run_id == run.run_id
        if is_of_run and run.tasks[task].worker == event.worker:
            return place
    view.count("foreign report")
    code = errors.TASK_UNKNOWN.code
    view.audit(
        event.tenant,
        event.worker,
        "report.foreign",
        task_id,
        code,
        event.worker,
        event.session_id,
    )
    return None


def _on_result(view: View, event: Delivered, result: business.Result) -> None:
    tenant, worker = event.tenant, event.worker
    place = _find(view, event, result.task_id, result.run_id)
    if place is None:
        close_unlisted(view, tenant, worker, result.artifacts)
        return
    run, task = place
    refusal = None
    if result.artifacts or len(result.result) > view.settings.inline_limit_bytes:
        refusal = _refusal(view, worker, result)
    has_schema = run.tasks[task].node.results_schema is not None
    if has_schema and refusal is None and result.status == "SUCCEEDED":
        refusal = check_result(view, run, task, result.attempt, worker, result.result)
    if refusal is not None:
        view.decide(run, Report(task, result.attempt, worker, "FAILED", error=refusal))
        close_unlisted(view, tenant, worker, result.artifacts)
        return
    if result.metrics:
        view.decide(run, Progress(task, result.attempt, worker, metrics=result.metrics))
    decision = view.decide(
        run,
        Report(
            task,
            result.attempt,
            worker,
            result.status,
            result.result,
            tuple(map(_artifact, result.artifacts)) if result.artifacts else (),
            result.duration_ms,
            None if result.error is None else _problem(result.error),
            None if result.error is None else lost_ref(view, run, task, result.error),
        ),
    )
    if len(view.rollouts):
        node = run.tasks[task].node
        view.rollouts.count_end(
            tenant, node.package_name, node.package_version, is_failed=result.status == "FAILED"
        )
    if decision.ignored is not None:
        close_unlisted(view, tenant, worker, result.artifacts)
    elif result.artifacts:
        list_artifacts(view, run, task, worker, result.artifacts)


def _refusal(view: View, worker: str, result: business.Result) -> TaskFailure | None:
    """What is wrong with a result as such, whatever its attempt is."""
    code, message = errors.RESULT_INVALID, None
    for artifact in result.artifacts:
        if artifact.worker_id != worker:
            # A worker speaks for what it keeps itself: anything else is a mistake of the node, or worse.
            message = f"an artifact names another worker: {artifact.worker_id}"
        elif artifact.inline and artifact.type in view.settings.forced_reference_types:
            message = f"artifacts of this type must stay on their worker: {artifact.type}"
        elif artifact.inline and _size(artifact) > view.settings.inline_limit_bytes:
            code = errors.ARTIFACT_INLINE_LIMIT
            message = (
                f"the inline artifact {artifact.resource_id} has {_size(artifact)} bytes, "
                f"allowed are {view.settings.inline_limit_bytes}: return a reference instead"
            )
    if len(result.result) > view.settings.inline_limit_bytes:
        code = errors.RESULT_TOO_LARGE
        message = (
            f"the result has {len(result.result)} bytes, "
            f"allowed are {view.settings.inline_limit_bytes}: return an artifact instead"
        )
    return (
        None if message is None else TaskFailure(code.code, "USER_CODE", message, retryable=False)
    )


def _size(artifact: business.ResultArtifact) -> int:
    """What is inside of an inline artifact stands in its metadata."""
    return max(artifact.size_bytes or 0, len(artifact.metadata))


def _on_feedback(view: View, event: Delivered, feedback: business.Feedback) -> None:
    place = _find(view, event, feedback.task_id, feedback.run_id)
    if place is None:
        return
    run, task = place
    chunks = tuple(_chunk(one) for one in feedback.chunks)
    view.decide(
        run,
        Progress(
            task,
            feedback.attempt,
            event.worker,
            feedback.progress,
            feedback.message,
            feedback.stage,
            chunks,
            feedback.dropped,
            feedback.metrics,
        ),
    )


def _on_refusal(view: View, event: Delivered, refusal: business.ExecError) -> None:
    place = _find(view, event, refusal.task_id, refusal.run_id)
    if place is None:
        return
    run, task = place
    if refusal.code == errors.DISPATCH_DRAINING.code:
        entry = view.workers.find(event.tenant, event.worker)
        if entry is not None and entry.session_id is not None and not entry.is_draining:
            view.record_worker(
                WorkerDrainChanged(event.tenant, view.at, event.worker, is_draining=True)
            )
    view.decide(run, Refuse(task, refusal.attempt, event.worker, refusal.code, refusal.message))


def _on_call(view: View, event: Delivered, request: business.NextRequest) -> None:
    place = _find(view, event, request.task_id, request.run_id)
    if place is None:
        return
    run, task = place
    view.decide(
        run,
        Call(
            task,
            request.attempt,
            event.worker,
            request.request_id,
            request.chain_index,
            request.payload,
            request.timeout_ms,
        ),
    )


def _artifact(artifact: business.ResultArtifact) -> ArtifactRef:
    return ArtifactRef(
        artifact.resource_id,
        artifact.worker_id,
        artifact.type,
        artifact.size_bytes,
        artifact.expires_at,
        artifact.inline,
        artifact.metadata,
    )


def _problem(error: business.AttemptError) -> TaskFailure:
    return TaskFailure(error.code, error.category, error.message, error.retryable, error.stack)


def _chunk(told: business.FeedbackChunk) -> Chunk:
    is_object = bytes(told.metadata).startswith(b"{")
    return Chunk(
        told.channel,
        told.index,
        told.text,
        told.data_base64,
        told.mime_type or "text/plain",
        told.metadata if is_object else NO_METADATA,
    )
