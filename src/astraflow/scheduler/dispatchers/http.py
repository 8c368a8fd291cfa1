"""The `http` dispatcher: a POST to the URL of the pool.

1. A worker may run the task inside of the request, as functions do, or answer at once and run it later. So there is no
   limit on how long an answer takes: the push is ended when its attempt is.
2. The status alone says what came of a push. The body of a refusal is not waited for. That of a success is thrown away
   as it comes, because the worker may run until its end; one that is longer than `MAX_ANSWER_BYTES` is cut off.
3. Redirects are not followed: a task token goes to the URL that an administrator has set and nowhere else.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from astraflow.core import errors
from astraflow.core.fleet.pools import PoolRecord
from astraflow.lean_httpx import httpx
from astraflow.scheduler.dispatchers.dispatcher import (
    DISPATCH_ID_HEADER,
    SECRET_HEADER,
    Push,
    PushFailed,
)

CONNECT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1024**2
MAX_RETRY_AFTER_S: Final = 60.0
_LATER: Final = frozenset({408, 425, 429, 502, 503, 504})
"""The worker has not taken the task, or what stands before it has not reached the worker."""


class HttpDispatcher:
    """Use from one loop."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
            trust_env=False,
        )

    def check(self, pool: PoolRecord) -> None:
        """Raises: Refused."""
        check_http_url(pool.url, "/url")

    async def push(self, push: Push) -> None:
        """Raises: PushFailed."""
        headers = {"Content-Type": "application/json", DISPATCH_ID_HEADER: push.dispatch_id}
        if push.secret:
            headers[SECRET_HEADER] = push.secret
        if push.traceparent is not None:
            headers["traceparent"] = push.traceparent
        try:
            async with self._client.stream(
                "POST", push.pool.url, content=push.envelope, headers=headers
            ) as response:
                _judge(push.pool.url, response)
                await _wait_for_end(response)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise PushFailed(f"cannot connect to {push.pool.url}: {error}") from error
        except httpx.HTTPError as error:
            message = f"no answer from {push.pool.url}: {type(error).__name__}"
            raise PushFailed(message, may_run=True) from error

    async def close(self) -> None:
        await self._client.aclose()


async def _wait_for_end(response: httpx.Response) -> None:
    """The worker has said yes: whatever happens to the rest of its answer changes nothing."""
    size = 0
    with suppress(httpx.HTTPError):
        # As it is on the wire: what is packed would be larger than what is counted.
        async for part in response.aiter_raw():
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                return


def _judge(url: str, response: httpx.Response) -> None:
    status = response.status_code
    if response.is_success:
        return
    message = f"{url} answered {status}"
    if status in _LATER:
        raise PushFailed(message, may_run=True, retry_after_s=_retry_after(response))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise PushFailed(message, may_run=True)
    raise PushFailed(message, is_final=True)


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return min(float(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() else 0.0


def check_http_url(url: str, pointer: str) -> None:
    """Raises: Refused, when it is no URL that a task can be posted to."""
    problem = _problem_in(url)
    if problem is not None:
        raise errors.Refused(errors.POOL_INVALID, problem, pointer=pointer)


def _problem_in(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "the URL cannot be read"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "the URL must begin with http:// or https:// and name a host"
    if parts.username is not None or parts.password is not None:
        return "the URL must hold no user and no password: set the secret of the pool"
    if port == 0 or parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        return "the URL cannot be read"
    return None
