from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from astraflow.moments import iso


def test_a_moment_is_written_with_its_zone_and_three_digits() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_794_727_229_007) == "2026-11-15T07:20:29.007Z"
    assert iso(-1) == "1969-12-31T23:59:59.999Z"


@given(st.integers(-(10**12), 10**13))
def test_what_is_written_can_be_read_back(at: int) -> None:
    moment = datetime.fromisoformat(iso(at))
    assert round(moment.timestamp() * 1000) == at
