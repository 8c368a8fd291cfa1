"""What a node answers to other nodes, and to nobody else: the feeds of its shards, and what their engines know.

1. A request without the signature of a node is refused, whatever it asks, before anything else is looked at.
2. A shard that is not served here is refused with 421: the other node looks for its owner.
3. A node may read all of a shard, and give orders about its runs. That a reader may see what it asked for was decided
   by the owner when its stream was opened (`stream_grants`); that somebody may give an order, by the home.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import msgspec

from astraflow.api.kept_body import ClientLeft, KeptBody
from astraflow.api.node_calls import (
    FEED,
    FEED_ID,
    HELLO,
    INTERNAL,
    LOADS,
    ORDERS,
    SNAPSHOT,
    USAGES,
    Hello,
)
from astraflow.api.responses import (
    DROP,
    NO_CONTENT,
    STALL_S,
    json_response,
    problem_response,
    request_id_header,
)
from astraflow.core import errors
from astraflow.core.ids import RunId
from astraflow.scheduler.bulk_runs import decode_order
from astraflow.scheduler.feed_frames import BadFeed, read_change

if TYPE_CHECKING:
    from astraflow.api.asgi import AsgiApp, Receive, Scope, Send
    from astraflow.api.node_signatures import NodeSignatures
    from astraflow.scheduler.cluster_node import ClusterNode
    from astraflow.scheduler.node_followers import NodeFollower, NodeFollowers
    from astraflow.scheduler.service import Scheduler

MAX_BODY_BYTES: Final = 512 * 1024
"""A change names so many keys, each of at most 256 characters, as `feed_frames` allows."""


class NodeEndpoints:
    """Use from one loop."""

    def __init__(
        self,
        node: ClusterNode,
        signatures: NodeSignatures,
        followers: NodeFollowers,
        master_keys: list[str],
    ) -> None:
        self._node = node
        self._hello = Hello(node.node_id, master_keys)
        self._signatures = signatures
        self._followers = followers

    @staticmethod
    def has(path: str) -> bool:
        return path.startswith(INTERNAL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._respond(scope, KeptBody(receive))
        except ClientLeft:
            return
        except errors.StoreError as error:
            response = problem_response(
                errors.Unavailable(errors.SCHEDULER_NOT_READY, error.message)
            )
        except errors.AstraflowError as error:
            response = problem_response(error)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, kept: KeptBody) -> AsgiApp:
        """Raises: Refused, Unavailable, NotFound, ClientLeft."""
        method, query = scope["method"], scope["query_string"]
        body = await kept.start(MAX_BODY_BYTES) if method == "POST" else b""
        raw = scope.get("raw_path") or scope["path"].encode()
        target = raw + (b"?" + query if query else b"")
        if len(body) > MAX_BODY_BYTES or not self._signatures.is_good(
            scope["headers"], method, target, body
        ):
            raise errors.Refused(errors.AUTH_FORBIDDEN, "only a node of the site may ask this")
        if (method, scope["path"]) == ("GET", HELLO):
            return json_response(self._hello)
        given = {name: values[0] for name, values in parse_qs(query.decode("latin-1")).items()}
        shard = int(given["shard"]) if given.get("shard", "").isdigit() else -1
        scheduler = self._node.scheduler_of(shard)
        if scheduler is None:
            raise errors.Refused(errors.SHARD_MOVED, errors.SHARD_MOVED.says)
        path = scope["path"]
        if (method, path) == ("GET", FEED):
            return _FeedStream(self._followers, self._followers.open(scheduler.feed, shard))
        if method == "POST" and path.startswith(f"{FEED}/"):
            return self._change(path.removeprefix(f"{FEED}/"), shard, body)
        if (method, path) == ("POST", ORDERS):
            return await _carry_out(scheduler, body)
        if (method, path) == ("GET", USAGES):
            return json_response(scheduler.usages.here(self._node.tenants_in(shard)))
        if method == "GET" and path in (SNAPSHOT, LOADS):
            return await _known(scheduler, path, given.get("tenant", ""), given.get("run", ""))
        raise errors.Refused(errors.REQUEST_NO_ROUTE, "there is nothing at this path")

    def _change(self, follower_id: str, shard: int, body: bytes) -> AsgiApp:
        follower = self._followers.find(follower_id, shard)
        if follower is None:
            raise errors.Refused(errors.SHARD_MOVED, "there is no such stream, or not any more")
        try:
            follower.change(read_change(body))
        except BadFeed as error:
            raise errors.Refused(errors.REQUEST_INVALID, str(error)) from error
        return NO_CONTENT


async def _known(scheduler: Scheduler, path: str, tenant: str, run_id: str) -> AsgiApp:
    if path == LOADS:
        return json_response(scheduler.mixed_events.loads_of(tenant))
    snapshot, _ = await scheduler.reader.snapshot(tenant, RunId(run_id), asks_others=False)
    return json_response(snapshot)


async def _carry_out(scheduler: Scheduler, body: bytes) -> AsgiApp:
    """The other node has checked who gives the order."""
    try:
        order = decode_order(body)
    except msgspec.DecodeError as error:
        raise errors.Refused(errors.REQUEST_INVALID, str(error)) from error
    return json_response(await scheduler.bulk_runs.carry_out_here(order))


class _FeedStream:
    """An internal stream as a response. A node that does not read is cut off, and reads the store again."""

    def __init__(self, followers: NodeFollowers, follower: NodeFollower) -> None:
        self._followers = followers
        self._follower = follower

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(scope, send))
        leaving = asyncio.create_task(_until_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._followers.close(self._follower)
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, scope: Scope, send: Send) -> None:
        head = [
            (b"content-type", b"application/octet-stream"),
            (FEED_ID.encode(), self._follower.follower_id.encode()),
            request_id_header(scope),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        try:
            async with aclosing(self._follower.frames()) as frames:
                async for frame in frames:
                    async with asyncio.timeout(STALL_S):
                        await send({"type": "http.response.body", "body": frame, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            drop = (scope.get("extensions") or {}).get(DROP)
            if drop is not None:
                drop(b"")


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
