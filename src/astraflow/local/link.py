"""A worker's connection to a scheduler of the same process: what one end sends, the other is given in the next turns.

As on a socket, an end that is owed too much is sent nothing more until it has read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from astraflow.core import errors
from astraflow.core.protocol import limits

if TYPE_CHECKING:
    from astraflow.scheduler.service import Scheduler
    from astraflow.worker.socket import Listener, OpenSocket, Socket


class _Lane:
    """One direction: frames on their way, a bounded number of them a turn."""

    def __init__(self, deliver: Callable[[bytes], None], drained: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._drained = drained
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._is_set = False
        self._is_closed = False

    def room(self) -> int:
        return limits.MAX_OWED_BYTES - self._bytes

    def send(self, frames: list[bytes]) -> None:
        if self._is_closed:
            return
        self._waiting.extend(frames)
        self._bytes += sum(map(len, frames))
        self._set()

    def close(self) -> None:
        """What was sent before is still delivered."""
        self._is_closed = True

    def _set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_set = False
        was_full = self.room() <= 0
        for _ in range(min(limits.TURN_FRAMES, len(self._waiting))):
            frame = self._waiting.popleft()
            self._bytes -= len(frame)
            self._deliver(frame)
        if self._waiting:
            self._set()
        if was_full and self.room() > 0 and not self._is_closed:
            self._drained()


class LocalSocket:
    """The worker's end."""

    def __init__(self, lane: _Lane, end: Callable[[int], None]) -> None:
        self._lane = lane
        self._end = end

    def send(self, frames: list[bytes]) -> None:
        self._lane.send(frames)

    def room(self) -> int:
        return self._lane.room()

    def close(self, code: int) -> None:
        self._end(code)


class LocalConnection:
    """A connection, and the scheduler's end of it."""

    def __init__(self, scheduler: Scheduler, listener: Listener) -> None:
        """Raises: Unavailable, if the scheduler does not serve."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._is_closed = False
        self._down = _Lane(self._give_worker, lambda: self._writer.drained(self._conn))
        up = _Lane(self._give_scheduler, lambda: listener.drained(self.socket))
        self._up = up
        self.socket = LocalSocket(up, self.close)
        serving, self._conn = scheduler.connect(self)
        self._writer = serving.writer

    def _give_worker(self, frame: bytes) -> None:
        self._listener.received(self.socket, frame)

    def _give_scheduler(self, frame: bytes) -> None:
        if not self._is_closed:
            self._writer.received(self._conn, frame)

    # -- what the writer calls --------------------------------------------------------------

    def send(self, frames: list[bytes]) -> None:
        self._down.send(frames)

    def room(self) -> int:
        return self._down.room()

    def peer(self) -> str:
        return "local"

    def admit(self) -> None:
        """There is nobody else to be told from."""

    def close(self, code: int) -> None:
        """Either end closes both."""
        if self._is_closed:
            return
        self._is_closed = True
        self._up.close()
        self._down.close()
        self._loop.call_soon(self._tell_closed, code)

    def _tell_closed(self, code: int) -> None:
        self._writer.closed(self._conn)
        self._listener.closed(self.socket, code)


def connecting_to(scheduler: Scheduler) -> OpenSocket:
    """What a worker opens its connections with."""

    async def open_socket(url: str, listener: Listener) -> Socket:
        try:
            return LocalConnection(scheduler, listener).socket
        except errors.Unavailable as error:
            raise ConnectionError(f"cannot connect: {error.message}") from error

    return open_socket
