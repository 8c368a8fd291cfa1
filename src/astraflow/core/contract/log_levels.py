"""The levels of log lines. A node names the level of a line in the metadata of its chunk."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

LogLevel = Literal["debug", "info", "warning", "error"]

DEFAULT: Final[LogLevel] = "info"
"""Of output that names no level, or none that is known."""

_RANKS: Final[dict[str, int]] = {
    "trace": 0,
    "debug": 0,
    "info": 1,
    "warn": 2,
    "warning": 2,
    "error": 3,
    "critical": 3,
    "fatal": 3,
}


class _Leveled(msgspec.Struct):
    level: str = DEFAULT


_decoder: Final = msgspec.json.Decoder(_Leveled)


def is_at_least(metadata: object, level: LogLevel) -> bool:
    """Whether a chunk with this metadata has this level or a higher one."""
    return _RANKS.get(_word_in(metadata).lower(), _RANKS[DEFAULT]) >= _RANKS[level]


def _word_in(metadata: object) -> str:
    try:
        if isinstance(metadata, msgspec.Raw):
            return _decoder.decode(metadata).level
        return msgspec.convert(metadata, _Leveled).level
    except msgspec.ValidationError:
        return DEFAULT  # a node may say anything there
