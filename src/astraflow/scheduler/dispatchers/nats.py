"""The `nats` dispatcher: a message on a JetStream stream, which NATS keeps until a worker has taken it.

The id of the message is the `dispatchId`: JetStream drops a second one within its window, and one that comes later is
stopped at its start. The stream is made if it is not there.

Options of the pool: `subject` and `stream`, by default `astraflow.tasks.TENANT.POOL` and `ASTRAFLOW-TENANT-POOL`;
`credentialsFile`. A token or a password stands in no URL: the secret of the pool is the token of the connection.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from astraflow.core import errors
from astraflow.core.fleet.pools import PoolRecord
from astraflow.scheduler.dispatchers.dispatcher import DISPATCH_ID_HEADER, Push, PushFailed

if TYPE_CHECKING:
    from nats.aio.client import Client

CONNECT_S: Final = 2.0
PUBLISH_S: Final = 5.0
DUPLICATE_WINDOW_S: Final = 600.0
_OPTIONS: Final = frozenset({"subject", "stream", "credentialsFile"})
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
    """Use from one loop. Connections are kept, one for each server and credential."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str, str], Client] = {}
        self._streams: set[tuple[str, str, str]] = set()
        self._lock = asyncio.Lock()

    def check(self, pool: PoolRecord) -> None:
        """Raises: Refused."""
        try:
            import nats  # noqa: F401
        except ImportError as error:
            message = "the nats dispatcher needs: pip install 'astraflow[nats]'"
            raise errors.Refused(errors.POOL_INVALID, message, pointer="/dispatcher") from error
        parts = urlsplit(pool.url)
        if parts.scheme not in ("nats", "tls") or not parts.hostname or parts.username is not None:
            message = "the URL must be nats://host:port or tls://host:port, without a user"
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
            stream = client.jetstream()
            await self._ensure_stream(push)
            headers = {"Nats-Msg-Id": push.dispatch_id, DISPATCH_ID_HEADER: push.dispatch_id}
            await stream.publish(
                subject_of(push.pool), push.envelope, timeout=PUBLISH_S, headers=headers
            )
        except (nats.errors.Error, nats.js.errors.Error, OSError, TimeoutError) as error:
            # A message of the same id is dropped by the stream: it is repeated without harm. The stream may be gone.
            self._streams.discard(_stream_key(push.pool))
            reason = str(error) or type(error).__name__
            raise PushFailed(f"cannot publish to {push.pool.url}: {reason}") from error

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()

    async def _client(self, push: Push) -> Client:
        import nats

        key = (push.pool.url, push.secret, push.pool.options.get("credentialsFile", ""))
        async with self._lock:
            client = self._clients.get(key)
            if client is None or client.is_closed:
                # Its own timeout is for one server: it would look for another one for ever.
                async with asyncio.timeout(CONNECT_S):
                    client = await nats.connect(
                        push.pool.url,
                        allow_reconnect=True,
                        max_reconnect_attempts=-1,
                        token=push.secret or None,
                        user_credentials=key[2] or None,
                        error_cb=_ignore,
                    )
                self._clients[key] = client
            return client

    async def _ensure_stream(self, push: Push) -> None:
        key = _stream_key(push.pool)
        if key not in self._streams:
            client = await self._client(push)
            await ensure_stream(client, stream_of(push.pool), subject_of(push.pool))
            self._streams.add(key)


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


async def _ignore(_: Exception) -> None:
    """A connection that broke is made again, and the push says what failed."""
