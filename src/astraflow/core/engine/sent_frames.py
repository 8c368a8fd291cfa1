"""Dispatch and cancel frames that were sent and are not acknowledged yet."""

from __future__ import annotations

from collections import deque

from astraflow.core.dispatch import AttemptLease


class SentFrames:
    """Which attempt a frame is about, and until when a dispatch may be acknowledged (monotonic)."""

    def __init__(self) -> None:
        self._leases: dict[str, AttemptLease] = {}  # of those that have not ended
        self._unacked: deque[tuple[float, AttemptLease]] = deque()

    def __len__(self) -> int:
        return len(self._leases)

    def note(self, frame_id: str, lease: AttemptLease) -> None:
        self._leases[frame_id] = lease

    def take(self, frame_id: str) -> AttemptLease | None:
        """The lease of the attempt that an acknowledged frame is about; the frame is not waited for any more."""
        return self._leases.pop(frame_id, None)

    def forget(self, lease: AttemptLease) -> None:
        """The attempt is over, and its frames with it."""
        if lease.frame_id is not None:
            self._leases.pop(lease.frame_id, None)
        if lease.cancel_frame is not None:
            self._leases.pop(lease.cancel_frame, None)

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
