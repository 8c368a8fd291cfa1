"""Commands that a worker of protocol 1 has not acknowledged yet.

PROTOCOL §8: "per-message acks (200 ms base, 5 s cap, 6 attempts)", doubling, with jitter. Each command is on its own:
one that stays unacknowledged delays no other. After the sixth sending it is given up.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from astraflow.core.protocol import limits

if TYPE_CHECKING:
    from random import Random

    from astraflow.core.protocol.v1.frames import V1Envelope


class _Unacked:
    __slots__ = ("due", "frame", "sends")

    def __init__(self, frame: V1Envelope, due: float) -> None:
        self.frame = frame
        self.sends = 1
        self.due = due


class Resending:
    """The unacknowledged commands of one connection."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._unacked: dict[str, _Unacked] = {}

    def __len__(self) -> int:
        return len(self._unacked)

    def sent(self, frame: V1Envelope, now: float) -> None:
        """A command was sent for the first time."""
        self._unacked[frame.id] = _Unacked(frame, now + self._wait(1))

    def take(self, frame_id: str) -> V1Envelope | None:
        """A command needs no more sending; None if it was never sent, or is over."""
        unacked = self._unacked.pop(frame_id, None)
        return None if unacked is None else unacked.frame

    def due(self, now: float) -> tuple[list[V1Envelope], list[V1Envelope]]:
        """What to send again now, and what is given up."""
        again: list[V1Envelope] = []
        given_up: list[V1Envelope] = []
        for unacked in self._unacked.values():
            if unacked.due > now:
                continue
            if unacked.sends >= limits.RETRANSMIT_ATTEMPTS:
                given_up.append(unacked.frame)
                continue
            unacked.sends += 1
            unacked.due = now + self._wait(unacked.sends)
            again.append(unacked.frame)
        for frame in given_up:
            del self._unacked[frame.id]
        return again, given_up

    def deadline(self) -> float:
        return min((one.due for one in self._unacked.values()), default=inf)

    def _wait(self, sends: int) -> float:
        """How long to wait after the n-th sending."""
        base = limits.RETRANSMIT_BASE_S * 2.0 ** (sends - 1)
        stretched = base * (1.0 + limits.RETRANSMIT_JITTER * self._rng.random())
        return min(stretched, limits.RETRANSMIT_CAP_S)
