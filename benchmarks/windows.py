"""The sliding window: what one frame costs from `push` to the ack that lets its sender forget it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from astraflow.core.protocol.window import ReceiveWindow, SendWindow
from benchmarks.figures import Figure, best_us

SIZE = 64
BUDGET_US = 5.0


class Note(NamedTuple):
    id: str


class Link:
    """Both halves, joined by nothing: what one sends the other has."""

    def __init__(self) -> None:
        self.sender: SendWindow[Note] = SendWindow(SIZE, Random(1))
        self.receiver: ReceiveWindow[Note] = ReceiveWindow(SIZE)
        self.note = Note("01J8ZQ5T9GQ4X7V2N3M1K0HABC")
        self.now = 0.0

    def one(self) -> None:
        """One frame there and its ack back."""
        self.sender.push(self.note)
        self._carry()

    def burst(self) -> None:
        """A full window there and one ack back."""
        for _ in range(SIZE):
            self.sender.push(self.note)
        self._carry()

    def _carry(self) -> None:
        sender, receiver = self.sender, self.receiver
        self.now += 0.001
        for seq, frame in sender.take(self.now):
            receiver.feed(seq, frame)
            receiver.commit(seq)
        receiver.ack_due(self.now)
        ack = receiver.ack()
        forgotten = sender.on_ack(ack.ack_seq, ack.bitmap, ack.recv_window, self.now)
        assert forgotten


def figures() -> list[Figure]:
    return [
        Figure(
            "send, receive, commit and acknowledge one frame", best_us(Link().one), "µs", BUDGET_US
        ),
        Figure(
            f"the same, {SIZE} frames under one ack, a frame",
            best_us(Link().burst) / SIZE,
            "µs",
            BUDGET_US,
        ),
    ]
