"""Who may speak for a shard.

PROTOCOL §5.10: a scheduler answers heartbeats, accepts sessions and dispatches "only while its last
successful renewal of the shard lease was *sent* less than 0.6 × shard lease ago, checked at each answer".
The send time counts, because the store's clock started no later than that; 0.6, because the clocks of two
machines run apart. A stale owner that keeps answering heartbeats would keep workers running attempts that the
new owner has given away.
"""

from __future__ import annotations

from astraflow.core.protocol.limits import FENCE_RATIO


class Ownership:
    """The claim of one scheduler on its shard."""

    __slots__ = ("_proved_at", "epoch", "ttl_s")

    def __init__(self, epoch: int, ttl_s: float | None, sent_at: float) -> None:
        """`ttl_s` None: an OS lock on the data folder holds instead, and ends with the process."""
        self.epoch = epoch
        self.ttl_s = ttl_s
        self._proved_at = sent_at

    def renewed(self, sent_at: float) -> None:
        """A renewal that was sent at this time has succeeded."""
        self._proved_at = max(self._proved_at, sent_at)

    def may_speak(self, now: float) -> bool:
        """Ask before every answer, accept and dispatch."""
        return self.ttl_s is None or now - self._proved_at < FENCE_RATIO * self.ttl_s

    def deadline(self) -> float | None:
        """When the right to speak ends unless it is renewed."""
        return None if self.ttl_s is None else self._proved_at + FENCE_RATIO * self.ttl_s
