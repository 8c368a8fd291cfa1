"""The `cloud_tasks` dispatcher: a task of Google Cloud Tasks, over its REST API v2.

The name of the task is the `dispatchId`, so that a push that is repeated is one task: 409 is a success. The access
token comes from the metadata server of the machine, or from the file that `tokenFile` names.

Options of the pool: `queue` (`projects/P/locations/L/queues/Q`); `endpoint` and `metadataUrl`, if not Google's own;
`tokenFile`; `serviceAccount`, whose OIDC token the service then adds to each request; `dispatchDeadlineSeconds`.
"""

from __future__ import annotations

import asyncio
import base64
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.fleet.pools import PoolRecord
from astraflow.lean_httpx import httpx
from astraflow.scheduler.dispatchers.dispatcher import (
    DISPATCH_ID_HEADER,
    SECRET_HEADER,
    Push,
    PushFailed,
    check_size,
)
from astraflow.scheduler.dispatchers.http import check_http_url

ENDPOINT: Final = "https://cloudtasks.googleapis.com"
METADATA_URL: Final = (
    "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
)
DISPATCH_DEADLINE_S: Final = 1_800
"""The longest that the service waits for the answer of a worker before it delivers the task again."""
RENEW_BEFORE_S: Final = 60.0
TIMEOUT_S: Final = 30.0
MAX_TASK_BYTES: Final = 1024**2
"""What the service takes as one task: the envelope is in it as base64."""
MAX_ANSWER_BYTES: Final = 64 * 1024
_OPTIONS: Final = frozenset(
    {"queue", "endpoint", "metadataUrl", "tokenFile", "serviceAccount", "dispatchDeadlineSeconds"}
)
_QUEUE: Final = re.compile(
    r"projects/[A-Za-z0-9:.-]{1,64}/locations/[a-z0-9-]{1,64}/queues/[A-Za-z0-9-]{1,100}"
)


class AccessToken(msgspec.Struct, frozen=True):
    """What the metadata server answers."""

    access_token: str
    expires_in: float


_decode_token: Final = msgspec.json.Decoder(AccessToken).decode


class CloudTasksDispatcher:
    """Use from one loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._client = httpx.AsyncClient(
            timeout=TIMEOUT_S, trust_env=False, headers={"Accept-Encoding": "identity"}
        )
        self._tokens: dict[str, tuple[str, float]] = {}  # by metadata URL: token, good until

    def check(self, pool: PoolRecord) -> None:
        """Raises: Refused."""
        check_http_url(pool.url, "/url")
        unknown = sorted(set(pool.options) - _OPTIONS)
        if unknown:
            message = f"cloud_tasks has no such option: {unknown[0]}"
            raise errors.Refused(errors.POOL_INVALID, message, pointer=f"/options/{unknown[0]}")
        if _QUEUE.fullmatch(pool.options.get("queue", "")) is None:
            message = "the option queue must be projects/P/locations/L/queues/Q"
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/options/queue")
        for name in ("endpoint", "metadataUrl"):
            if name in pool.options:
                check_http_url(pool.options[name], f"/options/{name}")
        deadline = pool.options.get("dispatchDeadlineSeconds", "15")
        if not (deadline.isascii() and deadline.isdigit() and 15 <= int(deadline) <= 1_800):
            message = "dispatchDeadlineSeconds must be 15 to 1800"
            raise errors.Refused(
                errors.POOL_INVALID, message, pointer="/options/dispatchDeadlineSeconds"
            )

    async def push(self, push: Push) -> None:
        """Raises: PushFailed."""
        queue = push.pool.options["queue"]
        content = msgspec.json.encode(task_body(push))
        check_size("Cloud Tasks", len(content), MAX_TASK_BYTES)
        url = f"{push.pool.options.get('endpoint', ENDPOINT).rstrip('/')}/v2/{queue}/tasks"
        token = await self._access_token(push.pool)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            status, _ = await self._ask("POST", url, headers, content)
        except (httpx.HTTPError, TimeoutError) as error:
            # A task of the same name is refused, so that a push whose fate is unknown is repeated without harm.
            raise PushFailed(f"Cloud Tasks does not answer: {type(error).__name__}") from error
        if status == HTTPStatus.UNAUTHORIZED:
            self._tokens.clear()
        if status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.CONFLICT:
            return
        is_later = status in (401, 408, 429) or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        raise PushFailed(f"Cloud Tasks answered {status} for {queue}", is_final=not is_later)

    async def _ask(
        self, method: str, url: str, headers: dict[str, str], content: bytes = b""
    ) -> tuple[int, bytes]:
        """Status and the beginning of the body, within `TIMEOUT_S` however slowly they come."""
        begun = bytearray()
        async with (
            asyncio.timeout(TIMEOUT_S),
            self._client.stream(method, url, content=content, headers=headers) as response,
        ):
            async for part in response.aiter_raw():
                begun += part
                if len(begun) > MAX_ANSWER_BYTES:
                    break
        return response.status_code, bytes(begun[:MAX_ANSWER_BYTES])

    async def close(self) -> None:
        await self._client.aclose()

    async def _access_token(self, pool: PoolRecord) -> str:
        file = pool.options.get("tokenFile")
        if file is not None:
            try:
                text = await asyncio.to_thread(Path(file).read_text, "utf-8")
            except OSError as error:
                raise PushFailed(f"cannot read the token file: {error.strerror}") from error
            return text.strip()
        url = pool.options.get("metadataUrl", METADATA_URL)
        token, until = self._tokens.get(url, ("", 0.0))
        if until > self._clock.now():
            return token
        try:
            status, body = await self._ask("GET", url, {"Metadata-Flavor": "Google"})
            answer = _decode_token(body)
        except (httpx.HTTPError, TimeoutError, msgspec.DecodeError) as error:
            raise PushFailed("the metadata server gave no access token") from error
        if status != HTTPStatus.OK:
            raise PushFailed(f"the metadata server answered {status}")
        token, lives_s = answer.access_token, answer.expires_in
        self._tokens[url] = (token, self._clock.now() + max(0.0, lives_s - RENEW_BEFORE_S))
        return token


def task_body(push: Push) -> dict[str, Any]:
    """The body of `projects.locations.queues.tasks.create`."""
    options = push.pool.options
    headers = {"Content-Type": "application/json", DISPATCH_ID_HEADER: push.dispatch_id}
    if push.secret:
        headers[SECRET_HEADER] = push.secret
    if push.traceparent is not None:
        headers["traceparent"] = push.traceparent
    request: dict[str, Any] = {
        "url": push.pool.url,
        "httpMethod": "POST",
        "headers": headers,
        "body": base64.b64encode(push.envelope).decode("ascii"),
    }
    if "serviceAccount" in options:
        request["oidcToken"] = {"serviceAccountEmail": options["serviceAccount"]}
    seconds = options.get("dispatchDeadlineSeconds", str(DISPATCH_DEADLINE_S))
    return {
        "task": {
            "name": f"{options['queue']}/tasks/{push.dispatch_id}",
            "httpRequest": request,
            "dispatchDeadline": f"{seconds}s",
        }
    }
