"""Printed output of handlers, sent as log chunks of their attempt.

Python-level writes find their attempt by a context variable. Everything else on the descriptors (from a C library or a
child process) is read by the worker, which attributes it less precisely.
"""

from __future__ import annotations

import io
import time
from typing import TextIO

from astraflow_sdk.context import Context
from astraflow_sdk.current import CURRENT

LINE_CHARS = 8 * 1024
"""A longer line is told in pieces."""


class _OutputLimit:
    """The output limit of an attempt: a total, and a token bucket that holds one second of the rate."""

    __slots__ = ("_at", "_now", "_rate", "_total", "line")

    def __init__(self, total: int, rate: int) -> None:
        self.line = ""
        self._total = total
        self._rate = rate
        self._now = float(rate)
        self._at = time.monotonic()

    def take(self, size: int) -> bool:
        at = time.monotonic()
        self._now = min(float(self._rate), self._now + (at - self._at) * self._rate)
        self._at = at
        if size > self._now or size > self._total:
            return False
        self._now -= size
        self._total -= size
        return True


class AttemptOutput(io.TextIOBase):
    """Replaces `sys.stdout` or `sys.stderr`."""

    def __init__(self, channel: str, plain: TextIO, total: int, rate: int) -> None:
        self._channel = channel
        self._plain = plain
        self._total = total
        self._rate = rate

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def fileno(self) -> int:
        return self._plain.fileno()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._plain.flush()

    def write(self, text: str) -> int:
        ctx = CURRENT.get()
        if ctx is None or ctx.state is None:
            return self._plain.write(text)
        if ctx.partial_lines is None:
            ctx.partial_lines = {}
        allowance = ctx.partial_lines.get(self._channel)
        if allowance is None:
            allowance = ctx.partial_lines[self._channel] = _OutputLimit(self._total, self._rate)
        *lines, allowance.line = (allowance.line + text).split("\n")
        if len(allowance.line) > LINE_CHARS:
            lines.append(allowance.line)
            allowance.line = ""
        for line in lines:
            _tell(ctx, self._channel, allowance, line)
        return len(text)


def _tell(ctx: Context, channel: str, allowance: _OutputLimit, line: str) -> None:
    if allowance.take(len(line) + 1):
        ctx.emit(
            line.replace("\0", "\\0").encode("utf-8", "replace").decode() + "\n", channel=channel
        )
    else:
        ctx.dropped += 1


def finish_lines(ctx: Context) -> None:
    """Tell what was printed without an end of line, before the result."""
    for channel, allowance in (ctx.partial_lines or {}).items():
        if allowance.line:
            _tell(ctx, channel, allowance, allowance.line)
    ctx.partial_lines = None
