from __future__ import annotations

import pytest

from astraflow.core.security.rates import KeyedRateLimit


def test_a_burst_is_let_through_and_then_one_at_a_time() -> None:
    limit = KeyedRateLimit(per_second=2.0, burst=3)
    assert [limit.take("a", 0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert limit.wait("a", 0.25) == pytest.approx(0.25)
    assert limit.take("a", 0.5) == 0.0
    assert limit.take("a", 0.5) == pytest.approx(0.5)


def test_keys_do_not_share_and_a_bucket_is_never_fuller_than_its_burst() -> None:
    limit = KeyedRateLimit(per_second=1.0, burst=2)
    limit.take("a", 0.0)
    assert limit.wait("b", 0.0) == 0.0
    assert [limit.take("a", 1_000.0) for _ in range(3)] == [0.0, 0.0, 1.0]


def test_a_refilled_key_has_its_burst_again() -> None:
    limit = KeyedRateLimit(per_second=1.0, burst=1)
    limit.take("a", 0.0)
    assert limit.wait("a", 0.0) == 1.0
    limit.refill("a")
    limit.refill("unknown")
    assert limit.take("a", 0.0) == 0.0


def test_only_so_many_keys_are_kept_and_the_oldest_goes_first() -> None:
    limit = KeyedRateLimit(per_second=1.0, burst=1, max_keys=2)
    for key in ("a", "b", "a", "c"):
        limit.take(key, 0.0)
    assert len(limit) == 2
    assert limit.wait("a", 0.0) == 1.0
    assert limit.wait("b", 0.0) == 0.0
    assert limit.wait("c", 0.0) == 1.0
