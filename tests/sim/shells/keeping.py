"""A worker that keeps something: the real resource service, host pool, install queue and inventory, in virtual time.

Only the programs of its hosts, the environments of its packages and its network are imitated. Its disk is a folder. A
crash leaves the next boot a copy of that folder as it was at this moment, so that what the dead one still cleans up
changes nothing.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astraflow.config import WorkerSettings
from astraflow.core import errors
from astraflow.core.agent.agent import RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business, control
from astraflow.core.workflow.core_manifest import CORE_PACKAGE
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from astraflow.worker.hosts import HostPool, PoolSettings, core_package
from astraflow.worker.hosts.scratch import Scratch
from astraflow.worker.lanes import WorkerLanes
from astraflow.worker.packages import InstallSettings, PackageInstaller, PackageInventory
from astraflow.worker.packages.index import FOLDER, RECORD, STAGING
from astraflow.worker.process import _keep
from astraflow.worker.resources import ResourceService
from astraflow.worker.resources.files import empty_trash
from tests.sim.shells.archives import fill_environment, give_sim
from tests.sim.shells.processes import WorkerProcess
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astraflow.core.protocol.wire import Wire
    from astraflow.worker.hosts import frames
    from astraflow.worker.lane_hosts import PoolOfHosts
    from astraflow.worker.resources.resource import LocalResource
    from tests.sim.shells.config import Config
    from tests.sim.shells.host_process import HostProgram
    from tests.sim.shells.site import Site
    from tests.sim.shells.world import LoopWorld

__all__ = ["Boot", "KeepingWorker", "fake_environment"]

_EQUIP_S = 1.0
_SETTINGS = WorkerSettings(resource_gc_interval_seconds=5)


class Kept:
    """A resource as the checkers know it."""

    def __init__(self, resource: LocalResource, marks: dict[str, None]) -> None:
        self.resource_id = resource.resource_id
        self.run_id = resource.run_id
        self.node_id = resource.node_id
        self.scope = resource.scope
        self.marks = marks


class Keeping:
    """What a worker really has, over all its boots, as the checkers of the core worlds ask for it."""

    def __init__(self, worker: KeepingWorker) -> None:
        self._worker = worker

    @property
    def fetched(self) -> dict[str, Kept]:
        """Ids are unique: whoever has what another has made has fetched its copy."""
        return self.kept

    @property
    def kept(self) -> dict[str, Kept]:
        boot, marks = self._worker.current, self._worker.marks
        found = boot.resources.registry.list() if boot is not None else []
        return {one.resource_id: Kept(one, marks.get(one.token, {})) for one in found}

    @property
    def installed(self) -> dict[tuple[str, str], None]:
        """What its disk has: a version is there with its record, or not at all."""
        records = (self._worker.folder / FOLDER).glob(f"[!.]*/*/{RECORD}")
        return {(path.parts[-3], path.parts[-2]): None for path in sorted(records)}


class Boot:
    """One boot of a worker, wired as `worker.process` does it."""

    def __init__(self, worker: KeepingWorker, number: int) -> None:
        site = worker.site
        self.worker = worker
        self.world: LoopWorld = site.world
        self.config: Config = site.config
        self.folder = worker.folder
        self.host = f"boot-{number}"
        self.is_dead = False
        self.programs: dict[HostProgram, None] = {}
        Scratch(self.folder).clear()
        empty_trash(self.folder)
        schedulers = Schedulers([f"ws://{self.host}"])
        self.resources = ResourceService(
            _SETTINGS, self.folder, worker.worker_id, site.clock, schedulers.origin
        )
        self.inventory = PackageInventory(self.folder, core_package(), None)
        self.runner = _WatchedRunner(
            self,
            self._agent(site),
            schedulers,
            lambda url, listener: site.network.connect(worker.name, listener),
            site.clock,
        )
        self.lanes = WorkerLanes(
            schedulers, self.config.slots, lambda lane, schedulers, slots: self.runner
        )
        self.pool = self._pool(site)
        self.installer = self._installer(site, schedulers)
        self.fetcher = self.resources.fetcher(self.pool, self.lanes)

    def _agent(self, site: Site) -> Any:
        config, worker = self.config, self.worker
        capabilities = control.Capabilities(
            control.Concurrency(config.slots),
            ("python",),
            (*_SETTINGS.feature_flags, *control.FEATURES),
        )
        return site.checkers.agent_class(
            worker.new_session(),
            HeldAttempts(config.slots),
            lambda: RegisterOffer(capabilities, packages=self.inventory.registered()),
            control.HeartbeatMetrics,
            lambda: control.HeartbeatPackages(self.inventory.digest()),
        )

    def _pool(self, site: Site) -> HostPool:
        self.woken = asyncio.Event()
        self.pool_settings = PoolSettings(
            worker_id=self.worker.worker_id,
            tenant=self.worker.tenant,
            max_hosts=2 * self.config.slots,
            resources_dir=self.resources.folder,
            idle_timeout_s=8.0,
            own_idle_timeout_s=2.0,
        )
        return HostPool(
            folder=self.folder,
            clock=site.clock,
            settings=self.pool_settings,
            packages=self.inventory.spec,
            events=self.lanes,
            broker=self.resources.broker,
            changed=self.woken.set,
        )

    def _installer(self, site: Site, schedulers: Schedulers) -> PackageInstaller:
        return PackageInstaller(
            self.inventory,
            self.pool,
            data_dir=self.folder,
            clock=site.clock,
            settings=InstallSettings(origin=schedulers.origin, policy="off"),
            hosts=self.pool_settings,
            tell=self.lanes.tell,
            offer_changed=self.lanes.offer_changed,
            woken=self.woken,
            reached=lambda place: None,
        )

    async def run(self) -> None:
        """Until its agent ends, or it is cancelled, as a dead one is."""
        hosts: Any = _WatchedHosts(self, self.fetcher)
        resources: Any = _WatchedResources(self)
        with closing(self.resources):
            try:
                await _keep(self.lanes, hosts, self.installer, resources)
            finally:
                await self.pool.close()

    def kill(self) -> None:
        """kill -9."""
        self.is_dead = True
        for program in list(self.programs):
            program.die_with_worker()

    # -- told by what is imitated --------------------------------------------------------------

    def draws_broken_package(self, folder: Path) -> bool:
        """Whether a host that is started only to probe an install finds code that does not run."""
        return STAGING in folder.parts and self.draws_install_fault(0.15)

    def draws_install_fault(self, probability: float) -> bool:
        is_breaking = self.config.has("install") and not self.worker.site.disk.is_healed
        return is_breaking and self.world.chance(probability)

    def attempt_started(self, start: frames.HostStart) -> None:
        checkers, worker = self.worker.site.checkers, self.worker
        checkers.attempt_started(worker, start)  # type: ignore[arg-type]
        for ref in start.resource_refs:
            if b"copyUrl" in bytes(ref.metadata):
                self.world.sometimes("copy fetched")
        if start.resource_refs:
            checkers.resources.on_use(worker, start)  # type: ignore[arg-type]

    def attempt_ended(self, start: frames.HostStart) -> None:
        self.worker.site.checkers.attempt_ended(start.task_id, start.attempt)


class _WatchedHosts:
    """The hosts of a worker, with what is started in them shown to the checkers."""

    def __init__(self, boot: Boot, hosts: Any) -> None:
        self._boot = boot
        self._hosts: PoolOfHosts = hosts
        self.run = hosts.run

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        worker = self._boot.worker
        worker.site.checkers.resources.on_start(worker, dispatch)  # type: ignore[arg-type]
        self._hosts.start(dispatch, fence_at, lane)

    def cancel(self, task_id: str, attempt: int, grace_s: float, reason: str) -> None:
        self._hosts.cancel(TaskId(task_id), attempt, grace_s, reason)

    def kill(self, task_id: str, attempt: int) -> None:
        self._hosts.kill(TaskId(task_id), attempt)

    def answer(self, response: business.NextResponse) -> None:
        self._hosts.answer(response)

    def refence(self, fences: Mapping[tuple[str, int], float]) -> None:
        self._hosts.refence(fences)


class _WatchedResources:
    """The resource service as frames reach it, with the ends of scopes shown to the checkers."""

    def __init__(self, boot: Boot) -> None:
        self._boot = boot
        self.run = boot.resources.run
        self.on_touch = boot.resources.on_touch
        self.on_export = boot.resources.on_export

    def on_cleanup(self, cleanup: business.ResourceCleanup, lane: int = 0) -> None:
        worker: Any = self._boot.worker
        if cleanup.scope is not None:
            worker.site.checkers.resources.on_cleanup(worker, cleanup.scope)
        self._boot.resources.on_cleanup(cleanup, lane)


class _WatchedRunner(AgentRunner):
    """The runner, with what its worker tells held against what the worker has."""

    def __init__(self, boot: Boot, *how: Any) -> None:
        super().__init__(*how)
        self._boot = boot

    def tell(self, key: str, frame_type: str, payload: Wire, corr: str | None = None) -> None:
        if not self._boot.is_dead:
            self._boot.worker.told(payload)
        super().tell(key, frame_type, payload, corr)

    def finished(self, result: business.Result) -> None:
        if not self._boot.is_dead:
            self._boot.worker.site.checkers.attempt_finished(self._boot.worker, result)
        super().finished(result)


class KeepingWorker(WorkerProcess):
    """One worker instance over all its boots, with the folder that they share."""

    def __init__(self, site: Site, number: int) -> None:
        super().__init__(site, number)
        self.keeping = Keeping(self)
        self.marks: dict[str, dict[str, None]] = {}
        """By registration: the nodes that have changed a resource, as a login changes a session."""
        self.current: Boot | None = None
        self._copies = 0
        self.folder = self._next_folder()
        self.folder.mkdir(parents=True)
        give_sim(self.folder)

    def _next_folder(self) -> Path:
        self._copies += 1
        return self.site.folder / self.name / str(self._copies)

    @property
    def agent(self) -> Any:
        return self.link.agent if self.link is not None else None

    @property
    def held_attempts(self) -> list[tuple[str, int]]:
        return list(self.current.pool._running) if self.current is not None else []

    def boot(self) -> None:
        if self.link is not None or self.is_gone or self.site.is_over:
            return
        self.incarnation += 1
        boot = self.site.new_boot(self)
        self.current, self.link = boot, boot.runner
        name = f"{self.name} boot {self.incarnation}"
        self._task = self.site.group.create_task(self._live(boot), name=name)

    async def _live(self, boot: Boot) -> None:
        try:
            await boot.run()
        except asyncio.CancelledError:
            if not boot.is_dead:
                raise
        finally:
            if self.current is boot:
                self.site.checkers.worker_gone(boot.runner)  # type: ignore[arg-type]
                self.current = self.link = None
        if not self.site.is_over and not boot.is_dead:
            self.site.world.after(1.0, self.boot)

    def crash(self) -> None:
        boot = self.current
        if boot is None or self._task is None:
            return
        self.site.world.log(f"{self.name} crashes")
        self.cut_wires()
        self.site.checkers.worker_gone(boot.runner)  # type: ignore[arg-type]
        self.current = self.link = None
        boot.kill()
        self.folder = self._next_folder()
        # What SQLite has in memory of its log is made anew from the log.
        shutil.copytree(boot.folder, self.folder, ignore=shutil.ignore_patterns("*-shm"))
        self._task.cancel()

    def told(self, payload: Wire) -> None:
        """What a worker says of itself is so, on its disk and in its hosts."""
        if isinstance(payload, business.PkgEvent):
            has_it = (payload.name, payload.version) in self.keeping.installed
            if payload.status in ("installed", "removed") and has_it != (
                payload.status == "installed"
            ):
                said = f"{payload.name} {payload.version} is {payload.status}"
                raise Violation("I19", f"{self.name} says that {said}, and its disk does not")
            if payload.status == "removed":
                self.site.world.sometimes("version removed")
        elif isinstance(payload, business.ResourceEvent) and self.current is not None:
            found = self.current.resources.registry.find(payload.resource_id)
            is_there = found is not None and not found.is_gone
            if is_there != (payload.state not in ("evicted", "released")):
                said = f"{payload.resource_id} is {payload.state}"
                raise Violation("I18", f"{self.name} says that {said}, and it is not so")

    def check_installer(self) -> None:
        """Whenever time passes: it does not sleep while it has something to install or to remove."""
        boot = self.current
        if boot is None or boot.woken.is_set() or not boot.woken._waiters:
            return
        hosts = {(host.spec.name, host.spec.version) for host in boot.pool._fleet.hosts}
        if any(key not in boot.installer._installed for key in hosts if key[0] != CORE_PACKAGE):
            return  # it waits for the end of the hosts of a version that it removes
        removal = boot.installer._next_removal()
        if removal is not None or boot.inventory.queue.first() is not None:
            raise Violation("wake-up", f"the installer of {self.name} sleeps, and has work")

    def check(self) -> None:
        """What must hold of it at every moment."""
        if self.current is None:
            return
        registry = self.current.resources.registry
        registry.check()
        objects = {token for program in self.current.programs for token in program.objects}
        for one in registry.list():
            if one.kind == "memory" and one.state == "ready" and one.token not in objects:
                raise Violation("I18", f"{self.name} keeps {one.resource_id}, which no host has")

    def evict(self) -> None:
        """Attempts have written so much that there is no room: unused files go."""
        if self.current is not None:
            registry = self.current.resources.registry
            written, registry.scratch_bytes = registry.scratch_bytes, 2**60
            registry.gc()
            registry.scratch_bytes = written

    def crash_host(self) -> None:
        programs = list(self.current.programs) if self.current is not None else []
        if programs:
            self.site.world.rng.choice(programs).crash()


async def fake_environment(boot: Boot, folder: Path, *_: object, **__: object) -> None:
    """`worker.packages.environment.make_environment`: it takes its time, and fails sometimes."""
    await asyncio.sleep(boot.world.delay(_EQUIP_S))
    if boot.draws_install_fault(0.35):
        raise errors.Unavailable(errors.PKG_INSTALL_FAILED, "planted: uv ended with 1")
    fill_environment(folder)
