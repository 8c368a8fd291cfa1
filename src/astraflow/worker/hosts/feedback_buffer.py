"""The feedback buffer: merges the feedback of an attempt for a short time, and flushes it before the attempt ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from astraflow.clock import Clock
from astraflow.core.protocol import business
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.hosted_attempt import HostedAttempt, PendingFeedback
from astraflow.worker.hosts.settings import PoolSettings

MERGE_S: Final = 0.05
"""How long feedback waits for more of it."""


class FeedbackBuffer:
    """Passes merged feedback to `tell`, one frame per attempt and interval."""

    def __init__(
        self, settings: PoolSettings, clock: Clock, tell: Callable[[business.Feedback], None]
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._tell = tell
        self._waiting: dict[tuple[str, int], HostedAttempt] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, running: HostedAttempt, said: frames.HostFeedback) -> None:
        self._pending(running).add(said, self._clock.now())
        self._tell_soon(running)

    def add_lines(
        self, running: HostedAttempt, channel: str, lines: list[str], dropped: int
    ) -> None:
        self._pending(running).add_lines(channel, lines, dropped, self._clock.now())
        self._tell_soon(running)

    def finish(self, running: HostedAttempt) -> None:
        """Tell what is left, because the attempt has ended."""
        if running.feedback is not None:
            self._waiting.pop(running.key, None)
            running.feedback.finish()
            self._tell_now(running)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pending(self, running: HostedAttempt) -> PendingFeedback:
        if running.feedback is None:
            running.feedback = PendingFeedback(self._settings, self._clock.now(), running.mask)
        return running.feedback

    def _tell_soon(self, running: HostedAttempt) -> None:
        assert running.feedback is not None
        if running.feedback.is_full:
            self._waiting.pop(running.key, None)
            self._tell_now(running)
            return
        self._waiting[running.key] = running
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MERGE_S, self._tell_all)

    def _tell_all(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for running in waiting.values():
            self._tell_now(running)

    def _tell_now(self, running: HostedAttempt) -> None:
        assert running.feedback is not None
        feedback = running.feedback.take(running.dispatch)
        if feedback is not None and not running.is_killed:
            self._tell(feedback)
