"""What a worker holds: the attempts it has taken, the results nobody has committed yet, and its fences.

Rule 1: an attempt is started at most once. A worker remembers the highest attempt of each task and refuses lower or
        equal ones that it no longer holds (PROTOCOL §5.3).
Rule 2: the right to run an attempt ends 0.6 × ttl after the *send time* of the heartbeat or register that its lease
        names, or of the last *answered* heartbeat that named the attempt (R9). Anything else heard proves nothing: a
        one-way partition lets the scheduler be heard while it hears nobody.
Rule 3: past the fence the attempt is killed, not asked, and is not reported: what was stopped by a fence is lost.
Rule 4: a result is held until `ack_seq` covers it, across connections and sessions (R10). It is no longer work:
        no fence, cancel or drain touches it.
Rule 5: an attempt is in the inventory until it is known to be dead. Leaving it out says "this does not run here".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from math import inf
from typing import Final, Literal

from astraflow.core import errors
from astraflow.core.ids import TaskId
from astraflow.core.protocol.business import Dispatch, ExecError, NextRequest, Result
from astraflow.core.protocol.limits import FENCE_RATIO
from astraflow.core.protocol.wire import AttemptRef

REMEMBERED_TASKS: Final = 100_000
"""Tasks whose highest attempt is remembered; the oldest are forgotten. A frame cannot be older than its lease."""

Phase = Literal["running", "stopping", "killing", "done"]


class HeldAttempt:
    """One attempt that was taken."""

    def __init__(self, dispatch: Dispatch, fence_at: float, now: float) -> None:
        self.dispatch = dispatch
        self.task_id = dispatch.task_id
        self.attempt = dispatch.attempt
        self.ttl_s = dispatch.lease.ttl_ms / 1000
        self.fence_at = fence_at
        self.phase: Phase = "running"
        self.why: str | None = None
        timeout_ms = dispatch.constraints.timeout_ms
        self.timeout_at = now + timeout_ms / 1000 if timeout_ms is not None else None
        self.calls: dict[str, NextRequest] = {}  # what it called and waits for
        self.lent_key_by: TaskId | None = None  # the task whose key this one uses meanwhile
        self.report: Result | ExecError | None = None
        self.is_queued = False  # whether the session has the report in its window or queue
        self.frame_id: str | None = None  # of the frame that carries the report, in any session

    @property
    def due_at(self) -> float:
        """When this attempt must be looked at."""
        if self.phase == "killing":
            return inf
        if self.phase == "running" and self.timeout_at is not None:
            return min(self.fence_at, self.timeout_at)
        return self.fence_at

    @property
    def ref(self) -> AttemptRef:
        return AttemptRef(self.task_id, self.attempt)


class HeldAttempts:
    """The attempts of one worker. Decides; starts and kills nothing itself."""

    def __init__(self, max_parallel: int) -> None:
        self.max_parallel = max_parallel
        self.is_draining = False
        self.renewals = 0  # answered heartbeats so far: each may have moved fences
        self._held: dict[TaskId, HeldAttempt] = {}
        self._reports: dict[tuple[TaskId, int], HeldAttempt] = {}
        self._by_frame: dict[str, HeldAttempt] = {}  # the reports that were put into a session
        self._highest: OrderedDict[TaskId, int] = OrderedDict()
        self._keys: dict[str, TaskId] = {}
        # No fence and no timeout is earlier than this; it may be too early, never too late. Looking at every
        # attempt for every frame would cost the square of what a worker holds.
        self.check_at = inf

    # -- taking -----------------------------------------------------------------------------

    def offer(
        self, dispatch: Dispatch, since_sent_at: float | None, now: float
    ) -> HeldAttempt | str | None:
        """Take an attempt (`HeldAttempt`: start it), refuse it (an error code), or know it already (None).

        `since_sent_at` is when this worker sent the frame that the lease names, if it knows it.
        """
        known = self.find(dispatch.task_id, dispatch.attempt)
        if known is not None:
            return None
        refusal = self._refusal(dispatch, since_sent_at, now)
        self._remember(dispatch.task_id, dispatch.attempt)
        if refusal is not None:
            return refusal
        assert since_sent_at is not None
        held = HeldAttempt(dispatch, fence_of(since_sent_at, dispatch.lease.ttl_ms / 1000), now)
        self._held[held.task_id] = held
        self.check_at = min(self.check_at, held.due_at)
        if dispatch.concurrency_key is not None:
            held.lent_key_by = self._keys.get(dispatch.concurrency_key)
            self._keys[dispatch.concurrency_key] = held.task_id
        return held

    def _refusal(self, dispatch: Dispatch, since_sent_at: float | None, now: float) -> str | None:
        if dispatch.attempt <= self._highest.get(dispatch.task_id, 0):
            return errors.DISPATCH_STALE.code
        if since_sent_at is None or now >= fence_of(since_sent_at, dispatch.lease.ttl_ms / 1000):
            return errors.DISPATCH_STALE.code
        if dispatch.task_id in self._held:
            # An older attempt of the task has not ended here, so the newer one must not begin.
            return errors.DISPATCH_STALE.code
        if self.is_draining:
            return errors.DISPATCH_DRAINING.code
        if dispatch.concurrency_key is not None and self._is_busy(dispatch.concurrency_key):
            return errors.CMD_CONCURRENCY_VIOLATION.code
        if len(self._held) >= 2 * self.max_parallel and self.slots_taken >= 2 * self.max_parallel:
            return errors.DISPATCH_OVERLOADED.code
        return None

    @property
    def slots_taken(self) -> int:
        """Attempts that take a slot; one that waits for what it called lends its own."""
        return sum(not held.calls for held in self._held.values())

    def _is_busy(self, key: str) -> bool:
        """PROTOCOL §10: "A waiting parent lends its slot and its concurrency key"."""
        holder = self._keys.get(key)
        return holder is not None and not self._held[holder].calls

    def refuse_later(self, task_id: TaskId, attempt: int) -> None:
        """A cancel came for an attempt that is not here: should its dispatch still come, refuse it."""
        self._remember(task_id, attempt)

    # -- looking ----------------------------------------------------------------------------

    def find(self, task_id: TaskId, attempt: int) -> HeldAttempt | None:
        held = self._held.get(task_id)
        if held is not None and held.attempt == attempt:
            return held
        return self._reports.get((task_id, attempt))

    def working(self) -> list[HeldAttempt]:
        """Attempts that run or are being stopped."""
        return list(self._held.values())

    def reports(self) -> list[HeldAttempt]:
        """Attempts whose report is held, oldest first."""
        return list(self._reports.values())

    @property
    def is_empty(self) -> bool:
        return not self._held and not self._reports

    def named(self) -> tuple[AttemptRef, ...]:
        """PROTOCOL §7: "every attempt taken and not yet under `ack_seq`: queued, running, result held"."""
        return tuple(held.ref for held in (*self._held.values(), *self._reports.values()))

    # -- fences and timeouts ----------------------------------------------------------------

    def answered(self, refs: tuple[AttemptRef, ...], sent_at: float) -> None:
        """A heartbeat that named these attempts, sent at this time, was answered."""
        self.renewals += 1
        for ref in refs:
            held = self._held.get(ref.task_id)
            if held is not None and held.attempt == ref.attempt:
                held.fence_at = max(held.fence_at, fence_of(sent_at, held.ttl_s))

    def is_due(self, now: float) -> bool:
        """Whether a fence or a timeout may have passed."""
        if now < self.check_at:
            return False
        self.check_at = min((held.due_at for held in self._held.values()), default=inf)
        return now >= self.check_at

    def past_fence(self, now: float) -> list[HeldAttempt]:
        """Attempts that must be killed now."""
        return [
            held for held in self._held.values() if held.phase != "killing" and held.fence_at <= now
        ]

    def past_timeout(self, now: float) -> list[HeldAttempt]:
        """Attempts that have run longer than their node allows."""
        return [
            held
            for held in self._held.values()
            if held.phase == "running" and held.timeout_at is not None and held.timeout_at <= now
        ]

    def deadline(self) -> float | None:
        """When to look at fences and timeouts again; it may turn out to be too early."""
        return None if self.check_at == inf else self.check_at

    # -- ending -----------------------------------------------------------------------------

    def finish(self, held: HeldAttempt, report: Result | ExecError) -> None:
        """The attempt has ended and this is what to tell of it."""
        assert held.phase != "done", "an attempt has one report"
        self.drop(held)
        held.phase = "done"
        held.report = report
        self._reports[held.task_id, held.attempt] = held

    def queued(self, held: HeldAttempt, frame_id: str) -> None:
        """The session has the report, in a frame with this id; it keeps the id in every session."""
        held.is_queued = True
        held.frame_id = frame_id
        self._by_frame[frame_id] = held

    def find_report(self, frame_id: str) -> HeldAttempt | None:
        """The attempt whose report this frame carries."""
        return self._by_frame.get(frame_id)

    def committed(self, frame_ids: Iterable[str]) -> None:
        """`ack_seq` covers these frames: their reports are durable at the scheduler."""
        for frame_id in frame_ids:
            held = self._by_frame.pop(frame_id, None)
            if held is not None:
                del self._reports[held.task_id, held.attempt]

    def drop(self, held: HeldAttempt) -> None:
        """The attempt has ended here. Call this alone when there is nothing to tell of it (Rule 3)."""
        del self._held[held.task_id]
        key = held.dispatch.concurrency_key
        if key is None:
            return
        if self._keys[key] != held.task_id:
            # It ended before what it had lent its key to: that one gives back to whom it had it from.
            borrower = next(one for one in self._held.values() if one.lent_key_by == held.task_id)
            borrower.lent_key_by = held.lent_key_by
        elif held.lent_key_by is not None:
            self._keys[key] = held.lent_key_by
        else:
            del self._keys[key]

    def _remember(self, task_id: TaskId, attempt: int) -> None:
        self._highest[task_id] = max(attempt, self._highest.get(task_id, 0))
        self._highest.move_to_end(task_id)
        if len(self._highest) > REMEMBERED_TASKS:
            self._highest.popitem(last=False)

    def check(self) -> None:
        """Assert what must always hold."""
        assert all(held.phase != "done" for held in self._held.values())
        assert all(held.phase == "done" for held in self._reports.values())
        assert all(held.report is not None for held in self._reports.values())
        framed = [held for held in self._reports.values() if held.frame_id is not None]
        assert {held.frame_id: held for held in framed} == self._by_frame
        keyed = {one.dispatch.concurrency_key for one in self._held.values()} - {None}
        assert set(self._keys) == keyed
        assert all(holder in self._held for holder in self._keys.values())


def fence_of(sent_at: float, ttl_s: float) -> float:
    """When the right to run ends that a frame sent at this time gives."""
    return sent_at + FENCE_RATIO * ttl_s
