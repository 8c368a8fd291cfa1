"""Who may speak for a shard, and until when."""

from __future__ import annotations

from astraflow.core.engine.ownership import Ownership


def test_an_owner_may_speak_for_six_tenths_of_its_lease() -> None:
    ownership = Ownership(7, 10.0, 100.0)
    assert ownership.epoch == 7
    assert ownership.may_speak(105.9)
    assert not ownership.may_speak(106.0)
    assert ownership.deadline() == 106.0


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    ownership = Ownership(1, 10.0, 100.0)
    ownership.renewed(103.0)
    assert ownership.may_speak(108.9)
    assert not ownership.may_speak(109.0)


def test_a_renewal_that_comes_back_late_takes_nothing_away() -> None:
    ownership = Ownership(1, 10.0, 100.0)
    ownership.renewed(105.0)
    ownership.renewed(103.0)
    assert ownership.deadline() == 111.0


def test_an_owner_by_lock_may_always_speak() -> None:
    ownership = Ownership(1, None, 0.0)
    assert ownership.may_speak(1e9)
    assert ownership.deadline() is None
