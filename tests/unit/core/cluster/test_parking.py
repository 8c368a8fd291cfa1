from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from astraflow.core.cluster.parking import (
    ENDS_S,
    KEPT_LOSSES,
    PARKED_FROM,
    WITHIN_S,
    parking_ends_s,
    parking_of,
)
from tests.tables import each_row

ages = st.lists(st.floats(-10.0, 4 * ENDS_S, allow_nan=False), max_size=KEPT_LOSSES)


@each_row(
    ("losses", "wanted"),
    [
        ([], "open"),
        ([0.0], "open"),
        ([0.0, 0.0], "open"),
        ([0.0, 0.0, 0.0], "parked"),
        ([1.0, 1.0 + WITHIN_S / 2, 1.0 + WITHIN_S], "parked"),
        ([1.0, 2.0, 1.1 + WITHIN_S], "open"),
        ([ENDS_S - 1.0, ENDS_S, ENDS_S + 1.0], "parked"),
        ([ENDS_S, ENDS_S, ENDS_S], "open"),
        # As the store's clock may have been set back.
        ([-5.0, -5.0, -5.0], "parked"),
        # A fourth, while it was parked by three.
        ([0.0, 10.0, 20.0, 30.0], "withheld"),
        ([0.0, ENDS_S - 1.0, ENDS_S, ENDS_S + 1.0], "withheld"),
        ([ENDS_S - 1.0, ENDS_S, ENDS_S, ENDS_S], "withheld"),
        # A fourth, when it was over: it is one of another row.
        ([0.0, ENDS_S, ENDS_S, ENDS_S], "open"),
        ([0.0, 1.0, ENDS_S + 1.0, ENDS_S + 1.0, ENDS_S + 1.0], "open"),
        ([0.0, 1.0, 2.0, 3 * ENDS_S, 3 * ENDS_S, 3 * ENDS_S], "parked"),
    ],
)
def test_losses_that_are_close_park_and_one_more_withholds(
    losses: list[float], wanted: str
) -> None:
    assert parking_of(losses) == wanted
    assert parking_of(reversed(losses)) == wanted, "in any order"


@given(ages)
def test_whatever_was_lost_it_ends_by_itself_when_it_says_so(losses: list[float]) -> None:
    left = parking_ends_s(losses)
    assert left >= 0.0
    assert parking_of([age + left for age in losses]) == "open"


@given(ages)
def test_without_three_losses_nothing_is_parked_and_without_four_nothing_withheld(
    losses: list[float],
) -> None:
    state = parking_of(losses)
    assert state == "open" or len(losses) >= PARKED_FROM + (state == "withheld")


@given(ages, st.floats(0.0, ENDS_S))
def test_a_shard_that_is_withheld_does_not_become_parked(losses: list[float], later: float) -> None:
    if parking_of(losses) == "withheld":
        assert parking_of([age + later for age in losses]) in ("withheld", "open")


def test_losses_a_day_apart_park_nothing() -> None:
    assert parking_of([day * 86_400.0 for day in range(KEPT_LOSSES)]) == "open"
