"""Affinity: keys that keep follow-up work on the worker that holds the state it needs.

A record is *active* while its worker has a session, and *stale* from the moment the worker is lost until
it comes back or the grace has passed. A stale record still binds sticky work: sending it elsewhere at once
would throw the state away over a short break.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["AffinityRecord", "AffinityTable"]


class AffinityRecord:
    """Which worker a key belongs to, and until when."""

    __slots__ = ("acquired_at", "expires_at", "inflight", "state", "stored_until", "worker_id")

    def __init__(self, worker_id: str, acquired_at: float, expires_at: float) -> None:
        self.worker_id = worker_id
        self.acquired_at = acquired_at
        self.expires_at = expires_at
        self.stored_until = 0.0  # what the store says, if it says anything
        self.inflight = 0
        self.state: Literal["active", "stale"] = "active"


class AffinityTable:
    """The records of all tenants. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], AffinityRecord] = {}
        self._by_worker: dict[tuple[str, str], dict[str, AffinityRecord]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def acquire(self, tenant: str, key: str, worker_id: str, now: float, ttl_s: float) -> bool:
        """Give the key to a worker; False if another one has it."""
        record = self._records.get((tenant, key))
        if record is not None and record.worker_id != worker_id:
            return False
        if record is None:
            record = AffinityRecord(worker_id, now, now + ttl_s)
            self._records[tenant, key] = record
            self._by_worker.setdefault((tenant, worker_id), {})[key] = record
        record.state = "active"
        record.inflight += 1
        record.expires_at = now + ttl_s
        return True

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
        self._records[tenant, key] = record
        self._by_worker.setdefault((tenant, worker_id), {})[key] = record

    def settle(self, tenant: str, key: str, worker_id: str, now: float, ttl_s: float) -> None:
        """One task that used the key has ended; the key lives on for `ttl_s`."""
        record = self._records.get((tenant, key))
        if record is None or record.worker_id != worker_id:
            return
        record.inflight = max(0, record.inflight - 1)
        record.expires_at = now + ttl_s

    def release(self, tenant: str, key: str) -> None:
        record = self._records.pop((tenant, key), None)
        if record is not None:
            held = self._by_worker[tenant, record.worker_id]
            del held[key]
            if not held:
                del self._by_worker[tenant, record.worker_id]

    def mark_stale(self, tenant: str, worker_id: str, until: float) -> None:
        """The worker was lost: its keys wait for it until then and no longer."""
        for record in self._by_worker.get((tenant, worker_id), {}).values():
            record.state = "stale"
            record.expires_at = min(record.expires_at, until)

    def revive(self, tenant: str, worker_id: str, now: float, ttl_s: float) -> None:
        """The worker came back, the same boot: its keys are good again."""
        for record in self._by_worker.get((tenant, worker_id), {}).values():
            if record.state == "stale":
                record.state = "active"
                record.expires_at = now + ttl_s

    def expire(self, now: float) -> list[tuple[str, str, str]]:
        """Drop the records whose time has passed and that no task uses; returns (tenant, key, worker)."""
        over = [
            (tenant, key, record.worker_id)
            for (tenant, key), record in self._records.items()
            if record.expires_at <= now and (record.inflight == 0 or record.state == "stale")
        ]
        for tenant, key, _ in over:
            self.release(tenant, key)
        return over

    def check(self) -> None:
        """Assert that both indexes name the same records."""
        listed = {
            (tenant, key): record
            for (tenant, _), held in self._by_worker.items()
            for key, record in held.items()
        }
        assert listed == self._records
        for (tenant, worker_id), held in self._by_worker.items():
            assert held, f"an empty list was kept for {tenant}/{worker_id}"
            assert all(record.worker_id == worker_id for record in held.values())
