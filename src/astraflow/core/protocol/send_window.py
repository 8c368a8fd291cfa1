"""The sending half of a window; the rules are in `window.py`."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from astraflow.core import errors
from astraflow.core.protocol import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


class Frame(Protocol):
    """What a window carries: anything with an id."""

    @property
    def id(self) -> str: ...


F = TypeVar("F", bound=Frame)


class QueueFull(errors.Unavailable):
    """The send queue is at its limit: the producer must wait for acknowledgements."""

    def __init__(self, limit: int) -> None:
        super().__init__(errors.OVERLOADED, f"as many frames wait as may wait: {limit}")


class _Slot(Generic[F]):
    """A frame in the window: sent, and not yet under `ack_seq`."""

    __slots__ = ("again", "arrived", "due", "frame", "is_feedback", "sends", "seq")

    def __init__(self, seq: int, frame: F, is_feedback: bool) -> None:
        self.seq = seq
        self.frame = frame
        self.is_feedback = is_feedback
        self.sends = 0
        self.due = 0.0
        self.arrived = False
        self.again = 0  # how often it was sent after it was said to have arrived


# The wait after the n-th transmission; the last one ends in a broken link.
_WAITS_S: Final = tuple(
    min(limits.RETRANSMIT_CAP_S, limits.RETRANSMIT_BASE_S * 2.0**n)
    for n in range(limits.RETRANSMIT_ATTEMPTS)
)
_HEX: Final = "0123456789abcdef"


class SendWindow(Generic[F]):
    """The sending half.

    Call `push` to queue a frame, `take` to get what must go onto the wire now, `on_ack` with every
    window ack of the peer, and look at `broken` after `take`: then the link must be closed.

    `seal` turns a frame and its seq into what goes onto the wire. It is called once, at the first
    transmission; every later one gives out that very object: PROTOCOL §3: "same id, seq and payload (`ts` is
    the time of sending)".
    """

    __slots__ = (
        "_acked",
        "_feedback",
        "_feedback_inside",
        "_feedback_share",
        "_next_due",
        "_next_seq",
        "_peer_window",
        "_probe_at",
        "_probes",
        "_queue",
        "_queue_limit",
        "_rng",
        "_seal",
        "_size",
        "_slots",
        "broken",
        "counters",
    )

    def __init__(
        self,
        size: int,
        rng: Random,
        *,
        queue_limit: int = limits.SEND_QUEUE,
        seal: Callable[[F, int], F] | None = None,
    ) -> None:
        assert size >= 1
        self._size = size
        self._seal = seal
        self._rng = rng
        self._queue_limit = queue_limit
        self._feedback_share = max(1, size // limits.FEEDBACK_SHARE)
        self._queue: deque[F] = deque()
        self._feedback: deque[F] = deque()
        self._slots: deque[_Slot[F]] = deque()
        self._feedback_inside = 0
        self._acked = -1
        self._next_seq = 0
        self._peer_window = size
        self._next_due = inf
        self._probe_at = inf
        self._probes = 0
        self.broken = False
        self.counters = {
            "acks_late": 0,
            "acks_absurd": 0,
            "retransmitted": 0,
            "feedback_shed": 0,
            "probes": 0,
        }

    @property
    def in_flight(self) -> int:
        """Frames that have a seq and are not yet under `ack_seq`."""
        return len(self._slots)

    @property
    def queued(self) -> int:
        """Frames that have no seq yet."""
        return len(self._queue) + len(self._feedback)

    @property
    def acked(self) -> int:
        """The peer's `ack_seq`; -1 before the first."""
        return self._acked

    @property
    def next_seq(self) -> int:
        return self._next_seq

    @property
    def is_idle(self) -> bool:
        """Whether `ack_seq` covers everything that was ever pushed and not shed."""
        return not (self._slots or self._queue or self._feedback)

    @property
    def first_unacked(self) -> F | None:
        return self._slots[0].frame if self._slots else None

    def push(self, frame: F, *, feedback: bool = False) -> None:
        """Queue a frame; it gets its seq when `take` lets it into the window.

        Raises:
            QueueFull: the producer must wait. Never for feedback: the oldest of it is shed.
        """
        if feedback:
            if len(self._feedback) >= min(limits.FEEDBACK_QUEUE, self._queue_limit):
                self._feedback.popleft()
                self.counters["feedback_shed"] += 1
            self._feedback.append(frame)
            return
        if len(self._queue) >= self._queue_limit:
            raise QueueFull(self._queue_limit)
        self._queue.append(frame)

    @property
    def has_feedback(self) -> bool:
        """Whether feedback waits to be let in."""
        return bool(self._feedback)

    def promote(self, is_meant: Callable[[F], bool]) -> None:
        """Let the queued feedback that is meant go before what is pushed next.

        PROTOCOL §3: "The last chunks of an attempt are merged and go before its result". What finds no room is left
        behind: a result must not be refused because of it.
        """
        kept: deque[F] = deque()
        for frame in self._feedback:
            if is_meant(frame) and len(self._queue) + 1 < self._queue_limit:
                self._queue.append(frame)
            else:
                kept.append(frame)
        self._feedback = kept

    def take(self, now: float) -> list[tuple[int, F]]:
        """The frames to put on the wire now, each with its seq: new ones, and those to send again.

        After calling this: look at `broken`.
        """
        out: list[tuple[int, F]] = []
        if now >= self._next_due:
            self._retransmit(now, out)
        room = min(self._size, self._peer_window) - len(self._slots)
        if room > 0 and (self._queue or self._feedback):
            self._admit(room, now, out)
        elif self._peer_window == 0 and (self._queue or self._feedback or self._slots):
            self._probe(now, out)
        return out

    def on_ack(
        self, ack_seq: int | None, bitmap: str, recv_window: int | None, now: float
    ) -> list[F]:
        """Take the peer's ack; returns the frames that `ack_seq` now covers, to be forgotten.

        Without `recv_window` the last one told stands.
        """
        if recv_window is None:
            recv_window = self._peer_window
        acked = -1 if ack_seq is None else ack_seq
        if acked < self._acked:
            self.counters["acks_late"] += 1
            return []
        arrived = 0 if bitmap == "0" else _parse_bitmap(bitmap)
        # The highest bit stands for seq `acked + bit_length`; it must have been sent.
        if recv_window < 0 or arrived < 0 or acked + arrived.bit_length() >= self._next_seq:
            self.counters["acks_absurd"] += 1
            return []
        self._open(recv_window, now)
        forgotten = self._forget_through(acked)
        if arrived:
            self._stop_resending(acked, arrived, now)
        if not self._slots:
            self._next_due = inf
        return forgotten

    def resend_all(self, now: float) -> None:
        """After a resume: everything unacknowledged goes out again, as if for the first time."""
        for slot in self._slots:
            slot.sends = slot.again = 0
            slot.arrived = False
            slot.due = now
        self._next_due = now if self._slots else inf
        self.broken = False

    def withdraw(self, frame_id: str) -> bool:
        """Remove a frame that never got a seq; False if it has one, or is not here."""
        for queue in (self._queue, self._feedback):
            for index, frame in enumerate(queue):
                if frame.id == frame_id:
                    del queue[index]
                    return True
        return False

    def replace(self, frame_id: str, frame: F) -> bool:
        """Put another frame in the place, and under the seq, of one that closes the link."""
        for slot in self._slots:
            if slot.frame.id == frame_id:
                slot.frame = frame if self._seal is None else self._seal(frame, slot.seq)
                return True
        return False

    def unacked(self) -> list[F]:
        """All frames that are still here, in the order in which they would be delivered."""
        inside = [slot.frame for slot in self._slots]
        return [*inside, *self._queue, *self._feedback]

    def deadline(self) -> float | None:
        """When `take` must be called again at the latest; None if only on an input."""
        at = min(self._next_due, self._probe_at)
        return None if at == inf else at

    def check(self) -> None:
        """Assert I2 and I4: nothing is missing between `ack_seq` and the next seq."""
        assert -1 <= self._acked < self._next_seq or self._next_seq == 0
        assert len(self._slots) == self._next_seq - self._acked - 1
        assert len(self._slots) <= self._size
        assert [slot.seq for slot in self._slots] == list(range(self._acked + 1, self._next_seq))
        assert len(self._queue) <= self._queue_limit
        assert len(self._feedback) <= limits.FEEDBACK_QUEUE
        assert self._feedback_inside == sum(slot.is_feedback for slot in self._slots)
        assert all(0 <= slot.sends <= limits.RETRANSMIT_ATTEMPTS for slot in self._slots)
        assert all(0 <= slot.again <= limits.RETRANSMIT_ATTEMPTS for slot in self._slots)
        waiting = [slot.due for slot in self._slots]
        is_stopped = self.broken or self._peer_window == 0
        assert is_stopped or self._next_due <= min(waiting, default=inf)

    def _admit(self, room: int, now: float, out: list[tuple[int, F]]) -> None:
        queue = self._queue
        while room > 0 and queue:
            self._enter(queue.popleft(), False, now, out)
            room -= 1
        while room > 0 and self._feedback and self._feedback_inside < self._feedback_share:
            self._enter(self._feedback.popleft(), True, now, out)
            room -= 1

    def _enter(self, frame: F, is_feedback: bool, now: float, out: list[tuple[int, F]]) -> None:
        seq = self._next_seq
        self._next_seq = seq + 1
        if self._seal is not None:
            frame = self._seal(frame, seq)
        slot = _Slot(seq, frame, is_feedback)
        self._feedback_inside += is_feedback
        self._slots.append(slot)
        self._send(slot, now, out)

    def _send(self, slot: _Slot[F], now: float, out: list[tuple[int, F]]) -> None:
        wait = _WAITS_S[slot.sends] * (1.0 + limits.RETRANSMIT_JITTER * self._rng.random())
        slot.due = now + min(wait, limits.RETRANSMIT_CAP_S)
        slot.sends += 1
        if slot.due < self._next_due:
            self._next_due = slot.due
        out.append((slot.seq, slot.frame))

    def _retransmit(self, now: float, out: list[tuple[int, F]]) -> None:
        self._next_due = inf
        if self._peer_window == 0:
            # "0 = stop": only probes go out until the peer opens its window again.
            return
        for slot in self._slots:
            if slot.due > now:
                self._next_due = min(self._next_due, slot.due)
            elif (slot.again if slot.arrived else slot.sends) >= limits.RETRANSMIT_ATTEMPTS:
                self.broken = True
            elif slot.arrived:
                slot.again += 1
                self._await_commit(slot, now)
                self.counters["retransmitted"] += 1
                out.append((slot.seq, slot.frame))
            else:
                self.counters["retransmitted"] += slot.sends > 0
                self._send(slot, now, out)

    def _probe(self, now: float, out: list[tuple[int, F]]) -> None:
        """Ask a peer that closed its window whether it still is closed, with backoff.

        The ack that opens the window may be lost, and the peer owes none after it: the probe is a
        frame beyond the window, which the peer drops and answers with its ack.
        """
        if self._probe_at == inf:
            self._probe_at = now + limits.RETRANSMIT_BASE_S
        if now < self._probe_at:
            return
        self._probes += 1
        wait = limits.RETRANSMIT_BASE_S * 2.0 ** min(self._probes, limits.RETRANSMIT_ATTEMPTS)
        self._probe_at = now + min(limits.RETRANSMIT_CAP_S, wait)
        self.counters["probes"] += 1
        if self._slots:
            out.append((self._slots[0].seq, self._slots[0].frame))
            return
        is_feedback = not self._queue
        frame = (self._feedback if is_feedback else self._queue).popleft()
        self._enter(frame, is_feedback, now, out)
        self._next_due = inf

    def _open(self, recv_window: int, now: float) -> None:
        reopened = self._peer_window == 0 and recv_window > 0
        self._peer_window = min(recv_window, self._size)
        if self._peer_window == 0:
            return
        self._probe_at = inf
        self._probes = 0
        if reopened and self._slots:
            # What was held back while the window was closed is due at once.
            self._next_due = now

    def _forget_through(self, acked: int) -> list[F]:
        slots = self._slots
        forgotten = []
        while slots and slots[0].seq <= acked:
            slot = slots.popleft()
            self._feedback_inside -= slot.is_feedback
            forgotten.append(slot.frame)
        self._acked = acked
        return forgotten

    def _stop_resending(self, acked: int, arrived: int, now: float) -> None:
        for slot in self._slots:
            if arrived >> (slot.seq - acked - 1) & 1 and not slot.arrived:
                slot.arrived = True
                self._await_commit(slot, now)

    def _await_commit(self, slot: _Slot[F], now: float) -> None:
        """PROTOCOL §3: a frame that has arrived "but that `ack_seq` does not cover within 30 s is sent again"."""
        slot.due = now + limits.ARRIVED_TIMEOUT_S
        if slot.due < self._next_due:
            self._next_due = slot.due


def _parse_bitmap(bitmap: str) -> int:
    """The bitmap as an integer, or -1 if it is not one in lower-case hex."""
    if not bitmap or bitmap.strip(_HEX):
        return -1
    return int(bitmap, 16)
