"""ULIDs: ids that are unique for all time and sort by when they were made.

48 bits of milliseconds, 40 random bits that are drawn anew each millisecond, and a 40-bit count within it. Made from
tables, because a scheduler makes one for every frame.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from astraflow.clock import Clock

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_TEN_BITS: Final = 1023


def _encode(value: int) -> str:
    """Fifty bits, as ten characters."""
    return (
        f"{_PAIRS[value >> 40]}{_PAIRS[value >> 30 & _TEN_BITS]}{_PAIRS[value >> 20 & _TEN_BITS]}"
        f"{_PAIRS[value >> 10 & _TEN_BITS]}{_PAIRS[value & _TEN_BITS]}"
    )


class Ulids:
    """An `IdSource` for one process. Within it ids grow, also when the wall clock goes back."""

    __slots__ = ("_clock", "_count", "_head", "_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ms = -1
        self._count = 0
        self._head = ""

    def new(self) -> str:
        ms = self._clock.wall_ms()
        if ms > self._ms:
            self._ms = ms
            self._count = 0
            self._head = _encode(ms) + _encode(int.from_bytes(os.urandom(5), "big"))[2:]
        self._count = count = self._count + 1
        return (
            f"{self._head}{_PAIRS[count >> 30]}{_PAIRS[count >> 20 & _TEN_BITS]}"
            f"{_PAIRS[count >> 10 & _TEN_BITS]}{_PAIRS[count & _TEN_BITS]}"
        )
