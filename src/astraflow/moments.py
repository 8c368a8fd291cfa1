"""Points in time, as they are written: RFC 3339 in UTC, with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["iso", "parse_iso"]


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """Most times that are written together are of the same few seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


def iso(at: int) -> str:
    """Wall-clock milliseconds as RFC 3339."""
    seconds, ms = divmod(at, 1000)
    return f"{_second(seconds)}{ms:03d}Z"


def parse_iso(text: str) -> int | None:
    """Wall-clock milliseconds of an RFC 3339 time that somebody else wrote; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
