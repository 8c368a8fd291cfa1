"""The hop: a request that reached a node which does not own its shard is passed to the one that does.

Rule 1: one hop. What comes by a hop is answered there, or refused with 421: then nothing was done.
Rule 2: after a 421 the request is passed on once more, to whoever owns the shard by then. It is not sent again after
        any other failure: it may have been carried out.
Rule 3: when the owner changes, nobody waits for the former one, which may be frozen: a stream ends, so that its reader
        resumes; what only reads is passed on to the next owner.
Rule 4: the body of a request is kept until it is answered (`kept_body`); a larger one is passed on as it comes, and is
        not sent twice.
Rule 5: a node believes another node, and nobody else, about the address of the client.
Rule 6: of an event stream only the opening is passed on. The owner answers with a grant, and the stream is served by
        the node that was asked (`stream_grants`).
"""

from __future__ import annotations

import asyncio
import enum
import hmac
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from astraflow.api.kept_body import ClientLeft
from astraflow.api.lane_finder import right_lane
from astraflow.api.node_connections import (
    CannotConnect,
    Exchange,
    ExchangeFailed,
    NodeConnections,
    NodeRequest,
)
from astraflow.api.responses import DROP, REQUEST_ID, problem_response
from astraflow.api.stream_grants import GRANT_HEADER, GRANT_TYPE, is_stream
from astraflow.core import errors
from astraflow.core.security.keys import derived_keys
from astraflow.observe.request_ids import HEADER

if TYPE_CHECKING:
    from astraflow.api.asgi import Receive, Scope, Send
    from astraflow.api.kept_body import KeptBody

HOP: Final = b"x-astra-hop"
"""`lane;address;signature`: by which node it came is not of interest, only that it was one of ours."""
FIRST_BYTES: Final = 64 * 1024
"""So much of a body is read before another node is asked: most requests are sent with one write."""
MAX_HOPS: Final = 2_000
"""Requests that are passed on at once; most of them are event streams."""
MOVED: Final = 421

_OF_THE_CONNECTION: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
        HOP,
        GRANT_HEADER,
    }
)


_READS: Final = ("GET", "HEAD")
WATCH_EVERY_S: Final = 0.5


class Answered(enum.Enum):
    """A request was answered."""

    ANSWERED = enum.auto()


ANSWERED: Final = Answered.ANSWERED
Outcome = Answered | int | None
"""What became of a request: it was answered; this lane is the right one; or nobody was asked. Nothing was done but in
the first case."""


class CameFrom(NamedTuple):
    """What a node says of a request that it passes on."""

    address: str
    """Of the client."""
    lane: int


class OwnerChanged(Exception):
    """Another node owns the shard by now."""


class Hops:
    """Passes requests on. Use from one loop."""

    def __init__(self, secrets: Sequence[bytes], trust: ssl.SSLContext) -> None:
        self._keys = derived_keys(secrets, b"astraflow hops")
        self._connections = NodeConnections(trust, MAX_HOPS)

    def close(self) -> None:
        self._connections.close()

    def came_from(self, scope: Scope) -> CameFrom | None:
        """What another node says of the request; None, if it came from nowhere else."""
        given = [value for name, value in scope["headers"] if name == HOP]
        if len(given) != 1:
            return None
        said, _, mac = given[0].rpartition(b";")
        good = (hmac.digest(key, said, "sha256").hex().encode() for key in self._keys)
        if not any(hmac.compare_digest(mac, one) for one in good):
            return None
        lane, _, address = said.partition(b";")
        return CameFrom(address.decode("latin-1"), int(lane))

    async def pass_on(
        self,
        url: str,
        lane: int,
        scope: Scope,
        body: KeptBody,
        receive: Receive,
        send: Send,
        is_owner: Callable[[], bool],
        granted: Callable[[bytes], Awaitable[None]],
    ) -> Outcome:
        """Have a request answered by the node at `url`; None if it does not own the shard any more, and nothing was
        done or sent. `is_owner`: whether it still is known as the owner. `granted`: serves a stream for which the
        answer is a grant."""
        try:
            exchange = await self._begin(url, lane, scope, body)
        except ClientLeft:
            return ANSWERED
        except CannotConnect:
            return None  # nobody was reached: nothing was done
        watch = _OwnerWatch(exchange, is_owner)
        try:
            await exchange.head()
            if exchange.status == MOVED:
                return await self._take_refusal(exchange)
            if (b"content-type", GRANT_TYPE) in exchange.headers:
                return await self._take_grant(exchange, granted)
            await _forward(exchange, receive, send)
        except ClientLeft:
            pass
        except (ExchangeFailed, OwnerChanged) as error:
            if exchange.status:
                drop = (scope.get("extensions") or {}).get(DROP)
                if drop is not None:
                    drop(b"")  # the client sees that the response is not whole
            elif isinstance(error, OwnerChanged) and scope["method"] in _READS:
                return None
            else:
                await self._fail(scope, receive, send, error)
        finally:
            watch.stop()
            exchange.close()
        return ANSWERED

    async def _begin(self, url: str, lane: int, scope: Scope, body: KeptBody) -> Exchange:
        """Raises: ClientLeft, CannotConnect."""
        start = await body.start(FIRST_BYTES)
        headers = self._headers(scope, lane)
        rest = None if body.is_whole else body.rest()
        request = NodeRequest(scope["method"], _target(scope), headers, start, rest)
        return await self._connections.ask(url, request)

    async def _take_refusal(self, exchange: Exchange) -> Outcome:
        """The lane that the refusal names, if the whole of it comes. Nothing was done, whether it does or not."""
        try:
            return right_lane(await exchange.read())
        except (ExchangeFailed, OwnerChanged):
            return None

    async def _take_grant(
        self, exchange: Exchange, granted: Callable[[bytes], Awaitable[None]]
    ) -> Outcome:
        """Nothing was sent to the client yet: without the whole grant the next owner is asked."""
        try:
            grant = await exchange.read()
        except (ExchangeFailed, OwnerChanged):
            return None
        exchange.close()  # the stream needs it no more
        await granted(grant)
        return ANSWERED

    def _headers(self, scope: Scope, lane: int) -> list[tuple[bytes, bytes]]:
        kept = [
            (name, value)
            for name, value in scope["headers"]
            if name not in _OF_THE_CONNECTION and name != HEADER
        ]
        has_body = any(name == b"content-length" for name, _ in kept)
        is_streamed = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        if not has_body and not is_streamed:
            kept.append((b"content-length", b"0"))
        client = scope.get("client")
        address = (str(client[0]) if client else "").encode("latin-1", "replace")
        said = b"%d;%b" % (lane, address)
        mac = hmac.digest(self._keys[0], said, "sha256").hex().encode()
        grant = [(GRANT_HEADER, b"1")] if is_stream(scope) else []
        return [*kept, *grant, (HEADER, scope[REQUEST_ID]), (HOP, said + b";" + mac)]

    async def _fail(self, scope: Scope, receive: Receive, send: Send, error: Exception) -> None:
        message = f"the scheduler that owns the tenant does not answer: {type(error).__name__}"
        refused = errors.Unavailable(errors.SHARD_UNREACHABLE, message)
        await problem_response(refused)(scope, receive, send)


class _OwnerWatch:
    """Ends an exchange once its node is not known as the owner any more."""

    def __init__(self, exchange: Exchange, is_owner: Callable[[], bool]) -> None:
        self._exchange = exchange
        self._is_owner = is_owner
        self._loop = asyncio.get_running_loop()
        self._look()

    def _look(self) -> None:
        self._timer = self._loop.call_later(WATCH_EVERY_S, self._check)

    def _check(self) -> None:
        if self._is_owner():
            self._look()
        else:
            self._exchange.abandon(OwnerChanged())

    def stop(self) -> None:
        self._timer.cancel()


def _target(scope: Scope) -> bytes:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return path + b"?" + query if query else path


async def _forward(exchange: Exchange, receive: Receive, send: Send) -> None:
    """Send the response on as it comes, until its end or until the client leaves. Raises: ClientLeft."""
    headers = [pair for pair in exchange.headers if pair[0] not in _OF_THE_CONNECTION]
    await send({"type": "http.response.start", "status": exchange.status, "headers": headers})
    if exchange.is_whole:
        await send({"type": "http.response.body", "body": await exchange.read()})
        return
    # Whoever reads the rest of the request sees that the client leaves.
    leaving = asyncio.create_task(_until_left(receive)) if exchange.is_sent else None
    if leaving is not None:
        leaving.add_done_callback(lambda _: exchange.abandon(ClientLeft()))
    try:
        async for piece in exchange.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        if leaving is not None:
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
