"""The adapter for protocol 1 on one socket: it hands over frames and keeps the timer.

Towards the writer the socket stays a socket of protocol 2. What the adapter has to tell the writer while the writer
sends waits for the next turn of the loop.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import TYPE_CHECKING

from astraflow.clock import SystemClock
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.v1.adapter import V1Adapter
from astraflow.core.timestamps import iso
from astraflow.ulids import Ulids

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.scheduler.writer import Writer


class V1Edge:
    """Translates what one worker and the writer say to each other."""

    def __init__(self, writer: Writer, conn: str, write: Callable[[list[bytes]], None]) -> None:
        self._writer = writer
        self._conn = conn
        self._write = write
        self._clock = SystemClock()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._adapter = V1Adapter(
            Ulids(self._clock),
            Random(os.urandom(32)),  # noqa: S311 - jitter only
            writer.engine.ask.held_by,
        )

    def received(self, raw: bytes) -> None:
        """A text message of the worker."""
        try:
            self._adapter.from_worker(raw, self._clock.now(), iso(self._clock.wall_ms()))
        except BadFrame as error:
            self._writer.refuse(self._conn, error)
        self._hand_over()

    def translate(self, messages: list[bytes]) -> list[bytes]:
        """What the writer sends, as the worker reads it."""
        now = self._clock.now()
        for raw in messages:
            self._adapter.from_scheduler(raw, now)
        self._loop.call_soon(self._hand_over)
        return self._adapter.take_for_worker()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hand_over(self) -> None:
        for raw in self._adapter.take_for_scheduler():
            self._writer.received(self._conn, raw)
        self._write(self._adapter.take_for_worker())
        self.close()
        deadline = self._adapter.deadline()
        if deadline is not None:
            wait_s = max(0.0, deadline - self._clock.now())
            self._timer = self._loop.call_later(wait_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._adapter.tick(self._clock.now(), iso(self._clock.wall_ms()))
        self._hand_over()
