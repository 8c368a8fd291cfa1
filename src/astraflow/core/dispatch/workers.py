"""The workers that a scheduler knows, what they offer, and how full they are.

A worker is *available* when it has a session, is neither degraded nor draining, and has a free slot.
The table keeps, per tenant and package, the available workers, so that finding a place costs nothing
for the busy ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

__all__ = ["ANY_RUNTIME", "Offer", "WorkerEntry", "WorkerStatus", "WorkerTable"]

ANY_RUNTIME: Final = "runtime.any"
"""The feature of a worker that runs whatever runtime its packages bring."""

WorkerStatus = Literal["online", "degraded", "draining", "lost", "offline"]


class Offer(msgspec.Struct, frozen=True):
    """What a worker said of itself when it registered."""

    max_parallel: int
    packages: Mapping[str, frozenset[str]]
    runtimes: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    labels: Mapping[str, str] = {}
    per_node_limits: Mapping[str, int] = {}

    def has_runtime(self, runtime: str | None) -> bool:
        return runtime is None or runtime in self.runtimes or ANY_RUNTIME in self.features


class WorkerEntry:
    """One worker instance."""

    __slots__ = (
        "digest",
        "has_drifted",
        "heard_at",
        "heard_mono",
        "incarnation",
        "is_connected",
        "is_draining",
        "is_pressed",
        "offer",
        "resources",
        "says_draining",
        "session_id",
        "since",
        "status",
        "tenant",
        "used",
        "used_by_type",
        "worker_id",
    )

    def __init__(self, tenant: str, worker_id: str) -> None:
        self.tenant = tenant
        self.worker_id = worker_id
        self.session_id: str | None = None
        self.incarnation = 0
        self.offer = Offer(0, {})
        self.status: WorkerStatus = "offline"
        self.is_connected = True  # its session has a link; without one nothing reaches it
        self.is_draining = False
        self.says_draining = False  # by its own word; it may be draining because it was asked to
        self.is_pressed = (
            False  # short of memory or disk: it keeps what it has and gets nothing new
        )
        self.since: str | None = None  # its newest heartbeat or register, for `lease.since`
        self.heard_at = 0  # wall-clock milliseconds, for people
        self.heard_mono: float | None = (
            None  # when it was last heard of; None: not since this start
        )
        self.digest = ""  # of its packages, as its heartbeats say since its last register
        self.resources: Mapping[str, float] = {}  # what it keeps, in numbers, for people
        self.has_drifted = False  # it has other packages than it registered
        self.used = 0
        self.used_by_type: dict[str, int] = {}

    @property
    def is_reachable(self) -> bool:
        return self.session_id is not None and self.status == "online" and not self.is_draining

    @property
    def is_available(self) -> bool:
        has_room = self.used < self.offer.max_parallel
        return self.is_reachable and self.is_connected and has_room and not self.is_pressed

    @property
    def load(self) -> float:
        return self.used / self.offer.max_parallel

    def has_room_for(self, node_type: str) -> bool:
        limit = self.offer.per_node_limits.get(node_type)
        return limit is None or self.used_by_type.get(node_type, 0) < limit


class WorkerTable:
    """All workers by (tenant, instance id)."""

    def __init__(self) -> None:
        self._workers: dict[tuple[str, str], WorkerEntry] = {}
        self._available: dict[tuple[str, str], dict[str, WorkerEntry]] = {}
        self._offering: dict[tuple[str, str], dict[str, WorkerEntry]] = {}

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(self._workers.values())

    def find(self, tenant: str, worker_id: str) -> WorkerEntry | None:
        return self._workers.get((tenant, worker_id))

    def of_tenant(self, tenant: str) -> list[WorkerEntry]:
        return [worker for (owner, _), worker in self._workers.items() if owner == tenant]

    def available(self, tenant: str, package: str) -> Mapping[str, WorkerEntry]:
        """The available workers that offer the package, in any version."""
        return self._available.get((tenant, package), {})

    def offering(self, tenant: str, package: str) -> Iterable[WorkerEntry]:
        """The workers that offer the package, in any version, whether they are there or not."""
        return self._offering.get((tenant, package), {}).values()

    def register(
        self, tenant: str, worker_id: str, session_id: str, incarnation: int, offer: Offer
    ) -> WorkerEntry:
        """A worker has opened a session, or told anew what it offers."""
        worker = self.expect(tenant, worker_id)
        self._withdraw(worker)
        worker.session_id = session_id
        worker.incarnation = incarnation
        self._offer(worker, offer)
        worker.is_connected = True
        worker.status = "online"
        worker.digest = ""
        worker.has_drifted = False
        self.refresh(worker)
        return worker

    def set_package(self, worker: WorkerEntry, name: str, version: str, is_there: bool) -> bool:
        """A worker has told what has become of one version. Whether that is news."""
        held = worker.offer.packages.get(name, frozenset())
        if (version in held) == is_there:
            return False
        left = held | {version} if is_there else held - {version}
        packages = {**worker.offer.packages, name: left}
        if not left:
            del packages[name]
        self._withdraw(worker)
        self._offer(worker, msgspec.structs.replace(worker.offer, packages=packages))
        self.refresh(worker)
        return True

    def _offer(self, worker: WorkerEntry, offer: Offer) -> None:
        worker.offer = offer
        for package in offer.packages:
            self._offering.setdefault((worker.tenant, package), {})[worker.worker_id] = worker

    def expect(self, tenant: str, worker_id: str) -> WorkerEntry:
        """A worker that is known from stored leases and has not come back yet."""
        worker = self._workers.get((tenant, worker_id))
        if worker is None:
            worker = self._workers[tenant, worker_id] = WorkerEntry(tenant, worker_id)
        return worker

    def forget(self, worker: WorkerEntry) -> None:
        """It is not expected back. It must hold nothing."""
        assert worker.session_id is None and not worker.used, "a worker in use is not forgotten"
        self._withdraw(worker)
        del self._workers[worker.tenant, worker.worker_id]

    def set_status(self, worker: WorkerEntry, status: WorkerStatus) -> None:
        worker.status = status
        if status in ("lost", "offline"):
            worker.session_id = None
            worker.since = None
        self.refresh(worker)

    def set_draining(self, worker: WorkerEntry, is_draining: bool) -> None:
        worker.is_draining = is_draining
        self.refresh(worker)

    def set_connected(self, worker: WorkerEntry, is_connected: bool) -> None:
        worker.is_connected = is_connected
        self.refresh(worker)

    def set_pressed(self, worker: WorkerEntry, is_pressed: bool) -> None:
        worker.is_pressed = is_pressed
        self.refresh(worker)

    def take_slot(self, worker: WorkerEntry, node_type: str) -> None:
        worker.used += 1
        worker.used_by_type[node_type] = worker.used_by_type.get(node_type, 0) + 1
        self.refresh(worker)

    def free_slot(self, worker: WorkerEntry, node_type: str) -> None:
        assert worker.used > 0, "a slot was given back twice"
        worker.used -= 1
        left = worker.used_by_type[node_type] - 1
        if left:
            worker.used_by_type[node_type] = left
        else:
            del worker.used_by_type[node_type]
        self.refresh(worker)

    def refresh(self, worker: WorkerEntry) -> None:
        """Put the worker into the lists it belongs in now."""
        is_available = worker.is_available
        for package in worker.offer.packages:
            listed = self._available.setdefault((worker.tenant, package), {})
            if is_available and len(listed) == 1 and worker.worker_id in listed:
                continue  # alone in the line
            # Taken out and put in again: it goes to the end of the line (see `placement`).
            listed.pop(worker.worker_id, None)
            if is_available:
                listed[worker.worker_id] = worker

    def _withdraw(self, worker: WorkerEntry) -> None:
        for package in worker.offer.packages:
            self._available.get((worker.tenant, package), {}).pop(worker.worker_id, None)
            self._offering.get((worker.tenant, package), {}).pop(worker.worker_id, None)

    def check(self) -> None:
        """Assert that the lists name exactly the available workers."""
        for worker in self._workers.values():
            assert worker.used == sum(worker.used_by_type.values())
            for package in worker.offer.packages:
                listed = worker.worker_id in self.available(worker.tenant, package)
                assert listed == worker.is_available, f"{worker.worker_id} is listed wrongly"
                assert worker in self.offering(worker.tenant, package)
