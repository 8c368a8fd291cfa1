"""Trace context (W3C): which trace a run belongs to, as the header `traceparent` says it.

An id of a span that follows from the ids of its parent and its attempt needs no memory: after a restart, or on another
scheduler, it is the same.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

import msgspec

_HEADER: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_SAMPLED: Final = 1
MAX_CHARS: Final = 256
"""A later version may append to the header; so much of it is looked at."""


class TraceContext(msgspec.Struct, frozen=True):
    """A span, as others refer to it. The ids are lower-case hexadecimal."""

    trace_id: str
    span_id: str
    is_sampled: bool

    def header(self) -> str:
        """The value of `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"

    def child(self, *names: object) -> TraceContext:
        """The span below this one that has these names."""
        named = ".".join((self.span_id, *map(str, names)))
        span_id = blake2b(named.encode(), digest_size=8).hexdigest()
        return TraceContext(self.trace_id, span_id, self.is_sampled)


def parse_traceparent(text: str | None) -> TraceContext | None:
    """The span that a header names; None if it is none: the standard wants it ignored then."""
    if text is None or len(text) > MAX_CHARS:
        return None
    found = _HEADER.fullmatch(text.strip())
    if found is None or (text.strip().startswith("00") and found[4]):
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & _SAMPLED))
