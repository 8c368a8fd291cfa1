from __future__ import annotations

import random

from astraflow.core.protocol import limits
from astraflow.core.protocol.backoff import ReconnectBackoff


def waits(count: int, seed: int = 1, **how: bool) -> list[float]:
    backoff = ReconnectBackoff(random.Random(seed))
    return [backoff.next_s(**how) for _ in range(count)]


def test_waits_stay_inside_their_growing_bounds() -> None:
    for seed in range(50):
        for tries, wait in enumerate(waits(12, seed)):
            assert 0.2 <= wait <= min(30.0, 0.2 * 2 ** (tries + 1))


def test_waits_are_spread_over_the_whole_range() -> None:
    last = [waits(10, seed)[-1] for seed in range(200)]
    assert min(last) < 3.0
    assert max(last) > 27.0


def test_a_worker_that_holds_attempts_never_waits_longer_than_two_seconds() -> None:
    assert max(waits(50, held=True)) <= limits.BACKOFF_HELD_CAP_S


def test_what_the_scheduler_asks_for_is_honoured() -> None:
    backoff = ReconnectBackoff(random.Random(1))
    assert backoff.next_s(retry_after_s=7.5) == 7.5
    assert backoff.next_s(retry_after_s=0.0001) >= 0.2


def test_a_refused_credential_waits_at_least_thirty_seconds() -> None:
    assert min(waits(20, denied=True)) >= limits.AUTH_BACKOFF_MIN_S


def test_a_success_starts_over() -> None:
    backoff = ReconnectBackoff(random.Random(1))
    for _ in range(20):
        backoff.next_s()
    backoff.reset()
    assert backoff.next_s() <= 0.4


def test_a_thousand_tries_do_not_overflow() -> None:
    assert max(waits(1100)) <= limits.BACKOFF_CAP_S


def test_a_worker_whose_link_broke_waits_at_most_five_seconds() -> None:
    backoff = ReconnectBackoff(random.Random(1))
    backoff.reset()
    after = [backoff.next_s() for _ in range(50)]
    assert 4.0 < max(after) <= limits.BACKOFF_BROKEN_CAP_S
    assert backoff.next_s(held=True) <= limits.BACKOFF_HELD_CAP_S


def test_a_worker_that_is_refused_after_its_session_waits_long_again() -> None:
    backoff = ReconnectBackoff(random.Random(1))
    backoff.reset()
    backoff.next_s(denied=True)
    assert max(backoff.next_s() for _ in range(50)) > limits.BACKOFF_BROKEN_CAP_S
