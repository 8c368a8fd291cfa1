"""The stdout and stderr of a host and its child processes: split into lines, rate-limited, with the tail kept.

Output above the rate is read slowly and dropped: the full pipe slows the writer down but never blocks it for good, and
the worker spends little time on it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

from astraflow.clock import Clock
from astraflow.worker.hosts.rate_limit import RateLimit

READ_BYTES: Final = 64 * 1024
LINE_BYTES: Final = 8 * 1024
"""A longer line is cut."""
TAIL_BYTES: Final = 8 * 1024
"""The end of what was written, to tell why a host died."""
PAUSE_S: Final = 0.02
"""Between two reads of a flood: at most three MiB a second."""


class Output:
    """One pipe. Owns its descriptor."""

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        rate: int,
        on_lines: Callable[[list[str], int], None],
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._clock = clock
        self._allowance = RateLimit(rate, clock.now())
        self._on_lines = on_lines
        self._line = b""
        self._pause: asyncio.TimerHandle | None = None
        self.tail = b""
        os.set_blocking(fd, False)
        loop.add_reader(fd, self._read)

    def close(self) -> None:
        """Read what is left, then let go."""
        self._loop.remove_reader(self._fd)
        if self._pause is not None:
            self._pause.cancel()
        while read := self._take():
            self._split(read)
        if self._line:
            self._split(b"\n")
        os.close(self._fd)

    def _read(self) -> None:
        read = self._take()
        if not read:
            self._loop.remove_reader(self._fd)
            return
        if self._split(read):
            return
        self._loop.remove_reader(self._fd)
        self._pause = self._loop.call_later(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._fd, self._read)

    def _take(self) -> bytes:
        try:
            return os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return b""

    def _split(self, read: bytes) -> bool:
        """Hand on the whole lines; False if they were above the rate and dropped."""
        self.tail = (self.tail + read)[-TAIL_BYTES:]
        *lines, rest = (self._line + read).split(b"\n")
        if len(rest) > LINE_BYTES:
            lines.append(rest)
            rest = b""
        self._line = rest
        if not lines:
            return True
        if not self._allowance.take(len(read), self._clock.now()):
            self._on_lines([], len(lines))
            return False
        self._on_lines([_text(line) for line in lines], 0)
        return True


def _text(line: bytes) -> str:
    cut = line[:LINE_BYTES]
    return cut.decode("utf-8", "replace").replace("\0", "\\0") + "\n"
