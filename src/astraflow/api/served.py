"""What a process serves: one scheduler alone, or a node of several that share a store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from astraflow.api.app import make_app
from astraflow.api.worker_socket import OnePlace, WorkerPlaces
from astraflow.scheduler.assembly import assemble, bootstrap_tokens
from astraflow.scheduler.other_shards import NO_OTHER_SHARDS
from astraflow.scheduler.shard_lanes import ONLY_LANES
from astraflow.store import is_shared

if TYPE_CHECKING:
    from types import FrameType

    from astraflow.api.app import Application
    from astraflow.api.asgi import AsgiApp
    from astraflow.clock import Clock
    from astraflow.config import SchedulerSettings, Secret
    from astraflow.observe.metrics import Metrics
    from astraflow.observe.spans import SpanExport
    from astraflow.scheduler.other_shards import OtherShards
    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.shard_lanes import ShardLanes
    from astraflow.scheduler.shard_turns import ShardTurns
    from astraflow.scheduler.writer import Reached
    from astraflow.store.cluster import StoredCluster
    from astraflow.store.store import Store


class Served(Protocol):
    """What a process serves, as the server sees it."""

    @property
    def app(self) -> AsgiApp: ...

    @property
    def places(self) -> WorkerPlaces: ...

    @property
    def ready(self) -> asyncio.Event: ...

    async def run(self) -> None:
        """Serve until cancelled. Raises: StoreError, when waiting will not help."""

    async def leave(self) -> None:
        """Before the end: let others have what is served here, while requests are still answered or passed on."""

    def end_streams(self) -> None: ...

    def is_serving(self) -> bool:
        """Whether it owns something now that another process could have."""

    def blame(self, frame: FrameType) -> None:
        """The loop is blocked, and this process ends: find out whose work it is by what the loop's thread is doing, and
        keep it. Called in another thread."""

    def status(self) -> str | None:
        """What it does, for people; None while it starts."""


class Origins:
    """Where a process is reached: by whoever uses it, and by other nodes."""

    def __init__(self, public: str, node: str) -> None:
        self.public = public
        """Empty: not known, so that URLs are relative."""
        self.node = node


class Deployment:
    """What the parts of a process are made from."""

    def __init__(
        self,
        settings: SchedulerSettings,
        secret: Secret,
        token: Secret | None,
        worker_token: Secret | None,
        clock: Clock,
        metrics: Metrics,
        spans: SpanExport | None,
        origins: Origins,
        reached: Reached,
    ) -> None:
        self.settings = settings
        self.secret = secret
        self.clock = clock
        self.origins = origins
        self._tokens = (token, worker_token)
        self.metrics = metrics
        self._spans = spans
        self._reached = reached

    def scheduler(
        self,
        store: Store,
        scheduler_id: str | None = None,
        turns: ShardTurns | None = None,
        lanes: ShardLanes = ONLY_LANES,
        cluster: StoredCluster | None = None,
        others: OtherShards = NO_OTHER_SHARDS,
    ) -> tuple[Scheduler, Application]:
        """A scheduler for what `store` claims, and the application that asks it."""
        scheduler = assemble(
            self.settings,
            store=store,
            clock=self.clock,
            secret=self.secret,
            tokens=bootstrap_tokens(*self._tokens, self.settings.metrics_token),
            metrics=self.metrics,
            origin=self.origins.public,
            reached=self._reached,
            spans=self._spans,
            scheduler_id=scheduler_id,
            turns=turns,
            lanes=lanes,
            cluster=cluster,
            others=others,
        )
        app = make_app(
            scheduler, self.settings, secret=self.secret, metrics=self.metrics, clock=self.clock
        )
        return scheduler, app


class ServedAlone:
    """One scheduler, which owns its store."""

    def __init__(self, deployment: Deployment, store: Store) -> None:
        scheduler, self.app = deployment.scheduler(store)
        self.places = OnePlace(scheduler)
        self.ready = scheduler.ready
        self.run = scheduler.run
        self.end_streams = scheduler.end_streams
        self.status = scheduler.status

    async def leave(self) -> None:
        """Nobody could have it: requests are answered to the end."""

    def is_serving(self) -> bool:
        return False

    def blame(self, frame: FrameType) -> None:
        """Nobody else serves what blocks it."""


def open_served(deployment: Deployment, store: Store) -> Served:
    """What this process serves: who shares its store with others is a node."""
    if not is_shared(deployment.settings.store_url):
        return ServedAlone(deployment, store)
    # Imported where needed: a process alone does not pay for what passes requests on.
    from astraflow.api.served_node import ServedNode

    return ServedNode(deployment, store)
