"""Concurrency keys: one holder at a time, per tenant."""

from __future__ import annotations

import pytest

from astraflow.core.dispatch.keys import KeyTable
from astraflow.core.ids import TaskId


def test_a_key_that_was_taken_is_not_free_until_it_is_given_back() -> None:
    keys = KeyTable()
    assert keys.is_free("acme", "printer")
    keys.take("acme", "printer", TaskId("run1.0"))
    assert not keys.is_free("acme", "printer")
    assert len(keys) == 1
    keys.give_back("acme", "printer", TaskId("run1.0"))
    assert keys.is_free("acme", "printer")
    assert len(keys) == 0


def test_the_same_key_of_two_tenants_is_two_keys() -> None:
    keys = KeyTable()
    keys.take("acme", "printer", TaskId("run1.0"))
    assert keys.is_free("other", "printer")
    keys.take("other", "printer", TaskId("run2.0"))
    assert len(keys) == 2


def test_taking_a_held_key_is_a_bug() -> None:
    keys = KeyTable()
    keys.take("acme", "printer", TaskId("run1.0"))
    with pytest.raises(AssertionError, match="held by another task: printer"):
        keys.take("acme", "printer", TaskId("run1.1"))


def test_giving_back_what_another_task_holds_is_a_bug() -> None:
    keys = KeyTable()
    keys.take("acme", "printer", TaskId("run1.0"))
    with pytest.raises(AssertionError, match="not held by it: printer"):
        keys.give_back("acme", "printer", TaskId("run1.1"))
    assert not keys.is_free("acme", "printer")


class TestLending:
    def test_a_waiting_holder_lends_its_key_to_those_it_waits_for_only(self) -> None:
        keys = KeyTable()
        keys.take("acme", "printer", TaskId("outer"))
        assert not keys.is_free("acme", "printer", [TaskId("someone")])
        assert keys.is_free("acme", "printer", [TaskId("outer")])
        keys.take("acme", "printer", TaskId("inner"), [TaskId("outer")])
        assert len(keys) == 1

    def test_what_is_lent_is_not_lent_twice(self) -> None:
        keys = KeyTable()
        keys.take("acme", "printer", TaskId("outer"))
        keys.take("acme", "printer", TaskId("inner"), [TaskId("outer")])
        assert not keys.is_free("acme", "printer", [TaskId("outer")])
        with pytest.raises(AssertionError, match="held by another task: printer"):
            keys.take("acme", "printer", TaskId("sibling"), [TaskId("outer")])
        assert keys.is_free("acme", "printer", [TaskId("inner"), TaskId("outer")])

    @pytest.mark.parametrize("order", [("inner", "outer"), ("outer", "inner")])
    def test_the_key_is_free_when_all_have_given_it_back(self, order: tuple[str, str]) -> None:
        keys = KeyTable()
        keys.take("acme", "printer", TaskId("outer"))
        keys.take("acme", "printer", TaskId("inner"), [TaskId("outer")])
        keys.give_back("acme", "printer", TaskId(order[0]))
        assert not keys.is_free("acme", "printer")
        keys.give_back("acme", "printer", TaskId(order[1]))
        assert keys.is_free("acme", "printer")
        assert len(keys) == 0

    def test_giving_back_what_nobody_holds_is_a_bug(self) -> None:
        with pytest.raises(AssertionError, match="not held by it: printer"):
            KeyTable().give_back("acme", "printer", TaskId("run1.1"))
