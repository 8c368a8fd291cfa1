"""Frames at which an engine failed, remembered beyond it."""

from __future__ import annotations

from collections.abc import Sized

from astraflow.scheduler.frame_quarantine import (
    BLOCK_S,
    MAX_BLOCK_S,
    MAX_ENTRIES,
    STRIKES,
    FrameQuarantine,
)

ONE, TWO = ("t", "w", "1"), ("t", "w", "2")


def test_nothing_is_suspect_at_first() -> None:
    quarantine = FrameQuarantine()
    assert not quarantine
    assert not quarantine.is_suspect(ONE)
    assert not quarantine.is_refused(ONE)
    assert not quarantine.is_blocked("t", "w", 0.0)


def test_one_that_failed_is_refused_ever_after() -> None:
    quarantine = FrameQuarantine()
    quarantine.refuse(ONE, 0.0)
    assert quarantine
    assert quarantine.is_refused(ONE)
    assert not quarantine.is_refused(TWO)
    assert not quarantine.is_refused(("t", "other", "1")), "of another worker it is another frame"


def test_those_of_a_batch_are_accused_until_they_are_committed_or_fail_alone() -> None:
    quarantine = FrameQuarantine()
    quarantine.suspect([ONE, TWO, TWO])
    assert quarantine.is_suspect(ONE)
    assert quarantine.is_suspect(TWO)
    quarantine.clear(ONE)
    assert not quarantine.is_suspect(ONE)
    quarantine.suspect([TWO])
    assert not quarantine.is_suspect(TWO)
    assert quarantine.is_refused(TWO)


def test_a_worker_is_blocked_after_some_and_longer_each_time() -> None:
    quarantine = FrameQuarantine()
    for number in range(STRIKES):
        assert not quarantine.is_blocked("t", "w", 0.0)
        quarantine.refuse(("t", "w", str(number)), 0.0)
    assert quarantine.is_blocked("t", "w", BLOCK_S - 1)
    assert not quarantine.is_blocked("t", "w", BLOCK_S)
    assert not quarantine.is_blocked("t", "other", 0.0)
    quarantine.refuse(("t", "w", "more"), 100.0)
    assert quarantine.is_blocked("t", "w", 100.0 + 2 * BLOCK_S - 1)
    for _ in range(20):
        quarantine.block("t", "w", 200.0)
    assert not quarantine.is_blocked("t", "w", 200.0 + MAX_BLOCK_S)


def test_what_has_no_number_blocks_at_once() -> None:
    quarantine = FrameQuarantine()
    quarantine.block("t", "w", 0.0)
    assert quarantine.is_blocked("t", "w", 0.0)


def test_all_is_bounded() -> None:
    quarantine = FrameQuarantine()
    for number in range(MAX_ENTRIES + 10):
        quarantine.refuse(("t", f"w{number}", "1"), 0.0)
        quarantine.block("t", f"b{number}", 0.0)
    assert not quarantine.is_refused(("t", "w0", "1"))
    assert quarantine.is_refused(("t", f"w{MAX_ENTRIES}", "1"))
    held: tuple[Sized, ...] = (quarantine._refused, quarantine._strikes, quarantine._blocked)
    assert max(map(len, held)) <= MAX_ENTRIES
