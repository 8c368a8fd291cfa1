"""What a simulated worker keeps: resources in memory and on disk, and packages that it installs when it is told to.

It does what a real worker does: memory ends with the process, files stay; what is in use goes with its last use; a
result that lists a file keeps it from the end of its scope; an order to install is on the disk, and begun again after a
crash.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from astraflow.core import errors
from astraflow.core.engine.commands import NoteCopy
from astraflow.core.ids import RunId
from astraflow.core.protocol import business, control
from tests.sim.edges import edge_json, edge_time

if TYPE_CHECKING:
    from astraflow.core.protocol.wire import Envelope, Wire
    from tests.sim.worker import Host, WorkerProcess

__all__ = ["EXTRA", "NEXT", "Keeping", "Kept"]

EXTRA = ("extra", "1.0")
NEXT = ("extra", "2.0")
"""Two versions of a package that no worker has at the start, and that the repository has."""
_MEMORY_OF = business.PackageId("sim", "1.0")
_PASSING = "E.PKG.INSTALL_FAILED"
_FINAL = "E.PKG.INVALID"


class Kept:
    """A resource as its worker knows it."""

    __slots__ = (
        "end",
        "is_durable",
        "is_listed",
        "is_memory",
        "marks",
        "node_id",
        "resource_id",
        "run_id",
        "scope",
        "users",
    )

    def __init__(self, resource_id: str, run_id: str, node_id: str) -> None:
        self.resource_id = resource_id
        self.run_id = run_id
        self.node_id = node_id
        self.scope = run_id
        self.is_memory = False
        self.is_listed = False
        self.is_durable = False  # it shall outlive this worker: a copy of it is made
        self.end: str | None = None  # set: it goes with its last use, and this is said then
        self.users: dict[tuple[str, int], None] = {}
        self.marks: dict[
            str, None
        ] = {}  # the nodes that have changed it, as a login changes a session

    def ref(self, worker_id: str | None) -> dict[str, object]:
        said = {"resourceId": self.resource_id, "type": "thing"}
        if worker_id is not None:
            said["workerId"] = worker_id
        return {"resourceRef": said}


class Keeping:
    """The resources and packages of one worker instance, over all its boots."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.world = process.world
        self.kept: dict[str, Kept] = {}
        self.installed: dict[tuple[str, str], None] = {}
        self.fetched: dict[
            str, None
        ] = {}  # the ids of resources whose copies this worker has fetched
        self._orders: dict[tuple[str, str], None] = {}

    # -- life -------------------------------------------------------------------------------

    def packages(self) -> tuple[control.RegisteredPackage, ...]:
        return tuple(control.RegisteredPackage(*key, "installed") for key in self.installed)

    def boot(self) -> None:
        """Read the disk: say what is left, and what is not."""
        for one in list(self.kept.values()):
            one.users.clear()
            if one.is_memory or one.end is not None:
                self._finish(one, "evicted")
            else:
                self._tell(one, "ready")
        for key in self._orders:
            self._begin(key)

    def lose_memory(self) -> None:
        """The host that holds all objects is dead."""
        for one in list(self.kept.values()):
            if one.is_memory:
                self._finish(one, "evicted")

    # -- resources --------------------------------------------------------------------------

    def draw(self, host: Host) -> Kept:
        """What an attempt makes."""
        rng, dispatch = self.world.rng, host.dispatch
        made = Kept(self.world.new_id(), dispatch.run_id, dispatch.node_id)
        made.is_memory = rng.random() < 0.5
        if rng.random() < 0.2:
            made.scope = f"session-{rng.randrange(3)}"
        made.is_durable = self.process.config.copies and not made.is_memory
        return made

    def add(self, made: Kept) -> None:
        self.kept[made.resource_id] = made
        self._tell(made, "ready")

    def lease(self, host: Host) -> str | None:
        """Lease all that a dispatch refers to, or nothing; says what is not there."""
        refs = [ref.resource_id for ref in host.dispatch.resource_refs]
        self._fetch_copies(host)
        for resource_id in refs:
            one = self.kept.get(resource_id)
            if one is None or one.end is not None:
                return resource_id
        for resource_id in refs:
            self.kept[resource_id].users[host.task_id, host.attempt] = None
        return None

    def _fetch_copies(self, host: Host) -> None:
        """What is not here and has a copy becomes a resource of this worker."""
        dispatch = host.dispatch
        for ref in dispatch.resource_refs:
            one = self.kept.get(ref.resource_id)
            if b"copyUrl" in bytes(ref.metadata) and (one is None or one.end is not None):
                self.world.sometimes("copy fetched")
                self.fetched[ref.resource_id] = None
                self.add(Kept(ref.resource_id, dispatch.run_id, dispatch.node_id))

    def metadata(self, one: Kept) -> msgspec.Raw:
        return msgspec.Raw(b'{"durable":true}') if one.is_durable else edge_json(one.resource_id)

    def give_back(self, host: Host) -> None:
        for ref in host.dispatch.resource_refs:
            one = self.kept.get(ref.resource_id)
            if one is None:
                continue
            one.users.pop((host.task_id, host.attempt), None)
            if one.end is not None and not one.users:
                self._finish(one, one.end)

    def evict_one(self) -> None:
        """There is little room left: something that nobody uses goes."""
        free = [one for one in self.kept.values() if not one.users and not one.is_listed]
        if free and not self.process.is_paused:
            self.remove(self.world.rng.choice(free), "evicted")

    def remove(self, one: Kept, state: str) -> None:
        if one.end is not None:
            return
        one.end = state
        if one.users:
            self._tell(one, "evicting")
        else:
            self._finish(one, state)

    def _finish(self, one: Kept, state: str) -> None:
        del self.kept[one.resource_id]
        self.world.log(f"{self.process.worker_id} {state} {one.resource_id[-4:]}")
        self._tell(one, state)

    def _tell(self, one: Kept, state: str) -> None:
        event = business.ResourceEvent(
            one.resource_id,
            state,  # type: ignore[arg-type]
            size_bytes=2**53 if one.is_memory else 1,
            type="thing",
            scope=one.scope,
            run_id=RunId(one.run_id),
            node_id=one.node_id,
            package=_MEMORY_OF if one.is_memory else None,
            expires_at=edge_time(one.resource_id, state),
            created_at=edge_time(one.resource_id),
            metadata=self.metadata(one),
        )
        self._say(f"resource/{one.resource_id}", business.RESOURCE_EVENT, event)

    def _say(self, key: str, frame_type: str, payload: Wire) -> None:
        self.process.tell(key, frame_type, payload)

    # -- what the scheduler asks for ----------------------------------------------------------

    def take(self, envelope: Envelope) -> None:
        payload = envelope.payload
        if isinstance(payload, business.ResourceCleanup):
            self._clean_up(payload)
        elif isinstance(payload, business.PkgInstall):
            self._install((payload.name, payload.version))
        elif isinstance(payload, business.ResourceExport):
            delay = self.world.delay(0.5)
            self.world.after(delay, self._upload, self.process.life, payload.resource_id)
        elif isinstance(payload, business.PkgUninstall):
            self._remove(self.process.life, (payload.name, payload.version))
        else:
            raise AssertionError(f"nobody asks for this here: {envelope.type}")

    def _upload(self, life: int, resource_id: str) -> None:
        """Put the bytes where they outlive this worker. Whoever asked for them asks again if that fails."""
        process, one = self.process, self.kept.get(resource_id)
        scheduler = process.schedulers()
        if life != process.life or process.is_paused or one is None or scheduler is None:
            return
        copy = NoteCopy(
            tenant=process.tenant,
            worker_id=process.worker_id,
            resource_id=resource_id,
            blob=f"copies/{resource_id}",
        )
        with suppress(errors.NotFound):
            scheduler.execute(copy)
            self.world.sometimes("copy noted")

    def _clean_up(self, cleanup: business.ResourceCleanup) -> None:
        if cleanup.scope is not None:
            self.process.checkers.resources.on_cleanup(self.process, cleanup.scope)
            for one in list(self.kept.values()):
                if one.scope == cleanup.scope and (one.is_memory or not one.is_listed):
                    self.remove(one, "released")
        if cleanup.resource_id is not None:
            found = self.kept.get(cleanup.resource_id)
            if found is not None:
                self.remove(found, "released")
            else:
                event = business.ResourceEvent(cleanup.resource_id, "evicted")
                self._say(f"resource/{cleanup.resource_id}", business.RESOURCE_EVENT, event)

    # -- packages -----------------------------------------------------------------------------

    def _install(self, key: tuple[str, str]) -> None:
        if key in self.installed:
            self._told(key, "installed")
        elif key not in self._orders:
            self._orders[key] = None
            self._begin(key)

    def _remove(self, life: int, key: tuple[str, str]) -> None:
        """Remove a version when its last attempt has ended; one that is being installed is given up."""
        process = self.process
        if life != process.life or process.agent is None:
            return
        used = [host.dispatch.package for host in process.hosts.values()]
        if process.is_paused or any((one.name, one.version) == key for one in used):
            self.world.after(0.5, self._remove, life, key)
            return
        self._orders.pop(key, None)
        if self.installed.pop(key, key) is None:
            self.world.sometimes("version removed")
            process.reoffer()
        self._told(key, "removed")

    def _begin(self, key: tuple[str, str]) -> None:
        delay = self.world.delay(1.0)
        self.world.after(delay, self._step, self.process.life, key, "downloading")

    def _step(self, life: int, key: tuple[str, str], step: str) -> None:
        """Download, install, and be done: a crash in between begins it again."""
        process = self.process
        if life != process.life or process.agent is None or key not in self._orders:
            return
        if process.is_paused:
            self.world.after(0.5, self._step, life, key, step)
            return
        if step == "done":
            self._installed(key)
            return
        self._told(key, step)
        following = "installing" if step == "downloading" else "done"
        self.world.after(self.world.delay(1.0), self._step, life, key, following)

    def _installed(self, key: tuple[str, str]) -> None:
        del self._orders[key]
        config = self.process.config
        is_breaking = config.has("install") and not self.process.network.is_healed
        if is_breaking and self.world.chance(0.5):
            code = _FINAL if self.world.chance(0.3) else _PASSING
            self._told(key, "failed", {"code": code, "message": "it could not be installed"})
            return
        self.installed[key] = None
        self.process.reoffer()
        self._told(key, "installed")

    def _told(
        self, key: tuple[str, str], status: str, details: dict[str, str] | None = None
    ) -> None:
        raw = msgspec.Raw(msgspec.json.encode(details or {}))
        event = business.PkgEvent(*key, status, None, raw)  # type: ignore[arg-type]
        self.world.log(f"{self.process.worker_id} {key[0]} {status}")
        self._say(f"pkg/{key[0]}/{key[1]}", business.PKG_EVENT, event)
