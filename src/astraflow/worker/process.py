"""The worker process, from its start to its exit.

Orphaned hosts of an earlier boot are killed before the worker registers (PROTOCOL §5.3). The first SIGTERM or SIGINT
drains; the second exits at once, and the leases of the held attempts expire.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket as sockets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from astraflow import __version__
from astraflow.chaos import reached_from
from astraflow.clock import Clock, SystemClock
from astraflow.config import WorkerSettings
from astraflow.core import errors
from astraflow.core.agent.actions import Exit
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.protocol import business, control
from astraflow.core.protocol.wire import Envelope
from astraflow.core.protocol.worker_events import Credential, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.observe.metrics import WorkerMetrics
from astraflow.observe.service_notification import ServiceManager, reporting
from astraflow.observe.spans import open_span_export
from astraflow.ulids import Ulids
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from astraflow.worker.capacity import capacity_of
from astraflow.worker.execution_traces import ExecutionTraces, TracedEvents, TracedHosts
from astraflow.worker.hosts import HostEvents, HostPool, PoolSettings, core_package, kill_orphans
from astraflow.worker.hosts.procfs import machine_memory
from astraflow.worker.hosts.scratch import Scratch
from astraflow.worker.identity import DataFolder
from astraflow.worker.lane_hosts import PoolOfHosts
from astraflow.worker.lanes import WorkerLanes
from astraflow.worker.machine import Machine
from astraflow.worker.metrics import count_heartbeat, serve_metrics, watch_attempts, watch_resources
from astraflow.worker.packages import InstallSettings, PackageInstaller, PackageInventory
from astraflow.worker.resources import ResourceService
from astraflow.worker.resources.copies import CopyFetcher
from astraflow.worker.resources.files import empty_trash
from astraflow.worker.resources.stored_results import StoredResults
from astraflow.worker.socket import OpenSocket, connecting
from astraflow.worker.tls import WorkerTls
from astraflow.worker.token_renewal import TokenRenewal, WorkerToken

if TYPE_CHECKING:
    import httpx

_log: Final = logging.getLogger(__name__)

DEFAULT_RUNTIMES: Final = ("python",)
HOST_SHARE_OF_MEMORY: Final = 0.75
"""Of the machine, for one host and all below it, unless a limit is configured."""
ANY_RUNTIME: Final = "runtime.any"
"""The feature of a worker that runs whatever runtime its packages bring."""

DRAIN_OVERRUN_S: Final = 10.0
"""Added to the drain timeout, for the acknowledgement of results; then the worker exits whatever it holds."""


class Surroundings(NamedTuple):
    """What a worker runs in: how it reaches its scheduler, and who ends it."""

    connect: Callable[[WorkerTls], OpenSocket]
    control: Callable[[WorkerLanes], AbstractContextManager[None]]
    renews_token: bool = True
    transport: httpx.AsyncBaseTransport | None = None
    """What files are sent and fetched with in place of connections."""
    manager: ServiceManager = ServiceManager()


async def run_attached_worker(
    settings: WorkerSettings,
    connect: OpenSocket,
    transport: httpx.AsyncBaseTransport,
    stop: asyncio.Event,
) -> None:
    """Run a worker in the process of its scheduler until `stop`; signals are the caller's. What it has not finished is
    killed.

    Raises: as `run_worker`.
    """
    surroundings = Surroundings(
        lambda tls: connect,
        lambda lanes: _stopping(lanes, stop),
        renews_token=False,
        transport=transport,
    )
    await _open(settings, SystemClock(), surroundings)


async def run_worker(
    settings: WorkerSettings, clock: Clock | None = None, *, parent: int | None = None
) -> int:
    """Run a worker until it is told to stop; returns the exit code.

    `parent`: the read end of a pipe that the parent process holds open. When it is closed, the parent has exited, and
    this process exits at once.

    Raises:
        Unavailable: another worker uses the data folder.
        Refused: the settings cannot be used.
    """

    manager = ServiceManager.take_from(os.environ)

    @contextmanager
    def control(lanes: WorkerLanes) -> Iterator[None]:
        drain_s = float(settings.drain_timeout_seconds)
        with _signals(lanes, drain_s, manager), _parent(lanes, parent):
            yield

    surroundings = Surroundings(
        lambda tls: connecting(tls.for_connection), control, manager=manager
    )
    return await _open(settings, clock or SystemClock(), surroundings)


async def _open(settings: WorkerSettings, clock: Clock, surroundings: Surroundings) -> int:
    tls = WorkerTls(settings)
    certificate = tls.certificate
    named = None if certificate is None else certificate.worker_id
    if certificate is not None:
        settings = msgspec.structs.replace(settings, tenant=certificate.tenant)
    folder = DataFolder.open(settings.data_dir, _make_room, named)
    try:
        schedulers = Schedulers(settings.scheduler_ws_url)
        with closing(
            ResourceService(
                settings,
                folder.path,
                folder.instance_id,
                clock,
                schedulers.origin,
                tls.downloads,
                surroundings.transport,
            )
        ) as resources:
            return await _work(settings, schedulers, folder, resources, tls, clock, surroundings)
    finally:
        folder.close()


def _make_room(path: Path) -> None:
    """Remove the hosts, the scratch files and the trash of an earlier boot."""
    killed = kill_orphans(path)
    if killed:
        _log.warning("killed %d orphaned processes of an earlier boot", killed)
    Scratch(path).clear()
    empty_trash(path)


async def _work(
    settings: WorkerSettings,
    schedulers: Schedulers,
    folder: DataFolder,
    resources: ResourceService,
    tls: WorkerTls,
    clock: Clock,
    surroundings: Surroundings,
) -> int:
    """Wire the worker, in the order in which its parts need each other, and run it."""
    settings = _with_memory_limit(settings)
    metrics = WorkerMetrics()
    inventory = _inventory(settings, folder)
    given = None if settings.auth_token is None else settings.auth_token.reveal()
    token = WorkerToken(folder.path, given)
    machine, ids, connect = Machine(folder.path), Ulids(clock), surroundings.connect(tls)

    def measure(attempts: int) -> control.HeartbeatMetrics:
        told = machine.metrics(attempts, resources.metrics())
        count_heartbeat(metrics, told)
        return told

    open_session = partial(_session, settings, folder, token, tls, ids)
    lanes = _lanes(settings, schedulers, inventory, open_session, connect, measure, clock)
    renewal: TokenRenewal | None = None
    if surroundings.renews_token:
        renewal = TokenRenewal(token, schedulers.origin, lanes.present, tls.downloads)
    pool_settings = _pool_settings(settings, folder, resources)
    packages_woken = asyncio.Event()
    spans = open_span_export("astraflow-worker", folder.instance_id, settings.otlp_endpoint)
    traces = None if spans is None else ExecutionTraces(spans, clock, folder.instance_id)
    events: HostEvents = lanes if traces is None else TracedEvents(lanes, traces)
    pool = HostPool(
        folder=folder.path,
        clock=clock,
        settings=pool_settings,
        packages=inventory.spec,
        events=StoredResults(events, resources.uploads),
        broker=resources.broker,
        changed=packages_woken.set,
        observe_duration=metrics.task_duration.observe,
    )
    installer = PackageInstaller(
        inventory,
        pool,
        data_dir=folder.path,
        clock=clock,
        settings=InstallSettings.of(settings, schedulers.origin, tls.downloads),
        hosts=pool_settings,
        tell=lanes.tell,
        offer_changed=lanes.offer_changed,
        woken=packages_woken,
        reached=reached_from(os.environ),
    )
    hosts: PoolOfHosts = pool if traces is None else TracedHosts(pool, traces)
    fetcher = resources.fetcher(hosts, lanes)
    watch_attempts(metrics, lambda: lanes.working, pool)
    watch_resources(metrics, resources.metrics)
    try:
        async with (
            serve_metrics(metrics, settings.metrics_host, settings.metrics_port),
            reporting(surroundings.manager, lambda: _status(lanes)),
        ):
            with surroundings.control(lanes):
                ended = await _keep(lanes, fetcher, installer, resources, renewal)
    finally:
        await pool.close()
        if spans is not None:
            await asyncio.to_thread(spans.close)
    return ended.code


def _status(lanes: WorkerLanes) -> str:
    """What it does, for people."""
    count = lanes.working
    doing = "draining" if lanes.is_draining else "working"
    waiting = f", {lanes.waiting} of them waiting" if lanes.waiting else ""
    return f"{doing}: {count} attempt{'' if count == 1 else 's'}{waiting}"


def _inventory(settings: WorkerSettings, folder: DataFolder) -> PackageInventory:
    limit = settings.host_max_mem_bytes
    core = msgspec.structs.replace(core_package(), memory_limit_bytes=limit)
    return PackageInventory(folder.path, core, limit)


def _pool_settings(
    settings: WorkerSettings, folder: DataFolder, resources: ResourceService
) -> PoolSettings:
    return PoolSettings(
        worker_id=folder.instance_id,
        tenant=settings.tenant,
        max_hosts=2 * settings.concurrency_max_parallel,
        result_bytes=settings.inline_result_limit_bytes,
        resources_dir=resources.folder,
        disk_bytes=settings.resource_max_disk_bytes,
        max_processes=settings.host_max_processes,
        environment=settings.host_environment,
    )


def _with_memory_limit(settings: WorkerSettings) -> WorkerSettings:
    """Without a limit one handler can take all memory, and the kernel kills any process for it."""
    memory = machine_memory()
    if settings.host_max_mem_bytes is not None or memory is None:
        return settings
    limit = int(HOST_SHARE_OF_MEMORY * memory)
    return msgspec.structs.replace(settings, host_max_mem_bytes=limit)


async def _keep(
    lanes: WorkerLanes,
    hosts: CopyFetcher,
    installer: PackageInstaller,
    resources: ResourceService,
    renewal: TokenRenewal | None = None,
) -> Exit:
    """Keep the sessions, install and fetch what is needed meanwhile, and clean up."""
    from_home: dict[type[Any], Callable[[Any], None]] = {
        business.PkgInstall: installer.install,
        business.PkgUninstall: installer.uninstall,
    }
    from_any: dict[type[Any], Callable[[Any, int], None]] = {
        business.ResourceCleanup: resources.on_cleanup,
        business.ResourceTouch: resources.on_touch,
        business.ResourceExport: resources.on_export,
    }

    def receive(envelope: Envelope, lane: int) -> None:
        payload = envelope.payload
        if (take := from_any.get(type(payload))) is not None:
            take(payload, lane)
        elif lane == control.HOME_LANE and (order := from_home.get(type(payload))) is not None:
            order(payload)
        else:
            extra = {"type": envelope.type, "id": envelope.id}
            text = "no receiver for frame type %s of lane %d"
            _log.warning(text, envelope.type, lane, extra=extra)

    async with asyncio.TaskGroup() as group:
        beside = [
            group.create_task(installer.run()),
            group.create_task(resources.run(lanes.tell)),
            group.create_task(hosts.run()),
        ]
        if renewal is not None:
            beside.append(group.create_task(renewal.run()))
        ended = await lanes.run(hosts, receive)
        for one in beside:
            one.cancel()
    return ended


def _lanes(
    settings: WorkerSettings,
    schedulers: Schedulers,
    inventory: PackageInventory,
    open_session: Callable[[int], WorkerSession],
    connect: OpenSocket,
    measure: Callable[[int], control.HeartbeatMetrics],
    clock: Clock,
) -> WorkerLanes:
    """All lanes of the worker; `measure` gets how many attempts it has in all of them."""

    def open_lane(
        lane: int, schedulers: Schedulers, slots: Callable[[], int | None]
    ) -> AgentRunner:
        session = open_session(lane)
        agent = _agent(settings, session, inventory, slots, lambda: measure(lanes.working))
        return AgentRunner(agent, schedulers, connect, clock)

    lanes = WorkerLanes(schedulers, settings.concurrency_max_parallel, open_lane)
    return lanes


def _agent(
    settings: WorkerSettings,
    session: WorkerSession,
    inventory: PackageInventory,
    slots: Callable[[], int | None],
    measure: Callable[[], control.HeartbeatMetrics],
) -> Agent:
    any_runtime = () if settings.runtime_names else (ANY_RUNTIME,)
    capabilities = control.Capabilities(
        control.Concurrency(settings.concurrency_max_parallel),
        settings.runtime_names or DEFAULT_RUNTIMES,
        (*settings.feature_flags, *any_runtime, *control.FEATURES),
        capacity_of(settings.capacity_cpu, settings.capacity_memory_bytes, settings.capacity_gpu),
    )

    def offer() -> RegisterOffer:
        packages, labels = inventory.registered(), settings.labels
        return RegisterOffer(capabilities, packages=packages, labels=labels, slots=slots())

    return Agent(
        session,
        HeldAttempts(settings.concurrency_max_parallel),
        offer,
        measure,
        lambda: control.HeartbeatPackages(inventory.digest()),
    )


def _session(
    settings: WorkerSettings,
    folder: DataFolder,
    token: WorkerToken,
    tls: WorkerTls,
    ids: Ulids,
    lane: int,
) -> WorkerSession:
    if not token.text and tls.certificate is None:
        raise errors.Refused(
            errors.CONFIG_INVALID,
            "The worker has no token: auth_token is not set",
            pointer="/auth_token",
            detail={
                "hint": "set ASTRA_WORKER_AUTH_TOKEN or ASTRA_WORKER_AUTH_TOKEN_FILE to a token of the scheduler"
            },
        )
    hostname = sockets.gethostname()
    identity = WorkerIdentity(
        settings.tenant,
        folder.instance_id,
        folder.incarnation,
        settings.name or hostname,
        __version__,
        hostname,
        lane,
    )
    return WorkerSession(
        identity,
        # Without a fingerprint: the certificate of the next connection may be a renewed one.
        Credential("mtls") if tls.certificate is not None else Credential("token", token.text),
        ids=ids,
        rng=Random(os.urandom(32)),  # noqa: S311 - jitter only; ids have their own source
    )


@contextmanager
def _signals(lanes: WorkerLanes, drain_s: float, manager: ServiceManager) -> Iterator[None]:
    """Drain on the first SIGTERM or SIGINT of this process, and end on the second."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def on_signal() -> None:
        if timers:
            lanes.end(1, "second signal")
            return
        _log.info("draining, timeout %g s", drain_s)
        manager.stopping()
        lanes.drain(drain_s)
        overrun = drain_s + DRAIN_OVERRUN_S
        timers.append(loop.call_later(overrun, lanes.end, 1, "drain timeout"))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        for timer in timers:
            timer.cancel()


@contextmanager
def _stopping(lanes: WorkerLanes, stop: asyncio.Event) -> Iterator[None]:
    """End when the event is set."""

    async def wait() -> None:
        await stop.wait()
        lanes.end(0, "stopped")

    waiting = asyncio.create_task(wait())
    try:
        yield
    finally:
        waiting.cancel()


@contextmanager
def _parent(lanes: WorkerLanes, pipe: int | None) -> Iterator[None]:
    """End when the process that started this one, and holds the other end of the pipe, has exited."""
    if pipe is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        if not os.read(pipe, 4096):
            loop.remove_reader(pipe)
            lanes.end(1, "the parent process has exited")

    loop.add_reader(pipe, on_readable)
    try:
        yield
    finally:
        loop.remove_reader(pipe)
