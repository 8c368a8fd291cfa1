"""Who gets another attempt, and when."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.categories import Category
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.retry import (
    DISPATCH_BACKOFF_MAX_S,
    DISPATCH_BACKOFF_MIN_S,
    RETRYABLE,
    dispatch_delay_s,
    may_retry,
    retry_delay_s,
)
from astraflow.core.workflow.plan import DEFAULT_RETRY, RetryPolicy
from tests.tables import each_row

CATEGORIES: tuple[Category, ...] = get_args(Category)
THREE = RetryPolicy(max_attempts=3)


def problem(category: Category, retryable: bool | None = None) -> TaskFailure:
    return TaskFailure("E.RUNNER.FAILURE", category, "boom", retryable)


class TestWho:
    @each_row(
        ("category", "expected"),
        [
            ("USER_CODE", True),
            ("DATA_QUALITY", False),
            ("INFRASTRUCTURE", True),
            ("CONFIGURATION", False),
            ("TIMEOUT", True),
            ("CANCELLED", False),
        ],
    )
    def test_the_category_decides(self, category: Category, expected: bool) -> None:
        assert may_retry(problem(category), 1, THREE) is expected

    def test_the_table_has_every_category(self) -> None:
        assert set(RETRYABLE) == set(CATEGORIES)

    @each_row("category", CATEGORIES)
    @each_row("said", [True, False])
    def test_what_the_error_says_of_itself_overrides_the_table(
        self, category: Category, said: bool
    ) -> None:
        assert may_retry(problem(category, said), 1, THREE) is said

    @each_row("category", CATEGORIES)
    def test_the_categories_of_a_policy_bound_both(self, category: Category) -> None:
        policy = RetryPolicy(max_attempts=3, categories=frozenset({"TIMEOUT"}))
        assert may_retry(problem(category, True), 1, policy) is (category == "TIMEOUT")

    def test_a_category_that_the_policy_names_still_follows_the_table(self) -> None:
        policy = RetryPolicy(max_attempts=3, categories=frozenset({"DATA_QUALITY"}))
        assert not may_retry(problem("DATA_QUALITY"), 1, policy)

    def test_without_a_policy_nothing_is_tried_again(self) -> None:
        assert not may_retry(problem("USER_CODE", True), 1, DEFAULT_RETRY)

    @pytest.mark.parametrize(
        ("failures", "expected"), [(1, True), (2, True), (3, False), (4, False)]
    )
    def test_a_policy_is_spent_by_failures(self, failures: int, expected: bool) -> None:
        assert may_retry(problem("USER_CODE"), failures, THREE) is expected


class TestWhen:
    def test_delays_grow_by_their_factor_up_to_the_cap(self) -> None:
        policy = RetryPolicy(10, 1.0, 3.0, 20.0, 0.0)
        delays = [retry_delay_s(failures, policy, Random(1)) for failures in range(1, 6)]
        assert delays == [1.0, 3.0, 9.0, 20.0, 20.0]

    @given(
        failures=st.integers(1, 10**6),
        initial_s=st.floats(0.0, 1e6),
        factor=st.floats(1.0, 1000.0),
        max_s=st.floats(0.0, 1e6),
        jitter=st.floats(0.0, 1.0),
        seed=st.integers(0, 2**32),
    )
    def test_a_delay_is_never_negative_nor_above_the_cap(
        self,
        failures: int,
        initial_s: float,
        factor: float,
        max_s: float,
        jitter: float,
        seed: int,
    ) -> None:
        policy = RetryPolicy(1, initial_s, factor, max_s, jitter)
        assert 0.0 <= retry_delay_s(failures, policy, Random(seed)) <= max_s

    @given(jitter=st.floats(0.0, 1.0), seed=st.integers(0, 2**32))
    def test_jitter_takes_at_most_its_share_away(self, jitter: float, seed: int) -> None:
        delay_s = retry_delay_s(1, RetryPolicy(2, 10.0, 2.0, 60.0, jitter), Random(seed))
        assert 10.0 * (1.0 - jitter) <= delay_s <= 10.0

    @given(tries=st.integers(0, 10**6), seed=st.integers(0, 2**32))
    def test_a_dispatch_delay_stays_within_its_bounds(self, tries: int, seed: int) -> None:
        delay_s = dispatch_delay_s(tries, Random(seed))
        assert DISPATCH_BACKOFF_MIN_S / 2 <= delay_s <= DISPATCH_BACKOFF_MAX_S

    def test_dispatch_delays_double(self) -> None:
        delays = [dispatch_delay_s(tries, Random(1)) for tries in range(8)]
        assert delays[1] == pytest.approx(2 * delays[0])
        assert delays[4] == pytest.approx(16 * delays[0])
        assert delays[5] == delays[7]

    def test_refused_tasks_do_not_come_back_as_one(self) -> None:
        rng = Random(1)
        assert len({dispatch_delay_s(3, rng) for _ in range(100)}) > 90
