"""Ends a process whose event loop is blocked.

The owner of a shard that does nothing any more keeps its claim until it runs out, and does not know when that was: it
is better dead than owner. A thread looks for beats of the loop. It can end the process while Python code blocks the
loop, and while the loop waits for a lock or a system call; not while native code keeps the interpreter's lock.

What counts is looks of the thread without a beat between them, not time: a process that was stopped as a whole
(SIGSTOP, a machine that slept) has not looked meanwhile, and its loop beats again before the thread has looked often.

Before it ends the process it says what the loop was doing: in the log, and to whoever finds out whose work that was.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Final

_log: Final = logging.getLogger(__name__)

LOOKS: Final = 6
"""So many looks in a row without a beat end a process that serves something."""
USELESS_LOOKS: Final = 3 * LOOKS
"""So many end any process: it answers nobody, and what it was about to serve has become another's."""
BEATS_PER_LOOK: Final = 2
REPORT_S: Final = 1.0
"""For the report: whoever should read it may be what the loop waits for."""
BLAME_S: Final = 1.2
"""To say whose work it was: a little more than that takes at the most."""
EXIT_BLOCKED: Final = 1

Blame = Callable[[FrameType], None]
"""Finds out whose work blocks a loop, by what its thread is doing, and keeps it. Called in a thread of its own."""


class MissedBeats:
    """Counts looks in a row that saw no beat."""

    def __init__(self) -> None:
        self._beats = 0
        self._missed = 0

    def is_blocked(self, beats: int) -> bool:
        """After a look: whether the loop has beaten too long ago. `beats`: how often it has, until now."""
        self._missed = self._missed + 1 if beats == self._beats else 0
        self._beats = beats
        return self._missed >= LOOKS

    @property
    def is_useless(self) -> bool:
        """Whether the process need not be asked what it serves."""
        return self._missed >= USELESS_LOOKS


class LoopWatchdog:
    """A thread that looks for the beats of one event loop."""

    def __init__(self, seconds: float, is_needed: Callable[[], bool], blame: Blame) -> None:
        """`seconds`: for how long the loop may be blocked. `is_needed`: whether to end; asked by the thread, once
        the loop is blocked, so that nothing changes meanwhile."""
        self._seconds = seconds
        self._is_needed = is_needed
        self._blame = blame
        self._loop_thread = threading.get_ident()
        self._look_s = seconds / LOOKS
        self._beats = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watchdog", daemon=True)

    async def run(self) -> None:
        """Watch the loop that runs this, until cancelled."""
        self._thread.start()
        try:
            while True:
                self._beats += 1
                await asyncio.sleep(self._look_s / BEATS_PER_LOOK)
        finally:
            self._is_over.set()

    def _watch(self) -> None:
        missed = MissedBeats()
        while not self._is_over.wait(self._look_s):
            is_blocked = missed.is_blocked(self._beats)
            if (
                is_blocked
                and (missed.is_useless or self._is_needed())
                and not self._is_over.is_set()
            ):
                self._end()

    def _end(self) -> None:
        frame = sys._current_frames()[self._loop_thread]
        report = threading.Thread(target=self._report, daemon=True)
        blame = threading.Thread(target=self._blame, args=(frame,), daemon=True)
        report.start()
        blame.start()
        report.join(REPORT_S)
        blame.join(BLAME_S)
        os._exit(EXIT_BLOCKED)

    def _report(self) -> None:
        # It needs no lock; the loop may hold that of the log.
        faulthandler.dump_traceback(sys.stderr.fileno())
        _log.critical(
            "the event loop has been blocked for %.0f s: this scheduler ends, so that another can have its shards. "
            "Where it was is written above, under `Thread … (most recent call first)`",
            self._seconds,
        )


@asynccontextmanager
async def watched_loop(
    seconds: float, is_needed: Callable[[], bool], blame: Blame
) -> AsyncIterator[None]:
    """Watch the running loop. 0 seconds: do not."""
    if seconds == 0:
        yield
        return
    watching = asyncio.create_task(LoopWatchdog(seconds, is_needed, blame).run())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
