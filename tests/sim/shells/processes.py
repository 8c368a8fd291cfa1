"""A scheduler and a worker as processes: the true shells, started, killed without a word, and started anew."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from astraflow.api.app import Application, make_app
from astraflow.config import SchedulerSettings, Secret
from astraflow.core.agent.agent import RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol import business, control
from astraflow.core.protocol.events import GatewaySettings
from astraflow.core.protocol.worker_events import Credential, SessionSettings, WorkerIdentity
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import SessionTokens
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.blob_services import BlobServices
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.copies import Copies
from astraflow.scheduler.current import Current
from astraflow.scheduler.repository import Repository, Rules
from astraflow.scheduler.service import Scheduler
from astraflow.scheduler.serving import Parts
from astraflow.scheduler.signed_urls import UrlSigner
from astraflow.scheduler.writer import pass_by
from astraflow.store.store import Retention
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from tests.sim.shells.blobs import BlobHandle
from tests.sim.shells.hosts import FakeHosts
from tests.sim.shells.wire import TO_SCHEDULER, TO_WORKER
from tests.sim.wire import SimIds, authenticate

if TYPE_CHECKING:
    from typing import Any

    from astraflow.core.engine.batch import Batch
    from astraflow.core.protocol.wire import Envelope
    from tests.sim.checkers.all import WatchedWorkerSession
    from tests.sim.shells.disk import Handle
    from tests.sim.shells.site import Site

__all__ = ["Gauge", "SchedulerProcess", "WorkerProcess"]

_SECRET = "a secret of the simulation, long enough"
_RING = KeyRing({"k1": _SECRET.encode()}, "k1")


class Gauge:
    """Counts nothing: numbers are tested where they are shown."""

    def committed(self, seconds: float, batch: Batch) -> None: ...
    def frames(self, tenant: str, received_bytes: int, sent_bytes: int) -> None: ...
    def lagged(self, seconds: float) -> None: ...
    def failed(self, kind: str) -> None:
        raise AssertionError(f"an input made a failure: {kind}")

    def stored(self, size_bytes: int) -> None: ...
    def forget(self) -> None: ...


class SchedulerProcess:
    """One scheduler over all its lives."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.scheduler: Scheduler | None = None
        self.handle: Handle | None = None
        self._app: Application | None = None
        self.requests: dict[asyncio.Task[None], None] = {}
        """What it is just answering."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.scheduler is not None or self.site.is_over:
            return
        site, config = self.site, self.site.config
        self.handle = site.handle_class(site.disk)
        store: Any = self.handle
        parts = Parts(
            scheduler_id=self.name,
            store=store,
            clock=site.clock,
            ids=SimIds(site.world),
            rng=Random(site.world.rng.getrandbits(64)),
            engine=EngineSettings(
                lease_ttl_s=config.lease_s,
                heartbeat_interval_s=config.heartbeat_s,
                dispatch_ack_timeout_s=2.0,
                cancel_grace_ms=1000,
                stop_overdue_s=3.0,
                timeout_slack_s=1.0,
                resource_grace_s=6.0,
                affinity_grace_s=6.0,
                keeps_copies=config.copies,
            ),
            gateway=GatewaySettings(
                window=config.window,
                heartbeat_interval_s=config.heartbeat_s,
                lease_ttl_s=config.lease_s,
            ),
            retention=Retention(),
            authenticate=authenticate,
            tokens=SessionTokens(_RING, 3600),
            gauge=Gauge(),
            reached=pass_by,
        )
        catalogs, current = Catalogs([]), Current()
        blobs = self._blob_services(catalogs, current) if config.keeps else None
        self.scheduler = Scheduler(parts, catalogs, current, blobs)
        self._app = None
        self._task = site.group.create_task(self.scheduler.run(), name=self.name)

    def app(self) -> Application:
        """The application of the API, made when it is first asked: most lives of a scheduler need none."""
        assert self.scheduler is not None
        if self._app is None:
            self._app = make_app(
                self.scheduler,
                SchedulerSettings(),
                secret=Secret(_SECRET),
                metrics=Metrics(),
                clock=self.site.clock,
            )
        return self._app

    def _blob_services(self, catalogs: Catalogs, current: Current) -> BlobServices:
        site = self.site
        assert self.handle is not None
        store: Any = self.handle
        blobs: Any = BlobHandle(site.shelf, self.handle)
        signer = UrlSigner([_SECRET.encode()], site.clock)
        repository = Repository(
            store,
            blobs,
            signer,
            site.clock,
            catalogs,
            spool=site.folder / self.name,
            announce=current.note_version,
            rules=Rules("off"),
        )
        copies = Copies(store, blobs, signer, site.clock, current.note_copy)
        return BlobServices(repository, copies, site.clock)

    def crash(self) -> None:
        """kill -9: the sockets and the store hear nothing more of it, then its tasks go."""
        if self.scheduler is None or self.handle is None or self._task is None:
            return
        self.site.world.log(f"{self.name} crashes")
        self.count()
        if self.handle.is_committing:
            self.site.world.sometimes("crashed in a commit")
        self.handle.kill()
        for wire in [one for one in self.site.network.wires if one.scheduler is self.scheduler]:
            is_told = self.site.world.chance(0.7)
            wire.cut(tells=(TO_WORKER,) if is_told else ())
        for request in list(self.requests):
            request.cancel()
        self._task.cancel()
        self.scheduler.end_streams()  # the sockets of those who follow break too
        self.scheduler = None

    def count(self) -> None:
        """Take what it has counted, for the *sometimes*."""
        if self.epoch and self.scheduler is not None:
            serving: Any = self.scheduler.serving
            self.site.checkers.scheduler_gone(serving)

    async def stop(self) -> None:
        """End it in order, and wait for that."""
        self.count()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.scheduler = None

    @property
    def epoch(self) -> int:
        """Of its claim, if it serves."""
        if self.scheduler is None or not self.scheduler.is_ready():
            return 0
        return self.scheduler.serving.claim.epoch


class WorkerProcess:
    """One worker instance over all its boots."""

    def __init__(self, site: Site, number: int) -> None:
        self.site = site
        self.worker_id = f"worker-{number // site.config.tenants}"
        self.tenant = site.config.tenant_of(number)
        self.name = f"{self.tenant}/{self.worker_id}"
        self.incarnation = 0
        self.ready_at = 0.0
        self.link: AgentRunner | None = None
        self.hosts: FakeHosts | None = None
        self.is_gone = False  # it will never be back
        self._task: asyncio.Task[None] | None = None

    @property
    def held_attempts(self) -> list[tuple[str, int]]:
        """What runs in its hosts."""
        return list(self.hosts.running) if self.hosts is not None else []

    def new_session(self) -> WatchedWorkerSession:
        """The session of this boot."""
        site = self.site
        session = site.checkers.worker_session_class(
            WorkerIdentity(self.tenant, self.worker_id, self.incarnation, self.name, "0.1", "sim"),
            Credential("token", "good"),
            ids=SimIds(site.world),
            rng=Random(site.world.rng.getrandbits(64)),
            settings=SessionSettings(window=site.config.window),
        )
        session.checkers = site.checkers
        session.process = self
        return session

    def boot(self) -> None:
        if self.link is not None or self.is_gone or self.site.is_over:
            return
        site, config = self.site, self.site.config
        self.incarnation += 1
        session = self.new_session()
        offer = RegisterOffer(
            control.Capabilities(control.Concurrency(config.slots), ("python",), control.FEATURES),
            packages=(control.RegisteredPackage("sim", "1.0", "installed"),),
        )
        agent = site.checkers.agent_class(session, HeldAttempts(config.slots), lambda: offer)
        link = AgentRunner(
            agent,
            Schedulers(["ws://scheduler"]),
            lambda url, listener: site.network.connect(self.name, listener),
            site.clock,
        )
        self.link = link
        self.hosts = FakeHosts(site.world, self, link)
        self._task = site.group.create_task(
            self._run(link, self.hosts), name=f"{self.name} boot {self.incarnation}"
        )

    async def _run(self, link: AgentRunner, hosts: FakeHosts) -> None:
        """Whatever ends the link ends the process; it is started anew unless the world is over."""
        try:
            await link.run(hosts, lambda envelope: _let_go(link, envelope))
        finally:
            hosts.die()
            if self.link is link:
                self.site.checkers.worker_gone(link)  # type: ignore[arg-type]
                self.link = None
        if not self.site.is_over:
            self.site.world.after(1.0, self.boot)

    def crash(self) -> None:
        """kill -9: its connection breaks, its hosts die, its memory is gone."""
        if self.link is None or self._task is None or self.hosts is None:
            return
        self.site.world.log(f"{self.name} crashes")
        self.cut_wires()
        self.site.checkers.worker_gone(self.link)  # type: ignore[arg-type]
        self.link = None
        self.hosts.die()
        self._task.cancel()

    def cut_wires(self) -> None:
        for wire in [one for one in self.site.network.wires if one.worker == self.name]:
            wire.cut(tells=(TO_SCHEDULER,) if self.site.world.chance(0.7) else ())

    async def stop(self) -> None:
        """End it in order, and wait for that."""
        if self._task is not None:
            if self.link is not None:
                self.link.end(0, "the world is over")
            await asyncio.wait([self._task])


def _let_go(link: AgentRunner, envelope: Envelope) -> None:
    """Only what is about artifacts is sent to workers here: one whose result was not taken, or whose run is over."""
    cleanup = envelope.payload
    assert isinstance(cleanup, business.ResourceCleanup), "nothing else is sent to workers here"
    if cleanup.resource_id is not None:
        gone = business.ResourceEvent(cleanup.resource_id, "evicted")
        link.tell(f"resource/{cleanup.resource_id}", business.RESOURCE_EVENT, gone)
