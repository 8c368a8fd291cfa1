"""Schedules: the times of a cron expression in a time zone.

Rules:
1. A time is a point in UTC, in milliseconds. Where a zone skips an hour, what falls into it happens once, right after;
   where a zone repeats an hour, a fixed time happens once, at its first occurrence. This is what Debian's cron does.
2. An expression of six fields begins with the seconds, and takes the clock of the zone as it is.
3. Times are strictly increasing, however they are asked for: forwards from a point, or the newest before one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_SAMPLE: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""From here on a schedule must have a time, or it has none at all: a leap year begins."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


class BadSchedule(ValueError):
    """The text is not a schedule, or not a time zone; the message says why."""


def find_zone(name: str) -> tzinfo:
    """Raises: BadSchedule."""
    if name == "UTC":
        return UTC  # without any change, and quicker than the zone of that name
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadSchedule(f"there is no such time zone: {name[:80]!r}") from error


class Schedule:
    """An expression in a zone."""

    def __init__(self, expression: str, time_zone: str) -> None:
        """Raises: BadSchedule."""
        self._zone = find_zone(time_zone)
        self._expression = NAMED.get(expression, expression)
        try:
            next(CronSim(self._expression, _SAMPLE))
        except CronSimError as error:
            raise BadSchedule(f"not a schedule: {str(error)[:80]}") from error
        except StopIteration:
            raise BadSchedule("the schedule has no time within 50 years") from None

    def after(self, at: int) -> int | None:
        """The first time after this one; None: there is none within 50 years."""
        return next(self._forwards(at), None)

    def upcoming(self, at: int, count: int) -> list[int]:
        """The next times after this one."""
        return list(islice(self._forwards(at), count))

    def newest(self, after: int, until: int, count: int) -> list[int]:
        """The last times of those in (after, until], at most `count`, in their order.

        The search begins shortly before the end and goes back in growing steps; where a step holds far too many times,
        it is halved. So it costs the same after an hour and after a year.
        """
        if count < 1:
            return []
        most = 4 * count + 64
        span = count * 1000  # a time for each second at most
        too_many: int | None = None
        too_few, start = until, max(after, until - span)
        while True:
            times = takewhile(lambda at: at <= until, self._forwards(start))
            found = list(islice(times, most + 1))
            if len(found) > most:
                too_many = start
            elif len(found) >= count or start == after:
                return found[-count:]
            else:
                too_few, span = start, span * 8
            start = max(after, until - span) if too_many is None else (too_many + too_few) // 2

    def _forwards(self, at: int) -> Iterator[int]:
        last = at
        for found_at in CronSim(self._expression, self._local(at)):
            found = _ms(found_at)
            # The second occurrence of a repeated hour begins before the fixed times of the first.
            if found > last:
                last = found
                yield found

    def _local(self, at: int) -> datetime:
        return (_EPOCH + at * _MS).astimezone(self._zone)


def _ms(found_at: datetime) -> int:
    return (found_at.astimezone(UTC) - _EPOCH) // _MS
