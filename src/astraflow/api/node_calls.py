"""What a node asks the owner of a shard: its feed, and what only the engine knows that serves it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from astraflow.core.contract.events import RunSnapshot, WorkerLoad
from astraflow.core.contract.reruns import BulkItem
from astraflow.lean_httpx import httpx
from astraflow.scheduler.bulk_runs import RunOrder, encode_order
from astraflow.scheduler.feed_frames import FeedChange, FeedFrameReader, Frame, change_bytes
from astraflow.scheduler.node_followers import ALIVE_S
from astraflow.scheduler.remote_feed import LinkLost
from astraflow.scheduler.tenant_usage import LaneUsage, joined
from astraflow.store.store import HOME_SHARD

if TYPE_CHECKING:
    from astraflow.api.node_signatures import NodeSignatures
    from astraflow.core.engine.queries import TenantUsage
    from astraflow.core.ids import RunId
    from astraflow.scheduler.cluster_node import ClusterNode
    from astraflow.scheduler.feed import Feed

INTERNAL: Final = "/internal/v1/"
FEED: Final = f"{INTERNAL}feed"
SNAPSHOT: Final = f"{INTERNAL}snapshot"
LOADS: Final = f"{INTERNAL}loads"
ORDERS: Final = f"{INTERNAL}orders"
USAGES: Final = f"{INTERNAL}usages"
HELLO: Final = f"{INTERNAL}hello"
FEED_ID: Final = "x-astra-feed"
"""The header of the response that says by which id changes of an internal stream name it."""

CONNECT_S: Final = 2.0
ANSWER_S: Final = 3 * ALIVE_S
"""An owner that is silent for so long is looked for anew."""
LOOK_S: Final = 0.25
MAX_CALLS: Final = 1_000
"""Connections to other nodes: a stream for each shard, and what its readers ask when they come."""

_snapshot: Final = msgspec.json.Decoder(RunSnapshot)
_item: Final = msgspec.json.Decoder(BulkItem)
_usages: Final = msgspec.json.Decoder(dict[str, LaneUsage])
_loads: Final = msgspec.json.Decoder(dict[str, WorkerLoad])


class Hello(msgspec.Struct, rename="camel"):
    """Who answers."""

    node_id: str
    master_keys: list[str] | None = None
    """The ids of the master keys for secrets that it knows, the one that encrypts first; none: it does not say."""


_hello: Final = msgspec.json.Decoder(Hello)


class NotGreeted(Exception):
    """A node cannot be reached, or does not answer as one of this site."""

    def __init__(self, why: str, *, is_stranger: bool = False) -> None:
        super().__init__(why)
        self.is_stranger = is_stranger
        """Whether its secret is another one."""


class NodeCalls:
    """Use from one loop."""

    def __init__(
        self, node: ClusterNode, signatures: NodeSignatures, trust: ssl.SSLContext
    ) -> None:
        self._node = node
        self._signatures = signatures
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=MAX_CALLS, max_keepalive_connections=64),
            headers={"accept-encoding": "identity"},
            verify=trust,
            trust_env=False,
            follow_redirects=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    def _signed(self, method: str, target: str, body: bytes = b"") -> list[tuple[bytes, bytes]]:
        return [self._signatures.header(method, target.encode(), body)]

    @asynccontextmanager
    async def dial(self, shard: int) -> AsyncIterator[_Link]:
        """The internal stream of a shard. Raises: LinkLost, here and inside."""
        url = self._node.url_of(shard)
        if url is None:
            raise LinkLost("no other node owns it")
        target = f"{FEED}?shard={shard}"
        try:
            async with self._client.stream(
                "GET", url + target, headers=self._signed("GET", target)
            ) as response:
                if response.status_code != 200:
                    raise LinkLost(f"{url} answers {response.status_code}")
                yield _Link(self, shard, url, response)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise LinkLost(f"{url}: {type(error).__name__}") from error

    async def post(self, url: str, target: str, body: bytes) -> None:
        """Raises: LinkLost."""
        headers = self._signed("POST", target, body)
        response = await self._client.post(url + target, content=body, headers=headers)
        if response.status_code != 204:
            raise LinkLost(f"{url} answers {response.status_code} to a change")

    def url_of(self, shard: int) -> str | None:
        return self._node.url_of(shard)

    # -- as the other shards of a scheduler ----------------------------------------------------

    def lanes_of(self, tenant: str) -> list[int]:
        return [one.lane for one in self._node.lanes_of(tenant)]

    def feed_of(self, tenant: str, lane: int) -> Feed | None:
        shard = self._node.shard_of(tenant, lane)
        scheduler = None if shard is None else self._node.any_scheduler_of(shard)
        return None if scheduler is None else scheduler.feed

    async def snapshot(self, tenant: str, lane: int, run_id: RunId) -> RunSnapshot | None:
        shard = self._node.shard_of(tenant, lane)
        if shard is None:
            return None
        scheduler = self._node.scheduler_of(shard)
        if scheduler is not None:
            found, _ = await scheduler.reader.snapshot(tenant, run_id, asks_others=False)
            return found
        named = f"tenant={quote(tenant)}&run={quote(run_id)}"
        body = await self._ask(shard, f"{SNAPSHOT}?shard={shard}&{named}")
        return None if body is None else _snapshot.decode(body)

    async def loads(self, tenant: str, lane: int) -> dict[str, WorkerLoad] | None:
        shard = self._node.shard_of(tenant, lane)
        if shard is None:
            return None
        body = await self._ask(shard, f"{LOADS}?shard={shard}&tenant={quote(tenant)}")
        return None if body is None else _loads.decode(body)

    async def usages(self) -> dict[str, TenantUsage]:
        shards = sorted({HOME_SHARD, *self._node.seen.shards})
        answers = await asyncio.gather(*map(self._usages_in, shards))
        found: dict[str, list[LaneUsage]] = {}
        silent: set[str] = set()
        for shard, answer in zip(shards, answers, strict=True):
            if answer is None:
                silent.update(self._node.tenants_in(shard))
            for tenant, counted in (answer or {}).items():
                found.setdefault(tenant, []).append(counted)
        return {tenant: joined(lanes) for tenant, lanes in found.items() if tenant not in silent}

    async def _usages_in(self, shard: int) -> dict[str, LaneUsage] | None:
        scheduler = self._node.scheduler_of(shard)
        if scheduler is not None:
            return scheduler.usages.here(self._node.tenants_in(shard))
        body = await self._ask(shard, f"{USAGES}?shard={shard}")
        return None if body is None else _usages.decode(body)

    async def carry_out(self, lane: int, order: RunOrder) -> BulkItem | None:
        shard = self._node.shard_of(order.tenant, lane)
        if shard is None:
            return None
        scheduler = self._node.scheduler_of(shard)
        if scheduler is not None:
            return await scheduler.bulk_runs.carry_out_here(order)
        body = await self._ask(shard, f"{ORDERS}?shard={shard}", encode_order(order))
        return None if body is None else _item.decode(body)

    async def hello(self, url: str) -> Hello | None:
        """Which node answers at a URL; None: one of a release that does not say. Raises: NotGreeted."""
        try:
            response = await self._client.get(url + HELLO, headers=self._signed("GET", HELLO))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotGreeted(f"{type(error).__name__}: {error}") from error
        if response.status_code == 403:
            raise NotGreeted("it has another secret", is_stranger=True)
        if response.status_code == 421:
            return None
        try:
            if response.status_code == 200:
                return _hello.decode(response.content)
        except msgspec.DecodeError:
            pass
        raise NotGreeted(
            f"no scheduler of this site answers there, but status {response.status_code}"
        )

    async def _ask(self, shard: int, target: str, order: bytes = b"") -> bytes | None:
        """What the owner says; None: it is not there, or says nothing."""
        url = self._node.url_of(shard)
        if url is None:
            return None
        method = "POST" if order else "GET"
        headers = self._signed(method, target, order)
        try:
            response = await self._client.request(
                method, url + target, headers=headers, content=order or None
            )
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
        return response.content if response.status_code == 200 else None


class _Link:
    """One internal stream."""

    def __init__(self, calls: NodeCalls, shard: int, url: str, response: httpx.Response) -> None:
        self._calls = calls
        self._shard = shard
        self._url = url
        self._response = response
        self._target = f"{FEED}/{response.headers.get(FEED_ID, '')}?shard={shard}"

    async def follow(self, change: FeedChange) -> None:
        await self._calls.post(self._url, self._target, change_bytes(change))

    async def frames(self) -> AsyncIterator[Frame]:
        reader = FeedFrameReader()
        async for piece in self._response.aiter_raw():
            for frame in reader.feed(piece):
                yield frame

    async def until_moved(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self._calls.url_of(self._shard) != self._url:
                return
