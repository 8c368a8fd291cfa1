"""Leases: a worker's time-bounded claim on one attempt, and what is known of its way there.

Rule 1: a lease is per attempt, granted when its fact is committed and before the frame leaves (R12).
Rule 2: only a heartbeat that *names* the attempt renews it (R5): a worker that dropped an attempt must not
        keep it alive by being alive itself.
Rule 3: times are monotonic. A restarted owner lets every stored lease run for its full stored length,
        because it cannot know when the last one was renewed.
Rule 4: a lease that was *revoked* is not renewed any more and the worker is told to stop; it still runs out
        at its own time, because only then is it proved that the worker's fence has fallen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from astraflow.core.fleet.workers import WorkerEntry
from astraflow.core.ids import SessionId, TaskId
from astraflow.core.runs.run import RunRecord

SPARE_ENDS: Final = 64
"""So many ended leases may stand in the heap of ends beside as many as are held; then it is made anew."""


class AttemptLease:
    """The claim of one worker on one attempt. Neither its run nor its worker is forgotten before it ends."""

    __slots__ = (
        "attempt",
        "cancel_frame",
        "frame_id",
        "is_lent",
        "is_over",
        "is_revoked",
        "is_stop_told",
        "is_taken",
        "run",
        "session_id",
        "stop_taken_seq",
        "task",
        "task_id",
        "tenant",
        "ttl_s",
        "until",
        "worker",
        "worker_id",
    )

    def __init__(
        self,
        run: RunRecord,
        task: int,
        task_id: TaskId,
        attempt: int,
        worker: WorkerEntry,
        ttl_s: float,
        now: float,
    ) -> None:
        self.tenant = run.tenant
        self.run = run
        self.task = task
        self.task_id = task_id
        self.attempt = attempt
        self.worker = worker
        self.worker_id = worker.worker_id
        self.ttl_s = ttl_s
        self.until = now + ttl_s
        self.is_over = False  # for those who still hold it when it has ended
        self.session_id: SessionId | None = None  # the session that its dispatch went out on
        self.frame_id: str | None = None
        self.is_taken = False
        self.is_lent = False  # it waits for its calls, and its slot is free meanwhile
        self.is_revoked = False
        self.is_stop_told = False  # an HTTP worker was answered that it is to stop
        self.cancel_frame: str | None = None
        # The cancel was taken: a heartbeat made after that, without the attempt, proves that it
        # does not run. The seq says which heartbeats were.
        self.stop_taken_seq: int | None = None


class LeaseTable:
    """All leases that are not over, by task, by worker and by when they end."""

    def __init__(self) -> None:
        self._leases: dict[TaskId, AttemptLease] = {}
        self._by_worker: dict[tuple[str, str], dict[TaskId, AttemptLease]] = {}
        self._ends: list[tuple[float, TaskId, int]] = []

    def __len__(self) -> int:
        return len(self._leases)

    def __iter__(self) -> Iterator[AttemptLease]:
        return iter(self._leases.values())

    def grant(self, lease: AttemptLease) -> None:
        assert lease.task_id not in self._leases, "a task has one lease at a time"
        self._leases[lease.task_id] = lease
        self._by_worker.setdefault((lease.tenant, lease.worker_id), {})[lease.task_id] = lease
        heappush(self._ends, (lease.until, lease.task_id, lease.attempt))

    def find(self, task_id: TaskId, attempt: int) -> AttemptLease | None:
        lease = self._leases.get(task_id)
        return lease if lease is not None and lease.attempt == attempt else None

    def of_task(self, task_id: TaskId) -> AttemptLease | None:
        """The lease of the attempt that is under way."""
        return self._leases.get(task_id)

    def of_worker(self, tenant: str, worker_id: str) -> list[AttemptLease]:
        return list(self._by_worker.get((tenant, worker_id), {}).values())

    def renew(
        self, tenant: str, worker_id: str, named: Iterable[tuple[TaskId, int]], now: float
    ) -> list[tuple[TaskId, int]]:
        """Renew what a heartbeat names; returns what it names but does not hold: it is to be stopped."""
        held = self._by_worker.get((tenant, worker_id), {})
        stop = []
        for task_id, attempt in named:
            lease = held.get(task_id)
            if lease is None or lease.attempt != attempt or lease.is_revoked:
                stop.append((task_id, attempt))
            else:
                lease.until = max(lease.until, now + lease.ttl_s)
        return stop

    def extend(self, lease: AttemptLease, now: float) -> None:
        """An HTTP worker has reported: its lease runs on from here, unless it was revoked."""
        if not lease.is_revoked:
            lease.until = max(lease.until, now + lease.ttl_s)

    def shorten(self, lease: AttemptLease, ttl_s: float, now: float) -> None:
        """From here on the lease has this length."""
        lease.ttl_s = ttl_s
        lease.until = now + ttl_s
        heappush(self._ends, (lease.until, lease.task_id, lease.attempt))

    def end(self, task_id: TaskId, attempt: int) -> AttemptLease | None:
        """The attempt is over; returns its lease if there was one."""
        lease = self.find(task_id, attempt)
        if lease is None:
            return None
        lease.is_over = True
        del self._leases[task_id]
        name = (lease.tenant, lease.worker_id)
        del self._by_worker[name][task_id]
        if not self._by_worker[name]:
            del self._by_worker[name]
        if len(self._ends) > 2 * len(self._leases) + SPARE_ENDS:
            # A lease of half a minute is no reason to keep what ran in half a minute.
            self._ends = [(one.until, one.task_id, one.attempt) for one in self._leases.values()]
            heapify(self._ends)
        return lease

    def deadline(self) -> float | None:
        """No lease ends before this time."""
        return self._ends[0][0] if self._ends else None

    def expired(self, now: float) -> list[AttemptLease]:
        """The leases that have run out. They stay until `end` is called."""
        over: dict[TaskId, AttemptLease] = {}  # one that was shortened is watched twice
        while self._ends and self._ends[0][0] <= now:
            _, task_id, attempt = self._ends[0]
            lease = self.find(task_id, attempt)
            if lease is None:
                heappop(self._ends)
            elif lease.until > now:
                heapreplace(self._ends, (lease.until, task_id, attempt))
            else:
                heappop(self._ends)
                over[task_id] = lease
        return list(over.values())

    def check(self) -> None:
        """Assert that every lease is indexed once and will be looked at when it ends."""
        watched = {(task_id, attempt) for _, task_id, attempt in self._ends}
        listed = [one for held in self._by_worker.values() for one in held.values()]
        assert len(listed) == len(self._leases)
        for lease in self._leases.values():
            assert (lease.task_id, lease.attempt) in watched
