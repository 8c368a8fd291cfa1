from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.ids import RunId
from astraflow.store.retention import PIECE_BYTES, PIECE_RUNS, Finished, cutoff_ms, pick
from astraflow.store.store import Retention

NOW = 1_000_000_000
FOREVER = Retention(finished_runs_s=None, finished_runs=None, max_bytes=None)


def runs(*sizes: int) -> list[Finished]:
    return [
        Finished(RunId(f"r{at}"), "p", NOW - 10_000 + at, size) for at, size in enumerate(sizes)
    ]


def test_without_limits_nothing_is_picked() -> None:
    assert pick(runs(1, 2, 3), FOREVER, NOW, 3, 10**12) == ([], False)


def test_a_limit_of_age_counts_to_the_millisecond() -> None:
    oldest = runs(1, 1, 1)
    limits = Retention(finished_runs_s=9.999, finished_runs=None, max_bytes=None)
    assert pick(oldest, limits, NOW, 3, 0) == (oldest[:1], False)
    assert cutoff_ms(NOW, 9.999) == oldest[1].finished_at
    assert cutoff_ms(NOW, None) is None


def test_no_more_is_picked_than_brings_the_bytes_below_the_limit() -> None:
    oldest = runs(60, 60, 60, 60)
    limits = Retention(finished_runs_s=None, finished_runs=None, max_bytes=900)
    assert pick(oldest, limits, NOW, 4, 1_000) == (oldest[:2], False)
    assert pick(oldest, limits, NOW, 4, 900) == ([], False)


def test_a_piece_ends_after_a_large_run_and_says_that_there_is_more() -> None:
    oldest = runs(PIECE_BYTES, 1)
    limits = Retention(finished_runs=0)
    assert pick(oldest, limits, NOW, 2, 0) == (oldest[:1], True)


@given(
    sizes=st.lists(st.integers(0, PIECE_BYTES), max_size=PIECE_RUNS + 1),
    kept=st.integers(0, 300),
    bound=st.integers(0, 10**9),
    others=st.integers(0, 5),
)
def test_what_is_picked_is_a_bounded_front_of_the_oldest(
    sizes: list[int], kept: int, bound: int, others: int
) -> None:
    oldest = runs(*sizes)
    limits = Retention(finished_runs_s=None, finished_runs=kept, max_bytes=bound)
    picked, has_more = pick(oldest, limits, NOW, len(oldest) + others, sum(sizes))
    assert picked == oldest[: len(picked)]
    assert len(picked) <= PIECE_RUNS
    assert sum(run.size for run in picked[:-1]) < PIECE_BYTES
    if not has_more and len(picked) < len(oldest):
        assert len(oldest) + others - len(picked) <= kept
        assert sum(run.size for run in oldest[len(picked) :]) <= bound
