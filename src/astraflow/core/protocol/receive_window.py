"""The receiving half of a window; the rules are in `window.py`."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from astraflow.core import errors
from astraflow.core.protocol import limits

F = TypeVar("F")


class Ack(NamedTuple):
    """The state of a receiving half, as it goes over the wire."""

    ack_seq: int | None
    bitmap: str
    recv_window: int


class ReceiveWindow(Generic[F]):
    """The receiving half.

    Two positions, on purpose. `delivered` is what the handler has been given; `committed` is what
    it has made durable. Only `committed` goes into `ack_seq`, because an acknowledged frame is one
    that the sender may forget.
    """

    __slots__ = (
        "_ack_requested",
        "_buffer",
        "_done",
        "_owed_since",
        "_quarter",
        "_size",
        "_unacked",
        "committed",
        "counters",
        "delivered",
    )

    def __init__(self, size: int) -> None:
        assert size >= 1
        self._size = size
        self._quarter = max(1, size // 4)
        self._buffer: dict[int, F] = {}
        self._done: set[int] = set()
        self._unacked = 0
        self._owed_since: float | None = None
        self._ack_requested = False
        self.delivered = -1
        self.committed = -1
        self.counters = {"duplicates": 0, "beyond_window": 0, "out_of_order": 0}

    def feed(self, seq: int, frame: F) -> list[F]:
        """Take a frame off the wire; returns those now deliverable, in order.

        After calling this: hand them to the handler, and when their effects are committed call
        `commit` for each, or `committed_through` for all up to one. Their seqs end at `delivered`.
        """
        if seq <= self.delivered or seq in self._buffer:
            self.counters["duplicates"] += 1
            self._ack_requested = True
            return []
        if seq > self.committed + self._size:  # as `has_room_for` says
            self.counters["beyond_window"] += 1
            self._ack_requested = True
            return []
        self._unacked += 1
        if seq != self.delivered + 1:
            self._buffer[seq] = frame
            self.counters["out_of_order"] += 1
            self._ack_requested = True
            return []
        self.delivered = seq
        if not self._buffer:
            return [frame]
        return [frame, *self._drain_buffer()]

    def commit(self, seq: int) -> None:
        """The effect of this one delivered frame is committed; `ack_seq` passes what is whole."""
        if seq > self.delivered:
            raise _not_delivered(seq)
        if seq <= self.committed:
            return
        self._unacked += 1
        if seq != self.committed + 1:
            self._done.add(seq)
            return
        self.committed = seq
        done = self._done
        while done and self.committed + 1 in done:
            self.committed += 1
            done.remove(self.committed)

    def committed_through(self, seq: int) -> None:
        """The effects of all delivered frames up to this one are committed."""
        if seq > self.delivered:
            raise _not_delivered(seq)
        for each in range(self.committed + 1, seq + 1):
            self.commit(each)

    def has_room_for(self, seq: int) -> bool:
        """PROTOCOL §3: "seq ≤ `ack_seq` + `recv_window` may be sent"."""
        return seq <= self.committed + self._size

    def ask(self) -> None:
        """The peer asked for an ack: it is due at once."""
        self._ack_requested = True

    def ack_due(self, now: float) -> bool:
        """Whether `ack` must be sent now.

        "At the latest after 10 ms or a quarter window, at once on a gap, a duplicate, or
        `ack.request`." The 10 ms begin with the first call that finds something owed.
        """
        if self._ack_requested or self._unacked >= self._quarter:
            return True
        if not self._unacked:
            return False
        if self._owed_since is None:
            self._owed_since = now
        return now >= self._owed_since + limits.ACK_DELAY_S

    def is_ack_owed(self) -> bool:
        """Whether an ack would tell the peer something new: it may ride along with a frame."""
        return self._ack_requested or self._unacked > 0

    def deadline(self) -> float | None:
        """When an owed ack is due; None if none is owed, or `ack_due` was not yet asked."""
        return None if self._owed_since is None else self._owed_since + limits.ACK_DELAY_S

    def ack(self) -> Ack:
        """The ack to send now; nothing is owed after it."""
        self._unacked = 0
        self._owed_since = None
        self._ack_requested = False
        committed = self.committed
        return Ack(None if committed < 0 else committed, self._bitmap(), self._size)

    def check(self) -> None:
        """Assert I1 and I2: in order, once, no more buffered than the window holds; the bitmap says what arrived."""
        assert -1 <= self.committed <= self.delivered
        assert self.delivered <= self.committed + self._size
        assert len(self._buffer) < self._size or not self._buffer
        assert all(self.delivered + 1 < seq <= self.committed + self._size for seq in self._buffer)
        assert all(self.committed + 1 < seq <= self.delivered for seq in self._done)
        told, first = int(self._bitmap(), 16), self.committed + 1
        arrived = {*range(first, self.delivered + 1), *self._buffer}
        assert {first + bit for bit in range(told.bit_length()) if told >> bit & 1} == arrived

    def _drain_buffer(self) -> list[F]:
        ready = []
        while self.delivered + 1 in self._buffer:
            self.delivered += 1
            ready.append(self._buffer.pop(self.delivered))
        return ready

    def _bitmap(self) -> str:
        """Bit i: `ack_seq + 1 + i` has arrived, delivered or waiting for what is missing."""
        first = self.committed + 1
        if self.delivered < first and not self._buffer:
            return "0"
        bits = (1 << (self.delivered - self.committed)) - 1
        for seq in self._buffer:
            bits |= 1 << (seq - first)
        return f"{bits:x}"


def _not_delivered(seq: int) -> errors.LocalProtocolError:
    return errors.LocalProtocolError(
        errors.PROTOCOL_MISUSE, f"a frame that was not delivered is committed: {seq}"
    )
