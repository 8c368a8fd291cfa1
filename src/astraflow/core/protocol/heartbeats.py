"""The heartbeat tracker of a worker: when the next is due, and which were answered.

PROTOCOL §5: "Heartbeat 5 s (jitter only shortens it)"; one that stays unanswered for 3 s closes the
link. A worker's right to run an attempt counts from the *send time* of a heartbeat or register, so
the send times are kept here by frame id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astraflow.core.protocol import limits

if TYPE_CHECKING:
    from random import Random


class HeartbeatTracker:
    """The heartbeats of one worker, over all its sessions."""

    __slots__ = ("_answer_timeout_s", "_rng", "_sent", "_unanswered", "due_at", "interval_s")

    def __init__(self, rng: Random, answer_timeout_s: float) -> None:
        self.interval_s = limits.HEARTBEAT_INTERVAL_S
        self.due_at: float | None = None
        self._answer_timeout_s = answer_timeout_s
        self._rng = rng
        self._unanswered: dict[str, float] = {}  # by frame id; the first is the oldest
        self._sent: dict[str, float] = {}

    def sent(self, frame_id: str, now: float) -> None:
        """A heartbeat went out."""
        self.remember(frame_id, now)
        self._unanswered[frame_id] = now
        # Never less than half of the jitter, so that a heartbeat is not late by its transit alone.
        jitter = limits.HEARTBEAT_JITTER * (0.5 + 0.5 * self._rng.random())
        self.due_at = now + self.interval_s * (1.0 - jitter)

    def answered(self, frame_id: str) -> float | None:
        """A heartbeat was answered; returns when it was sent, or None if nobody waits for it.

        The earlier ones are no longer waited for: this answer reaches further than theirs.
        """
        sent_at = self._unanswered.get(frame_id)
        if sent_at is None:
            return None
        for earlier in [each for each, at in self._unanswered.items() if at <= sent_at]:
            del self._unanswered[earlier]
        return sent_at

    def remember(self, frame_id: str, now: float) -> None:
        """Keep the send time of a heartbeat or register, for `lease.since`."""
        self._sent[frame_id] = now
        if len(self._sent) > limits.SENT_TIMES_KEPT:
            del self._sent[next(iter(self._sent))]

    def sent_at(self, frame_id: str) -> float | None:
        return self._sent.get(frame_id)

    def stop(self) -> None:
        """The link is gone: nothing is due on it, and no answer will come."""
        self.due_at = None
        self._unanswered.clear()

    def is_overdue(self, now: float) -> bool:
        """Whether a heartbeat stayed unanswered for too long."""
        for sent_at in self._unanswered.values():
            return now >= sent_at + self._answer_timeout_s
        return False

    def deadline(self) -> float | None:
        due_at = self.due_at
        for sent_at in self._unanswered.values():
            answer_at = sent_at + self._answer_timeout_s
            return answer_at if due_at is None or answer_at < due_at else due_at
        return due_at

    def check(self) -> None:
        assert len(self._sent) <= limits.SENT_TIMES_KEPT
        assert list(self._unanswered.values()) == sorted(self._unanswered.values())
