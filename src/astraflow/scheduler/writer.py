"""The writer: the one task that owns an engine and its store. Commit, then speak.

Every input is fed to the engine at once. The writer takes the batch that has gathered, commits it in one transaction,
and only then performs its effects. While it waits for the disk the next batch gathers, so that a busy scheduler commits
in groups and an idle one at once. Only a batch that says nothing but that attempts have started waits a little
(`WAIT_S`).

Heartbeats are answered without the writer (PROTOCOL §5.4): effects that need no commit are performed in the same turn
of the loop, whether or not a commit is under way.

An engine that fails at an input is discarded like one whose commit failed, without performing its effects; the frame
that it failed at is remembered (`frame_quarantine.py`).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.engine.batch import Batch
from astraflow.core.engine.commands import CancelRun, KeepAudit, OperatorCommand, SubmitRun
from astraflow.core.engine.engine import Engine, InputFailed, SessionFailed
from astraflow.core.engine.lanes import TenantLanes
from astraflow.core.fleet.tenants import TenantRecord
from astraflow.core.ids import RunId
from astraflow.core.protocol import limits
from astraflow.core.protocol.bundles import decode_message
from astraflow.core.protocol.codec import BadFrame
from astraflow.core.protocol.events import Principal
from astraflow.core.protocol.wire import Envelope, Unreadable
from astraflow.core.runs.callbacks import Callback, CallbackAnswer
from astraflow.core.timestamps import iso
from astraflow.observe.audit_marks import mark_audited
from astraflow.observe.request_ids import current_request_id
from astraflow.scheduler.batch_log import BatchLog
from astraflow.scheduler.connections import Connection, Connections
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.frame_quarantine import FrameQuarantine, Key, key_of
from astraflow.scheduler.rejection_log import RejectionLog
from astraflow.scheduler.row_writer import RowWriter
from astraflow.scheduler.run_traces import RunTraces
from astraflow.scheduler.shell_effects import ShellEffects
from astraflow.scheduler.store_timeouts import STALL_TIMEOUT_S, Undecided, refusal, until_durable
from astraflow.store.rows import Changes, TenantEvent
from astraflow.store.store import Claim, Store
from astraflow.timer import WakeupTimer

_log: Final = logging.getLogger(__name__)

READ_BACK_S: Final = 0.5
"""Between two tries to learn the outcome of a commit."""


WAIT_S: Final = 0.005
"""So long may a batch of starts wait for what follows: a chain commits once for each step, not twice."""
LATE_S: Final = 0.05
"""A timer that comes so late comes after a stall of this process, in which it has read nothing."""
READ_TURNS: Final = 2
"""Turns of the loop before anything expires: what is readable is read."""
STALL_TURNS: Final = 8
"""After a stall all is read in them that a worker can have sent meanwhile: a window, its acks and heartbeats."""


class EngineFailed(Exception):
    """The engine failed, and it is not the store's fault: make another from what is stored."""

    def __init__(self, *, is_known: bool) -> None:
        super().__init__("the engine failed")
        self.is_known = is_known
        """Whether it is known at what, so that it will not happen again."""


class WriterGauge(Protocol):
    """Receives the measurements of the writer."""

    def committed(self, seconds: float, batch: Batch) -> None: ...
    def frames(self, tenant: str, received_bytes: int, sent_bytes: int) -> None: ...
    def lagged(self, seconds: float) -> None:
        """A timer of the engine fired so late."""

    def failed(self, kind: str) -> None:
        """A session, or a whole engine, was given up because of an error in handling its input."""

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
        rows: RowWriter,
        effects: ShellEffects,
        feed: Feed,
        clock: Clock,
        gauge: WriterGauge,
        reached: Reached = pass_by,
        quarantine: FrameQuarantine | None = None,
        traces: RunTraces | None = None,
    ) -> None:
        self.engine = engine
        self.rows = rows
        self._effects = effects
        self.feed = feed
        self._store = store
        self.claim = claim
        self._placing = f"placing/{claim.shard}"
        self._clock = clock
        self._gauge = gauge
        self._batch_log = BatchLog()
        self._traces = traces if traces is not None and traces.is_on else None
        self._reached = reached
        self._loop = asyncio.get_running_loop()
        # What is sent is not part of the request that woke the writer.
        self._context = contextvars.copy_context()
        self._rejections = RejectionLog()
        self._connections = Connections(
            gauge.frames, lambda peer, who: self._rejections.log(peer, who, clock.now())
        )
        self._quarantine = FrameQuarantine() if quarantine is None else quarantine
        self._inputs: list[Key] = []  # frames that went into the open batch
        self._held: deque[tuple[str, Envelope]] = deque()  # of which each is committed alone
        self._failure: EngineFailed | None = None
        self._commits = 0
        self._commit_seconds = 0.0
        self._waiting: asyncio.Future[None] | None = None
        self._has_work = True
        self._committing_since: float | None = None
        self._is_speaking = False
        self._asked: dict[
            asyncio.Future[Any], None
        ] = {}  # in order: a simulated world is repeatable
        self._barriers: list[asyncio.Future[None]] = []
        self._passing: list[asyncio.Future[None]] = []  # those of the turn under way
        self._due: float | None = clock.now()  # when the engine must tick, as of the last turn
        self._wait_until: float | None = None  # what is decided may wait until then
        self._timer = WakeupTimer(clock, self._wake)
        self._is_over = False

    # -- what arrives -----------------------------------------------------------------------

    def opened(self, connection: Connection, certificate: object = None) -> str:
        """A worker has connected; returns the name of the connection for `received` and `closed`."""
        self._check_serving()
        conn = self._connections.open(connection)
        self._let(lambda now, at: self.engine.opened(conn, now, certificate))
        return conn

    def received(self, conn: str, raw: bytes) -> int:
        """A text message; returns how many frames it has."""
        if conn not in self._connections:
            return 1  # closed by us: what was still on its way does not count
        try:
            frames = decode_message(raw)
        except BadFrame as error:
            self.refuse(conn, error)
            return 1
        self._connections.received(conn, frames, len(raw))
        for envelope in frames:
            if self._quarantine:
                self._judge(conn, envelope)
            else:
                self._take(conn, envelope)
        return len(frames)

    def refuse(self, conn: str, error: errors.AstraflowError) -> None:
        """Something that cannot be a frame: binary, or larger than allowed."""
        if conn in self._connections:
            self._let(lambda now, at: self.engine.bad_frame(conn, error, now, at))

    def revoke(self, is_over: Callable[[Principal], bool]) -> None:
        """End the sessions of workers whose credential is over."""
        self._let(lambda now, at: self.engine.revoke(is_over, now, at))

    def set_lanes(self, tenant: str, lanes: TenantLanes | None) -> None:
        """Which lanes a tenant has beside the one that is decided here."""
        self._let(lambda now, at: self.engine.set_lanes(tenant, lanes, now, at))

    def set_parked(self, is_parked: bool) -> None:
        """Whether nothing is placed here: the work of this shard has ended nodes."""
        if self.engine.is_parked != is_parked:
            self._let(lambda now, at: self.engine.set_parked(is_parked))

    def let_write(self, facts_version: int) -> None:
        """All nodes read facts up to this version."""
        if not self.engine.ask.may_write(facts_version):
            self.rows.let_write(facts_version)
            self._let(lambda now, at: self.engine.let_write(facts_version))

    def learn_tenant(self, record: TenantRecord) -> None:
        """The home of a tenant has stored this of it."""
        if self.engine.ask.tenant(record.tenant) != record:
            self._let(lambda now, at: self.engine.restore_tenant(record))

    def forget_want(self, package: tuple[str, str, str]) -> None:
        """A package that tasks waited for is there, or never will be."""
        self._let(lambda now, at: self.engine.forget_want(package))

    def send_away(self, is_strange: Callable[[str], bool]) -> None:
        """End the sessions of workers whose tenant is not decided here."""
        strange = {tenant for tenant in self._connections.admitted() if is_strange(tenant)}
        if strange:
            self._let(lambda now, at: self.engine.send_away(strange, now, at))

    def connected(self) -> dict[str, int]:
        """Open connections of workers, by tenant."""
        return self._connections.admitted()

    def drained(self, conn: str) -> None:
        """There is room again on a connection that had none."""
        self._connections.drained(conn, iso(self._clock.wall_ms()))

    def closed(self, conn: str) -> None:
        if self._connections.forget(conn):
            self._let(lambda now, at: self.engine.closed(conn, now, at))

    def _judge(self, conn: str, envelope: Envelope) -> None:
        """After a failure of an engine: check a frame against the quarantine before it is fed."""
        key = key_of(envelope)
        if self._quarantine.is_blocked(key[0], key[1], self._clock.now()):
            self.refuse(conn, errors.Unavailable(errors.INTERNAL, errors.INTERNAL.says))
        elif self._quarantine.is_refused(key):
            self._take(conn, _refused(envelope))
        elif self._quarantine.is_suspect(key):
            self._held.append((conn, envelope))
            self._wake()
        else:
            self._take(conn, envelope)

    def _take(self, conn: str, envelope: Envelope) -> None:
        """Feed a frame to the engine. An error costs only the session of its sender, if possible."""
        clock = self._clock
        if envelope.seq is not None:
            self._inputs.append(key_of(envelope))
        try:
            self.engine.receive(conn, envelope, clock.now(), clock.wall_ms())
        except SessionFailed:
            self._quarantine.refuse(key_of(envelope), clock.now())
            _log.exception("a session failed at a frame: %s", envelope.type, extra=_who(envelope))
            self._gauge.failed("session")
            self._let(lambda now, at: self.engine.abandon(conn, now, at))
        except Exception as error:
            self._fail(error)
        self._wake()

    def _let(self, change: Callable[[float, int], None]) -> None:
        """Feed the engine an input that no caller waits for."""
        try:
            change(self._clock.now(), self._clock.wall_ms())
        except Exception as error:
            self._fail(error)
        self._wake()

    def _fail(self, error: Exception) -> None:
        """The state of the engine may be half changed: nothing of it may be sent, shown or committed any more."""
        is_known = isinstance(error, InputFailed)
        if isinstance(error, InputFailed):
            if error.frame_id is not None:
                key = (error.tenant, error.worker, error.frame_id)
                self._quarantine.refuse(key, self._clock.now())
            else:
                self._quarantine.block(error.tenant, error.worker, self._clock.now())
        else:
            self._quarantine.suspect(self._inputs)
            is_known = bool(self._inputs)
        _log.error("the engine failed and is restored from the store: %s", error, exc_info=error)
        self._gauge.failed("engine")
        self._failure = self._failure or EngineFailed(is_known=is_known)
        self._is_over = True

    async def submit(self, request: Callable[[object], SubmitRun]) -> tuple[RunId, int]:
        """Accept a run; returns its id and when it was accepted, once that is durable (P1)."""
        at = self._clock.wall_ms()
        return await self._ask(self.engine.submit, request, at), at

    async def cancel(self, request: Callable[[object], CancelRun]) -> RunId:
        return await self._ask(self.engine.cancel, request, self._clock.wall_ms())

    async def callback(self, request: Callable[[object], Callback]) -> CallbackAnswer | None:
        """Decide a report of an HTTP worker; its answer, once that is durable. None: its run is not active.

        Raises: Conflict, as the contract says; Unavailable.
        """
        answer: asyncio.Future[CallbackAnswer] = self._expect_answer()
        is_active = False
        try:
            is_active = self.engine.callback(
                request(answer), self._clock.now(), self._clock.wall_ms()
            )
        except Exception as error:
            self._fail(error)
        self._wake()
        if not is_active and not self._is_over:
            answer.cancel()
            return None
        return await until_durable(answer)

    async def _ask(self, method: Any, request: Callable[[object], Any], at: int) -> RunId:
        answer: asyncio.Future[RunId] = self._expect_answer()
        try:
            method(request(answer), self._clock.now(), at)
        except Exception as error:
            self._fail(error)
        self._wake()
        return await until_durable(answer)

    def _expect_answer(self) -> asyncio.Future[Any]:
        """What a caller waits for; it fails if the engine does. Raises: Unavailable."""
        self._check_serving()
        if self.silent_s() > STALL_TIMEOUT_S:
            raise refusal("the store does not answer; the request was not accepted")
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._asked[answer] = None
        answer.add_done_callback(self._asked.pop)
        return answer

    def execute(self, command: OperatorCommand) -> None:
        """Have the engine decide a command of an operator. Raises: what it is refused with; Unavailable."""
        self._check_serving()
        request_id = current_request_id()
        if request_id:
            command = msgspec.structs.replace(command, corr=request_id)
        try:
            self.engine.execute(command, self._clock.now(), self._clock.wall_ms())
        except errors.AstraflowError:
            raise  # it is refused, and nothing has changed
        except Exception as error:
            self._fail(error)
            raise refusal("the scheduler is restarting; the request was not accepted") from error
        finally:
            self._wake()
        if command.action or isinstance(command, KeepAudit):
            mark_audited()

    async def barrier(self) -> None:
        """Wait until everything that is decided now is durable, so that it may be shown."""
        self._check_serving()
        if self._committing_since is None and not self.engine.has_decided:
            return
        passed: asyncio.Future[None] = self._loop.create_future()
        self._barriers.append(passed)
        self._wake()
        await until_durable(passed)

    def silent_s(self) -> float:
        """How long the commit that is under way has not been answered; 0 if there is none."""
        since = self._committing_since
        return 0.0 if since is None else self._clock.now() - since

    def _check_serving(self) -> None:
        """An engine whose commit failed knows things that never became true: nothing of it may be shown or changed."""
        if self._is_over:
            raise refusal("the scheduler is restarting; the request was not accepted")

    # -- the loop ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until the store or the engine fails; the engine is of no use after that (engine Rule 4).

        Raises:
            StoreError: as the store gave it.
            EngineFailed: it failed at an input, or the store could not take what it decided.
        """
        try:
            while True:
                await self._wait_for_work()
                await self._tick()
                self._check_whole()
                await self._turn()
        except EngineFailed:
            raise
        except errors.StoreError as error:
            if error.code is not errors.STORE_REFUSED:
                raise
            self._fail(error)
        except Exception as error:
            self._fail(error)
        finally:
            self._end()
        self._check_whole()

    async def _turn(self) -> None:
        if self._lets_wait():
            self._speak()
            self._set_timer()
            return
        self._passing, self._barriers = self._barriers, []
        decided = self._decide()
        if not self._held:
            await self._flush(decided)
        else:
            # Nothing is awaited between the two: what is decided now is of this one frame.
            conn, envelope = self._held.popleft()
            if conn in self._connections:
                self._take(conn, envelope)
            self._check_whole()
            alone = self._decide()
            await self._flush(decided)
            await self._flush(alone)
            self._quarantine.clear(key_of(envelope))
        self._speak()
        for passed in self._passing:
            if not passed.done():
                passed.set_result(None)
        self._set_timer()

    def _lets_wait(self) -> bool:
        """Whether to commit later what is decided: the results of attempts often follow soon on their starts."""
        now = self._clock.now()
        may_wait = self.engine.may_wait and not self._barriers and not self._held
        if may_wait and self._wait_until is None:
            self._wait_until = now + WAIT_S
        elif not may_wait or self._wait_until is None or now >= self._wait_until:
            self._wait_until = None
        return self._wait_until is not None

    def _set_timer(self) -> None:
        self._due = self.engine.deadline()
        self._timer.set(self._due)
        self._timer.set(self._wait_until)

    def _decide(self) -> _Decided:
        """What is to be committed now, as the rows that it is."""
        clock = self._clock
        if self.engine.will_place:
            self._reached(self._placing)
        batch = self.engine.take_batch(clock.now(), clock.wall_ms())
        changes = None
        if batch is not None and batch.has_facts:
            changes = self.rows.changes_of(batch)
        inputs, self._inputs = self._inputs, []
        return _Decided(batch, changes, inputs)

    async def _flush(self, decided: _Decided) -> None:
        """Commit, then perform the effects."""
        batch, changes = decided.batch, decided.changes
        if batch is None:
            return
        if changes is not None:
            self._reached("before-commit")
            try:
                await self._commit(changes)
            except errors.StoreError as error:
                if error.code is errors.STORE_REFUSED:
                    self._inputs = decided.inputs
                raise
            self._reached("after-commit")
            self._check_whole()
            self._gauge.committed(self._commit_seconds, batch)
            self._batch_log.committed(batch)
            if self._traces is not None:
                self._traces.committed(batch)
            accepted = batch.accepted_runs() if batch.submitted else ()
            self.feed.publish(changes.segments, changes.events, accepted)
            _log_workers(changes.events)
        self._effects.sign(batch.effects)
        self.engine.committed(batch, self._clock.now(), self._clock.wall_ms())
        self._has_work = self._has_work or self.engine.has_more

    def _check_whole(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _commit(self, changes: Changes) -> None:
        self._commits += 1
        self._committing_since = started = self._clock.now()
        try:
            await self._store.commit(self.claim, self._commits, changes)
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
                return await self._store.is_committed(self.claim, self._commits)
            except errors.StoreError as error:
                if error.code is not errors.STORE_UNAVAILABLE:
                    raise
                await asyncio.sleep(READ_BACK_S)

    async def _tick(self) -> None:
        now = self._clock.now()
        if self._due is None or self._due > now:
            return
        deadline = self.engine.deadline()
        if deadline is None or deadline > now:
            return  # what was due is over
        self._gauge.lagged(now - deadline)
        # PROTOCOL §5.4: "after its own stall a scheduler reads everything readable before it expires anything".
        for _ in range(STALL_TURNS if now - deadline > LATE_S else READ_TURNS):
            await asyncio.sleep(0)
        self._check_whole()
        self.engine.tick(self._clock.now(), self._clock.wall_ms())

    def _wake(self) -> None:
        """An input arrived: wake the writer, or, while it waits for the disk, perform what needs no commit."""
        self._has_work = True
        waiting = self._waiting
        if waiting is not None:
            if not waiting.done():
                waiting.set_result(None)
        elif not self._is_speaking:
            self._is_speaking = True
            self._loop.call_soon(self._speak, context=self._context)

    async def _wait_for_work(self) -> None:
        if not self._has_work:
            self._waiting = self._loop.create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        self._has_work = False

    # -- speaking ---------------------------------------------------------------------------

    def _speak(self) -> None:
        self._is_speaking = False
        if self._is_over:
            return
        output = self.engine.take_output()
        if output:
            self._reached("before-send")
            self._connections.perform(output, iso(self._clock.wall_ms()))
            self._reached("after-send")
        for effect in self.engine.take_shell_effects():
            self._effects.perform(effect)

    def _end(self) -> None:
        self._is_over = True
        self._timer.cancel()
        self._connections.close_all(limits.CLOSE_TRY_LATER)
        unanswered: list[asyncio.Future[Any]] = [*self._passing, *self._barriers, *self._asked]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(Undecided("the scheduler is restarting"))
        self.feed.pause()


class _Decided(msgspec.Struct, frozen=True):
    """A batch with its rows, and the frames that it came from."""

    batch: Batch | None
    changes: Changes | None
    inputs: list[Key]


def _refused(envelope: Envelope) -> Envelope:
    """The same frame, as one that cannot be read."""
    named = envelope.payload
    unreadable = Unreadable(
        errors.PROTOCOL_BAD_PAYLOAD,
        "/payload",
        "the scheduler failed at this frame",
        getattr(named, "task_id", None),
        getattr(named, "attempt", None),
    )
    return msgspec.structs.replace(envelope, payload=unreadable)


def _who(envelope: Envelope) -> dict[str, str]:
    return {"tenant": envelope.tenant, "worker": envelope.sender.id}


def _log_workers(events: list[TenantEvent]) -> None:
    for event in events:
        if event.type.startswith("worker."):
            worker = msgspec.json.decode(event.body)
            level = logging.WARNING if event.type == "worker.lost" else logging.INFO
            said = {"tenant": event.tenant, "worker": worker["workerId"]}
            _log.log(level, "worker %s is %s", worker["name"], worker["status"], extra=said)
