"""The worker process, from its start to its end.

Left-over hosts of the boot before are killed before anything is registered (PROTOCOL §5.3). A first SIGTERM or SIGINT
drains; a second one ends at once, and what was held is lost to its leases.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket as sockets
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

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
from astraflow.core.protocol.wire import Envelope, Wire
from astraflow.core.protocol.worker_events import Credential, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.observe.metrics import WorkerMetrics
from astraflow.ulids import Ulids
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from astraflow.worker.hosts import HostPool, PoolSettings, core_package, kill_orphans
from astraflow.worker.hosts.procfs import machine_memory
from astraflow.worker.hosts.scratch import Scratch
from astraflow.worker.identity import DataFolder
from astraflow.worker.machine import Machine
from astraflow.worker.metrics import Counting, count_heartbeat, serve_metrics, watch_resources
from astraflow.worker.packages import InstallSettings, Packages
from astraflow.worker.resources import ResourceService
from astraflow.worker.resources.copies import CopyFetcher
from astraflow.worker.resources.files import empty_trash
from astraflow.worker.socket import connect

__all__ = ["run_worker"]

_log: Final = logging.getLogger(__name__)

DEFAULT_RUNTIMES: Final = ("python",)
HOST_SHARE_OF_MEMORY: Final = 0.75
"""Of the machine, for one host and all below it, unless a limit is configured."""
ANY_RUNTIME: Final = "runtime.any"
"""The feature of a worker that runs whatever runtime its packages bring."""

DRAIN_OVERRUN_S: Final = 10.0
"""After the drain's deadline, for reports to be acknowledged; then the worker ends whatever it holds."""


async def run_worker(
    settings: WorkerSettings, clock: Clock | None = None, *, parent: int | None = None
) -> int:
    """Work until told to stop; returns the exit code.

    `parent`: the reading end of a pipe that the process which started this one holds open. When it is closed, that
    process is gone, and so is this one at once.

    Raises:
        Unavailable: another worker uses the data folder.
        Refused: the settings cannot be used.
    """
    clock = clock or SystemClock()
    folder = DataFolder.open(settings.data_dir, _make_room)
    try:
        schedulers = Schedulers(settings.scheduler_ws_url)
        with closing(
            ResourceService(settings, folder.path, folder.instance_id, clock, schedulers.origin)
        ) as resources:
            return await _work(settings, schedulers, folder, resources, clock, parent)
    finally:
        folder.close()


def _make_room(path: Path) -> None:
    """Remove what the boot before has left: its hosts, what they wrote, and what waited to be deleted."""
    killed = kill_orphans(path)
    if killed:
        _log.warning("killed %d processes that the boot before had left", killed)
    Scratch(path).clear()
    empty_trash(path)


async def _work(
    settings: WorkerSettings,
    schedulers: Schedulers,
    folder: DataFolder,
    resources: ResourceService,
    clock: Clock,
    parent: int | None,
) -> int:
    settings = _with_memory_limit(settings)
    core = msgspec.structs.replace(core_package(), memory_limit_bytes=settings.host_max_mem_bytes)
    metrics = WorkerMetrics()
    receivers = _Receivers()
    host_settings = PoolSettings(
        worker_id=folder.instance_id,
        tenant=settings.tenant,
        max_hosts=2 * settings.concurrency_max_parallel,
        result_bytes=settings.inline_result_limit_bytes,
        resources_dir=resources.folder,
        disk_bytes=settings.resource_max_disk_bytes,
        max_processes=settings.host_max_processes,
        environment=settings.host_environment,
    )
    packages = Packages(
        data_dir=folder.path,
        clock=clock,
        settings=InstallSettings.of(settings, schedulers.origin),
        hosts=host_settings,
        core=core,
        reached=reached_from(os.environ),
    )
    link = _link(settings, schedulers, folder, packages, resources, clock, metrics, receivers)
    counting = Counting(link, link.agent.attempts, metrics)
    pool = HostPool(
        folder=folder.path,
        clock=clock,
        settings=host_settings,
        packages=packages.spec,
        events=counting,
        keeper=resources.keeper,
    )
    counting.watch(pool)
    watch_resources(metrics, resources.metrics)
    packages.connect(pool, link.tell, link.offer_changed)
    receivers.put(business.PkgInstall, packages.install)
    receivers.put(business.PkgUninstall, packages.uninstall)
    receivers.put(business.ResourceCleanup, resources.on_cleanup)
    receivers.put(business.ResourceTouch, resources.on_touch)
    receivers.put(business.ResourceExport, resources.on_export)
    try:
        async with serve_metrics(metrics, settings.metrics_host, settings.metrics_port):
            with _Signals(link, settings), _Parent(link, parent):
                fetcher = resources.fetcher(pool, counting)
                ended = await _keep(link, fetcher, packages, resources)
    finally:
        await pool.close()
    return ended.code


def _with_memory_limit(settings: WorkerSettings) -> WorkerSettings:
    """Without a limit one handler takes the machine, and the kernel chooses whom to kill for it."""
    memory = machine_memory()
    if settings.host_max_mem_bytes is not None or memory is None:
        return settings
    limit = int(HOST_SHARE_OF_MEMORY * memory)
    return msgspec.structs.replace(settings, host_max_mem_bytes=limit)


async def _keep(
    link: AgentRunner, hosts: CopyFetcher, packages: Packages, resources: ResourceService
) -> Exit:
    """Keep the session, install and fetch what is needed meanwhile, and clean up."""
    async with asyncio.TaskGroup() as group:
        beside = [
            group.create_task(packages.run()),
            group.create_task(resources.run(link.tell)),
            group.create_task(hosts.run()),
        ]
        ended = await link.run(hosts)
        for one in beside:
            one.cancel()
    return ended


def _link(
    settings: WorkerSettings,
    schedulers: Schedulers,
    folder: DataFolder,
    packages: Packages,
    resources: ResourceService,
    clock: Clock,
    metrics: WorkerMetrics,
    receivers: _Receivers,
) -> AgentRunner:
    if settings.auth_token is None:
        raise errors.Refused(
            errors.CONFIG_INVALID,
            "a worker needs a token: auth_token is not set",
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
    )
    session = WorkerSession(
        identity,
        Credential("token", settings.auth_token.reveal()),
        ids=Ulids(clock),
        rng=Random(os.urandom(32)),  # noqa: S311 - jitter only; ids have their own source
    )
    any_runtime = () if settings.runtime_names else (ANY_RUNTIME,)
    capabilities = control.Capabilities(
        control.Concurrency(settings.concurrency_max_parallel),
        settings.runtime_names or DEFAULT_RUNTIMES,
        (*settings.feature_flags, *any_runtime),
    )
    attempts = HeldAttempts(settings.concurrency_max_parallel)
    machine = Machine(folder.path)

    def measure() -> control.HeartbeatMetrics:
        told = machine.metrics(len(attempts.working()), resources.metrics())
        count_heartbeat(metrics, told)
        return told

    agent = Agent(
        session,
        attempts,
        lambda: RegisterOffer(capabilities, packages=packages.inventory(), labels=settings.labels),
        measure,
        lambda: control.HeartbeatPackages(packages.digest()),
    )
    return AgentRunner(agent, schedulers, connect, clock, receivers)


class _Receivers:
    """Who takes the frames that are not about attempts, by the type of their payload."""

    def __init__(self) -> None:
        self._takers: dict[type[Any], Callable[[Any], None]] = {}

    def put(self, payload: type[Wire], taker: Callable[[Any], None]) -> None:
        self._takers[payload] = taker

    def __call__(self, envelope: Envelope) -> None:
        taker = self._takers.get(type(envelope.payload))
        if taker is None:
            _log.warning(
                "frame without a receiver", extra={"type": envelope.type, "id": envelope.id}
            )
        else:
            taker(envelope.payload)


class _Signals:
    """SIGTERM and SIGINT of this process, while the link runs."""

    def __init__(self, link: AgentRunner, settings: WorkerSettings) -> None:
        self._link = link
        self._deadline_s = float(settings.drain_timeout_seconds)
        self._loop = asyncio.get_running_loop()
        self._asked = 0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.remove_signal_handler(number)
        if self._timer is not None:
            self._timer.cancel()

    def _on_signal(self) -> None:
        self._asked += 1
        if self._asked > 1:
            self._link.end(1, "told twice to stop")
            return
        _log.info("draining for at most %g s", self._deadline_s)
        self._link.drain(self._deadline_s)
        self._timer = self._loop.call_later(
            self._deadline_s + DRAIN_OVERRUN_S, self._link.end, 1, "the drain did not end"
        )


class _Parent:
    """The process that started this one, while the link runs."""

    def __init__(self, link: AgentRunner, pipe: int | None) -> None:
        self._link = link
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        if self._pipe is not None:
            self._loop.add_reader(self._pipe, self._on_readable, self._pipe)

    def __exit__(self, *_: object) -> None:
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)

    def _on_readable(self, pipe: int) -> None:
        if not os.read(pipe, 4096):
            self._loop.remove_reader(pipe)
            self._link.end(1, "the process that started it is gone")
