from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import pytest

from astraflow.core import errors
from astraflow.core.protocol import limits
from astraflow.core.protocol.window import Ack, QueueFull, ReceiveWindow, SendWindow
from tests.tables import each_row


class Note(NamedTuple):
    id: str


def notes(count: int, prefix: str = "f") -> list[Note]:
    return [Note(f"{prefix}{n}") for n in range(count)]


def sender(size: int = 4, queue_limit: int = 100) -> SendWindow[Note]:
    return SendWindow(size, random.Random(1), queue_limit=queue_limit)


def pushed(window: SendWindow[Note], count: int) -> SendWindow[Note]:
    for note in notes(count):
        window.push(note)
    return window


def ids(taken: list[tuple[int, Note]]) -> list[str]:
    return [note.id for _, note in taken]


# --- sending ---


def test_frames_get_their_seq_when_they_enter_the_window() -> None:
    window = pushed(sender(4), 6)
    assert window.take(0.0) == list(enumerate(notes(6)[:4]))
    assert window.queued == 2
    assert window.in_flight == 4
    assert window.next_seq == 4
    window.check()


def test_an_ack_lets_the_next_frames_in_and_returns_what_may_be_forgotten() -> None:
    window = pushed(sender(4), 6)
    window.take(0.0)
    assert window.on_ack(1, "0", 4, 0.0) == notes(2)
    assert window.take(0.0) == [(4, Note("f4")), (5, Note("f5"))]
    assert window.acked == 1
    window.check()


def test_null_counts_as_minus_one() -> None:
    window = pushed(sender(), 1)
    window.take(0.0)
    assert window.on_ack(None, "0", 4, 0.0) == []
    assert window.counters["acks_absurd"] == 0


def test_the_peers_window_bounds_what_is_in_flight() -> None:
    window = pushed(sender(4), 6)
    window.on_ack(None, "0", 2, 0.0)
    assert len(window.take(0.0)) == 2
    window.on_ack(0, "0", 2, 0.0)
    assert ids(window.take(0.0)) == ["f2"]


def test_a_huge_window_of_the_peer_is_cut_to_our_own() -> None:
    window = pushed(sender(4), 9)
    window.on_ack(None, "0", 10**9, 0.0)
    assert len(window.take(0.0)) == 4


def test_the_bitmap_stops_resending_and_forgets_nothing() -> None:
    window = pushed(sender(4), 3)
    window.take(0.0)
    assert window.on_ack(None, "6", 4, 0.0) == []
    assert window.in_flight == 3
    assert ids(window.take(1.0)) == ["f0"]
    window.check()


def test_a_frame_that_arrived_and_is_never_committed_is_sent_again_until_the_link_is_broken() -> (
    None
):
    window = pushed(sender(4), 2)
    window.take(0.0)
    window.on_ack(None, "3", 4, 1.0)
    assert window.take(1.0) == []
    now, sent = 1.0, 0
    while not window.broken:
        # The peer says so again and again: that does not put it off.
        window.on_ack(None, "3", 4, now + 29.0)
        due = window.deadline()
        assert due == now + 30.0
        now = due
        sent += len(window.take(now))
        window.check()
    assert sent == 2 * limits.RETRANSMIT_ATTEMPTS
    window.resend_all(now)
    assert len(window.take(now)) == 2, "a new connection begins anew"
    window.check()


def test_an_ack_ends_the_wait_for_the_commit() -> None:
    window = pushed(sender(4), 2)
    window.take(0.0)
    window.on_ack(None, "3", 4, 1.0)
    assert window.on_ack(0, "1", 4, 2.0) == notes(1)
    assert window.take(2.0) == []
    assert window.deadline() == 31.0
    assert window.on_ack(1, "0", 4, 3.0) == notes(2)[1:]
    assert window.deadline() is None


def test_an_ack_without_a_window_keeps_the_last_one_told() -> None:
    window = pushed(sender(4), 9)
    window.on_ack(None, "0", 1, 0.0)
    assert ids(window.take(0.0)) == ["f0"]
    assert window.on_ack(0, "0", None, 0.0) == notes(1)
    assert ids(window.take(0.0)) == ["f1"]


def test_an_unacknowledged_frame_is_sent_again_with_doubling_waits_until_the_link_is_broken() -> (
    None
):
    window = pushed(sender(), 1)
    assert window.take(0.0) == [(0, Note("f0"))]
    waits, now = [], 0.0
    while not window.broken:
        due = window.deadline()
        assert due is not None
        waits.append(due - now)
        now = due
        window.take(now)
        window.check()
    assert len(waits) == limits.RETRANSMIT_ATTEMPTS
    assert all(0.2 * 2**n <= wait <= 5.0 for n, wait in enumerate(waits[:5]))
    assert waits[5] == pytest.approx(5.0)
    assert window.counters["retransmitted"] == limits.RETRANSMIT_ATTEMPTS - 1


def test_nothing_is_sent_again_before_it_is_due() -> None:
    window = pushed(sender(), 1)
    window.take(0.0)
    assert window.take(0.1) == []


def test_frames_lost_together_do_not_return_together() -> None:
    window = pushed(sender(4), 4)
    window.take(0.0)
    first = window.deadline()
    assert first is not None
    assert 0 < len(window.take(first)) < 4
    window.check()


@each_row(
    ("seq", "bitmap", "peer_window"),
    [
        (3, "0", 4),  # never sent
        (2**53, "0", 4),
        (0, "4", 4),  # a bit for a frame never sent
        (0, "f" * 64, 4),
        (0, "G", 4),
        (0, "F", 4),
        (0, "", 4),
        (0, "0x1", 4),
        (0, "-1", 4),
        (0, " 1", 4),
        (0, "1_0", 4),
        (0, "0", -1),
    ],
)
def test_an_absurd_ack_changes_nothing_and_is_counted(
    seq: int, bitmap: str, peer_window: int
) -> None:
    window = pushed(sender(4), 3)
    window.take(0.0)
    assert window.on_ack(seq, bitmap, peer_window, 0.0) == []
    assert window.in_flight == 3
    assert window.acked == -1
    assert window.counters["acks_absurd"] == 1
    window.check()


def test_a_late_ack_changes_nothing_and_is_counted() -> None:
    window = pushed(sender(4), 3)
    window.take(0.0)
    window.on_ack(1, "0", 4, 0.0)
    assert window.on_ack(0, "1", 0, 0.0) == []
    assert window.on_ack(-7, "0", 4, 0.0) == []
    assert window.counters["acks_late"] == 2
    window.push(Note("next"))
    assert ids(window.take(0.0)) == ["next"]


def test_a_full_queue_pushes_back_and_drops_nothing() -> None:
    window = pushed(sender(1, queue_limit=2), 2)
    with pytest.raises(QueueFull) as caught:
        window.push(Note("more"))
    assert caught.value.code is errors.OVERLOADED
    assert window.queued == 2


def test_feedback_enters_last_and_takes_at_most_a_quarter() -> None:
    window = sender(8)
    for note in notes(8, "chunk"):
        window.push(note, feedback=True)
    pushed(window, 2)
    assert ids(window.take(0.0)) == ["f0", "f1", "chunk0", "chunk1"]
    assert window.take(0.0) == []
    window.on_ack(3, "0", 8, 0.0)
    assert ids(window.take(0.0)) == ["chunk2", "chunk3"]
    window.check()


def test_feedback_is_shed_oldest_first_and_counted_and_never_raises() -> None:
    window = sender(4, queue_limit=3)
    for note in notes(5, "chunk"):
        window.push(note, feedback=True)
    assert window.counters["feedback_shed"] == 2
    assert ids(window.take(0.0)) == ["chunk2"]


def test_a_frame_without_a_seq_can_be_withdrawn_and_one_with_a_seq_cannot() -> None:
    window = pushed(sender(1), 2)
    window.push(Note("chunk"), feedback=True)
    window.take(0.0)
    assert not window.withdraw("f0")
    assert window.withdraw("f1")
    assert window.withdraw("chunk")
    assert not window.withdraw("f1")
    assert window.unacked() == [Note("f0")]


def test_after_a_resume_everything_unacknowledged_goes_out_again() -> None:
    window = pushed(sender(4), 3)
    window.take(0.0)
    window.on_ack(0, "1", 4, 0.0)
    window.resend_all(50.0)
    assert window.deadline() == 50.0
    assert window.take(50.0) == [(1, Note("f1")), (2, Note("f2"))]
    assert not window.broken
    window.check()


def test_resending_nothing_waits_for_nothing() -> None:
    window = sender()
    window.resend_all(5.0)
    assert window.deadline() is None


def test_a_poisoned_frame_is_replaced_under_its_seq() -> None:
    window = pushed(sender(), 2)
    window.take(0.0)
    assert window.first_unacked == Note("f0")
    assert window.replace("f1", Note("failure"))
    assert not window.replace("f9", Note("failure"))
    window.resend_all(1.0)
    assert window.take(1.0) == [(0, Note("f0")), (1, Note("failure"))]


def test_a_window_is_idle_only_when_all_is_acknowledged() -> None:
    window = sender()
    idle = [window.is_idle]
    assert window.first_unacked is None
    pushed(window, 1)
    idle.append(window.is_idle)
    window.take(0.0)
    idle.append(window.is_idle)
    window.on_ack(0, "0", 4, 0.0)
    idle.append(window.is_idle)
    assert idle == [True, False, False, True]
    assert window.deadline() is None


def test_a_closed_window_stops_and_is_probed_with_backoff() -> None:
    window = pushed(sender(4), 2)
    window.on_ack(None, "0", 0, 0.0)
    assert window.take(0.0) == []
    times = []
    for _ in range(8):
        due = window.deadline()
        assert due is not None
        probe = window.take(due)
        assert probe == [(0, Note("f0"))]
        assert not window.broken
        window.check()
        times.append(due)
    gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == pytest.approx(limits.RETRANSMIT_CAP_S)
    assert window.counters["probes"] == 8


def test_a_probe_may_be_feedback_if_there_is_nothing_else() -> None:
    window = sender(4)
    window.push(Note("chunk"), feedback=True)
    window.on_ack(None, "0", 0, 0.0)
    window.take(0.0)
    assert ids(window.take(1.0)) == ["chunk"]
    window.check()


def test_a_reopened_window_goes_on_at_once() -> None:
    window = pushed(sender(4), 3)
    window.take(0.0)
    window.on_ack(None, "0", 0, 0.0)
    assert window.take(0.3) == []
    window.on_ack(None, "0", 4, 0.4)
    assert window.deadline() == 0.4
    assert ids(window.take(1.0)) == ["f0", "f1", "f2"]
    window.check()


# --- receiving ---


def test_frames_are_delivered_in_order_and_once() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(8)
    assert window.feed(1, "b") == []
    assert window.feed(2, "c") == []
    assert window.feed(0, "a") == ["a", "b", "c"]
    assert window.feed(1, "b") == []
    assert window.counters == {"duplicates": 1, "beyond_window": 0, "out_of_order": 2}
    window.check()


def test_a_buffered_duplicate_is_dropped_too() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(8)
    window.feed(1, "b")
    assert window.feed(1, "b") == []
    assert window.counters["duplicates"] == 1


def test_ack_seq_is_what_is_committed_and_the_bitmap_is_what_arrived() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(8)
    for seq in (0, 1, 3):
        window.feed(seq, "x")
    assert window.ack() == Ack(None, "b", 8)
    window.committed_through(0)
    assert window.ack() == Ack(0, "5", 8)
    window.feed(2, "x")
    window.committed_through(3)
    assert window.ack() == Ack(3, "0", 8)
    window.check()


def test_commits_out_of_order_wait_for_the_missing_one() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(8)
    for seq in range(4):
        window.feed(seq, "x")
    window.commit(2)
    window.commit(1)
    assert window.ack() == Ack(None, "f", 8)
    window.check()
    window.commit(0)
    assert window.committed == 2
    window.commit(1)
    assert window.committed == 2
    window.check()


def test_what_was_not_delivered_cannot_be_committed() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(8)
    window.feed(1, "b")
    with pytest.raises(errors.LocalProtocolError):
        window.commit(1)
    with pytest.raises(errors.LocalProtocolError):
        window.committed_through(0)


def test_a_frame_beyond_the_window_is_dropped_counted_and_answered() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(2)
    assert window.feed(2, "c") == []
    assert window.counters["beyond_window"] == 1
    assert window.ack_due(0.0)
    window.feed(0, "a")
    assert window.feed(2, "c") == []
    window.commit(0)
    assert window.feed(2, "c") == []
    assert window.feed(1, "b") == ["b", "c"]
    window.check()


def test_acks_wait_ten_milliseconds_for_company() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(256)
    assert not window.ack_due(0.0)
    assert window.deadline() is None
    window.feed(0, "a")
    assert window.is_ack_owed()
    assert not window.ack_due(5.0)
    assert window.deadline() == 5.0 + limits.ACK_DELAY_S
    assert not window.ack_due(5.0)
    assert window.ack_due(5.0 + limits.ACK_DELAY_S)
    window.ack()
    assert not window.is_ack_owed()
    assert window.deadline() is None


def test_a_quarter_of_the_window_is_acknowledged_at_once() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(8)
    window.feed(0, "a")
    assert not window.ack_due(0.0)
    window.feed(1, "b")
    assert window.ack_due(0.0)


@pytest.mark.parametrize("seqs", [(1,), (0, 0)], ids=["gap", "duplicate"])
def test_a_gap_and_a_duplicate_are_acknowledged_at_once(seqs: tuple[int, ...]) -> None:
    window: ReceiveWindow[str] = ReceiveWindow(256)
    for seq in seqs:
        window.feed(seq, "x")
    assert window.ack_due(0.0)


def test_a_request_is_acknowledged_at_once() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(256)
    window.ask()
    assert window.ack_due(0.0)


def test_a_commit_is_worth_an_ack() -> None:
    window: ReceiveWindow[str] = ReceiveWindow(256)
    window.feed(0, "a")
    window.ack()
    window.commit(0)
    assert window.is_ack_owed()
