"""Concurrency keys: one holder at a time, per tenant."""

from __future__ import annotations

import pytest

from astraflow.dispatch.keys import KeyTable


def test_a_key_that_was_taken_is_not_free_until_it_is_given_back() -> None:
    keys = KeyTable()
    assert keys.is_free("acme", "printer")
    keys.take("acme", "printer", "run1.0")
    assert not keys.is_free("acme", "printer")
    assert len(keys) == 1
    keys.give_back("acme", "printer", "run1.0")
    assert keys.is_free("acme", "printer")
    assert len(keys) == 0


def test_the_same_key_of_two_tenants_is_two_keys() -> None:
    keys = KeyTable()
    keys.take("acme", "printer", "run1.0")
    assert keys.is_free("other", "printer")
    keys.take("other", "printer", "run2.0")
    assert len(keys) == 2


def test_taking_a_held_key_is_a_bug() -> None:
    keys = KeyTable()
    keys.take("acme", "printer", "run1.0")
    with pytest.raises(AssertionError, match="held by another task: printer"):
        keys.take("acme", "printer", "run1.1")


def test_giving_back_what_another_task_holds_is_a_bug() -> None:
    keys = KeyTable()
    keys.take("acme", "printer", "run1.0")
    with pytest.raises(AssertionError, match="not held by it: printer"):
        keys.give_back("acme", "printer", "run1.1")
    assert not keys.is_free("acme", "printer")
