"""Values at the edges of every type that the wire accepts, for results, artifacts and events of simulated workers.

They depend on what they are for, not on the random numbers of the world: adding one changes no seed.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgspec

__all__ = ["TIMES", "VALUES", "edge", "edge_json", "edge_time"]


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


TIMES: Final = (
    None,
    "1970-01-01T00:00:00Z",
    "1970-01-01t23:59:00.0000000001+23:59",
    "1969-12-31T23:59:59.999-23:59",
    "9999-12-30T23:59:59.9999999Z",
    "9999-12-31T23:58:59.999+23:59",
    "2016-12-31T23:59:60Z",
)
VALUES: Final[tuple[Any, ...]] = (
    0,
    -0.0,
    2**53,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    1.7976931348623157e308,
    5e-324,
    None,
    True,
    "",
    "\x01\x1f\x7f",
    "\u2028\ufeff\uffff",
    "\U0001f600\U0010ffff",
    "'\"\\/\n",
    "x" * 5_000,
    [],
    {},
    {"": {"": []}},
    {"\x01": "\U0001f600"},
    _nested(50),
)


def _place(*about: object) -> int:
    return zlib.crc32(repr(about).encode())


def edge(*about: object) -> Any:
    return VALUES[_place(*about) % len(VALUES)]


def edge_json(*about: object) -> msgspec.Raw:
    """An object with such a value."""
    return msgspec.Raw(msgspec.json.encode({"edge": edge(*about)}))


def edge_time(*about: object) -> str | None:
    return TIMES[_place(*about) % len(TIMES)]
