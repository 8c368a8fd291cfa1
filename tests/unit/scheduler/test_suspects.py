"""Frames at which an engine failed, remembered beyond it."""

from __future__ import annotations

from astraflow.scheduler.suspects import BLOCK_S, MAX_BLOCK_S, MAX_KEPT, STRIKES, Suspects

ONE, TWO = ("t", "w", "1"), ("t", "w", "2")


def test_nothing_is_suspect_at_first() -> None:
    suspects = Suspects()
    assert not suspects
    assert not suspects.is_accused(ONE)
    assert not suspects.is_refused(ONE)
    assert not suspects.is_blocked("t", "w", 0.0)


def test_one_that_failed_is_refused_ever_after() -> None:
    suspects = Suspects()
    suspects.convict(ONE, 0.0)
    assert suspects
    assert suspects.is_refused(ONE)
    assert not suspects.is_refused(TWO)
    assert not suspects.is_refused(("t", "other", "1")), "of another worker it is another frame"


def test_those_of_a_batch_are_accused_until_they_are_committed_or_fail_alone() -> None:
    suspects = Suspects()
    suspects.accuse([ONE, TWO, TWO])
    assert suspects.is_accused(ONE)
    assert suspects.is_accused(TWO)
    suspects.clear(ONE)
    assert not suspects.is_accused(ONE)
    suspects.accuse([TWO])
    assert not suspects.is_accused(TWO)
    assert suspects.is_refused(TWO)


def test_a_worker_is_blocked_after_some_and_longer_each_time() -> None:
    suspects = Suspects()
    for number in range(STRIKES):
        assert not suspects.is_blocked("t", "w", 0.0)
        suspects.convict(("t", "w", str(number)), 0.0)
    assert suspects.is_blocked("t", "w", BLOCK_S - 1)
    assert not suspects.is_blocked("t", "w", BLOCK_S)
    assert not suspects.is_blocked("t", "other", 0.0)
    suspects.convict(("t", "w", "more"), 100.0)
    assert suspects.is_blocked("t", "w", 100.0 + 2 * BLOCK_S - 1)
    for _ in range(20):
        suspects.block("t", "w", 200.0)
    assert not suspects.is_blocked("t", "w", 200.0 + MAX_BLOCK_S)


def test_what_has_no_number_blocks_at_once() -> None:
    suspects = Suspects()
    suspects.block("t", "w", 0.0)
    assert suspects.is_blocked("t", "w", 0.0)


def test_all_is_bounded() -> None:
    suspects = Suspects()
    for number in range(MAX_KEPT + 10):
        suspects.convict(("t", f"w{number}", "1"), 0.0)
        suspects.block("t", f"b{number}", 0.0)
    assert not suspects.is_refused(("t", "w0", "1"))
    assert suspects.is_refused(("t", f"w{MAX_KEPT}", "1"))
    assert max(map(len, (suspects._refused, suspects._strikes, suspects._blocked))) <= MAX_KEPT
