"""Idempotency keys: one run a key, for a day, and no memory beyond it."""

from __future__ import annotations

import pytest

from astraflow import errors
from astraflow.engine.submissions import Submissions


def test_the_same_key_and_body_are_the_same_run() -> None:
    known = Submissions(60.0)
    assert known.find("acme", "k", "print", 0.0) is None
    known.remember("acme", "k", "print", "run1", 0.0)
    assert known.find("acme", "k", "print", 59.0) == "run1"


def test_the_same_key_with_another_body_is_a_conflict() -> None:
    known = Submissions(60.0)
    known.remember("acme", "k", "print", "run1", 0.0)
    with pytest.raises(errors.Conflict) as caught:
        known.find("acme", "k", "other", 1.0)
    assert caught.value.code is errors.RUN_IDEMPOTENCY_CONFLICT


def test_a_key_belongs_to_its_tenant() -> None:
    known = Submissions(60.0)
    known.remember("acme", "k", "print", "run1", 0.0)
    assert known.find("globex", "k", "print", 1.0) is None


def test_what_is_older_than_its_time_is_forgotten_and_the_rest_is_kept() -> None:
    known = Submissions(60.0)
    known.remember("acme", "old", "print", "run1", 0.0)
    known.remember("acme", "new", "print", "run2", 30.0)
    assert known.find("acme", "old", "print", 60.0) is None
    assert len(known) == 1
    assert known.find("acme", "new", "print", 60.0) == "run2"
    known.remember("acme", "old", "another", "run3", 100.0)
    assert len(known) == 1
