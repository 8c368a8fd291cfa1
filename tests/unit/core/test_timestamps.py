"""Points in time, written and read."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from astraflow.core.timestamps import LATEST_MS, iso, parse_iso
from tests.tables import each_row


@given(at=st.integers(0, LATEST_MS))
@example(at=0)
@example(at=LATEST_MS)
def test_what_is_written_is_read_back(at: int) -> None:
    assert parse_iso(iso(at)) == at


@each_row(
    ("text", "same"),
    [
        ("2026-01-15T10:00:00+01:00", "2026-01-15T09:00:00Z"),
        ("2026-01-15t09:00:00z", "2026-01-15T09:00:00Z"),
        ("2026-01-15 09:00:00-00:00", "2026-01-15T09:00:00Z"),
        ("2026-01-15T09:00:00.1Z", "2026-01-15T09:00:00.100Z"),
        ("2026-01-15T09:00:00.1239999999Z", "2026-01-15T09:00:00.123Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2016-12-31T18:59:60-05:00", "2017-01-01T00:00:00Z"),
        ("1969-12-31T23:59:00-00:01", "1970-01-01T00:00:00Z"),
        ("1970-01-01T23:59:00+23:59", "1970-01-01T00:00:00Z"),
        ("9999-12-31T23:58:59.999+23:59", "9999-12-30T23:59:59.999Z"),
        ("9999-12-30T23:59:59.9999999Z", "9999-12-30T23:59:59.999Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"),
    ],
)
def test_every_form_of_a_time_is_read(text: str, same: str) -> None:
    assert parse_iso(text) is not None
    assert parse_iso(text) == parse_iso(same)


@each_row(
    "text",
    [
        "",
        "soon",
        "9" * 300,
        "2026-01-15T09:00:00",
        "2026-01-15",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-01-15T24:00:00Z",
        "2026-01-15T09:60:00Z",
        "2026-01-15T09:00:60Z",
        "2016-12-31T23:59:61Z",
        "2016-12-31T23:59:60-05:00",
        "2026-01-15T09:00:00.Z",
        "2026-01-15T09:00:00+24:00",
        "2026-01-15T09:00:00+01",
        "2026-01-15T09:00:00Z\n",
        "２０２６-01-15T09:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T00:00:00Z",
        "9999-12-31T23:59:59.9999999Z",
        "9999-12-30T23:59:00-00:01",
        "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_what_is_no_time_or_out_of_range_is_none(text: str) -> None:
    assert parse_iso(text) is None


@given(
    text=st.from_regex(
        r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-6]\d:[0-6]\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)\Z"
    )
)
def test_what_is_read_can_be_written(text: str) -> None:
    at = parse_iso(text)
    assert at is None or parse_iso(iso(at)) == at


@each_row("at", [-1, -(2**63), LATEST_MS + 1, 253_402_300_800_000, 2**63 - 1])
def test_a_stored_time_out_of_range_is_shown_as_the_nearest(at: int) -> None:
    assert parse_iso(iso(at)) == (0 if at < 0 else LATEST_MS)
