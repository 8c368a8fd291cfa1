"""Affinity: keys that keep follow-up work on the worker that holds the state it needs.

A record is *active* while its worker has a session, and *stale* from the moment the worker is lost until
it comes back or the grace has passed. A stale record still binds sticky work: sending it elsewhere at once
would throw the state away over a short break. Nothing but its worker's return makes it live longer, and it
ends when the last task that used it has: what that task says of a lost worker (fail, or begin anew) is decided
by one who still knows that the key is lost.

Records are watched in a heap by when they end. A time that has grown since is corrected when it comes, so that a key
costs nothing while it lives.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Literal

__all__ = ["AffinityRecord", "AffinityTable"]


class AffinityRecord:
    """Which worker a key belongs to, and until when."""

    __slots__ = (
        "acquired_at",
        "expires_at",
        "inflight",
        "state",
        "stored_until",
        "watched_at",
        "worker_id",
    )

    def __init__(self, worker_id: str, acquired_at: float, expires_at: float) -> None:
        self.worker_id = worker_id
        self.acquired_at = acquired_at
        self.expires_at = expires_at
        self.stored_until = 0.0  # what the store says, if it says anything
        self.watched_at: float | None = None  # when it is looked at; not after `expires_at`
        self.inflight = 0
        self.state: Literal["active", "stale"] = "active"


class AffinityTable:
    """The records of all tenants. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], AffinityRecord] = {}
        self._by_worker: dict[tuple[str, str], dict[str, AffinityRecord]] = {}
        self._ends: list[tuple[float, str, str]] = []

    def __len__(self) -> int:
        return len(self._records)

    def acquire(self, tenant: str, key: str, worker_id: str, now: float, ttl_s: float) -> bool:
        """Give the key to a worker; False if another one has it."""
        record = self._records.get((tenant, key))
        if record is not None and record.worker_id != worker_id:
            return False
        if record is None:
            record = AffinityRecord(worker_id, now, now + ttl_s)
            self._add(tenant, key, record)
        record.state = "active"
        record.inflight += 1
        record.expires_at = now + ttl_s
        return True

    def expect(self, tenant: str, key: str, worker_id: str, now: float, until: float) -> None:
        """A task that uses the key is known from its stored lease; whether its worker comes back will be seen."""
        record = self._records.get((tenant, key))
        if record is None:
            record = AffinityRecord(worker_id, now, until)
            record.state = "stale"
            self._add(tenant, key, record)
        if record.worker_id == worker_id:
            record.inflight += 1

    def lookup(self, tenant: str, key: str) -> AffinityRecord | None:
        return self._records.get((tenant, key))

    def keys_of(self, tenant: str, worker_id: str) -> list[str]:
        """The keys that a worker has."""
        return list(self._by_worker.get((tenant, worker_id), ()))

    def restore(
        self, tenant: str, key: str, worker_id: str, acquired_at: float, expires_at: float
    ) -> None:
        """A record that is stored; whether its worker comes back will be seen. It goes before what restored leases
        have made of the key: one that is only preferred may be in use elsewhere, too."""
        former = self._records.get((tenant, key))
        self.release(tenant, key)
        record = AffinityRecord(worker_id, acquired_at, expires_at)
        if former is not None and former.worker_id == worker_id:
            record.inflight = former.inflight
        record.state = "stale"
        self._add(tenant, key, record)

    def _add(self, tenant: str, key: str, record: AffinityRecord) -> None:
        self._records[tenant, key] = record
        self._by_worker.setdefault((tenant, record.worker_id), {})[key] = record
        self._watch(tenant, key, record)

    def _watch(self, tenant: str, key: str, record: AffinityRecord) -> None:
        if record.watched_at is None or record.expires_at < record.watched_at:
            record.watched_at = record.expires_at
            heappush(self._ends, (record.expires_at, tenant, key))

    def settle(self, tenant: str, key: str, worker_id: str, now: float, ttl_s: float) -> None:
        """One task that used the key has ended; the key lives on for `ttl_s`, unless its worker is lost."""
        record = self._records.get((tenant, key))
        if record is None or record.worker_id != worker_id:
            return
        record.inflight = max(0, record.inflight - 1)
        if record.state == "active":
            record.expires_at = now + ttl_s
        self._watch(tenant, key, record)

    def release(self, tenant: str, key: str) -> None:
        record = self._records.pop((tenant, key), None)
        if record is not None:
            held = self._by_worker[tenant, record.worker_id]
            del held[key]
            if not held:
                del self._by_worker[tenant, record.worker_id]

    def mark_stale(self, tenant: str, worker_id: str, until: float) -> None:
        """The worker was lost: its keys wait for it until then and no longer."""
        for key, record in self._by_worker.get((tenant, worker_id), {}).items():
            record.state = "stale"
            record.expires_at = min(record.expires_at, until)
            self._watch(tenant, key, record)

    def revive(self, tenant: str, worker_id: str, now: float, ttl_s: float) -> None:
        """The worker came back, the same boot: its keys are good again."""
        for record in self._by_worker.get((tenant, worker_id), {}).values():
            if record.state == "stale":
                record.state = "active"
                record.expires_at = now + ttl_s

    def expire(self, now: float) -> list[tuple[str, str, str]]:
        """Drop the records whose time has passed and that no task uses; returns (tenant, key, worker)."""
        over = []
        ends = self._ends
        while ends and ends[0][0] <= now:
            when, tenant, key = heappop(ends)
            record = self._records.get((tenant, key))
            if record is None or record.watched_at != when:
                continue
            record.watched_at = None
            if record.expires_at > now:
                self._watch(tenant, key, record)
            elif record.inflight == 0:
                over.append((tenant, key, record.worker_id))
                self.release(tenant, key)
            # Else it is in use: the end of the last task that uses it has it watched again.
        return over

    def deadline(self) -> float | None:
        """No key ends before this time."""
        return self._ends[0][0] if self._ends else None

    def check(self) -> None:
        """Assert that both indexes name the same records."""
        listed = {
            (tenant, key): record
            for (tenant, _), held in self._by_worker.items()
            for key, record in held.items()
        }
        assert listed == self._records
        watched = set(self._ends)
        for (tenant, key), record in self._records.items():
            if record.watched_at is None:
                assert record.inflight, f"nobody looks at {tenant}/{key}"
            else:
                assert (record.watched_at, tenant, key) in watched
                assert record.watched_at <= record.expires_at
        for (tenant, worker_id), held in self._by_worker.items():
            assert held, f"an empty list was kept for {tenant}/{worker_id}"
            assert all(record.worker_id == worker_id for record in held.values())
