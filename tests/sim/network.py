"""Connections between simulated machines: frames that are lost, doubled, delayed, stuck or cut off.

A connection is two one-way pipes. What is in flight when it breaks is gone. Whether the ends learn of the
break at once is up to the nemesis: a half-open connection tells nobody.
"""

from __future__ import annotations

from typing import Protocol

from astraflow.core.protocol.business import Dispatch
from astraflow.core.protocol.wire import Envelope
from tests.sim.config import Config
from tests.sim.world import World

__all__ = ["DISPATCH_AS_MOVED", "Connection", "End", "Network"]

DISPATCH_AS_MOVED = "a dispatch arrived while its session was closed in order"
"""As when a shard is given back: the next owner may have it by then."""


class End(Protocol):
    """What a connection ends in."""

    def frame_arrived(self, conn: Connection, envelope: Envelope) -> None: ...

    def connection_broken(self, conn: Connection) -> None: ...


class Connection:
    """One socket: a worker's end and a scheduler's end."""

    __slots__ = ("is_closing", "is_open", "last_arrival", "name", "scheduler", "worker")

    def __init__(self, name: str, worker: End, scheduler: End) -> None:
        self.name = name
        self.worker = worker
        self.scheduler = scheduler
        self.is_open = True
        self.is_closing = False
        self.last_arrival = [0.0, 0.0]


class Network:
    """All links. Faults are drawn per frame; partitions are set by the nemesis."""

    def __init__(self, world: World, config: Config) -> None:
        self.world = world
        self.config = config
        self.is_healed = False
        self.connections: list[Connection] = []
        self._blocked: dict[tuple[End, int], int] = {}  # (worker, direction) → how many blocks
        self._stuck: dict[tuple[End, int], list[tuple[Connection, Envelope]]] = {}

    def connect(self, worker: End, scheduler: End) -> Connection:
        conn = Connection(self.world.new_id(), worker, scheduler)
        self.connections.append(conn)
        return conn

    def send(self, conn: Connection, to_worker: bool, envelope: Envelope) -> None:
        world, config = self.world, self.config
        direction = int(to_worker)
        if not conn.is_open or conn.is_closing:
            return
        if self._blocked.get((conn.worker, direction)):
            if config.is_tcp:
                self._stuck.setdefault((conn.worker, direction), []).append((conn, envelope))
            return
        healed = self.is_healed
        if not healed and world.chance(config.loss):
            return
        copies = 2 if not healed and world.chance(config.duplication) else 1
        for _ in range(copies):
            mean = 0.005 if healed else config.delay_s
            arrival = world.now + world.delay(mean)
            if not healed and world.chance(config.clog):
                arrival += world.rng.random() * 5
            if config.ordered:
                arrival = max(arrival, conn.last_arrival[direction])
            conn.last_arrival[direction] = max(arrival, conn.last_arrival[direction])
            world.at(arrival, self._arrive, conn, to_worker, envelope)

    def _arrive(self, conn: Connection, to_worker: bool, envelope: Envelope) -> None:
        if not conn.is_open:
            return
        if conn.is_closing and isinstance(envelope.payload, Dispatch):
            self.world.sometimes(DISPATCH_AS_MOVED)
        if to_worker:
            conn.worker.frame_arrived(conn, envelope)
        else:
            conn.scheduler.frame_arrived(conn, envelope)

    def block(self, worker: End, direction: int, seconds: float) -> None:
        """Nothing passes in one direction for a while. What is sent then is gone; with TCP it passes afterwards, if the
        connection is still there."""
        key = (worker, direction)
        self._blocked[key] = self._blocked.get(key, 0) + 1
        self.world.after(seconds, self._unblock, key)

    def _unblock(self, key: tuple[End, int]) -> None:
        if key in self._blocked:  # healed meanwhile otherwise
            self._blocked[key] -= 1
        if not self._blocked.get(key):
            self._send_stuck(key)

    def _send_stuck(self, key: tuple[End, int]) -> None:
        for conn, envelope in self._stuck.pop(key, ()):
            self.send(conn, bool(key[1]), envelope)

    def break_connection(self, conn: Connection, *, told: bool = True) -> None:
        """Break a socket; the ends learn of it soon, or only by silence."""
        if not conn.is_open:
            return
        conn.is_open = False
        self.connections.remove(conn)
        if told:
            self.world.after(self.world.delay(0.01), conn.worker.connection_broken, conn)
            self.world.after(self.world.delay(0.01), conn.scheduler.connection_broken, conn)

    def close(self, conn: Connection) -> None:
        """An end closes: what was sent before still arrives, then both ends learn of it."""
        if conn.is_open and not conn.is_closing:
            conn.is_closing = True
            self.world.at(max(conn.last_arrival), self.break_connection, conn)

    def of_worker(self, worker: End) -> list[Connection]:
        return [conn for conn in self.connections if conn.worker is worker]

    def of_scheduler(self, scheduler: End) -> list[Connection]:
        return [conn for conn in self.connections if conn.scheduler is scheduler]

    def heal(self) -> None:
        self.is_healed = True
        self._blocked.clear()
        for key in list(self._stuck):
            self._send_stuck(key)
