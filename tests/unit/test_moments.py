"""Points in time, written and read."""

from __future__ import annotations

import pytest

from astraflow.moments import iso, parse_iso


@pytest.mark.parametrize("at", [0, 1, 1_700_000_000_123, 4_102_444_799_999])
def test_what_is_written_is_read_back(at: int) -> None:
    assert parse_iso(iso(at)) == at


@pytest.mark.parametrize("text", ["2026-01-15T10:00:00+01:00", "2026-01-15T09:00:00Z"])
def test_offsets_are_taken_off(text: str) -> None:
    assert parse_iso(text) == parse_iso("2026-01-15T09:00:00")


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z", "9" * 300])
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_iso(text) is None
