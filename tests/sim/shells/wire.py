"""Connections in memory, in the two shapes that the shells know: bytes in order, never doubled, never lost alone.

That is what TCP gives. What it does not give is here too: an end that learns of a cut late or never, and a direction in
which nothing passes for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from astraflow.core import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.scheduler.service import Scheduler
    from astraflow.scheduler.writer import Writer
    from astraflow.worker.socket import Listener
    from tests.sim.shells.world import LoopWorld

__all__ = ["TO_SCHEDULER", "TO_WORKER", "Network", "Wire"]

TO_SCHEDULER, TO_WORKER = 0, 1
CLOSE_WAIT_S = 2.0
RESET_S = 0.01


class _End:
    """What one side writes into: `worker.socket.Socket` and `scheduler.writer.Connection` alike."""

    def __init__(self, wire: Wire, direction: int) -> None:
        self._wire = wire
        self._direction = direction
        self._is_closing = False

    def send(self, frames: list[bytes]) -> None:
        if not self._is_closing:
            for raw in frames:
                self._wire.put(self._direction, raw)

    def room(self) -> int:
        return 1 << 62

    def peer(self) -> str:
        return "simulated:0"

    def admit(self) -> None: ...

    def close(self, code: int) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._wire.put(self._direction, code)
            self._wire.close_soon()


class Wire:
    """One connection between a worker and a scheduler."""

    def __init__(self, network: Network, worker: str, listener: Listener) -> None:
        self.network = network
        self.worker = worker
        self.scheduler: Scheduler | None = None
        self.is_open = True
        self.socket = _End(self, TO_SCHEDULER)
        self.connection = _End(self, TO_WORKER)
        self._listener = listener
        self._writer: Writer | None = None
        self._conn = ""
        self._pipes: tuple[deque[bytes | int], deque[bytes | int]] = (deque(), deque())
        self._arrival = [0.0, 0.0]
        self._timers: list[asyncio.TimerHandle] = []

    def attach(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        serving, self._conn = scheduler.connect(self.connection)
        self._writer = serving.writer

    def put(self, direction: int, item: bytes | int) -> None:
        """Bytes to deliver, or the code of a close after all of them."""
        if not self.is_open:
            return
        world = self.network.world
        arrival = world.now + self.network.delay()
        self._arrival[direction] = max(arrival, self._arrival[direction])
        self._pipes[direction].append(item)
        self._later(self._arrival[direction], self._deliver, direction)

    def close_soon(self) -> None:
        """An end that has said goodbye does not wait for the other for ever."""
        self._later(self.network.world.now + CLOSE_WAIT_S, self._finish, None)

    def cut(self, *, tells: tuple[int, ...] = (TO_SCHEDULER, TO_WORKER)) -> None:
        """Break it; the ends that are told learn of it soon, what is under way is gone."""
        if not self.is_open:
            return
        self._drop()
        later = self.network.world.loop.call_later
        if TO_SCHEDULER in tells:
            later(RESET_S, self._tell_scheduler)
        if TO_WORKER in tells:
            later(RESET_S, self._tell_worker, None)

    def _deliver(self, direction: int) -> None:
        until = self.network.blocked.get((self.worker, direction), 0.0)
        if self.network.world.now < until:
            self._later(until, self._deliver, direction)
            return
        item = self._pipes[direction].popleft()
        if isinstance(item, int):
            self._finish(item if direction == TO_WORKER else None)
        elif direction == TO_WORKER:
            self._listener.received(self.socket, item)
        elif self._writer is not None:
            self._writer.received(self._conn, item)

    def _finish(self, code: int | None) -> None:
        """Both ends have said goodbye, or one has waited long enough for it."""
        if self.is_open:
            self._drop()
            self._tell_scheduler()
            self._tell_worker(code)

    def _tell_scheduler(self) -> None:
        if self._writer is not None:
            self._writer.closed(self._conn)

    def _tell_worker(self, code: int | None) -> None:
        self._listener.closed(self.socket, code)

    def _drop(self) -> None:
        self.is_open = False
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self.network.wires.remove(self)

    def _later(self, when: float, act: Callable[..., None], *args: object) -> None:
        world = self.network.world
        self._timers = [timer for timer in self._timers if not _is_past(timer, world.now)]
        self._timers.append(world.loop.call_at(when, act, *args))


def _is_past(timer: asyncio.TimerHandle, now: float) -> bool:
    return timer.cancelled() or timer.when() < now


class Network:
    """All wires, and whom a new one leads to."""

    def __init__(
        self, world: LoopWorld, mean_delay_s: float, front: Callable[[], Scheduler]
    ) -> None:
        self.world = world
        self.mean_delay_s = mean_delay_s
        self.front = front
        self.wires: list[Wire] = []
        self.blocked: dict[tuple[str, int], float] = {}
        """Until when nothing passes, by worker and direction."""

    def delay(self) -> float:
        return self.world.delay(self.mean_delay_s)

    async def connect(self, worker: str, listener: Listener) -> _End:
        """Open a connection, as the worker's own `connect` does.

        Raises:
            OSError: nobody serves.
        """
        await asyncio.sleep(self.delay())
        wire = Wire(self, worker, listener)
        try:
            wire.attach(self.front())
        except errors.Unavailable as error:
            raise ConnectionError(error.message) from error
        self.wires.append(wire)
        try:
            await asyncio.sleep(self.delay())
        except asyncio.CancelledError:
            wire.cut(tells=(TO_SCHEDULER,))
            raise
        return wire.socket

    def heal(self) -> None:
        self.mean_delay_s = 0.002
        self.blocked.clear()
