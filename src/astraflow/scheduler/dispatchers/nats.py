"""The `nats` dispatcher: a message on a JetStream stream, which NATS keeps until a worker has taken it.

The id of the message is the `dispatchId`: JetStream drops a second one within its window, and one that comes later is
stopped at its start. The stream is made if it is not there.

Options of the pool: `subject` and `stream`, by default `astraflow.tasks.TENANT.POOL` and `ASTRAFLOW-TENANT-POOL`;
`user`; `credentialsFile`. A token or a password stands in no URL: the secret of the pool is the password of the `user`,
or without one the token of the connection.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from astraflow.core import errors
from astraflow.core.fleet.pools import PoolRecord
from astraflow.scheduler.dispatchers.dispatcher import (
    DISPATCH_ID_HEADER,
    Push,
    PushFailed,
    check_size,
)

if TYPE_CHECKING:
    from nats.aio.client import Client

CONNECT_S: Final = 2.0
PUBLISH_S: Final = 5.0
DUPLICATE_WINDOW_S: Final = 600.0
MESSAGE_TOO_LARGE: Final = 10054
"""The error of JetStream for a message that is larger than its stream takes."""
_OPTIONS: Final = frozenset({"subject", "stream", "user", "credentialsFile"})
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,31}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")


def subject_of(pool: PoolRecord) -> str:
    """Where the tasks of a pool are published."""
    names = [_UNSAFE.sub("_", name) for name in (pool.tenant, pool.name)]
    return pool.options.get("subject", ".".join(["astraflow", "tasks", *names]))


def stream_of(pool: PoolRecord) -> str:
    """The stream that keeps them."""
    names = [_UNSAFE.sub("_", name) for name in (pool.tenant, pool.name)]
    return pool.options.get("stream", "-".join(["ASTRAFLOW", *names]))


class NatsDispatcher:
    """Use from one loop. Connections are kept, one for each server and credential. One that is being made is waited for
    by its own pushes alone."""

    def __init__(self) -> None:
        self._clients: dict[NatsLogin, Client] = {}
        self._connecting: dict[NatsLogin, asyncio.Task[Client]] = {}
        self._streams: set[tuple[str, str, str]] = set()

    def check(self, pool: PoolRecord) -> None:
        """Raises: Refused."""
        try:
            import nats  # noqa: F401
        except ImportError as error:
            message = "the nats dispatcher needs: pip install 'astraflow[nats]'"
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/dispatcher") from error
        parts = urlsplit(pool.url)
        if parts.scheme not in ("nats", "tls") or not parts.hostname or parts.username is not None:
            message = (
                "the URL must be nats://host:port or tls://host:port, without a user: "
                "set the option user and the secret of the pool"
            )
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/url")
        unknown = sorted(set(pool.options) - _OPTIONS)
        if unknown:
            message = f"nats has no such option: {unknown[0]}"
            raise errors.Refused(errors.POOL_INVALID, message, pointer=f"/options/{unknown[0]}")
        if _SUBJECT.fullmatch(subject_of(pool)) is None or _UNSAFE.search(stream_of(pool)):
            message = "a subject is words joined by dots, a stream one word of A-Z a-z 0-9 _ -"
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/options")

    async def push(self, push: Push) -> None:
        """Raises: PushFailed."""
        import nats.errors
        import nats.js.errors

        try:
            client = await self._client(push)
            headers = {"Nats-Msg-Id": push.dispatch_id, DISPATCH_ID_HEADER: push.dispatch_id}
            size = len(push.envelope) + _size_of(headers)
            check_size("NATS (max_payload)", size, client.max_payload)
            await self._ensure_stream(push, client)
            await client.jetstream().publish(
                subject_of(push.pool), push.envelope, timeout=PUBLISH_S, headers=headers
            )
        except nats.js.errors.APIError as error:
            if error.err_code == MESSAGE_TOO_LARGE:
                await _check_stream(client, push.pool, size)
            raise self._failed(push, error) from error
        except (nats.errors.Error, nats.js.errors.Error, OSError, TimeoutError) as error:
            raise self._failed(push, error) from error

    def _failed(self, push: Push, error: Exception) -> PushFailed:
        """A message of the same id is dropped by the stream: it is repeated without harm. The stream may be gone."""
        self._streams.discard(_stream_key(push.pool))
        reason = str(error) or type(error).__name__
        return PushFailed(f"cannot publish to {push.pool.url}: {reason}")

    async def close(self) -> None:
        connecting = list(self._connecting.values())
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()

    async def _client(self, push: Push) -> Client:
        options = push.pool.options
        login = NatsLogin(
            push.pool.url, push.secret, options.get("user", ""), options.get("credentialsFile", "")
        )
        client = self._clients.get(login)
        if client is not None and not client.is_closed:
            return client
        connecting = self._connecting.get(login)
        if connecting is None:
            connecting = asyncio.create_task(connect(login, within_s=CONNECT_S))
            self._connecting[login] = connecting
            connecting.add_done_callback(lambda done: self._connected(login, done))
        return await asyncio.shield(connecting)

    def _connected(self, login: NatsLogin, done: asyncio.Task[Client]) -> None:
        del self._connecting[login]
        if not done.cancelled() and done.exception() is None:
            self._clients[login] = done.result()

    async def _ensure_stream(self, push: Push, client: Client) -> None:
        key = _stream_key(push.pool)
        if key not in self._streams:
            await ensure_stream(client, stream_of(push.pool), subject_of(push.pool))
            self._streams.add(key)


class NatsLogin(NamedTuple):
    """A server and who connects to it. `secret`: the password of the user, or without one a token."""

    url: str
    secret: str = ""
    user: str = ""
    credentials_file: str = ""

    def __repr__(self) -> str:
        return f"NatsLogin({self.url!r})"


async def connect(login: NatsLogin, within_s: float) -> Client:
    """A connection that is made again whenever it breaks.

    Raises: TimeoutError, with what went wrong; errors of NATS.
    """
    from nats.aio.client import Client as NatsClient

    client = NatsClient()
    is_connected = False
    last: list[str] = []

    async def note(error: Exception) -> None:
        last[:] = [str(error) or type(error).__name__]

    try:
        # Its own timeout is for one server: it would look for another one for ever.
        async with asyncio.timeout(within_s):
            await client.connect(
                login.url,
                allow_reconnect=True,
                max_reconnect_attempts=-1,
                token=None if login.user else login.secret or None,
                user=login.user or None,
                password=login.secret if login.user else None,
                user_credentials=login.credentials_file or None,
                error_cb=note,
            )
        is_connected = True
    except TimeoutError as error:
        raise TimeoutError(*last) from error
    finally:
        if not is_connected:
            await client.close()
    return client


def _size_of(headers: Mapping[str, str]) -> int:
    """What headers add to a message: the server counts them."""
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return len("NATS/1.0\r\n") + sum(map(len, lines)) + len("\r\n")


async def _check_stream(client: Client, pool: PoolRecord, size: int) -> None:
    """Raises: PushFailed, when a message is larger than its stream takes."""
    import nats.errors

    with suppress(nats.errors.Error, OSError, TimeoutError):
        info = await client.jetstream().stream_info(stream_of(pool))
        check_size("its NATS stream (max_msg_size)", size, info.config.max_msg_size or 0)


def _stream_key(pool: PoolRecord) -> tuple[str, str, str]:
    return pool.url, stream_of(pool), subject_of(pool)


async def ensure_stream(client: Client, stream: str, subject: str) -> None:
    """Make the stream of a pool if it is not there: whoever comes first, scheduler or worker."""
    import nats.js.errors
    from nats.js.api import RetentionPolicy, StorageType, StreamConfig

    streams = client.jetstream()
    try:
        await streams.stream_info(stream)
    except nats.js.errors.NotFoundError:
        await streams.add_stream(
            StreamConfig(
                name=stream,
                subjects=[subject],
                retention=RetentionPolicy.WORK_QUEUE,
                storage=StorageType.FILE,
                duplicate_window=DUPLICATE_WINDOW_S,
            )
        )
