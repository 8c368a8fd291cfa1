"""Answers: a status, headers and bytes, sent straight to the server. Errors are RFC 9457 problem documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar.types import Receive, Scope, Send

from astraflow.errors import AstraflowError, Code

__all__ = [
    "JSON",
    "NO_CONTENT",
    "PROBLEM",
    "Answer",
    "Headers",
    "answer_json",
    "answer_problem",
    "encode",
    "problem_body",
]

Headers = Sequence[tuple[bytes, bytes]]

JSON: Final = b"application/json"
PROBLEM: Final = b"application/problem+json"
RETRY_AFTER_S: Final = 1
"""What a client is told when nobody knows better: most refusals of this kind pass within a second."""

MAX_DETAIL_CHARS: Final = 2_048
"""A message may quote what was sent; an answer is not the place to send it all back."""

_OURS: Final = frozenset({"type", "title", "detail", "code", "errors", "problems"})
_RENAMED: Final = {"status": "state"}
"""In a problem document `status` is that of HTTP; the status of a run is told beside it."""

_ALWAYS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

encode: Final = msgspec.json.Encoder().encode


class Answer:
    """One answer. It is an ASGI application that says just this."""

    __slots__ = ("body", "headers", "media_type", "status")

    def __init__(
        self, body: bytes, status: int = 200, media_type: bytes = JSON, headers: Headers = ()
    ) -> None:
        self.body = body
        self.status = status
        self.media_type = media_type
        self.headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head: list[tuple[bytes, bytes]] = [*_ALWAYS, *self.headers]
        if self.status != 204:
            head.append((b"content-type", self.media_type))
            head.append((b"content-length", str(len(self.body)).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


NO_CONTENT: Final = Answer(b"", 204)


def answer_json(value: Any, status: int = 200, headers: Headers = ()) -> Answer:
    return Answer(encode(value), status, JSON, headers)


def answer_problem(error: AstraflowError, headers: Headers = ()) -> Answer:
    """The problem document of an error, with the headers that its status asks for."""
    status = error.code.http
    extra = list(headers)
    if status == 401:
        extra.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        wait = (error.detail or {}).get("retryAfterSeconds", RETRY_AFTER_S)
        extra.append((b"retry-after", str(max(1, int(wait))).encode()))
    body = problem_body(error.code, error.message, error.pointer, error.detail)
    return Answer(encode(body), status, PROBLEM, extra)


def problem_body(
    code: Code,
    message: str,
    pointer: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What `detail` holds beside its problems becomes members of the document, as RFC 9457 §3.2 allows."""
    body: dict[str, Any] = {
        "type": f"urn:astraflow:error:{code.code}",
        "title": code.says,
        "status": code.http,
        "detail": _printable(message)[:MAX_DETAIL_CHARS],
        "code": code.code,
    }
    problems = (detail or {}).get("problems")
    if problems:
        body["errors"] = problems
    elif pointer is not None:
        body["errors"] = [{"pointer": pointer, "message": body["detail"], "code": code.code}]
    for name, value in (detail or {}).items():
        if name not in _OURS:
            body[_RENAMED.get(name, name)] = value
    return body


def _printable(text: str) -> str:
    """Without lone surrogates, which no JSON text can hold."""
    return text.encode("utf-8", "replace").decode()
