"""A scheduler, composed: the parts that the API asks, and the life cycle that serves them."""

from __future__ import annotations

import asyncio

from astraflow.core import errors
from astraflow.core.security.bearer import ApiTokens
from astraflow.scheduler.audits import Audits
from astraflow.scheduler.blob_services import BlobServices
from astraflow.scheduler.bulk_runs import BulkRuns
from astraflow.scheduler.callbacks import TaskCallbacks
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.connections import Connection
from astraflow.scheduler.current import Current
from astraflow.scheduler.drafts import Drafts
from astraflow.scheduler.ended_runs import EndedRuns
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.identity import IdentityServices
from astraflow.scheduler.lifecycle import Lifecycle
from astraflow.scheduler.master_keys import MasterKeys
from astraflow.scheduler.messages import RunMessages
from astraflow.scheduler.mixed_events import MixedEvents
from astraflow.scheduler.packages import Packages
from astraflow.scheduler.pins import Pins
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.pool_services import PoolServices
from astraflow.scheduler.pools import Pools
from astraflow.scheduler.reported_workers import ReportedWorkers
from astraflow.scheduler.reruns import Reruns
from astraflow.scheduler.resources import Resources
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.runs import Runs
from astraflow.scheduler.secret_vault import SecretVault
from astraflow.scheduler.serving import Parts, Serving
from astraflow.scheduler.shard_turns import ShardTurns
from astraflow.scheduler.shell_effects import ShellEffects
from astraflow.scheduler.tenant_events import LaneFeeds, TenantEvents
from astraflow.scheduler.tenant_lanes import TenantLaneService
from astraflow.scheduler.tenant_usage import TenantUsages
from astraflow.scheduler.trigger_services import TriggerServices
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.scheduler.value_store import ValueStore
from astraflow.scheduler.workers import Workers
from astraflow.scheduler.workflows import Workflows
from astraflow.store.retention import Usage


class Scheduler:
    """One scheduler process. Use from its loop. `run` serves; while nothing serves, the parts raise `Unavailable`."""

    def __init__(
        self,
        parts: Parts,
        catalogs: Catalogs,
        current: Current,
        blobs: BlobServices | None = None,
        pools: PoolServices | None = None,
        known: ApiTokens | None = None,
        masters: MasterKeys | None = None,
        turns: ShardTurns | None = None,
    ) -> None:
        store, clock, ids = parts.store, parts.clock, parts.ids
        plans, table = Plans(store, catalogs), TriggerTable(store, current, clock)
        identity = IdentityServices(parts, current, ApiTokens() if known is None else known)
        self.credentials = identity.credentials
        self.tokens = identity.tokens
        self.users = identity.users
        self.logins = identity.logins
        self.tenants = identity.tenants
        self.usages = TenantUsages(current, parts.lanes, parts.others)
        self.oidc = identity.oidc
        self.lanes = TenantLaneService(parts, current)
        self.audits = Audits(store, current, clock)
        self._current, self._blobs, self._store = current, blobs, store
        self._feed = Feed(store)
        self._pools = pools
        pushes = None if pools is None else pools.pushes
        self.secrets = SecretVault(store, current, clock, ids, masters)
        self.catalogs, versions = catalogs, parts.retention.workflow_versions
        saved = (store, catalogs, current, self.secrets, table, clock)
        self.workflows = Workflows(*saved, versions)
        self.drafts = Drafts(store, self.workflows, current, clock)
        ended = EndedRuns(store, plans)
        self.reader = RunReader(store, current, ended, self._feed, clock, parts.others)
        self.pins = Pins(store, current, plans, self.reader, clock, parts.engine.result_schemas)
        of_saved = (self.workflows, self.reader, self.secrets, self.pins)
        repository = None if blobs is None else blobs.repository
        self.runs = Runs(parts, current, plans, *of_saved, repository)
        self.messages = RunMessages(current, self.reader, self.secrets)
        self.reruns = Reruns(store, self.runs, self.reader)
        self.bulk_runs = BulkRuns(self.runs, self.reruns, parts.others)
        of_runs = (self.runs, self.reader, self.secrets, self._feed)
        self.triggers = TriggerServices(table, store, current, *of_runs, clock, ids)
        values = ValueStore(None if blobs is None else blobs.copies, current)
        vault, effects = self.secrets, ShellEffects(catalogs, blobs, pushes, self.secrets, values)
        tended = (self.credentials, blobs, vault, self.triggers, turns)
        self._lifecycle = Lifecycle(parts, current, plans, self._feed, effects, *tended)
        self.events = TenantEvents(store, current, LaneFeeds(self._feed, parts.others))
        self.mixed_events = MixedEvents(store, current, self.reader, self.events, parts.others)
        self.workers = Workers(current, catalogs, ids)
        self.reported_workers = ReportedWorkers(current, ids, clock)
        self.resources = Resources(store, current, clock, blobs)
        self._callbacks = self._packages = None
        if pools is not None:
            of_pools = (pools.tokens, pools.pushes)
            self._callbacks = TaskCallbacks(store, current, ended, *of_pools, clock)
        if blobs is not None:
            self._packages = Packages(store, blobs.repository, current, clock, ids)

    async def run(self) -> None:
        """Open the store and serve until cancelled.

        Raises:
            StoreError: the store cannot be used, and waiting will not help.
        """
        try:
            await self._lifecycle.run()
        finally:
            if self._pools is not None:
                await self._pools.pushes.close()
            await self.secrets.close()

    @property
    def feed(self) -> Feed:
        """What is committed in its shard, also while another process serves that."""
        return self._feed

    @property
    def ready(self) -> asyncio.Event:
        return self._lifecycle.ready

    @property
    def is_serving(self) -> bool:
        return self._current.is_serving

    def is_ready(self) -> bool:
        return self.problem() is None

    def problem(self) -> str | None:
        """Why it is not ready."""
        return self._current.problem()

    def status(self) -> str | None:
        """What it does, for people; None while it starts."""
        return None if self._current.is_starting else self.problem() or "serving"

    async def usage(self) -> tuple[str, Usage]:
        """The kind of its store, and what that holds."""
        kind = type(self._store.database).__name__.removesuffix("Database").lower()
        return kind, await self._store.usage()

    def set_parked(self, is_parked: bool) -> None:
        """Whether nothing of its shard is placed, if it serves."""
        if self._current.is_serving:
            self._current.writer.set_parked(is_parked)

    def end_streams(self) -> None:
        """Let everybody go who follows something: the process is about to end, and they can resume."""
        self._feed.end()

    def connect(self, connection: Connection, certificate: object = None) -> tuple[Serving, str]:
        """A worker has opened a socket."""
        serving = self._current.serving
        return serving, serving.writer.opened(connection, certificate)

    @property
    def serving(self) -> Serving:
        """What serves now. Raises: Unavailable."""
        return self._current.serving

    @property
    def packages(self) -> Packages:
        """Raises: Unavailable, if this scheduler was made without a blob store."""
        if self._packages is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "there is no blob store")
        return self._packages

    @property
    def pools(self) -> Pools:
        """Raises: Unavailable, if this scheduler was made without pool services."""
        if self._pools is None:
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, "there are no HTTP pools")
        return self._pools.pools

    @property
    def callbacks(self) -> TaskCallbacks:
        """Raises: Unavailable, if this scheduler was made without pool services."""
        if self._callbacks is None:
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, "there are no HTTP pools")
        return self._callbacks

    @property
    def blobs(self) -> BlobServices:
        """Raises: Unavailable, if this scheduler was made without a blob store."""
        if self._blobs is None:
            raise errors.Unavailable(errors.STORE_UNAVAILABLE, "there is no blob store")
        return self._blobs
