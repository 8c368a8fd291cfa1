"""Points in time, as they are written: RFC 3339 in UTC, with milliseconds.

PROTOCOL §3: "Times on the wire are RFC 3339 within 1970-01-01 … 9999-12-30 UTC". This is the one place that reads them,
and what it accepts can be written again: no time of a peer can become one that a store, a view or an event cannot hold.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

LATEST_MS: Final = 253_402_214_399_999
"""9999-12-30T23:59:59.999Z. A day before the last of the calendar: no zone can push it over the edge."""

_DAY_S: Final = 86_400
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_read: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
).fullmatch


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """Most times that are written together are of the same few seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


def iso(at: int) -> str:
    """Wall-clock milliseconds as RFC 3339; the nearest that can be written, of one that cannot."""
    seconds, ms = divmod(min(max(at, 0), LATEST_MS), 1000)
    return f"{_second(seconds)}{ms:03d}Z"


def parse_iso(text: str) -> int | None:
    """Wall-clock milliseconds of a time that somebody else wrote; None if it is none, or out of range.

    What is finer than a millisecond is cut off. A leap second, which only the end of a day in UTC has, is the first of
    the next day, as it is for every clock that counts seconds since 1970.
    """
    match = _read(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    seconds = days * _DAY_S + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign is not None:
        offset = int(off_hour) * 3600 + int(off_minute) * 60
        seconds += offset if sign == "-" else -offset
    if second == "60" and seconds % _DAY_S:
        return None
    at = seconds * 1000 + int((fraction or "")[:3].ljust(3, "0"))
    return at if 0 <= at <= LATEST_MS else None
