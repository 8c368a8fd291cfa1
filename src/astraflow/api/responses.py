"""Responses: a status, headers and bytes. Errors are RFC 9457 problem documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from astraflow.api.asgi import Receive, Scope, Send
from astraflow.api.compression import MIN_BYTES, accepts_gzip, compressed
from astraflow.core.contract.system import Problem, ProblemItem
from astraflow.core.errors import AstraflowError, Code
from astraflow.observe.request_ids import HEADER, current_request_id

Headers = Sequence[tuple[bytes, bytes]]

JSON: Final = b"application/json"
PROBLEM: Final = b"application/problem+json"
DROP: Final = "astraflow.drop"
"""The extension of the ASGI scope that disconnects a client that does not read (`api.server`)."""

HAS_BODY: Final = "astraflow.has_body"
"""The one that tells whether the whole body of the request has arrived."""

PIECE_BYTES: Final = 256 * 1024
"""What is written to a socket at once; more would only wait in its buffer."""

STALL_S: Final = 30.0
"""The timeout for a client that does not read."""

RETRY_AFTER_S: Final = 1
"""The default of `Retry-After`: most errors of this kind pass within a second."""

MAX_DETAIL_CHARS: Final = 2_048
"""A message may quote what was sent; a response does not send it all back."""

_OURS: Final = frozenset({"type", "title", "detail", "code", "instance", "errors", "problems"})
_RENAMED: Final = {"status": "state"}
"""In a problem document `status` is that of HTTP; the status of a run is `state`."""

REQUEST_ID: Final = "astraflow.request_id"
"""The id of the request in the ASGI scope, as the bytes of a header."""

NO_STORE: Final = b"no-store"
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")
_WITHOUT_BODY: Final = frozenset({204, 304})

encode: Final = msgspec.json.Encoder().encode


def request_id_header(scope: Scope) -> tuple[bytes, bytes]:
    """Every response names its request."""
    return HEADER, scope[REQUEST_ID]


class Response:
    """One response. It is an ASGI application that sends just this."""

    __slots__ = ("body", "caching", "headers", "media_type", "status")

    def __init__(
        self,
        body: bytes,
        status: int = 200,
        media_type: bytes = JSON,
        headers: Headers = (),
        caching: bytes = NO_STORE,
    ) -> None:
        self.body = body
        self.status = status
        self.media_type = media_type
        self.headers = headers
        self.caching = caching

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head: list[tuple[bytes, bytes]] = [
            (b"cache-control", self.caching),
            _NO_SNIFF,
            request_id_header(scope),
            *self.headers,
        ]
        if self.status not in _WITHOUT_BODY:
            head.append((b"content-type", self.media_type))
        if len(self.body) >= MIN_BYTES and not self._has_validator():
            head.append((b"vary", b"accept-encoding"))
            if accepts_gzip(scope):
                head.append((b"content-encoding", b"gzip"))
                pieces = compressed(self.body, PIECE_BYTES)
                await self._send_in_pieces(scope, receive, send, head, pieces)
                return
        if self.status not in _WITHOUT_BODY:
            head.append((b"content-length", str(len(self.body)).encode()))
        if len(self.body) > PIECE_BYTES:
            await self._send_in_pieces(scope, receive, send, head, self._pieces_of_body())
            return
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})

    def _has_validator(self) -> bool:
        """An ETag is that of the bytes as they are: compressed ones would need another (RFC 9110 §8.8.3.3)."""
        return any(name == b"etag" for name, _ in self.headers)

    async def _pieces_of_body(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), PIECE_BYTES):
            yield self.body[start : start + PIECE_BYTES]

    async def _send_in_pieces(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        head: Headers,
        pieces: AsyncIterator[bytes],
    ) -> None:
        """As fast as the client reads; one that reads nothing for too long is disconnected."""
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        try:
            async for piece in pieces:
                async with asyncio.timeout(STALL_S):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            extensions: dict[str, Any] = scope.get("extensions") or {}
            if DROP in extensions:
                extensions[DROP](b"")
                while (await receive())["type"] != "http.disconnect":
                    pass


NO_CONTENT: Final = Response(b"", 204)


def json_response(value: Any, status: int = 200, headers: Headers = ()) -> Response:
    return Response(encode(value), status, JSON, headers)


def problem_response(error: AstraflowError, headers: Headers = ()) -> Response:
    """The problem document of an error, with the headers that its status asks for."""
    status = error.code.http
    extra = list(headers)
    if status == 401:
        extra.append((b"www-authenticate", b"Bearer"))
    wait = (error.detail or {}).get("retryAfterSeconds", RETRY_AFTER_S if status == 503 else None)
    if wait is not None:
        extra.append((b"retry-after", str(max(1, int(wait))).encode()))
    body = problem_body(error.code, error.message, error.pointer, error.detail)
    return Response(encode(body), status, PROBLEM, extra)


def problem_body(
    code: Code,
    message: str,
    pointer: str | None = None,
    detail: Mapping[str, Any] | None = None,
    *,
    request_id: str = "",
) -> dict[str, Any]:
    """The document of a problem at the current request, or at the one that is named.

    What `detail` holds beside its problems becomes members of the document, as RFC 9457 §3.2 allows.
    """
    text = _printable(message)[:MAX_DETAIL_CHARS]
    # A 401 has one same body for whatever reason (PROTOCOL §9); its header has the id.
    instance = f"urn:astraflow:request:{request_id or current_request_id()}"
    problems = (detail or {}).get("problems")
    if not problems and pointer is not None:
        problems = [ProblemItem(pointer=pointer, message=text, code=code.code)]
    document = Problem(
        type=f"urn:astraflow:error:{code.code}",
        title=code.says,
        status=code.http,
        detail=text,
        code=code.code,
        instance=None if code.http == 401 else instance,
        errors=problems or None,
    )
    body: dict[str, Any] = msgspec.to_builtins(document)
    for name, value in (detail or {}).items():
        if name not in _OURS:
            body[_RENAMED.get(name, name)] = value
    return body


def _printable(text: str) -> str:
    """Without lone surrogates, which no JSON text can hold."""
    return text.encode("utf-8", "replace").decode()
