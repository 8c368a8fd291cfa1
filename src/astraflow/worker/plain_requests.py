"""Small requests of a worker to its scheduler, with the standard library.

An idle worker asks little over HTTP, and a full client costs megabytes of it. `httpx` is imported where files are
uploaded or downloaded. The request runs in a thread that does not hold up the end of the process.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1024 * 1024

_NO_RESPONSE: Final = (OSError, ValueError, http.client.HTTPException)
"""A timeout is an OSError, an address that is none a ValueError."""
Response = tuple[int, bytes]


class NotReached(Exception):
    """The scheduler gave no answer."""


async def plain_request(
    method: str, url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None = None
) -> Response:
    """Status and body. No redirect is followed. `tls`: None trusts as the system does. Raises: NotReached."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _in_thread(lambda: _request(method, url, headers, tls))
    except _NO_RESPONSE as error:
        raise NotReached(f"{type(error).__name__}: {error}") from error


async def _in_thread(ask: Callable[[], Response]) -> Response:
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Response] = loop.create_future()

    def end_with(set_it: Callable[[Any], None], value: Any) -> None:
        if not answered.done():
            set_it(value)

    def tell(set_it: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile: nobody wants to know
            loop.call_soon_threadsafe(end_with, set_it, value)

    def run() -> None:
        try:
            response = ask()
        except _NO_RESPONSE as error:
            tell(answered.set_exception, error)
        else:
            tell(answered.set_result, response)

    threading.Thread(target=run, name="plain request", daemon=True).start()
    return await answered


def _request(
    method: str, url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None
) -> Response:
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=tls)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    )
    try:
        connection.request(method, parts.path or "/", headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.read(MAX_ANSWER_BYTES)
    finally:
        connection.close()
