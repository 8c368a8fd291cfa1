"""Dispatch and cancel frames that were sent and are not acknowledged yet."""

from __future__ import annotations

from collections import deque

from astraflow.core.dispatch import AttemptLease
from astraflow.core.ids import TaskId


class SentFrames:
    """Which attempt a frame is about, and until when a dispatch may be acknowledged (monotonic)."""

    def __init__(self) -> None:
        self._attempts: dict[str, tuple[TaskId, int]] = {}
        self._unacked: deque[tuple[float, AttemptLease]] = deque()

    def __len__(self) -> int:
        return len(self._attempts)

    def note(self, frame_id: str, task_id: TaskId, attempt: int) -> None:
        self._attempts[frame_id] = (task_id, attempt)

    def take(self, frame_id: str) -> tuple[TaskId, int] | None:
        """The attempt of a frame that was acknowledged; it is not waited for any more."""
        return self._attempts.pop(frame_id, None)

    def forget(self, lease: AttemptLease) -> None:
        """The attempt is over, and its frames with it."""
        if lease.frame_id is not None:
            self._attempts.pop(lease.frame_id, None)
        if lease.cancel_frame is not None:
            self._attempts.pop(lease.cancel_frame, None)

    def expect_ack(self, lease: AttemptLease, until: float) -> None:
        """A dispatch is about to be sent."""
        self._unacked.append((until, lease))

    def take_overdue(self, now: float) -> list[AttemptLease]:
        """The attempts whose dispatch nobody has acknowledged in time."""
        overdue = []
        while self._unacked and self._unacked[0][0] <= now:
            _, lease = self._unacked.popleft()
            if not lease.is_taken and not lease.is_over:
                overdue.append(lease)
        return overdue

    def deadline(self) -> float | None:
        """When the first is due; those that were acknowledged or have ended are not looked at again."""
        unacked = self._unacked
        while unacked and (unacked[0][1].is_taken or unacked[0][1].is_over):
            unacked.popleft()
        return unacked[0][0] if unacked else None
