"""Workers: which there are, what they offer, how they are, and how full they are.

Rule 1: the status is changed by facts alone (TRANSITIONS). What a heartbeat merely measures (load, memory, when it was
        heard) is no fact and is not stored.
Rule 2: a worker is reached by its *channel*: the session that it holds, or the HTTP pool that it is.
Rule 3: a worker is *available* when it has a channel, with a connection if it is a session, is neither degraded nor
        draining nor short of memory or disk, and has a free slot. The table keeps the available workers per tenant and
        package, so that finding a place costs nothing for the busy ones.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.ids import SessionId, is_pool
from astraflow.core.workflow.amounts import NOTHING, Amounts

ANY_RUNTIME: Final = "runtime.any"
"""The feature of a worker that runs whatever runtime its packages bring."""

Channel = SessionId | PoolRecord
"""How a task gets to its worker: on a session, or pushed to an HTTP pool."""

WorkerStatus = Literal["online", "degraded", "draining", "lost", "offline"]
"""As people see it. `draining` is an online worker that gets nothing new: it drains, or is short of memory or disk."""


class DrainIntent(msgspec.Struct, frozen=True):
    """An operator wants a worker to take nothing new and to exit when it is empty, or at the deadline."""

    reason: str = ""
    deadline_s: float | None = None


class MeasuredLoad(msgspec.Struct, frozen=True):
    """How busy the machine of a worker is, as its heartbeats say."""

    cpu_pct: float
    mem_pct: float
    disk_pct: float
    latency_ms: float


class OfferedPackage(msgspec.Struct, frozen=True):
    """A package as a worker registered it."""

    name: str
    version: str
    status: str


class Offer(msgspec.Struct, frozen=True):
    """What a worker said of itself when it registered."""

    max_parallel: int
    packages: Mapping[str, frozenset[str]]
    runtimes: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    labels: Mapping[str, str] = {}
    per_node_limits: Mapping[str, int] = {}
    capacity: Amounts | None = None
    """What its machine has; None: it did not say."""
    slots: int | None = None
    """Of `max_parallel`, those that are for this engine; None: all of them."""

    def has_runtime(self, runtime: str | None) -> bool:
        return runtime is None or runtime in self.runtimes or ANY_RUNTIME in self.features


# -- facts ---------------------------------------------------------------------------------------


class WorkerFact(FleetFact, frozen=True):
    """The base of all facts about one worker."""

    worker_id: str


class WorkerBound(WorkerFact, frozen=True):
    """The identity of the worker belongs to this credential from now on."""

    subject: str


class WorkerRegistered(WorkerFact, frozen=True):
    """A worker has opened a session (`is_first`), or told anew what it offers."""

    session_id: SessionId
    incarnation: int
    is_first: bool
    offer: Offer
    packages: tuple[OfferedPackage, ...] = ()
    name: str = ""
    version: str = ""
    hostname: str = ""


class WorkerDegraded(WorkerFact, frozen=True):
    """It missed heartbeats, or calls itself unhealthy: nothing new is sent."""


class WorkerRecovered(WorkerFact, frozen=True):
    """A heartbeat says that it is well again."""


class WorkerLost(WorkerFact, frozen=True):
    """Its session ended because it was silent."""


class WorkerLeft(WorkerFact, frozen=True):
    """Its session ended in order."""


class WorkerDrainRequested(WorkerFact, frozen=True):
    """An operator wants it to drain."""

    intent: DrainIntent


class WorkerDrainWithdrawn(WorkerFact, frozen=True):
    """An operator has taken that back."""


class WorkerDrainChanged(WorkerFact, frozen=True):
    """It drains, or does not any more."""

    is_draining: bool


class WorkerPressureChanged(WorkerFact, frozen=True):
    """It is short of memory or disk, or not any more."""

    is_pressed: bool


class WorkerConnectionChanged(WorkerFact, frozen=True):
    """Its session has no connection, or has one again."""

    is_connected: bool


class WorkerDrifted(WorkerFact, frozen=True):
    """It has other packages than it registered: somebody changed its folder by hand."""


class WorkerPackageChanged(WorkerFact, frozen=True):
    """It has installed or removed a version."""

    name: str
    version: str
    is_installed: bool


class WorkerSeen(WorkerFact, frozen=True):
    """It is there, although nothing about it has changed."""


class WorkerForgotten(WorkerFact, frozen=True):
    """It is not expected back."""


class PoolConfigured(WorkerFact, frozen=True):
    """An HTTP pool was made or changed."""

    pool: PoolRecord


class PoolRemoved(WorkerFact, frozen=True):
    """An HTTP pool is gone; it held no attempt."""


class HeartbeatMissed(WorkerFact, frozen=True):
    """So many of its heartbeats in a row did not come."""

    count: int


# -- the record ------------------------------------------------------------------------------------


class WorkerState(msgspec.Struct, frozen=True):
    """What rows and events say of a worker after a fact."""

    status: WorkerStatus
    drain: DrainIntent | None = None


class WorkerEntry:
    """One worker instance."""

    __slots__ = (
        "digest",
        "drain",
        "has_drifted",
        "heard_at",
        "heard_mono",
        "held_for",
        "incarnation",
        "is_connected",
        "is_draining",
        "is_pool",
        "is_pressed",
        "measured",
        "offer",
        "pool",
        "reserved",
        "resources",
        "says_draining",
        "session_id",
        "since",
        "slots",
        "status",
        "tenant",
        "used",
        "used_by_type",
        "worker_id",
    )

    def __init__(self, tenant: str, worker_id: str) -> None:
        self.tenant = tenant
        self.worker_id = worker_id
        self.is_pool = is_pool(worker_id)
        self.session_id: SessionId | None = None
        self.pool: PoolRecord | None = None
        self.incarnation = 0
        self.offer = Offer(0, {})
        self.status: Literal["online", "degraded", "lost", "offline"] = "offline"
        self.is_connected = True  # without a connection nothing reaches it
        self.drain: DrainIntent | None = None
        self.is_draining = False
        self.is_pressed = False  # short of memory or disk
        self.has_drifted = False
        # Measured, not stored:
        self.says_draining = False  # by its own heartbeat; it may drain because it was asked to
        self.since: str | None = None  # its newest heartbeat or register, for `lease.since`
        self.heard_at = 0  # wall-clock milliseconds, for people
        self.heard_mono: float | None = None  # None: not since this scheduler started
        self.digest = ""  # of its packages, as its heartbeats say since its last register
        self.resources: Mapping[str, float] = {}
        self.measured: MeasuredLoad | None = None  # by its last heartbeat
        self.slots = 0  # attempts that it takes at once, here: a worker of several lanes divides its own among them
        self.used = 0
        self.used_by_type: dict[str, int] = {}
        self.held_for: Hashable | None = None  # the demand that alone may take of its machine
        self.reserved = NOTHING  # what the attempts that it has asked for

    @property
    def shown_status(self) -> WorkerStatus:
        """The one word for how it is."""
        if self.status == "online" and (self.is_draining or self.is_pressed):
            return "draining"
        return self.status

    @property
    def state(self) -> WorkerState:
        return WorkerState(self.shown_status, self.drain)

    @property
    def channel(self) -> Channel | None:
        return self.session_id if self.pool is None else self.pool

    @property
    def is_reachable(self) -> bool:
        has_channel = self.session_id is not None or self.pool is not None
        return has_channel and self.status == "online" and not self.is_draining

    @property
    def is_available(self) -> bool:
        # In the order of what changes most: it is asked twice for each attempt.
        return (
            self.used < self.slots
            and self.is_connected
            and not self.is_pressed
            and self.is_reachable
        )

    @property
    def load(self) -> float:
        """The share of its slots that is in use. A pool counts as fuller than any worker that has room: a worker is
        there and warm, and costs nothing more."""
        return self.used / max(self.slots, 1) + (self.pool is not None)

    def has_version(self, name: str, version: str) -> bool:
        return version in self.offer.packages.get(name, ())

    def has_room_for(self, node_type: str) -> bool:
        limit = self.offer.per_node_limits.get(node_type)
        return limit is None or self.used_by_type.get(node_type, 0) < limit

    def could_hold(self, request: Amounts) -> bool:
        """Whether the request fits if nothing else runs. A pool has no machine: each attempt gets one of its own."""
        capacity = self.offer.capacity
        return self.pool is not None or (capacity is not None and request.fits_in(capacity))

    def can_hold(self, request: Amounts) -> bool:
        """Whether the request fits beside what runs."""
        return self.pool is not None or request.fits_in(self.free)

    @property
    def free(self) -> Amounts:
        """What nothing that runs has asked for. It is negative if the worker has come back smaller."""
        return (self.offer.capacity or NOTHING) - self.reserved

    def heard(self, frame_id: str, at: int, now: float) -> None:
        """A register or a heartbeat of its session has come."""
        self.since = frame_id
        self.heard_at = at
        self.heard_mono = now


# -- transitions -----------------------------------------------------------------------------------


def _unchanged(_: WorkerEntry, __: WorkerFact) -> None:
    """For the row of the worker only."""


def _registered(worker: WorkerEntry, fact: WorkerRegistered) -> None:
    worker.session_id = fact.session_id
    worker.incarnation = fact.incarnation
    worker.offer = fact.offer
    given = fact.offer.slots
    worker.slots = fact.offer.max_parallel if given is None else given
    worker.is_connected = True
    worker.digest = ""
    worker.has_drifted = False
    if fact.is_first:
        worker.says_draining = False
        worker.is_draining = worker.drain is not None
    # Only a heartbeat says that a degraded worker is well again; a new session is another matter.
    if fact.is_first or worker.status != "degraded":
        worker.status = "online"


def _degraded(worker: WorkerEntry, _: WorkerDegraded) -> None:
    worker.status = "degraded"


def _recovered(worker: WorkerEntry, _: WorkerRecovered) -> None:
    worker.status = "online"


def _lost(worker: WorkerEntry, _: WorkerLost) -> None:
    worker.status = "lost"
    worker.session_id = worker.since = None


def _left(worker: WorkerEntry, _: WorkerLeft) -> None:
    worker.status = "offline"
    worker.session_id = worker.since = None


def _drain_requested(worker: WorkerEntry, fact: WorkerDrainRequested) -> None:
    worker.drain = fact.intent
    worker.is_draining = True


def _drain_withdrawn(worker: WorkerEntry, _: WorkerDrainWithdrawn) -> None:
    worker.drain = None
    worker.is_draining = worker.says_draining


def _drain_changed(worker: WorkerEntry, fact: WorkerDrainChanged) -> None:
    worker.is_draining = fact.is_draining


def _pressure_changed(worker: WorkerEntry, fact: WorkerPressureChanged) -> None:
    worker.is_pressed = fact.is_pressed


def _connection_changed(worker: WorkerEntry, fact: WorkerConnectionChanged) -> None:
    worker.is_connected = fact.is_connected


def _drifted(worker: WorkerEntry, _: WorkerDrifted) -> None:
    worker.has_drifted = True


def _package_changed(worker: WorkerEntry, fact: WorkerPackageChanged) -> None:
    packages = dict(worker.offer.packages)
    kept = packages.pop(fact.name, frozenset())
    kept = kept | {fact.version} if fact.is_installed else kept - {fact.version}
    if kept:
        packages[fact.name] = kept
    worker.offer = msgspec.structs.replace(worker.offer, packages=packages)


def _pool_configured(worker: WorkerEntry, fact: PoolConfigured) -> None:
    pool = fact.pool
    packages: dict[str, set[str]] = {}
    for package in pool.packages:
        packages.setdefault(package.name, set()).add(package.version)
    worker.pool = pool
    worker.status = "online"
    worker.is_draining = pool.is_paused
    worker.offer = Offer(
        pool.max_parallel,
        {name: frozenset(versions) for name, versions in packages.items()},
        features=frozenset({ANY_RUNTIME}),
        labels={"pool": pool.name, **pool.labels},
        per_node_limits=pool.per_node_limits,
    )
    worker.slots = pool.max_parallel


_SERVED: Final = ("online", "degraded")
_AWAY: Final = ("lost", "offline")
_ALL: Final = (*_SERVED, *_AWAY)

TRANSITIONS: Final[Table] = {
    **rows(_ALL, WorkerBound, _unchanged),
    **rows(("online", *_AWAY), WorkerRegistered, _registered, "online"),
    **rows(("degraded",), WorkerRegistered, _registered, "online", "degraded"),
    **rows(("online",), WorkerDegraded, _degraded, "degraded"),
    **rows(("degraded",), WorkerRecovered, _recovered, "online"),
    **rows(_SERVED, WorkerLost, _lost, "lost"),
    **rows(_SERVED, WorkerLeft, _left, "offline"),
    **rows(_ALL, WorkerDrainRequested, _drain_requested),
    **rows(_ALL, WorkerDrainWithdrawn, _drain_withdrawn),
    **rows(_SERVED, WorkerDrainChanged, _drain_changed),
    **rows(_SERVED, WorkerPressureChanged, _pressure_changed),
    **rows(_SERVED, WorkerConnectionChanged, _connection_changed),
    **rows(_SERVED, WorkerDrifted, _drifted),
    **rows(_ALL, WorkerPackageChanged, _package_changed),
    **rows(_ALL, WorkerSeen, _unchanged),
    **rows(_AWAY, WorkerForgotten, _unchanged, ABSENT),
    **rows(("online", "offline"), PoolConfigured, _pool_configured, "online"),
    **rows(("online", "offline"), PoolRemoved, _unchanged, ABSENT),
}


def fold(worker: WorkerEntry, fact: WorkerFact) -> None:
    """Apply one fact. Raises: NoTransition."""
    find_move(TRANSITIONS, worker.status, fact).apply(worker, fact)


# -- the index -------------------------------------------------------------------------------------

_OFFERS: Final = (WorkerRegistered, WorkerPackageChanged, PoolConfigured)
"""Facts that change the packages that a worker is listed under."""


class WorkerTable:
    """All workers by (tenant, instance id)."""

    def __init__(self) -> None:
        self._workers: dict[tuple[str, str], WorkerEntry] = {}
        self._available: dict[tuple[str, str], dict[str, WorkerEntry]] = {}
        self._offering: dict[tuple[str, str], dict[str, WorkerEntry]] = {}
        self._labelled: dict[tuple[str, str, str], dict[str, WorkerEntry]] = {}
        self._disconnected: dict[tuple[str, str], WorkerEntry] = {}

    def __iter__(self) -> Iterator[WorkerEntry]:
        return iter(self._workers.values())

    def find(self, tenant: str, worker_id: str) -> WorkerEntry | None:
        return self._workers.get((tenant, worker_id))

    def of_tenant(self, tenant: str) -> list[WorkerEntry]:
        return [worker for (owner, _), worker in self._workers.items() if owner == tenant]

    def available(self, tenant: str, package: str) -> Mapping[str, WorkerEntry]:
        """The available workers that offer the package, in any version."""
        return self._available.get((tenant, package), {})

    @property
    def offered(self) -> Collection[tuple[str, str]]:
        """The packages, each with its tenant, that some worker offers or has offered."""
        return self._available.keys()

    def slots_free(self) -> dict[tuple[str, str], int]:
        """The free slots of the available workers, for each package in `offered`. A slot counts for every package of
        its worker."""
        return {
            bundle: sum(one.slots - one.used for one in listed.values())
            for bundle, listed in self._available.items()
        }

    def offering(self, tenant: str, package: str) -> Iterable[WorkerEntry]:
        """The workers that offer the package, in any version, whether they are there or not."""
        return self._offering.get((tenant, package), {}).values()

    def labelled(self, tenant: str, name: str, value: str) -> Mapping[str, WorkerEntry]:
        """The workers with a label, whether they are there or not; the one that was given work last is the last."""
        return self._labelled.get((tenant, name, value), {})

    def apply(self, fact: WorkerFact) -> WorkerEntry:
        """Fold a fact into its worker, and list the worker as it is after it."""
        worker = self.expect(fact.tenant, fact.worker_id)
        if isinstance(fact, WorkerForgotten | PoolRemoved):
            assert worker.session_id is None and not worker.used, "a worker in use is not forgotten"
            fold(worker, fact)
            self._withdraw(worker)
            del self._workers[worker.tenant, worker.worker_id]
            return worker
        if isinstance(fact, _OFFERS):
            self._withdraw(worker)
        fold(worker, fact)
        self._note_connection(worker)
        if isinstance(fact, _OFFERS):
            for package in worker.offer.packages:
                self._offering.setdefault((worker.tenant, package), {})[worker.worker_id] = worker
            for name, value in worker.offer.labels.items():
                listed = self._labelled.setdefault((worker.tenant, name, value), {})
                listed[worker.worker_id] = worker
        self.refresh(worker)
        return worker

    def _note_connection(self, worker: WorkerEntry) -> None:
        key = (worker.tenant, worker.worker_id)
        if worker.session_id is None or worker.is_connected:
            self._disconnected.pop(key, None)
        else:
            self._disconnected[key] = worker

    @property
    def disconnected(self) -> Collection[WorkerEntry]:
        """The workers whose session has no connection."""
        return self._disconnected.values()

    def expect(self, tenant: str, worker_id: str) -> WorkerEntry:
        """A worker that is known from stored leases and has not come back yet."""
        worker = self._workers.get((tenant, worker_id))
        if worker is None:
            worker = self._workers[tenant, worker_id] = WorkerEntry(tenant, worker_id)
        return worker

    def take_slot(
        self, worker: WorkerEntry, node_type: str, request: Amounts | None = None
    ) -> None:
        worker.used += 1
        if request is not None:
            worker.reserved += request
        worker.used_by_type[node_type] = worker.used_by_type.get(node_type, 0) + 1
        for name, value in worker.offer.labels.items():
            listed = self._labelled[worker.tenant, name, value]
            if len(listed) > 1:
                listed[worker.worker_id] = listed.pop(worker.worker_id)
        self.refresh(worker)

    def free_slot(
        self, worker: WorkerEntry, node_type: str, request: Amounts | None = None
    ) -> None:
        assert worker.used > 0, "a slot was given back twice"
        worker.used -= 1
        if request is not None:
            worker.reserved -= request
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
        for name, value in worker.offer.labels.items():
            key = (worker.tenant, name, value)
            listed = self._labelled.get(key, {})
            listed.pop(worker.worker_id, None)
            if not listed:
                # There may be as many values of a label as there ever were workers.
                self._labelled.pop(key, None)

    def check(self) -> None:
        """Assert that the lists name exactly the available workers."""
        for worker in self._workers.values():
            assert worker.used == sum(worker.used_by_type.values())
            assert worker.used or not worker.reserved, "what nobody has is reserved"
            assert NOTHING.milli_cpu <= worker.reserved.milli_cpu, "more was given back than taken"
            for package in worker.offer.packages:
                listed = worker.worker_id in self.available(worker.tenant, package)
                assert listed == worker.is_available, f"{worker.worker_id} is listed wrongly"
                assert worker in self.offering(worker.tenant, package)
            for name, value in worker.offer.labels.items():
                assert worker.worker_id in self.labelled(worker.tenant, name, value)
        assert all(self._labelled.values())
