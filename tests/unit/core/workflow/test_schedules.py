from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astraflow.core.workflow.schedules import NAMED, BadSchedule, Schedule
from tests.tables import each_row


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def shown(times: list[int]) -> list[str]:
    return [datetime.fromtimestamp(at / 1000, UTC).strftime("%d %H:%M:%S") for at in times]


@each_row(
    ("expression", "zone", "start", "expected"),
    [
        ("30 6 * * *", "UTC", "2026-01-01T06:30:00Z", ["02 06:30:00", "03 06:30:00"]),
        ("0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", ["01 03:30:00", "02 03:30:00"]),
        ("@daily", "Europe/Berlin", "2026-01-01T00:00:00Z", ["01 23:00:00", "02 23:00:00"]),
        ("*/20 * * * * *", "UTC", "2026-01-01T00:00:00.5Z", ["01 00:00:20", "01 00:00:40"]),
        # 02:00 to 03:00 does not exist on 2026-03-29: what falls into it happens right after.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", ["29 01:00:00", "30 00:30:00"]),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", ["29 01:00:00", "30 00:00:00"]),
        ("0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", ["29 01:00:00", "29 02:00:00"]),
        # 02:00 to 03:00 comes twice on 2026-10-25: a fixed time counts once, each hour counts twice.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", ["25 00:30:00", "26 01:30:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", ["26 01:30:00", "27 01:30:00"]),
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", ["25 00:30:00", "25 01:30:00"]),
        # Half an hour of Lord Howe.
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T12:00:00Z",
            ["04 14:45:00", "05 15:15:00"],
        ),
    ],
)
def test_the_times_of_a_schedule(
    expression: str, zone: str, start: str, expected: list[str]
) -> None:
    assert shown(Schedule(expression, zone).upcoming(ms(start), 2)) == expected


@each_row(
    ("expression", "zone", "says"),
    [
        ("61 * * * *", "UTC", "Bad minute"),
        ("* * * *", "UTC", "number of fields"),
        ("0 0 30 2 *", "UTC", "Bad day"),
        ("0 0 * 2 MON#5", "UTC", ""),
        ("* * * * *", "Mars/Olympus", "time zone"),
        ("* * * * *", "../etc/passwd", "time zone"),
        ("* * * * *", "Europe", "time zone"),
    ],
)
def test_what_is_no_schedule_is_refused(expression: str, zone: str, says: str) -> None:
    if not says:
        assert Schedule(expression, zone).after(0) is not None
        return
    with pytest.raises(BadSchedule, match=says):
        Schedule(expression, zone)


def test_a_schedule_that_never_comes_is_refused() -> None:
    with pytest.raises(BadSchedule, match="50 years"):
        Schedule("0 0 */31 1 MON#5", "UTC")


@pytest.mark.parametrize("name", NAMED)
def test_a_name_is_its_expression(name: str) -> None:
    start = ms("2026-05-05T05:05:05Z")
    expected = Schedule(NAMED[name], "UTC").upcoming(start, 3)
    assert Schedule(name, "UTC").upcoming(start, 3) == expected


FIELDS = st.tuples(
    st.sampled_from(["*", "*/7", "0", "30", "5-20/5", "59"]),
    st.sampled_from(["*", "*/3", "2", "1-3", "0,2,23"]),
    st.sampled_from(["*", "25", "29", "1-8"]),
    st.sampled_from(["*", "3,10", "*/4"]),
    st.sampled_from(["*", "SUN", "MON-FRI"]),
)
EXPRESSIONS = st.one_of(
    FIELDS.map(" ".join),
    st.tuples(st.sampled_from(["0", "*/30", "15"]), FIELDS.map(" ".join)).map(" ".join),
)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]
)
CHANGES = st.sampled_from(
    ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-11-01T06:00:00Z", "2026-04-04T15:00:00Z"]
).map(ms)


@settings(max_examples=120, deadline=None)
@given(EXPRESSIONS, ZONES, CHANGES, st.integers(0, 86_400), st.integers(1, 30))
def test_times_grow_and_do_not_depend_on_how_they_are_asked_for(
    expression: str, zone: str, change: int, before_s: int, count: int
) -> None:
    schedule = Schedule(expression, zone)
    start = change - before_s * 1000
    times = schedule.upcoming(start, 60)
    assert all(one < other for one, other in pairwise([start, *times]))
    here, one_by_one = start, []
    for _ in times[:20]:
        found = schedule.after(here)
        assert found is not None
        here = found
        one_by_one.append(found)
    assert one_by_one == times[:20]
    assert schedule.newest(start, times[-1], count) == times[-count:]
    assert schedule.newest(start, times[-1] - 1, 60) == times[:-1]


@each_row(
    ("expression", "count"),
    [("* * * * * *", 5), ("* * * * 1 *", 3), ("0 0 29 2 *", 2), ("0 12 1 * *", 4)],
)
def test_the_newest_times_of_years_are_found(expression: str, count: int) -> None:
    """Each second of January among them: two and a half million times."""
    schedule = Schedule(expression, "UTC")
    until = ms("2026-06-15T12:00:00Z")
    found = schedule.newest(ms("2010-01-01T00:00:00Z"), until, count)
    assert len(found) == count and found[-1] <= until
    assert schedule.after(found[-1]) > until  # type: ignore[operator]
    assert schedule.upcoming(found[0] - 1, count) == found


def test_there_is_no_newest_time_of_none() -> None:
    schedule = Schedule("0 0 1 1 *", "UTC")
    at = ms("2026-06-15T12:00:00Z")
    assert schedule.newest(at, at + timedelta(days=30) // timedelta(milliseconds=1), 5) == []
    assert schedule.newest(0, at, 0) == []
