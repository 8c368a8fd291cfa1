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
from astraflow.api.tenant_finder import TenantFinder
from astraflow.api.worker_socket import PATH, WorkerPlaces
from astraflow.core.protocol.moved import moved_frame
from astraflow.core.security.keys import KeyRing
from astraflow.core.timestamps import iso
from astraflow.scheduler.assembly import new_scheduler_id
from astraflow.scheduler.cluster_node import ClusterNode
from astraflow.scheduler.followed_credentials import FollowedCredentials
from astraflow.scheduler.node_followers import NodeFollowers
from astraflow.scheduler.remote_feed import RemoteFeed
from astraflow.store.cluster import StoredCluster
from astraflow.store.postgres import PostgresStore
from astraflow.ulids import Ulids

if TYPE_CHECKING:
    from astraflow.api.app import Application
    from astraflow.api.served import Deployment
    from astraflow.config import SchedulerSettings
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
        self._node = ClusterNode(
            new_scheduler_id(),
            url,
            cluster,
            deployment.clock,
            self._make,
            _socket_url,
            float(settings.upgrade_wait_seconds),
        )
        self._hops = Hops(secrets, _trust(settings))
        signatures = NodeSignatures(secrets, deployment.clock)
        self._calls = NodeCalls(self._node, signatures, _trust(settings))
        self._greetings = NodeGreetings(self._node, self._calls)
        self._followed = FollowedCredentials(self._node, deployment.clock)
        followers = NodeFollowers(deployment.metrics)
        endpoints = NodeEndpoints(self._node, signatures, followers)
        finder = TenantFinder(cluster, KeyRing.of_secrets(secrets), deployment.clock)
        lanes = LaneFinder(self._node, cluster)
        self.app = Front(self._node, self._apps.get, finder, lanes, self._hops, endpoints)
        self.places: WorkerPlaces = self
        self.scheduler = None
        self.ready = self._node.ready
        self.leave = self._node.leave
        self.status = self._node.status
        deployment.metrics.ready.follow(lambda: {(): float(self.is_ready())})

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
            await self._greetings.check()
            beside += map(asyncio.create_task, (self._followed.run(), self._greetings.run()))
            await self._node.run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._hops.close()
            await self._calls.close()

    def end_streams(self) -> None:
        self._node.end_streams()

    # -- where workers belong ---------------------------------------------------------------

    def is_ready(self) -> bool:
        return self._node.problem() is None

    def is_serving(self) -> bool:
        return bool(self._node.schedulers())

    def find(self, tenant: str, lane: int) -> Scheduler | bytes | None:
        shard = self._node.shard_of(tenant, lane)
        if shard is None:
            return None
        scheduler = self._node.scheduler_of(shard)
        if scheduler is not None:
            return scheduler
        url = self._node.url_of(shard)
        if url is None:
            return None
        ts = iso(self._deployment.clock.wall_ms())
        return moved_frame(self._node.node_id, tenant, _socket_url(url), self._ids, ts)


def _socket_url(url: str) -> str:
    """Where workers connect to a node."""
    return f"ws{url.removeprefix('http')}{PATH.decode()}"


def _trust(settings: SchedulerSettings) -> ssl.SSLContext:
    """Whose certificates the other nodes may have."""
    context = ssl.create_default_context()
    if settings.node_ca_file is not None:
        context.load_verify_locations(settings.node_ca_file)
    return context
