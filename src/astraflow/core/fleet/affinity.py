"""Affinity: keys that keep follow-up work on the worker that has the state it needs.

Rule 1: a key is *active* while its worker has a session, and *stale* from the moment the worker is lost until it comes
        back or the grace has passed. A stale key still binds sticky work: sending it elsewhere at once would throw the
        state away over a short break. Nothing but its worker's return makes it live longer.
Rule 2: a key ends when its time has passed and the last task that used it has ended: what that task says of a lost
        worker (fail, or begin anew) is decided by one who still knows that the key is lost.
Rule 3: a key in use lives on without a fact. It is stored again only now and then, so that it costs no row per attempt.

Keys are watched in a heap by when they end. A time that has grown since is corrected when it comes, so that a key
costs nothing while it lives.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, Literal

from astraflow.core.fleet.facts import ABSENT, FleetFact, Table, find_move, rows

# -- facts ---------------------------------------------------------------------------------------


class AffinityFact(FleetFact, frozen=True):
    """The base of all facts about one key. Times are wall-clock milliseconds."""

    key: str


class AffinityAcquired(AffinityFact, frozen=True):
    """The key belongs to a worker."""

    worker_id: str
    acquired_at: int
    expires_at: int


class AffinityExpected(AffinityAcquired, frozen=True):
    """A stored lease uses the key; whether its worker comes back will be seen."""


class AffinityStale(AffinityFact, frozen=True):
    """Its worker was lost: the key waits for it until then and no longer."""

    expires_at: int


class AffinityRevived(AffinityFact, frozen=True):
    """Its worker came back."""

    expires_at: int


class AffinityReleased(AffinityFact, frozen=True):
    """The key is nobody's."""


# -- the record ------------------------------------------------------------------------------------


class AffinityRecord:
    """Which worker a key belongs to, and until when. Times are monotonic seconds."""

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


def _acquired(record: AffinityRecord, _: AffinityAcquired, expires_at: float) -> None:
    record.state = "active"
    record.expires_at = record.stored_until = expires_at


def _expected(record: AffinityRecord, _: AffinityExpected, expires_at: float) -> None:
    record.state = "stale"
    record.expires_at = record.stored_until = expires_at


def _stale(record: AffinityRecord, _: AffinityStale, expires_at: float) -> None:
    record.state = "stale"
    record.expires_at = min(record.expires_at, expires_at)


def _revived(record: AffinityRecord, _: AffinityRevived, expires_at: float) -> None:
    record.state = "active"
    record.expires_at = expires_at


def _released(_: AffinityRecord, __: AffinityReleased, ___: float) -> None:
    """The table drops the record."""


_HELD: Final = ("active", "stale")

TRANSITIONS: Final[Table] = {
    **rows((ABSENT, *_HELD), AffinityAcquired, _acquired, "active"),
    **rows((ABSENT,), AffinityExpected, _expected, "stale"),
    **rows(_HELD, AffinityStale, _stale, "stale"),
    **rows(("stale",), AffinityRevived, _revived, "active"),
    **rows(_HELD, AffinityReleased, _released, ABSENT),
}


# -- the index -------------------------------------------------------------------------------------


class AffinityTable:
    """The keys of all tenants. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], AffinityRecord] = {}
        self._by_worker: dict[tuple[str, str], dict[str, AffinityRecord]] = {}
        self._ends: list[tuple[float, str, str]] = []

    def __len__(self) -> int:
        return len(self._records)

    def apply(self, fact: AffinityFact, now: float) -> AffinityRecord | None:
        """Fold a fact; returns the record after it."""
        record = self._records.get((fact.tenant, fact.key))
        move = find_move(TRANSITIONS, ABSENT if record is None else record.state, fact)
        if isinstance(fact, AffinityReleased):
            self._drop(fact.tenant, fact.key)
            return None
        assert isinstance(fact, AffinityAcquired | AffinityStale | AffinityRevived)
        if record is None:
            assert isinstance(fact, AffinityAcquired)
            acquired_at = now - (fact.at - fact.acquired_at) / 1000
            record = AffinityRecord(fact.worker_id, acquired_at, now)
            self._records[fact.tenant, fact.key] = record
            self._by_worker.setdefault((fact.tenant, fact.worker_id), {})[fact.key] = record
        move.apply(record, fact, now + (fact.expires_at - fact.at) / 1000)
        self._watch(fact.tenant, fact.key, record)
        return record

    def restore(
        self, tenant: str, key: str, worker_id: str, acquired_at: float, expires_at: float
    ) -> None:
        """A key that is stored; whether its worker comes back will be seen."""
        record = AffinityRecord(worker_id, acquired_at, expires_at)
        record.state = "stale"
        self._records[tenant, key] = record
        self._by_worker.setdefault((tenant, worker_id), {})[key] = record
        self._watch(tenant, key, record)

    def lookup(self, tenant: str, key: str) -> AffinityRecord | None:
        return self._records.get((tenant, key))

    def keys_of(self, tenant: str, worker_id: str) -> list[str]:
        """The keys that a worker has."""
        return list(self._by_worker.get((tenant, worker_id), ()))

    def stale_keys_of(self, tenant: str, worker_id: str) -> list[str]:
        held = self._by_worker.get((tenant, worker_id), {})
        return [key for key, record in held.items() if record.state == "stale"]

    def begin_use(
        self, tenant: str, key: str, worker_id: str, ends_at: float | None = None
    ) -> None:
        """A task of this worker uses the key; it lives until `ends_at` at least, if that is told."""
        record = self._records.get((tenant, key))
        if record is None or record.worker_id != worker_id:
            return
        record.inflight += 1
        if ends_at is not None:
            record.expires_at = ends_at

    def end_use(self, tenant: str, key: str, worker_id: str, ends_at: float) -> None:
        """The task has ended; the key lives on until then, unless its worker is lost."""
        record = self._records.get((tenant, key))
        if record is None or record.worker_id != worker_id:
            return
        record.inflight = max(0, record.inflight - 1)
        if record.state == "active":
            record.expires_at = ends_at
        self._watch(tenant, key, record)

    def expired(self, now: float) -> list[tuple[str, str, str]]:
        """The keys whose time has passed and that no task uses: (tenant, key, worker). They stay until released."""
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
            # Else it is in use: the end of the last task that uses it has it watched again.
        return over

    def deadline(self) -> float | None:
        """No key ends before this time."""
        return self._ends[0][0] if self._ends else None

    def _watch(self, tenant: str, key: str, record: AffinityRecord) -> None:
        if record.watched_at is None or record.expires_at < record.watched_at:
            record.watched_at = record.expires_at
            heappush(self._ends, (record.expires_at, tenant, key))

    def _drop(self, tenant: str, key: str) -> None:
        record = self._records.pop((tenant, key))
        held = self._by_worker[tenant, record.worker_id]
        del held[key]
        if not held:
            del self._by_worker[tenant, record.worker_id]

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
