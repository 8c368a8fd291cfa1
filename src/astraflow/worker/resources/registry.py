"""The resource registry of a worker: resources, their access rules and their lifetimes (seed 003 §3).

Rule 1: a leased resource is not deleted. To delete it, it is set to `evicting`: there are no new leases, and it is
        deleted when its last lease is released.
Rule 2: leases are counted per attempt. The end of an attempt releases all of them; a release without a lease is
        an error and changes no count.
Rule 3: to make room, unused resources are evicted, unlisted before listed, least recently used first. If that is not
        enough, nothing is evicted and the new resource is refused.
Rule 4: what is gone is remembered for a day, so that a late reference is told *lost* and not *missing*.

A worker serves one tenant, the one of its session: its limits are that tenant's quotas on this machine. All of this
runs on the thread of one loop; nothing here waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.ids import RunId
from astraflow.core.protocol import business, control
from astraflow.worker.resources.files import RESOURCES, STRAY_S, FileBackend, FileState, StoredFile
from astraflow.worker.resources.index import ResourceIndex
from astraflow.worker.resources.leases import Leases
from astraflow.worker.resources.memory import Holder, MemoryBackend
from astraflow.worker.resources.resource import (
    SESSION_PREFIX,
    WORKER,
    Kind,
    Lessee,
    LocalResource,
    Maker,
    State,
    check_id,
    refused,
)
from astraflow.worker.resources.room import rooms, victims
from astraflow.worker.resources.terms import ResourceLimits, Terms, describe, expiry

_log: Final = logging.getLogger(__name__)

HIGH_MARK: Final = 0.95
LOW_MARK: Final = 0.85
"""Of a limit: above the high mark the loop takes unused resources that are in no result, down to the low mark, so that
the next newcomer does not have to wait for room."""
CLOSE_TIMEOUT_S: Final = 10.0
"""For the `close` of a package. The resource counts as gone then, whatever the host does."""
_BY_WORKER: Final = Maker(WORKER)


_DEFAULT_LIMITS: Final = ResourceLimits()
_NO_TERMS: Final = Terms()


class LocalResourceRegistry:
    """All resources of a worker. `close` it."""

    def __init__(
        self,
        folder: Path,
        source: Path,
        *,
        worker_id: str,
        clock: Clock,
        limits: ResourceLimits = _DEFAULT_LIMITS,
        tell: Callable[[business.ResourceEvent, int], None] = lambda event, lane: None,
    ) -> None:
        """`folder` is the worker's; files are taken from below `source` only. `tell` gets the lane that is to hear it.

        Raises:
            StoreError: the database cannot be opened.
        """
        self.files = FileBackend(folder / RESOURCES, source)
        self.memory = MemoryBackend()
        self._index = ResourceIndex(folder / "resources.db", clock)
        self._leases = Leases()
        self._worker_id = worker_id
        self._clock = clock
        self._limits = limits
        self._tell = tell
        self._ends: dict[str, tuple[State, str]] = {}  # what an evicting one comes to
        self._closing: dict[str, float] = {}  # objects that hosts were asked to close, since when
        self._last_gc_s = 0.0
        self.reclaimed_bytes = 0
        self.scratch_bytes = 0
        """What attempts have written and not registered, when somebody last looked: it takes room from files."""
        self._restore()

    def close(self) -> None:
        self._index.close()

    # -- making -----------------------------------------------------------------------------

    def register(
        self,
        resource_id: str,
        type: str,
        *,
        token: str,
        holder: Holder,
        maker: Maker = _BY_WORKER,
        terms: Terms = _NO_TERMS,
        shares: str | None = None,
    ) -> LocalResource:
        """Keep an object that a host holds. The attempt that made it leases it until it ends.

        `shares` is the token of an earlier registration of the same object in the same host.

        Raises:
            AstraflowError: `E.RESOURCE.INVALID`, `DENIED`, `BUSY` or `QUOTA`; the host must then drop the object.
        """
        if self._index.find_token(token) is not None:
            raise refused(errors.RESOURCE_DENIED, "this object is registered already", resource_id)
        resource = self._described(resource_id, type, "memory", maker, terms)
        resource.token = token
        other = self._index.find_token(shares) if shares is not None else None
        if other is not None and self.memory.holder_of(other.token) is holder:
            resource.group = other.room_key
        self._admit(resource, maker)
        self.memory.add(token, holder)
        return self._welcome(resource)

    def adopt(
        self,
        resource_id: str,
        filed: StoredFile,
        type: str = "file",
        *,
        maker: Maker = _BY_WORKER,
        terms: Terms = _NO_TERMS,
    ) -> LocalResource:
        """Register a file that a host has put into its folder here.

        Raises:
            AstraflowError: `E.RESOURCE.INVALID`, `DENIED`, `BUSY` or `QUOTA`; the file is gone then.
        """
        if self._index.find_token(filed.token) is not None:
            raise refused(errors.RESOURCE_DENIED, "this file is registered already", resource_id)
        try:
            self.files.check(filed)
            resource = self._described(resource_id, type, "file", maker, terms)
            resource.token = filed.token
            resource.size_bytes, resource.mtime_ns = filed.size_bytes, filed.mtime_ns
            resource.checksum, resource.name = filed.sha256, filed.name
            resource.metadata = {"name": filed.name, **resource.metadata, "sha256": filed.sha256}
            # It was in the folder of its attempt when somebody last looked there: it is not counted twice.
            self.scratch_bytes = max(0, self.scratch_bytes - filed.size_bytes)
            self._admit(resource, maker)
        except errors.AstraflowError:
            self.files.discard(filed.token)
            raise
        return self._welcome(resource)

    def _described(
        self, resource_id: str, type: str, kind: Kind, maker: Maker, terms: Terms
    ) -> LocalResource:
        now = self._clock.wall_ms()
        ttl_s = self._limits.default_ttl_s
        resource = describe(resource_id, type, kind, maker, terms, ttl_s, now)
        resource.worker_id = self._worker_id
        return resource

    def _admit(self, resource: LocalResource, maker: Maker) -> None:
        """Make room, and let go of what had the id before. Nothing has changed if it raises."""
        old = self._index.find(resource.resource_id)
        if old is not None and old.is_gone:
            old = None
        if old is not None:
            self._check_replaceable(old, maker.lessee)
        now = self._clock.wall_ms()
        going = victims(self._index, self._limits, resource, old, now, self.scratch_bytes)
        self._index.save(resource)
        for victim in going:
            self._remove(victim, "evicted", "room was needed")
        if old is not None:
            self._replace(old, resource.lane)
        self._index.add(resource)
        if maker.lessee != WORKER:
            self._take(resource, maker.lessee)

    def _check_replaceable(self, old: LocalResource, lessee: Lessee) -> None:
        if not old.may_replace(lessee.run_id):
            message = "another run has a resource of this id"
            raise refused(errors.RESOURCE_DENIED, message, old.resource_id)
        if any(one != lessee for one in self._leases.lessees(old.token)):
            message = "the resource that has this id is in use"
            raise refused(errors.RESOURCE_BUSY, message, old.resource_id)

    def _replace(self, old: LocalResource, lane: int) -> None:
        """Its id has a new owner, so no event tells of its end, unless the new one is told of in another lane."""
        if old.lane != lane:
            self._tell(old.event("released"), old.lane)
        self._leases.drop(old.token)
        self._ends.pop(old.token, None)
        self._index.drop(old)
        self._let_go(old)

    def _welcome(self, resource: LocalResource) -> LocalResource:
        self._tell(resource.event("ready"), resource.lane)
        return resource

    # -- using ------------------------------------------------------------------------------

    def find(self, resource_id: str) -> LocalResource | None:
        """As it is, or as it was when it went, if that is remembered."""
        return self._index.find(resource_id)

    def get(self, resource_id: str, run_id: RunId | None) -> LocalResource:
        """A resource that attempts of the run may use.

        Raises:
            AstraflowError: `E.RESOURCE.INVALID`, `MISSING`, `DENIED`, `LOST` or `EXPIRED`.
        """
        check_id(resource_id)
        resource = self._index.find(resource_id)
        if resource is None:
            raise refused(errors.RESOURCE_MISSING, "this worker has no such resource", resource_id)
        if not resource.may_use(run_id):
            raise refused(errors.RESOURCE_DENIED, "the resource is of another run", resource_id)
        if resource.reason == _EXPIRED or (
            not resource.is_gone and resource.expires_at <= self._clock.wall_ms()
        ):
            raise refused(errors.RESOURCE_EXPIRED, "the resource has expired", resource_id)
        if resource.state != "ready":
            message = f"the resource is {resource.state}: {resource.reason or 'it was asked to go'}"
            raise refused(errors.RESOURCE_LOST, message, resource_id)
        return resource

    def lease(self, resource_id: str, lessee: Lessee = WORKER) -> LocalResource:
        """Count a use. It stays until as many releases, or the end of the attempt.

        Raises:
            AstraflowError: as `get`; also `LOST` or `INVALID` when the file is gone or another.
        """
        resource = self.get(resource_id, lessee.run_id)
        if resource.kind == "file":
            self._check_file(resource)
        elif self.memory.holder_of(resource.token) is None:
            self._finish(resource, "evicted", "the host that held it is gone")
            raise refused(errors.RESOURCE_LOST, "the host that held it is gone", resource_id)
        self._take(resource, lessee)
        resource.used_at = self._clock.wall_ms()
        return resource

    def _take(self, resource: LocalResource, lessee: Lessee) -> None:
        self._leases.take(resource.token, lessee)
        resource.in_use_count += 1

    def _check_file(self, resource: LocalResource) -> None:
        found = self._file_state(resource)
        if found == "missing":
            self._remove(resource, "evicted", "its file is missing")
            message = "the file of the resource is missing"
            raise refused(errors.RESOURCE_LOST, message, resource.resource_id)
        if found == "changed":
            message = "the file of the resource has changed since it was registered"
            raise refused(errors.RESOURCE_INVALID, message, resource.resource_id)

    def release(
        self, resource_id: str, lessee: Lessee = WORKER, *, reason: str | None = None
    ) -> None:
        """Give a lease back.

        Raises:
            Refused: `E.RESOURCE.INVALID`, it is not leased by this attempt.
        """
        check_id(resource_id)
        resource = self._index.find(resource_id)
        if resource is None or not self._leases.give(resource.token, lessee):
            message = "released, but not leased by this attempt"
            raise refused(errors.RESOURCE_INVALID, message, resource_id)
        self._lease_ended(resource)

    def release_attempt(self, lessee: Lessee) -> None:
        """The attempt has ended: give back all that it leases."""
        for token in self._leases.give_all(lessee):
            resource = self._index.find_token(token)
            assert resource is not None, "what is leased is here"
            self._lease_ended(resource)

    def touch(
        self, resource_id: str, lessee: Lessee = WORKER, *, expires_at: int | None = None
    ) -> LocalResource:
        """Let it live until then, or for its whole time from now; never shorter than it was to.

        Raises:
            AstraflowError: as `get`; `E.RESOURCE.INVALID` for a time that is past or too far.
        """
        resource = self.get(resource_id, lessee.run_id)
        now = self._clock.wall_ms()
        until = expiry(resource.ttl_ms / 1000, expires_at, now)
        resource.expires_at = max(resource.expires_at, until)
        resource.used_at = now
        self._index.note(resource)
        self._tell(resource.event("touched"), resource.lane)
        return resource

    def list(self, *, scope: str | None = None, type: str | None = None) -> list[LocalResource]:
        """Those that are here, and those that are about to go."""
        return [
            one
            for one in self._index.live()
            if scope in (None, one.scope) and type in (None, one.type)
        ]

    def mark_listed(self, resource_id: str, run_id: RunId) -> LocalResource:
        """A result returns it as an artifact.

        Raises:
            AstraflowError: as `lease`.
        """
        resource = self.get(resource_id, run_id)
        if resource.kind == "file":
            self._check_file(resource)
        if not resource.listed:
            resource.listed = True
            self._index.note(resource)
        return resource

    # -- letting go -------------------------------------------------------------------------

    def evict(self, resource_id: str, reason: str = "", lessee: Lessee = WORKER) -> bool:
        """Let go of one, whatever it is; False if there is none. One that is in use goes with its last lease.

        Raises:
            AstraflowError: `E.RESOURCE.DENIED`, it is of another run.
        """
        resource = self._index.find(resource_id)
        if resource is None or resource.is_gone:
            return False
        if not resource.may_replace(lessee.run_id):
            raise refused(errors.RESOURCE_DENIED, "the resource is of another run", resource_id)
        self._remove(resource, "released", reason or "it was asked to go")
        return True

    def release_scope(self, scope: str, reason: str = "", lessee: Lessee = WORKER) -> int:
        """A run or a session is over: objects and files that no result has listed go. Says how many.

        Raises:
            AstraflowError: `E.RESOURCE.DENIED`, it is the scope of another run.
        """
        is_session = scope.startswith(SESSION_PREFIX)
        if lessee.run_id is not None and scope != lessee.run_id and not is_session:
            raise refused(errors.RESOURCE_DENIED, "this is the scope of another run", scope[:256])
        going = [one for one in self.list(scope=scope) if one.kind == "memory" or not one.listed]
        for resource in going:
            self._remove(resource, "released", reason or "its scope has ended")
        return len(going)

    def gc(self) -> int:
        """Let go of what has expired, and of more when there is little room. Says how many bytes that frees."""
        started = self._clock.now()
        before = sum(self._index.used.values())
        now = self._clock.wall_ms()
        for resource in list(self._index.live()):
            is_free = resource.state == "ready" and not resource.in_use_count
            if is_free and resource.expires_at <= now:
                self._remove(resource, "evicted", _EXPIRED)
        self._evict_to_low_mark("file", self._limits.max_disk_bytes - self.scratch_bytes)
        self._evict_to_low_mark("memory", self._limits.max_mem_bytes)
        for token in [
            token for token, since in self._closing.items() if started - since >= CLOSE_TIMEOUT_S
        ]:
            _log.warning("timeout while a host closed an object: %s", token)
            self.closed(token)
        self._index.drop_tombstones()
        freed = before - sum(self._index.used.values())
        self.reclaimed_bytes += freed
        self._last_gc_s = self._clock.now() - started
        return freed

    def _evict_to_low_mark(self, kind: Kind, limit: int) -> None:
        if self._index.used[kind] <= HIGH_MARK * limit:
            return
        for room in rooms(self._index, kind, self._clock.wall_ms()):
            if self._index.used[kind] <= LOW_MARK * limit:
                return
            if room.size_bytes and not any(one.listed for one in room.members):
                for resource in room.members:
                    self._remove(resource, "evicted", "there was little room left")

    def sweeping(self) -> Callable[[], None]:
        """What deletes files that were discarded, and folders that nobody has registered: call it in a thread."""
        known = self._index.tokens()
        before_s = self._clock.wall_ms() / 1000 - STRAY_S
        return lambda: self.files.sweep(known, before_s)

    # -- what hosts tell --------------------------------------------------------------------

    def closed(self, token: str) -> None:
        """A host has closed an object that it was asked to close."""
        self._closing.pop(token, None)
        self.memory.forget(token)
        resource = self._index.find_token(token)
        if resource is not None and resource.state == "evicting":
            self._finish(resource, *self._ends.get(token, ("evicted", "")))

    def host_gone(self, holder: Holder) -> None:
        """A host has died, and all that it held in memory with it."""
        for token in self.memory.of(holder):
            self._closing.pop(token, None)
            self.memory.forget(token)
            resource = self._index.find_token(token)
            if resource is not None:
                self._finish(resource, "evicted", "the host that held it is gone")

    # -- numbers ----------------------------------------------------------------------------

    def metrics(self) -> control.ResourceMetrics:
        """For heartbeats (seed 003 §8)."""
        candidates = sum(
            one.state == "ready" and not one.in_use_count for one in self._index.live()
        )
        return control.ResourceMetrics(
            self._index.used["file"] + self.scratch_bytes,
            self._index.used["memory"],
            self._index.sessions,
            candidates,
            round(self._last_gc_s, 6),
        )

    def check(self) -> None:
        """Assert that the counts are exact (I18)."""
        self._index.check()
        self._leases.check(self._index.tokens())
        for resource in self._index.live():
            assert resource.in_use_count == self._leases.count(resource.token)

    # -- inside -----------------------------------------------------------------------------

    def _lease_ended(self, resource: LocalResource) -> None:
        """A lease has ended: what waited for that can go."""
        resource.in_use_count = self._leases.count(resource.token)
        end = self._ends.get(resource.token)
        if end is not None and not resource.in_use_count and resource.token not in self._closing:
            self._go(resource, *end)

    def _remove(self, resource: LocalResource, state: State, reason: str) -> None:
        if resource.state != "ready":
            return
        self._index.leave(resource, reason)
        self._ends[resource.token] = (state, reason)
        if not resource.in_use_count:
            self._go(resource, state, reason)
            return
        self._index.note(resource)
        self._tell(resource.event("evicting"), resource.lane)

    def _go(self, resource: LocalResource, state: State, reason: str) -> None:
        """Nobody uses it: have it deleted or closed."""
        if self._let_go(resource):
            self._finish(resource, state, reason)
            return
        self._index.note(resource)
        self._tell(resource.event("evicting"), resource.lane)

    def _let_go(self, resource: LocalResource) -> bool:
        """False: its host was asked to close it, and will say when it has."""
        token = resource.token
        if resource.kind == "file":
            self.files.discard(token)
        elif token in self._closing:
            return False
        elif self.memory.close(token):
            self._closing[token] = self._clock.now()
            return False
        else:
            self.memory.forget(token)
        return True

    def _finish(self, resource: LocalResource, state: State, reason: str) -> None:
        """It is gone; what is left is the memory of it."""
        self._leases.drop(resource.token)
        resource.in_use_count = 0
        self._ends.pop(resource.token, None)
        self._index.bury(resource, state, reason)
        self._tell(resource.event(state), resource.lane)

    def _restore(self) -> None:
        """What is written down and whole is kept. Objects ended with their hosts, at the latest with the last boot."""
        for resource in self._index.load():
            resource.in_use_count = 0
            if resource.is_gone:
                self.files.discard(resource.token)
                # The crash may have come before it was told.
                self._tell(resource.event(resource.state), resource.lane)
            elif resource.kind == "memory":
                self._finish(resource, "evicted", "the worker was started anew")
            elif resource.state == "evicting":
                self.files.discard(resource.token)
                self._finish(resource, "evicted", resource.reason)
            elif self._file_state(resource) != "whole":
                self.files.discard(resource.token)
                self._finish(resource, "evicted", "its file was not whole at the start")
            else:
                self._tell(resource.event("ready"), resource.lane)
        self.files.sweep(self._index.tokens(), float("inf"))

    def _file_state(self, resource: LocalResource) -> FileState:
        return self.files.state_of(
            resource.token, resource.name, resource.size_bytes, resource.mtime_ns
        )


_EXPIRED: Final = "it has expired"
