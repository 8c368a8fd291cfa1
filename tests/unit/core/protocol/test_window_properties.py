"""The two halves of a window against an ideal FIFO, over a link that loses, repeats and reorders."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from astraflow.core.protocol.window import Ack, ReceiveWindow, SendWindow


class Note(NamedTuple):
    id: str


class Link(RuleBasedStateMachine):
    """One direction: frames one way, acks the other, and a receiver that commits when it likes."""

    @initialize(size=st.integers(1, 8), seed=st.integers(0, 2**16))
    def start(self, size: int, seed: int) -> None:
        self.size = size
        self.now = 0.0
        self.sender: SendWindow[Note] = SendWindow(size, random.Random(seed), queue_limit=50)
        self.receiver: ReceiveWindow[Note] = ReceiveWindow(size)
        self.pushed: list[Note] = []
        self.delivered: list[Note] = []
        self.forgotten: list[Note] = []
        self.frames: list[tuple[int, Note]] = []
        self.acks: list[Ack] = []

    @precondition(lambda self: self.sender.queued < 50)
    @rule()
    def push(self) -> None:
        note = Note(f"f{len(self.pushed)}")
        self.pushed.append(note)
        self.sender.push(note)

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.3, 6.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.frames.extend(self.sender.take(self.now))
        if self.sender.broken:
            # The session resumes on a new connection: what is on the way is lost.
            self.frames.clear()
            self.acks.clear()
            committed = self.receiver.committed
            self.forget(Ack(None if committed < 0 else committed, "0", self.size))
            self.sender.resend_all(self.now)

    @precondition(lambda self: self.frames)
    @rule(data=st.data(), repeat=st.booleans())
    def arrive(self, data: st.DataObject, repeat: bool) -> None:
        index = data.draw(st.integers(0, len(self.frames) - 1))
        seq, note = self.frames[index] if repeat else self.frames.pop(index)
        self.delivered.extend(self.receiver.feed(seq, note))

    @precondition(lambda self: self.frames)
    @rule(data=st.data())
    def lose_frame(self, data: st.DataObject) -> None:
        del self.frames[data.draw(st.integers(0, len(self.frames) - 1))]

    @precondition(lambda self: self.receiver.committed < self.receiver.delivered)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        low, high = self.receiver.committed + 1, self.receiver.delivered
        self.receiver.commit(data.draw(st.integers(low, high)))

    @rule()
    def acknowledge(self) -> None:
        if self.receiver.ack_due(self.now):
            self.acks.append(self.receiver.ack())

    @precondition(lambda self: self.acks)
    @rule(data=st.data(), repeat=st.booleans())
    def ack_arrives(self, data: st.DataObject, repeat: bool) -> None:
        index = data.draw(st.integers(0, len(self.acks) - 1))
        self.forget(self.acks[index] if repeat else self.acks.pop(index))

    @rule(seq=st.integers(-3, 40), bitmap=st.text("0123456789abcdefXG", max_size=4))
    def absurd_ack_changes_nothing(self, seq: int, bitmap: str) -> None:
        sent = self.sender.next_seq
        before = (self.sender.unacked(), self.sender.acked)
        if seq >= sent or any(char in "XG" for char in bitmap) or not bitmap:
            assert self.sender.on_ack(seq, bitmap, self.size, self.now) == []
            assert (self.sender.unacked(), self.sender.acked) == before

    def forget(self, ack: Ack) -> None:
        self.forgotten.extend(self.sender.on_ack(*ack, self.now))

    @invariant()
    def both_halves_hold(self) -> None:
        self.sender.check()
        self.receiver.check()

    @invariant()
    def what_is_delivered_is_a_prefix_of_what_was_pushed(self) -> None:
        assert self.delivered == self.pushed[: len(self.delivered)]

    @invariant()
    def only_committed_frames_are_forgotten(self) -> None:
        assert self.forgotten == self.pushed[: len(self.forgotten)]
        assert len(self.forgotten) <= self.receiver.committed + 1
        assert self.forgotten + self.sender.unacked() == self.pushed

    def teardown(self) -> None:
        """Once the link is perfect, everything arrives and is forgotten."""
        if not hasattr(self, "sender"):
            return
        for _ in range(400):
            if self.sender.is_idle:
                break
            self.pass_time(0.3)
            for seq, note in self.frames:
                self.delivered.extend(self.receiver.feed(seq, note))
            self.frames.clear()
            self.receiver.committed_through(self.receiver.delivered)
            # An ack may have been the last that was owed, and lost: every heartbeat and every answer
            # to one carries the state of the window again.
            self.forget(self.receiver.ack())
        assert self.sender.is_idle
        assert self.delivered == self.pushed == self.forgotten


TestLink = Link.TestCase
TestLink.settings = settings(stateful_step_count=40)
