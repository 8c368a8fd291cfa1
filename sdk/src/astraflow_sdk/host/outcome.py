"""The outcome of an attempt as a `result` frame, for every value or exception of a handler."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Mapping
from typing import Any

from astraflow_sdk.context import Context
from astraflow_sdk.errors import Cancelled, InfrastructureError, NodeError
from astraflow_sdk.handles import ResourceError, ResourceHandle
from astraflow_sdk.host.channel import encode_json
from astraflow_sdk.host.large_results import store_members

MESSAGE_CHARS = 8 * 1024
STACK_CHARS = 64 * 1024 - 64
"""The wire takes 64 Ki characters; the room is for the mark of the cut."""
CONTEXT_BYTES = 64 * 1024
CODE_CHARS = 256

_STATUSES = {"succeeded": "SUCCEEDED", "skipped": "SKIPPED"}
_ARTIFACT_FIELDS = (
    "resource_id", "worker_id", "type", "size_bytes", "expires_at", "inline", "metadata",
)  # fmt: skip
_ARTIFACT_KEYS = {
    "resourceId": "resource_id",
    "workerId": "worker_id",
    "sizeBytes": "size_bytes",
    "expiresAt": "expires_at",
}
_ADAPTER_KEYS = frozenset({"status", "outputs", "artifacts"})


def encode_value(
    ctx: Context, value: object, limit_bytes: int, *, stores_large: bool = False
) -> str:
    """The frame of an attempt that returned. One that cannot be written becomes a failure; of one that is too large,
    the largest members are stored, if its node type allows that."""
    status = "SUCCEEDED"
    artifacts = ctx.take_artifacts()
    if type(value) is not dict:
        value = _as_object(value)
    elif "status" in value and value.keys() <= _ADAPTER_KEYS and str(value["status"]) in _STATUSES:
        # An adapter may return {status, outputs, artifacts}.
        status = _STATUSES[value["status"]]
        artifacts = [*artifacts, *(value.get("artifacts") or ())]
        value = value.get("outputs", {})
    try:
        result, kept, size = _encoded(ctx, value, artifacts)
        if size > limit_bytes and stores_large and ctx.resource_registry is not None:
            smaller = store_members(ctx, value, size - limit_bytes)
            if smaller is not None:
                artifacts = [*artifacts, *ctx.take_artifacts()]
                result, kept, size = _encoded(ctx, smaller, artifacts)
    except (ResourceError, InfrastructureError) as problem:
        return _failed(ctx, failure_of(problem))
    except (TypeError, ValueError, RecursionError, UnicodeError) as problem:
        message = f"the result cannot be written as JSON: {_says(problem)}"
        return _failed(ctx, _error("E.RESULT.INVALID", "USER_CODE", message, False))
    if size > limit_bytes:
        message = (
            f"the result has {size} bytes, allowed are {limit_bytes}: return an artifact instead"
        )
        return _failed(ctx, _error("E.RESULT.TOO_LARGE", "USER_CODE", message, False))
    return f'{_head(ctx)},"status":"{status}","result":{result}{kept}}}'


def _encoded(ctx: Context, value: object, artifacts: list[Any]) -> tuple[str, str, int]:
    """The result, its artifacts and the size of both."""
    listed = _artifacts(ctx, artifacts)
    result = encode_json(value)
    kept = f',"artifacts":{encode_json(listed)}' if listed else ""
    size = sum(len(text) if text.isascii() else len(text.encode()) for text in (result, kept))
    return result, kept, size


def _as_object(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if value is None or isinstance(value, str | int | float | list):
        return {"result": value}
    from astraflow_sdk.values import plain_value

    try:
        plain = plain_value(value)
    except (TypeError, ValueError, RecursionError):
        plain = value  # it cannot be written either, and that says why
    return plain if isinstance(plain, dict) else {"result": plain}


def _artifacts(ctx: Context, given: list[Any]) -> list[dict[str, Any]]:
    """Artifacts as the wire has them, each once: adapters also write camelCase, and leave out what the host knows."""
    found: dict[str, dict[str, Any]] = {}
    for one in given:
        told = one.artifact() if isinstance(one, ResourceHandle) else dict(one)
        artifact = {_ARTIFACT_KEYS.get(key, key): value for key, value in told.items()}
        artifact = {key: artifact[key] for key in _ARTIFACT_FIELDS if artifact.get(key) is not None}
        artifact.setdefault("worker_id", ctx.worker_id)
        artifact.setdefault("type", "file")
        found[str(artifact.get("resource_id"))] = artifact
    return list(found.values())


def encode_failure(ctx: Context, problem: BaseException) -> str:
    """The frame of an attempt that raised."""
    if isinstance(problem, Cancelled | asyncio.CancelledError) and ctx.cancelled:
        ctx.has_failed = True
        return f'{_head(ctx)},"status":"CANCELLED"}}'
    return _failed(ctx, failure_of(problem))


def failure_of(problem: BaseException) -> dict[str, Any]:
    """An exception as the `error` of a frame."""
    message, stack = _says(problem), _stack(problem)
    if isinstance(problem, NodeError):
        code = str(problem.code)[:CODE_CHARS]
        error = _error(code, problem.category, message, problem.retryable, stack)
        if problem.context:
            error["context"] = _plain(problem.context)
        return error
    if isinstance(problem, MemoryError):
        message = message or "there is not as much memory as the handler asked for"
        return _error("E.RUNNER.OOM", "INFRASTRUCTURE", message, None, stack)
    message = f"{type(problem).__name__}: {message}"
    return _error("E.RUNNER.FAILURE", "USER_CODE", message, None, stack)


def _head(ctx: Context) -> str:
    # The worker need not look for a folder that nobody has asked for.
    folder = "" if ctx.has_folder else ',"folder":false'
    return f'{{"type":"result","task_id":{json.dumps(ctx.task_id)},"attempt":{ctx.attempt}{folder}'


def _failed(ctx: Context, error: Mapping[str, Any]) -> str:
    ctx.has_failed = True
    return f'{_head(ctx)},"status":"FAILED","error":{json.dumps(error)}}}'


def _error(
    code: str, category: str, message: str, retryable: bool | None, stack: str | None = None
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "category": category, "message": message[:MESSAGE_CHARS]}
    if retryable is not None:
        error["retryable"] = bool(retryable)
    if stack:
        error["stack"] = stack
    return error


def _plain(context: Mapping[str, Any]) -> Any:
    try:
        if len(encode_json(context).encode()) <= CONTEXT_BYTES:
            return context
        why = "too large"
    except (TypeError, ValueError, RecursionError, UnicodeError) as problem:
        why = _says(problem)
    return {"unreadable": f"the context of the error cannot be told: {why}"}


def _says(problem: BaseException) -> str:
    """The text of an error, also of one whose `__str__` raises."""
    try:
        return _readable(str(problem))
    except (
        BaseException
    ) as second:  # whatever it is, it is the package's, and must not end the host
        return f"its text cannot be told, because __str__ raised {type(second).__name__}"


def _stack(problem: BaseException) -> str:
    trace = problem.__traceback__
    while trace is not None and trace.tb_next and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(problem), problem, trace, limit=200))
    except BaseException as second:
        return f"the stack cannot be told, because printing it raised {type(second).__name__}"
    text = _readable(text)
    if len(text) <= STACK_CHARS:
        return text
    return f"[… {len(text) - STACK_CHARS} characters cut]\n{text[-STACK_CHARS:]}"


def _is_ours(filename: str) -> bool:
    return "astraflow_sdk" in filename


def _readable(text: str) -> str:
    """Without what no frame carries: U+0000 and halves of characters."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
