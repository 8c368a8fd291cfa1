"""A scheduler and a worker as processes: the true shells, started, killed without a word, and started anew."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from astraflow.core.agent.agent import RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol import business, control
from astraflow.core.protocol.events import GatewaySettings
from astraflow.core.protocol.worker_events import Credential, SessionSettings, WorkerIdentity
from astraflow.core.security.keys import KeyRing
from astraflow.core.security.tokens import SessionTokens
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.current import Current
from astraflow.scheduler.service import Scheduler
from astraflow.scheduler.serving import Parts
from astraflow.scheduler.writer import pass_by
from astraflow.store.store import Retention
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from tests.sim.shells.hosts import FakeHosts
from tests.sim.shells.wire import TO_SCHEDULER, TO_WORKER
from tests.sim.wire import SimIds, authenticate

if TYPE_CHECKING:
    from typing import Any

    from astraflow.core.engine.batch import Batch
    from astraflow.core.protocol.wire import Envelope
    from tests.sim.shells.disk import Handle
    from tests.sim.shells.site import Site

__all__ = ["Gauge", "SchedulerProcess", "WorkerProcess"]

_RING = KeyRing({"k1": b"a secret of the simulation, long enough"}, "k1")


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
        self.scheduler = Scheduler(parts, Catalogs([]), Current())
        self._task = site.group.create_task(self.scheduler.run(), name=self.name)

    def crash(self) -> None:
        """kill -9: the sockets and the store hear nothing more of it, then its tasks go."""
        if self.scheduler is None or self.handle is None or self._task is None:
            return
        self.site.world.log(f"{self.name} crashes")
        if self.handle.is_committing:
            self.site.world.sometimes("crashed in a commit")
        self.handle.kill()
        for wire in [one for one in self.site.network.wires if one.scheduler is self.scheduler]:
            is_told = self.site.world.chance(0.7)
            wire.cut(tells=(TO_WORKER,) if is_told else ())
        self._task.cancel()
        self.scheduler.end_streams()  # the sockets of those who follow break too
        self.scheduler = None

    async def stop(self) -> None:
        """End it in order, and wait for that."""
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
        self._task: asyncio.Task[None] | None = None

    def boot(self) -> None:
        if self.link is not None or self.site.is_over:
            return
        site, config = self.site, self.site.config
        self.incarnation += 1
        session = site.checkers.worker_session_class(
            WorkerIdentity(self.tenant, self.worker_id, self.incarnation, self.name, "0.1", "sim"),
            Credential("token", "good"),
            ids=SimIds(site.world),
            rng=Random(site.world.rng.getrandbits(64)),
            settings=SessionSettings(window=config.window),
        )
        session.checkers = site.checkers
        session.process = self
        offer = RegisterOffer(
            control.Capabilities(control.Concurrency(config.slots), ("python",)),
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
        for wire in [one for one in self.site.network.wires if one.worker == self.name]:
            wire.cut(tells=(TO_SCHEDULER,) if self.site.world.chance(0.7) else ())
        self.site.checkers.worker_gone(self.link)  # type: ignore[arg-type]
        self.link = None
        self.hosts.die()
        self._task.cancel()

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
