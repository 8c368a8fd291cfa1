"""Idempotency keys: one run a key, for a day, and no memory beyond it."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.engine.submissions import KEY_BYTES, Submissions
from astraflow.core.ids import RunId


def test_the_same_key_and_body_are_the_same_run() -> None:
    known = Submissions(60.0)
    assert known.find("acme", "k", "print", 0.0) is None
    known.remember("acme", "k", "print", RunId("run1"), 0.0)
    assert known.find("acme", "k", "print", 59.0) == "run1"


def test_the_same_key_with_another_body_is_a_conflict() -> None:
    known = Submissions(60.0)
    known.remember("acme", "k", "print", RunId("run1"), 0.0)
    with pytest.raises(errors.Conflict) as caught:
        known.find("acme", "k", "other", 1.0)
    assert caught.value.code is errors.RUN_IDEMPOTENCY_CONFLICT


def test_a_key_belongs_to_its_tenant() -> None:
    known = Submissions(60.0)
    known.remember("acme", "k", "print", RunId("run1"), 0.0)
    assert known.find("globex", "k", "print", 1.0) is None


def test_what_is_older_than_its_time_is_forgotten_and_the_rest_is_kept() -> None:
    known = Submissions(60.0)
    known.remember("acme", "old", "print", RunId("run1"), 0.0)
    known.remember("acme", "new", "print", RunId("run2"), 30.0)
    assert known.find("acme", "old", "print", 60.0) is None
    assert len(known) == 1
    assert known.find("acme", "new", "print", 60.0) == "run2"
    known.remember("acme", "old", "another", RunId("run3"), 100.0)
    assert len(known) == 1


def test_beyond_its_bytes_the_oldest_are_looked_for_elsewhere() -> None:
    known = Submissions(60.0, max_bytes=10 * (KEY_BYTES + 1))
    for number in range(10):
        known.remember("acme", f"{number}", "print", RunId(f"run{number}"), float(number))
    assert not known.may_be_missing("acme", "other", 9.0), "all of them are here"
    known.remember("acme", "x" * 100, "print", RunId("run10"), 10.0)
    assert known.bytes <= 10 * (KEY_BYTES + 1)
    assert known.find("acme", "0", "print", 10.0) is None
    assert known.may_be_missing("acme", "0", 10.0)
    assert known.may_be_missing("acme", "other", 10.0)
    assert not known.may_be_missing("acme", "9", 10.0)
    assert known.find("acme", "9", "print", 10.0) == "run9"
    assert known.may_be_missing("acme", "0", 60.0)
    assert not known.may_be_missing("acme", "0", 61.0), "the last that is missing is of no use now"


def test_what_was_found_elsewhere_is_as_old_as_it_is() -> None:
    known = Submissions(60.0)
    known.remember("acme", "new", "print", RunId("run2"), 30.0)
    known.remember("acme", "old", "print", RunId("run1"), 30.0, age_s=50.0)
    assert known.find("acme", "old", "print", 39.0) == "run1"
    assert known.find("acme", "old", "print", 40.0) is None
    assert known.find("acme", "new", "print", 89.0) == "run2"


def test_a_key_that_is_used_anew_is_counted_once() -> None:
    known = Submissions(60.0)
    known.remember("acme", "k", "print", RunId("run1"), 0.0, age_s=59.0)
    known.remember("acme", "k", "other", RunId("run2"), 0.5)
    assert known.bytes == KEY_BYTES + 1
    assert known.find("acme", "k", "other", 60.0) == "run2"
