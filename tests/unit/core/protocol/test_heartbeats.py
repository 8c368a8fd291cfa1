from __future__ import annotations

import random

from astraflow.core.protocol import limits
from astraflow.core.protocol.heartbeats import HeartbeatTracker


def tracker() -> HeartbeatTracker:
    return HeartbeatTracker(random.Random(1), 3.0)


def test_jitter_only_shortens_the_interval() -> None:
    beats = tracker()
    for n in range(100):
        beats.sent(f"h{n}", 10.0)
        assert beats.due_at is not None
        assert 10.0 + 4.5 <= beats.due_at <= 10.0 + 4.75


def test_an_unanswered_heartbeat_is_overdue_after_three_seconds() -> None:
    beats = tracker()
    assert not beats.is_overdue(1e9)
    beats.sent("h1", 10.0)
    assert not beats.is_overdue(12.9)
    assert beats.is_overdue(13.0)
    assert beats.deadline() == 13.0


def test_an_answer_ends_the_waiting_for_earlier_ones() -> None:
    beats = tracker()
    beats.sent("h1", 10.0)
    beats.sent("h2", 11.0)
    beats.sent("h3", 12.0)
    assert beats.answered("h2") == 11.0
    assert beats.answered("h1") is None
    assert beats.answered("h2") is None
    assert beats.deadline() == 15.0
    beats.check()


def test_send_times_are_kept_for_a_while_and_bounded() -> None:
    beats = tracker()
    for n in range(limits.SENT_TIMES_KEPT + 1):
        beats.remember(f"h{n}", float(n))
    assert beats.sent_at("h0") is None
    assert beats.sent_at("h1") == 1.0
    beats.check()


def test_a_lost_link_ends_all_waiting_but_remembers_send_times() -> None:
    beats = tracker()
    beats.sent("h1", 10.0)
    beats.stop()
    assert beats.deadline() is None
    assert beats.answered("h1") is None
    assert beats.sent_at("h1") == 10.0


def test_the_next_deadline_is_the_next_beat_once_all_is_answered() -> None:
    beats = tracker()
    beats.sent("h1", 10.0)
    beats.answered("h1")
    assert beats.deadline() == beats.due_at
