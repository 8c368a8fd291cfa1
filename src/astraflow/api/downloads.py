"""Downloads: files of any size, whole or in part, with one piece in memory at a time.

A client may ask for one range, and continue an interrupted download with `If-Range`. A request for several ranges gets
the whole file, as RFC 9110 §14.2 allows.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from astraflow.api.asgi import AsgiApp, Receive, Scope, Send
from astraflow.api.requests import Request
from astraflow.api.responses import (
    DROP,
    STALL_S,
    Headers,
    Response,
    problem_response,
    request_id_header,
)
from astraflow.api.routes import Header, Reply
from astraflow.core import errors
from astraflow.core.errors import AstraflowError, Refused

_log: Final = logging.getLogger(__name__)
_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)
_MIME: Final = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}", re.ASCII | re.I)
_TEXT: Final = "text/plain; charset=utf-8"
SHOWN: Final = {
    **dict.fromkeys(
        (
            "text/plain",
            "text/csv",
            "text/markdown",
            "text/tab-separated-values",
            "application/json",
        ),
        _TEXT,
    ),
    **{
        one: one
        for one in (
            *("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"),
            *("audio/mpeg", "audio/ogg", "audio/wav", "audio/webm", "video/mp4", "video/webm"),
        )
    },
}
"""The media types that a browser may show, and as what: none of them can run a script, load anything or be a page.
HTML, SVG, XML and PDF are not among them."""
_NO_ACTION: Final = (
    b"sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"
)
_PLAIN_NAME: Final = re.compile(r"[^A-Za-z0-9._ -]", re.ASCII)


RANGE_HEADERS: Final = (
    Header("Range", "One range, `bytes=first-last`."),
    Header("If-Range", "The ETag of the interrupted download: another file is sent whole."),
)


def file_replies(media_type: str) -> dict[int, Reply]:
    """What a download responds with."""
    head = {"ETag": "The digest of the file, in quotes.", "Accept-Ranges": "`bytes`."}
    part = {**head, "Content-Range": "Which part."}
    return {
        200: Reply("The file.", None, media_type, head),
        206: Reply("A part of it.", None, media_type, part),
        304: Reply("The client has it already."),
    }


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file that can be read from any position."""

    size: int
    sha256: str
    name: str
    media_type: str = "application/octet-stream"
    is_inline: bool = False
    """Whether a browser may show it, if it is of a kind that can do nothing."""
    read: Callable[[int, int], AsyncIterator[bytes]]


async def download_response(request: Request[Any], file: Download) -> AsgiApp:
    """The whole file or the range that is asked for: 200, 206, 304 or 416.

    Raises:
        NotFound, Unavailable: it cannot be read.
    """
    etag = f'"{file.sha256}"'
    head: list[tuple[bytes, bytes]] = [
        (b"etag", etag.encode()),
        (b"accept-ranges", b"bytes"),
    ]
    media_type = file.media_type if _MIME.fullmatch(file.media_type) else "application/octet-stream"
    shown_as = SHOWN.get(media_type.lower()) if file.is_inline else None
    head.append(
        (b"content-disposition", _disposition(file.name, "inline" if shown_as else "attachment"))
    )
    if shown_as:
        head.append((b"content-security-policy", _NO_ACTION))
    if request.header(b"if-none-match") == etag:
        return Streamed(304, head, b"", None)
    head.append((b"content-type", (shown_as or media_type).encode()))
    asked = _asked(request, etag)
    span = (0, file.size) if asked is None else _span(*asked, file.size)
    if span is None:
        refused = Refused(errors.REQUEST_RANGE, f"the file has {file.size} bytes")
        return problem_response(refused, [(b"content-range", f"bytes */{file.size}".encode())])
    start, end = span
    status = 200 if asked is None else 206
    if asked is not None:
        head.append((b"content-range", f"bytes {start}-{end - 1}/{file.size}".encode()))
    head.append((b"content-length", str(end - start).encode()))
    if request.method == "HEAD":
        return Streamed(status, head, b"", None)
    pieces = file.read(start, end)
    # Before the response begins: a file that cannot be read gets its own status.
    first = await anext(pieces, b"")
    return Streamed(status, head, first, pieces)


def _asked(request: Request[Any], etag: str) -> tuple[str, str] | None:
    """The two ends of the range that is asked for; None if the whole file is. A malformed range is ignored."""
    given = _RANGE.fullmatch((request.header(b"range") or "").strip())
    if given is None:
        return None
    condition = request.header(b"if-range")
    if condition is not None and condition.strip() != etag:
        return None  # a date, too: it does not tell one content from another as a digest does
    first, last = given.groups()
    is_range = int(first) <= int(last) if first and last else bool(first or last)
    return (first, last) if is_range else None


def _span(first: str, last: str, size: int) -> tuple[int, int] | None:
    """What to send, its end excluded; None if there is nothing where the range begins."""
    if not first:
        count = min(int(last), size)
        return (size - count, size) if count else None
    start = int(first)
    end = min(int(last) + 1, size) if last else size
    return (start, end) if start < size else None


def _disposition(name: str, kind: str) -> bytes:
    """An attachment, unless it can do nothing: a browser must not show what a run made as a page of ours."""
    plain = _PLAIN_NAME.sub("_", name)[:120] or "file"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name[:120], safe='')}".encode()


class Streamed(Response):
    """A response that is read piece by piece, as fast as the client reads."""

    __slots__ = ("_pieces",)

    def __init__(
        self, status: int, headers: Headers, first: bytes, pieces: AsyncIterator[bytes] | None
    ) -> None:
        super().__init__(first, status, b"", headers)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = [
            (b"cache-control", b"private, no-store"),
            (b"x-content-type-options", b"nosniff"),
            request_id_header(scope),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        if self._pieces is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        async with asyncio.TaskGroup() as group:
            gone = group.create_task(_wait_until_gone(receive))
            try:
                if not await self._pump(send, gone):
                    _hang_up(scope)
            finally:
                gone.cancel()

    async def _pump(self, send: Send, gone: asyncio.Task[None]) -> bool:
        """Send everything. False: the client stopped reading, or the rest cannot be read."""
        assert self._pieces is not None
        try:
            async with aclosing(cast("Any", self._pieces)) as pieces:
                await _send(send, self.body)
                async for piece in pieces:
                    if gone.done():
                        return True
                    await _send(send, piece)
        except TimeoutError:
            return False
        except AstraflowError as error:
            _log.warning("download interrupted: %s", error.message, extra={"code": error.code.code})
            return False
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return True


async def _send(send: Send, piece: bytes) -> None:
    async with asyncio.timeout(STALL_S):
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _hang_up(scope: Scope) -> None:
    """A file that is not complete must not look complete."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if DROP in extensions:
        extensions[DROP](b"")
