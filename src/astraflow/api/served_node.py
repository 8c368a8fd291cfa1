"""A node: schedulers for the shards that it owns, and a front that passes on what belongs to others."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from astraflow.api.front import Front
from astraflow.api.hop import Hops
from astraflow.api.lane_finder import LaneFinder
from astraflow.api.node_calls import NodeCalls
from astraflow.api.node_endpoints import NodeEndpoints
from astraflow.api.node_greetings import NodeGreetings
from astraflow.api.node_signatures import NodeSignatures
from astraflow.api.relayed_worker import LaneOwner
from astraflow.api.tenant_finder import TenantFinder
from astraflow.api.worker_relay import WorkerRelays
from astraflow.api.worker_socket import PATH, WorkerPlaces
from astraflow.core import errors
from astraflow.core.protocol.moved import moved_frame, refusal_frame
from astraflow.core.security.keys import KeyRing
from astraflow.core.timestamps import iso
from astraflow.scheduler.assembly import new_scheduler_id
from astraflow.scheduler.cluster_node import ClusterNode
from astraflow.scheduler.followed_credentials import FollowedCredentials
from astraflow.scheduler.master_keys import open_master_keys
from astraflow.scheduler.node_followers import NodeFollowers
from astraflow.scheduler.remote_feed import RemoteFeed
from astraflow.scheduler.shard_blame import blame_shard
from astraflow.store.cluster import StoredCluster
from astraflow.store.postgres import PostgresStore
from astraflow.ulids import Ulids

if TYPE_CHECKING:
    from types import FrameType

    from astraflow.api.app import Application
    from astraflow.api.served import Deployment
    from astraflow.config import SchedulerSettings
    from astraflow.core.security.certificates import PeerCertificate
    from astraflow.scheduler.cluster_node import SeenLanes
    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.shard_turns import ShardTurns
    from astraflow.store.store import Store


class ServedNode:
    """A node: schedulers for the shards that it owns, and a front that passes on what belongs to others."""

    def __init__(self, deployment: Deployment, store: Store) -> None:
        assert isinstance(store, PostgresStore)
        self._deployment = deployment
        self._store = store
        self._apps: dict[int, Application] = {}
        self._ids = Ulids(deployment.clock)
        settings = deployment.settings
        secrets = [line.encode() for line in deployment.secret.lines()]
        self._cluster = cluster = StoredCluster(store.database.site)
        url = (settings.node_url or deployment.origins.node).rstrip("/")
        self._passes_on = settings.worker_routing == "relay"
        socket_url = _no_socket_url if self._passes_on else _socket_url
        self._node = ClusterNode(
            new_scheduler_id(),
            url,
            cluster,
            deployment.clock,
            self._make,
            socket_url,
            settings.shards,
            float(settings.upgrade_wait_seconds),
        )
        trust = _trust(settings)
        self._hops = Hops(secrets, trust)
        signatures = NodeSignatures(secrets, deployment.clock)
        self._calls = NodeCalls(self._node, signatures, trust)
        self.relays = WorkerRelays(signatures, trust, self._is_owner, deployment.metrics)
        masters = open_master_keys(settings)
        keys = [] if masters is None else masters.ids()
        self._greetings = NodeGreetings(self._node, self._calls, keys)
        self._followed = FollowedCredentials(self._node, deployment.clock)
        followers = NodeFollowers(deployment.metrics)
        endpoints = NodeEndpoints(self._node, signatures, followers, keys)
        finder = TenantFinder(cluster, KeyRing.of_secrets(secrets), deployment.clock)
        lanes = LaneFinder(self._node, cluster)
        self.app = Front(self._node, self._apps.get, finder, lanes, self._hops, endpoints)
        self.places: WorkerPlaces = self
        self.scheduler = None
        self.ready = self._node.ready
        self.leave = self._node.leave
        self.status = self._node.status
        deployment.metrics.ready.follow(lambda: {(): float(self.is_ready())})
        deployment.metrics.shards_parked.follow(self._node.parked.counts)

    def _make(self, shard: int, turns: ShardTurns, lanes: SeenLanes) -> Scheduler:
        store = self._store.of_shard(shard)
        scheduler, self._apps[shard] = self._deployment.scheduler(
            store, self._node.node_id, turns, lanes, self._cluster, self._calls
        )
        scheduler.feed.source = RemoteFeed(shard, scheduler.feed, self._calls.dial)
        return scheduler

    async def run(self) -> None:
        beside: list[asyncio.Task[None]] = []
        try:
            beside += map(asyncio.create_task, (self._followed.run(), self._greetings.run()))
            await self._node.run(self._greetings.check)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._hops.close()
            self.relays.close()
            await self._calls.close()

    def end_streams(self) -> None:
        self._node.end_streams()
        self.relays.close()

    # -- where workers belong ---------------------------------------------------------------

    def is_ready(self) -> bool:
        return self._node.problem() is None

    def is_serving(self) -> bool:
        return bool(self._node.schedulers())

    def blame(self, frame: FrameType) -> None:
        blame_shard(self._cluster, frame)

    def find(self, tenant: str, lane: int) -> Scheduler | LaneOwner | None:
        shard = self._node.shard_of(tenant, lane)
        if shard is None:
            return None
        scheduler = self._node.scheduler_of(shard)
        if scheduler is not None:
            return scheduler
        url = self._node.url_of(shard)
        return None if url is None else LaneOwner(shard, url)

    def answer(
        self, owner: LaneOwner, tenant: str, certificate: PeerCertificate | None
    ) -> bytes | None:
        ts = iso(self._deployment.clock.wall_ms())
        node_id = self._node.node_id
        if not self._passes_on:
            return moved_frame(node_id, tenant, _socket_url(owner.url), self._ids, ts)
        if certificate is None or owner.is_private:
            return None
        code = errors.SHARD_UNREACHABLE
        why = f"a certificate is passed on over TLS only, and this node_url has none: {owner.url}"
        return refusal_frame(node_id, tenant, code, why, self._ids, ts)

    def _is_owner(self, owner: LaneOwner) -> bool:
        return self._node.url_of(owner.shard) == owner.url


def _socket_url(url: str) -> str:
    """Where workers connect to a node."""
    return f"ws{url.removeprefix('http')}{PATH.decode()}"


def _no_socket_url(url: str) -> None:
    """Where workers connect to a node that they do not reach: to any other, which passes their connections on."""


def _trust(settings: SchedulerSettings) -> ssl.SSLContext:
    """Whose certificates the other nodes may have."""
    context = ssl.create_default_context()
    if settings.node_ca_file is not None:
        context.load_verify_locations(settings.node_ca_file)
    return context
