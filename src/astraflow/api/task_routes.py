"""The callbacks of HTTP workers (ADR-023), under both prefixes.

The order of the checks is part of the contract (PROTOCOL §9): the token, the body, its sizes, the task, the attempt,
its state. Answers are plain JSON objects, errors too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, check_values, decode_json
from astraflow.api.responses import Response, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core import errors
from astraflow.core.contract.tasks import (
    MAX_CALLBACK_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_OUTPUT_BYTES,
    CallbackAccepted,
    CallbackQuery,
    CallbackRefused,
    CompletionAccepted,
    HeartbeatAccepted,
    TaskCompleted,
    TaskHeartbeat,
    TaskStarted,
    is_absent,
)
from astraflow.core.errors import AstraflowError, Refused
from astraflow.core.protocol.scan import duplicate_key, has_duplicate_key, problem_in
from astraflow.core.security.policy import TASK
from astraflow.core.security.tokens import TaskClaims
from astraflow.core.timestamps import parse_iso

PREFIXES: Final = ("/v1/tasks", "/api/v1/tasks")
_started: Final = msgspec.json.Decoder(TaskStarted)
_heartbeat: Final = msgspec.json.Decoder(TaskHeartbeat)
_completed: Final = msgspec.json.Decoder(TaskCompleted)
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_BODY_ERRORS: Final = frozenset({400, 415, 422})
_MISSING: Final = re.compile(r"missing required field '([A-Za-z]+)'")
_REFUSALS: Final = {
    400: Reply("The body is not as the contract says.", CallbackRefused),
    401: Reply("The token is missing, bad or for another task.", CallbackRefused),
    404: Reply("There is no such task.", CallbackRefused),
    409: Reply("The attempt is not the current one, or its state does not allow it.",
               CallbackRefused),
    413: Reply("The body, its output or its message is too large.", CallbackRefused),
}  # fmt: skip
_EXPIRED: Final = {410: Reply("The attempt is over.", CallbackRefused)}

B = TypeVar("B", TaskStarted, TaskHeartbeat, TaskCompleted)


class TaskEndpoints(Endpoints):
    """The endpoints under `/v1/tasks` and `/api/v1/tasks`."""

    @route("POST", f"{PREFIXES[0]}/{{id}}/started", TASK, "startTask", "report that an attempt began",
           tag="tasks", query=CallbackQuery, body=TaskStarted,
           replies={200: Reply("It is stored.", CallbackAccepted), **_REFUSALS})  # fmt: skip
    @route("POST", f"{PREFIXES[1]}/{{id}}/started", TASK, "startTaskOfApi",
           "report that an attempt began", tag="tasks", query=CallbackQuery, body=TaskStarted,
           replies={200: Reply("It is stored.", CallbackAccepted), **_REFUSALS})  # fmt: skip
    async def started(self, request: Request[CallbackQuery]) -> AsgiApp:
        try:
            claims = self._verify(request)
            body = read_started(await _body_of(request))
            return json_response(await self._scheduler.callbacks.started(claims, body))
        except AstraflowError as error:
            return _refusal(error)

    @route("POST", f"{PREFIXES[0]}/{{id}}/heartbeat", TASK, "beatTask",
           "report that an attempt is alive", tag="tasks", query=CallbackQuery, body=TaskHeartbeat,
           replies={200: Reply("It counts.", HeartbeatAccepted), **_REFUSALS, **_EXPIRED})  # fmt: skip
    @route("POST", f"{PREFIXES[1]}/{{id}}/heartbeat", TASK, "beatTaskOfApi",
           "report that an attempt is alive", tag="tasks", query=CallbackQuery, body=TaskHeartbeat,
           replies={200: Reply("It counts.", HeartbeatAccepted), **_REFUSALS, **_EXPIRED})  # fmt: skip
    async def heartbeat(self, request: Request[CallbackQuery]) -> AsgiApp:
        try:
            claims = self._verify(request)
            body = read_heartbeat(await _body_of(request))
            return json_response(await self._scheduler.callbacks.heartbeat(claims, body))
        except AstraflowError as error:
            return _refusal(error)

    @route("POST", f"{PREFIXES[0]}/{{id}}/completed", TASK, "completeTask",
           "report how an attempt ended", tag="tasks", query=CallbackQuery, body=TaskCompleted,
           replies={200: Reply("It is stored.", CompletionAccepted), **_REFUSALS})  # fmt: skip
    @route("POST", f"{PREFIXES[1]}/{{id}}/completed", TASK, "completeTaskOfApi",
           "report how an attempt ended", tag="tasks", query=CallbackQuery, body=TaskCompleted,
           replies={200: Reply("It is stored.", CompletionAccepted), **_REFUSALS})  # fmt: skip
    async def completed(self, request: Request[CallbackQuery]) -> AsgiApp:
        try:
            claims = self._verify(request)
            body = read_completed(await _body_of(request))
            return json_response(await self._scheduler.callbacks.completed(claims, body))
        except AstraflowError as error:
            return _refusal(error)

    def _verify(self, request: Request[CallbackQuery]) -> TaskClaims:
        """Raises: Refused, 401."""
        given = [value for name, value in request.scope["headers"] if name == b"authorization"]
        scheme, _, token = (given[0] if len(given) == 1 else b"").decode("latin-1").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        return self._scheduler.callbacks.verify(
            token.strip() if is_bearer else "", request.params["id"]
        )


def read_started(raw: bytes) -> TaskStarted:
    """Raises: Refused, as the contract says."""
    body = _decode(raw, _started)
    _check_time(body.started_at, "startedAt")
    return body


def read_heartbeat(raw: bytes) -> TaskHeartbeat:
    """Raises: Refused, as the contract says."""
    body = _decode(raw, _heartbeat)
    _check_time(body.heartbeat_at, "heartbeatAt")
    _check_message(body.message, "message")
    return body


def read_completed(raw: bytes) -> TaskCompleted:
    """Raises: Refused, as the contract says."""
    body = _decode(raw, _completed)
    _check_completed(body)
    return body


async def _body_of(request: Request[CallbackQuery]) -> bytes:
    """Raises: Refused, 400 or 413."""
    with _worded():
        return await request.json_body(MAX_CALLBACK_BYTES)


def _decode(raw: bytes, decoder: msgspec.json.Decoder[B]) -> B:
    """Raises: Refused, 400 that names the field."""
    with _worded():
        body = decode_json(raw, decoder)
    try:
        check_values(raw, "")
    except Refused as refused:
        raise _invalid(refused.message, _member_with_a_problem(raw)) from refused
    if has_duplicate_key(raw):
        raise _invalid("the key stands twice", duplicate_key(raw))
    return body


def _member_with_a_problem(raw: bytes) -> str | None:
    """Which member of a body holds what cannot be stored, if one does and not its name."""
    try:
        members = _members(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return next((name for name, value in members.items() if problem_in(bytes(value), 2)), None)


@contextmanager
def _worded() -> Iterator[None]:
    """Refusals of a body are raised in the words of the contract."""
    try:
        yield
    except AstraflowError as error:
        if error.code.http == 413:
            raise Refused(errors.PAYLOAD_TOO_LARGE, error.message) from error
        if error.code.http not in _BODY_ERRORS:
            raise
        field = _field_of(error)
        raise _invalid(error.message, field) from error


def _field_of(error: AstraflowError) -> str | None:
    """The member that a pointer, or the message about a missing one, names."""
    steps = [step for step in (error.pointer or "").split("/") if step not in ("", "...")]
    missing = _MISSING.search(error.message)
    if missing is not None:
        steps.append(missing[1])
    return ".".join(steps) or None


def _invalid(problem: str, field: str | None) -> Refused:
    message = problem if field is None else f"{field}: {problem}"
    return Refused(errors.INVALID_ARGUMENT, message, detail={"field": field})


def _check_time(text: str | None, field: str) -> None:
    if text is not None and parse_iso(text) is None:
        raise _invalid("not a time of RFC 3339", field)


def _check_message(text: str | None, field: str) -> None:
    if text is not None and len(text.encode("utf-8", "replace")) > MAX_MESSAGE_BYTES:
        message = f"{field}: at most {MAX_MESSAGE_BYTES} bytes"
        raise Refused(errors.PAYLOAD_TOO_LARGE, message, detail={"field": field})


def _check_completed(body: TaskCompleted) -> None:
    """Raises: Refused, 400 before 413."""
    _check_time(body.completed_at, "completedAt")
    objects = {
        "output": body.output,
        "result": body.result,
        "partialProgress": body.partial_progress,
    }
    for field, value in objects.items():
        if not is_absent(value) and not bytes(value).startswith(b"{"):
            raise _invalid("must be an object", field)
    if body.outcome == "FAILED" and body.error is None:
        raise _invalid("a FAILED outcome needs one", "error")
    if body.outcome != "FAILED" and body.error is not None:
        raise _invalid(f"an outcome {body.outcome} has none", "error")
    for field, value in (("output", body.returned), ("partialProgress", body.partial_progress)):
        if len(bytes(value)) > MAX_OUTPUT_BYTES:
            message = f"{field}: at most {MAX_OUTPUT_BYTES} bytes"
            raise Refused(errors.PAYLOAD_TOO_LARGE, message, detail={"field": field})
    _check_message(None if body.error is None else body.error.message, "error.message")


def _refusal(error: AstraflowError) -> Response:
    """A refusal in the words of the contract. A failed write is 500 and changes nothing."""
    detail = error.detail or {}
    code = error.code
    if code.code.startswith("E."):
        status = 503 if code is errors.SCHEDULER_NOT_READY else 500
        body = CallbackRefused(
            error="unavailable" if status == 503 else "internal", message=code.says
        )
        return json_response(body, status, [(b"retry-after", b"1")])
    body = CallbackRefused(
        error=code.code,
        message=error.message,
        field=detail.get("field"),
        state=detail.get("state"),
        expected_attempt=detail.get("expectedAttempt"),
        received_attempt=detail.get("receivedAttempt"),
    )
    headers = [(b"www-authenticate", b"Bearer")] if code.http == 401 else []
    return json_response(body, code.http, headers)
