"""Resources that workers keep, as far as the scheduler was told.

Rule 1: the worker is the one who knows: what it says replaces what is here.
Rule 2: a resource is found by its id within its tenant. Two workers may use the same id; then a reference names one.
Rule 3: `evicted` and `released` are terminal. The same id may be registered again: that is another resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows
from astraflow.core.ids import RunId

ResourceKey = tuple[str, str, str]
"""Tenant, worker id, resource id."""
ResourceState = Literal["ready", "evicting", "evicted", "released"]
GONE: Final[frozenset[ResourceState]] = frozenset({"evicted", "released"})


class ResourceRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A resource of a worker. Times are wall-clock milliseconds."""

    tenant: str
    worker_id: str
    resource_id: str
    type: str = "resource"
    state: ResourceState = "ready"
    scope: str = ""
    """The run or the session that it belongs to."""
    run_id: RunId | None = None
    node_id: str | None = None
    package: str = ""
    """`name version` of the package whose host keeps it in memory; empty for a file."""
    size_bytes: int | None = None
    created_at: int
    expires_at: int | None = None
    is_artifact: bool = False
    """A result lists it: it outlives its run."""
    metadata: bytes = b"{}"
    blob: str | None = None
    """Where the copy is, if there is one."""

    @property
    def key(self) -> ResourceKey:
        return self.tenant, self.worker_id, self.resource_id


# -- facts ---------------------------------------------------------------------------------------


class ResourceFact(FleetFact, frozen=True):
    """The base of all facts about one resource."""

    worker_id: str
    resource_id: str

    @property
    def key(self) -> ResourceKey:
        return self.tenant, self.worker_id, self.resource_id


class ResourceRegistered(ResourceFact, frozen=True):
    """A worker keeps something new. One of the same id that was there before is gone."""

    record: ResourceRecord


class ResourceUpdated(ResourceFact, frozen=True):
    """Its size or its end is known, or another one. None: unchanged."""

    size_bytes: int | None = None
    expires_at: int | None = None


class ResourceListed(ResourceFact, frozen=True):
    """An accepted result lists it as an artifact."""


class ResourceCopied(ResourceFact, frozen=True):
    """Its bytes are in the blob store."""

    blob: str


class ResourceClosed(ResourceFact, frozen=True):
    """Its worker is to let go of it, or says that it is about to."""


class ResourceGone(ResourceFact, frozen=True):
    """Its worker does not have it any more."""

    state: Literal["evicted", "released"]


# -- transitions -----------------------------------------------------------------------------------


def _registered(_: ResourceRecord | None, fact: ResourceRegistered) -> ResourceRecord:
    return fact.record


def _updated(record: ResourceRecord, fact: ResourceUpdated) -> ResourceRecord:
    size = record.size_bytes if fact.size_bytes is None else fact.size_bytes
    expires_at = record.expires_at if fact.expires_at is None else fact.expires_at
    return msgspec.structs.replace(record, size_bytes=size, expires_at=expires_at)


def _listed(record: ResourceRecord, _: ResourceListed) -> ResourceRecord:
    return msgspec.structs.replace(record, is_artifact=True)


def _copied(record: ResourceRecord, fact: ResourceCopied) -> ResourceRecord:
    return msgspec.structs.replace(record, blob=fact.blob)


def _closed(record: ResourceRecord, _: ResourceClosed) -> ResourceRecord:
    return msgspec.structs.replace(record, state="evicting")


def _gone(record: ResourceRecord, fact: ResourceGone) -> ResourceRecord:
    return msgspec.structs.replace(record, state=fact.state)


_KEPT: Final = ("ready", "evicting")

TRANSITIONS: Final[Table] = {
    **rows((ABSENT, *_KEPT), ResourceRegistered, _registered, "ready"),
    **rows(_KEPT, ResourceUpdated, _updated),
    **rows(_KEPT, ResourceListed, _listed),
    **rows(_KEPT, ResourceCopied, _copied),
    **rows(_KEPT, ResourceClosed, _closed, "evicting"),
    **rows(_KEPT, ResourceGone, _gone, "evicted", "released"),
}


def fold(record: ResourceRecord | None, fact: ResourceFact) -> ResourceRecord:
    """The record after a fact. Raises: NoTransition."""
    state = ABSENT if record is None else record.state
    move = find_move(TRANSITIONS, state, fact)
    after: ResourceRecord = move.apply(record, fact)
    assert after.state in move.to
    return after


# -- the index -------------------------------------------------------------------------------------


class ResourceTable:
    """All resources that are not gone, by id, by worker and by scope."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[str, str], dict[str, ResourceRecord]] = {}
        self._by_worker: dict[tuple[str, str], dict[str, ResourceRecord]] = {}
        self._by_scope: dict[tuple[str, str], dict[tuple[str, str], ResourceRecord]] = {}
        self._adrift: set[ResourceKey] = set()
        self._held: dict[tuple[str, bool], int] = {}  # bytes of a tenant, in files or in memory

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    def __iter__(self) -> Iterator[ResourceRecord]:
        return (record for by_worker in self._by_id.values() for record in by_worker.values())

    def apply(self, fact: ResourceFact) -> ResourceRecord:
        """Fold a fact; returns the record after it, gone or not."""
        before = self.find(fact.tenant, fact.resource_id, fact.worker_id)
        after = fold(before, fact)
        if before is not None and (after.state in GONE or isinstance(fact, ResourceRegistered)):
            self._remove(before)
        if after.state not in GONE:
            self.put(after)
        return after

    def put(self, record: ResourceRecord) -> None:
        """List a record that is not gone, in place of the one before it."""
        tenant, worker_id, resource_id = record.key
        before = self.find(tenant, resource_id, worker_id)
        if before is not None:
            self._hold(before, -1)
        self._hold(record, 1)
        self._by_id.setdefault((tenant, resource_id), {})[worker_id] = record
        self._by_worker.setdefault((tenant, worker_id), {})[resource_id] = record
        self._by_scope.setdefault((tenant, record.scope), {})[worker_id, resource_id] = record

    def _remove(self, record: ResourceRecord) -> None:
        tenant, worker_id, resource_id = record.key
        self._adrift.discard(record.key)
        self._hold(record, -1)
        _drop(self._by_id, (tenant, resource_id), worker_id)
        _drop(self._by_worker, (tenant, worker_id), resource_id)
        _drop(self._by_scope, (tenant, record.scope), (worker_id, resource_id))

    def _hold(self, record: ResourceRecord, sign: int) -> None:
        key = (record.tenant, bool(record.package))
        held = self._held.get(key, 0) + sign * (record.size_bytes or 0)
        if held:
            self._held[key] = held
        else:
            self._held.pop(key, None)

    def held_bytes(self, tenant: str) -> tuple[int, int]:
        """What the resources of a tenant take on disks and in memory."""
        return self._held.get((tenant, False), 0), self._held.get((tenant, True), 0)

    def is_adrift(self, record: ResourceRecord) -> bool:
        """Whether its worker did not come back, so that it is to be had from its copy."""
        return record.key in self._adrift

    def set_adrift(self, record: ResourceRecord) -> None:
        """Not a fact: it follows from the worker's absence, after a restart too."""
        self._adrift.add(record.key)

    def worker_is_back(self, tenant: str, worker_id: str) -> None:
        self._adrift -= {
            (tenant, worker_id, one) for one in self._by_worker.get((tenant, worker_id), ())
        }

    def find(self, tenant: str, resource_id: str, worker_id: str) -> ResourceRecord | None:
        return self._by_id.get((tenant, resource_id), {}).get(worker_id)

    def holders(self, tenant: str, resource_id: str) -> list[ResourceRecord]:
        """The records of this id, one for each worker that has one."""
        return list(self._by_id.get((tenant, resource_id), {}).values())

    def of_worker(self, tenant: str, worker_id: str) -> list[ResourceRecord]:
        return list(self._by_worker.get((tenant, worker_id), {}).values())

    def of_scope(self, tenant: str, scope: str) -> list[ResourceRecord]:
        return list(self._by_scope.get((tenant, scope), {}).values())

    def check(self) -> None:
        """Assert that all indexes name the same resources."""
        listed = {record.key for record in self}
        for index in (self._by_worker, self._by_scope):
            found = [record.key for group in index.values() for record in group.values()]
            assert len(found) == len(listed) and set(found) == listed
        assert self._adrift <= listed
        for record in self:
            assert record.state not in GONE, "a resource that is gone is still listed"


def _drop(index: dict[tuple[str, str], dict], key: tuple[str, str], inner: object) -> None:  # type: ignore[type-arg]
    group = index[key]
    del group[inner]
    if not group:
        del index[key]
