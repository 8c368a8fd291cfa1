"""Durations as people write them: `90s`, `15m`, `12h`, `30d`."""

from __future__ import annotations

import re
from typing import Final

from astraflow.cli.inputs import unreadable

_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
_DURATION: Final = re.compile(r"([0-9]{1,9})([smhd]?)", re.ASCII)


def seconds_of(text: str, option: str) -> int:
    """Raises: Refused, naming the option."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise unreadable(
            f"Invalid duration {text!r} for {option}",
            "write a number and a unit, as 90s, 15m, 12h, 30d",
        )
    return int(found[1]) * _UNITS[found[2]]
