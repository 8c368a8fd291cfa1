"""The writer: the one task that owns an engine and its store. Commit, then speak.

Everything that arrives is fed to the engine at once; what follows from it waits. The writer takes what has gathered,
commits it in one transaction, and only then lets it be said. While it waits for the disk the next batch gathers by
itself, so that a busy scheduler commits in groups and an idle one at once.

Heartbeats are answered without the writer (PROTOCOL §5.4): what the engine may say without a commit leaves in the same
turn of the loop, whether or not a commit is under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from astraflow import errors
from astraflow.alarm import Alarm
from astraflow.clock import Clock
from astraflow.engine.batch import Answer, Batch
from astraflow.engine.engine import Engine
from astraflow.engine.intake import CancelRun, SubmitRun
from astraflow.engine.view import View
from astraflow.moments import iso
from astraflow.protocol import limits
from astraflow.protocol.codec import BadFrame, decode, encode
from astraflow.protocol.events import CloseConnection, Conn, SendFrame
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.ledger import Ledger
from astraflow.scheduler.waits import STALL_S, Undecided, decided, refusal
from astraflow.store.rows import Changes, TenantEvent
from astraflow.store.store import Claim, Store

__all__ = ["Connection", "Gauge", "Reached", "Writer", "pass_by"]

_log: Final = logging.getLogger(__name__)

READ_BACK_S: Final = 0.5
"""Between two tries to learn the outcome of a commit."""


class Connection(Protocol):
    """One socket of a worker."""

    def send(self, frames: list[bytes]) -> None:
        """Write these text messages, in order, in one go."""

    def close(self, code: int) -> None:
        """Close when what was sent is written."""


class Gauge(Protocol):
    """Who wants to know how the writer does."""

    def committed(self, seconds: float, batch: Batch, view: View) -> None: ...
    def frames(self, tenant: str, received_bytes: int, sent_bytes: int) -> None: ...
    def lagged(self, seconds: float) -> None:
        """So late did a timer of the engine come."""

    def stored(self, size_bytes: int) -> None: ...
    def forget(self) -> None: ...


Reached = Callable[[str], None]
"""Told when the writer passes a named point, for tests that end the process just there."""


def pass_by(point: str) -> None:
    """Outside of tests nothing happens at the named points."""


class Writer:
    """One engine, from its making to its end. Use from one asyncio loop."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        claim: Claim,
        ledger: Ledger,
        feed: Feed,
        clock: Clock,
        gauge: Gauge,
        reached: Reached = pass_by,
    ) -> None:
        self.engine = engine
        self.ledger = ledger
        self.feed = feed
        self._store = store
        self._claim = claim
        self._clock = clock
        self._gauge = gauge
        self._reached = reached
        self._loop = asyncio.get_running_loop()
        self._connections: dict[Conn, Connection] = {}
        self._opened = 0
        self._commits = 0
        self._commit_seconds = 0.0
        self._bytes_in: dict[str, int] = {}
        self._waiting: asyncio.Future[None] | None = None
        self._is_stirred = True
        self._committing_since: float | None = None
        self._is_speaking = False
        self._asked: dict[
            asyncio.Future[str], None
        ] = {}  # in order: a simulated world is repeatable
        self._barriers: list[asyncio.Future[None]] = []
        self._passing: list[asyncio.Future[None]] = []  # those of the turn under way
        self._alarm = Alarm(clock, self._stir)
        self._is_over = False

    # -- what arrives -----------------------------------------------------------------------

    def opened(self, connection: Connection, certificate: object = None) -> str:
        """A worker has connected; returns the name of the connection for `received` and `closed`."""
        self._check_serving()
        self._opened += 1
        conn = f"c{self._opened}"
        self._connections[conn] = connection
        self.engine.opened(conn, self._clock.now(), certificate)
        self._stir()
        return conn

    def received(self, conn: str, raw: bytes) -> None:
        """A text message."""
        if conn not in self._connections:
            return  # closed by us: what was still on its way does not count
        clock = self._clock
        try:
            envelope = decode(raw)
        except BadFrame as error:
            self.engine.bad_frame(conn, error, clock.now(), clock.wall_ms())
        else:
            tenant = envelope.tenant
            self._bytes_in[tenant] = self._bytes_in.get(tenant, 0) + len(raw)
            self.engine.receive(conn, envelope, clock.now(), clock.wall_ms())
        self._stir()

    def refuse(self, conn: str, error: BadFrame) -> None:
        """Something that cannot be a frame: binary, or larger than allowed."""
        if conn in self._connections:
            self.engine.bad_frame(conn, error, self._clock.now(), self._clock.wall_ms())
            self._stir()

    def closed(self, conn: str) -> None:
        if self._connections.pop(conn, None) is not None:
            self.engine.closed(conn, self._clock.now(), self._clock.wall_ms())
            self._stir()

    async def submit(self, request: Callable[[object], SubmitRun]) -> tuple[str, int]:
        """Take a run in; returns its id, and when it was taken in, once that is durable (P1)."""
        at = self._clock.wall_ms()
        return await self._ask(self.engine.submit, request, at), at

    async def cancel(self, request: Callable[[object], CancelRun]) -> str:
        return await self._ask(self.engine.cancel, request, self._clock.wall_ms())

    async def _ask(self, method: Any, request: Callable[[object], Any], at: int) -> str:
        self._check_serving()
        if self.silent_s() > STALL_S:
            raise refusal("the store does not answer; nothing was taken in")
        answer: asyncio.Future[str] = self._loop.create_future()
        self._asked[answer] = None
        answer.add_done_callback(self._asked.pop)
        method(request(answer), self._clock.now(), at)
        self._stir()
        return await decided(answer)

    def act(self, change: Callable[[float, int], None]) -> None:
        """Let the engine be changed by a command of an operator."""
        self._check_serving()
        change(self._clock.now(), self._clock.wall_ms())
        self._stir()

    async def barrier(self) -> None:
        """Wait until everything that is decided now is durable, so that it may be shown."""
        self._check_serving()
        if self._committing_since is None and self.engine.view.batch.is_empty:
            return
        passed: asyncio.Future[None] = self._loop.create_future()
        self._barriers.append(passed)
        self._stir()
        await decided(passed)

    def silent_s(self) -> float:
        """How long the commit that is under way has not been answered; 0 if there is none."""
        since = self._committing_since
        return 0.0 if since is None else self._clock.now() - since

    def _check_serving(self) -> None:
        """An engine whose commit failed knows things that never became true: nothing of it may be shown or changed."""
        if self._is_over:
            raise refusal("the scheduler starts over; nothing was taken in")

    # -- the loop ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until the store fails; the engine is of no use after that (engine Rule 4).

        Raises:
            StoreError: as the store gave it.
        """
        try:
            while True:
                await self._stirred()
                self._tick()
                await self._turn()
        finally:
            self._end()

    async def _turn(self) -> None:
        clock = self._clock
        self._passing, self._barriers = self._barriers, []
        batch = self.engine.take_batch(clock.now(), clock.wall_ms())
        if batch is not None:
            if batch.facts or batch.notices:
                changes = self.ledger.changes_of(batch, self.engine.view)
                self._reached("before-commit")
                await self._commit(changes)
                self._reached("after-commit")
                self._gauge.committed(self._commit_seconds, batch, self.engine.view)
                self.feed.publish(changes.pages, changes.events)
                _log_workers(changes.events)
            self.engine.committed(batch, clock.now(), clock.wall_ms())
            self._is_stirred = True  # what was committed may allow more to be decided
        self._speak()
        for passed in self._passing:
            if not passed.done():
                passed.set_result(None)
        self._alarm.set(self.engine.deadline())

    async def _commit(self, changes: Changes) -> None:
        self._commits += 1
        self._committing_since = started = self._clock.now()
        try:
            await self._store.commit(self._claim, self._commits, changes)
        except errors.OutcomeUnknown:
            # R16: "resolved by reading back … never by guessing".
            if not await self._read_back():
                raise
        finally:
            self._committing_since = None
        self._commit_seconds = self._clock.now() - started

    async def _read_back(self) -> bool:
        while True:
            try:
                return await self._store.is_committed(self._claim, self._commits)
            except errors.StoreError as error:
                if error.code is not errors.STORE_UNAVAILABLE:
                    raise
                await asyncio.sleep(READ_BACK_S)

    def _tick(self) -> None:
        deadline = self.engine.deadline()
        now = self._clock.now()
        if deadline is not None and deadline <= now:
            self._gauge.lagged(now - deadline)
            self.engine.tick(now, self._clock.wall_ms())

    def _stir(self) -> None:
        """Something arrived: wake the writer, or, while it waits for the disk, say what may be said."""
        self._is_stirred = True
        waiting = self._waiting
        if waiting is not None:
            if not waiting.done():
                waiting.set_result(None)
        elif not self._is_speaking:
            self._is_speaking = True
            self._loop.call_soon(self._speak)

    async def _stirred(self) -> None:
        if not self._is_stirred:
            self._waiting = self._loop.create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        self._is_stirred = False

    # -- speaking ---------------------------------------------------------------------------

    def _speak(self) -> None:
        self._is_speaking = False
        output = self.engine.take_output()
        if output:
            self._reached("before-send")
            self._send(output)
            self._reached("after-send")
        for answer in self.engine.take_answers():
            _give(answer)

    def _send(self, output: list[SendFrame | CloseConnection]) -> None:
        ts = iso(self._clock.wall_ms())
        frames: dict[Conn, list[bytes]] = {}
        bytes_out: dict[str, int] = {}
        for item in output:
            if isinstance(item, SendFrame):
                raw = encode(item.envelope, ts)
                tenant = item.envelope.tenant
                bytes_out[tenant] = bytes_out.get(tenant, 0) + len(raw)
                frames.setdefault(item.conn, []).append(raw)
                continue
            connection = self._connections.pop(item.conn, None)
            if connection is not None:
                connection.send(frames.pop(item.conn, []))
                connection.close(item.code)
        for conn, batch in frames.items():
            connection = self._connections.get(conn)
            if connection is not None:
                connection.send(batch)
        bytes_in, self._bytes_in = self._bytes_in, {}
        for tenant in bytes_in.keys() | bytes_out.keys():
            self._gauge.frames(tenant, bytes_in.get(tenant, 0), bytes_out.get(tenant, 0))

    def _end(self) -> None:
        self._is_over = True
        self._alarm.cancel()
        for connection in self._connections.values():
            connection.close(limits.CLOSE_TRY_LATER)
        self._connections.clear()
        unanswered: list[asyncio.Future[Any]] = [*self._passing, *self._barriers, *self._asked]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(Undecided("the scheduler starts over"))
        self.feed.end()


def _log_workers(events: list[TenantEvent]) -> None:
    for event in events:
        if event.type.startswith("worker."):
            worker = msgspec.json.decode(event.body)
            level = logging.WARNING if event.type == "worker.lost" else logging.INFO
            said = {"tenant": event.tenant, "worker": worker["workerId"]}
            _log.log(level, "worker %s is %s", worker["name"], worker["status"], extra=said)


def _give(answer: Answer) -> None:
    future = answer.token
    assert isinstance(future, asyncio.Future)
    if future.done():
        return  # the caller has gone away
    if answer.error is not None:
        future.set_exception(answer.error)  # type: ignore[arg-type]
    else:
        future.set_result(answer.run_id)
