"""Workers that are known over HTTP: `POST /api/workers/register` and `/heartbeat` (PROTOCOL §8).

They are in the same table as all others, because each is a session of the gateway whose connection ends here: silence
makes it offline by the same numbers, and its credential ends it. Nothing is dispatched to it: its packages are
`reported`, not installed. What a scheduler orders of it is refused, because nobody listens.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import codec, control, limits
from astraflow.core.protocol.wire import AckInfo, Envelope, Sender
from astraflow.core.timestamps import iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.clock import Clock
    from astraflow.core.ids import IdSource
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.writer import Writer

PACKAGE_STATUS: Final = "reported"
ANSWER_WAIT_S: Final = 10.0
_NOTHING_ELSE: Final = "a worker that is known over HTTP takes no commands"


class ReportedWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself when it registers."""

    tenant: str
    worker_id: str
    token: str
    name: str
    version: str
    hostname: str
    max_parallel: int
    packages: Sequence[tuple[str, str]]
    labels: dict[str, str]


class _ReportedLine:
    """The worker's end of a session, as the writer's `Connection`."""

    def __init__(self, tenant: str, worker_id: str, ids: IdSource, clock: Clock) -> None:
        self._tenant = tenant
        self._sender = Sender("worker", worker_id)
        self._ids = ids
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._writer: Writer | None = None
        self._conn = ""
        self._answers: dict[str, asyncio.Future[None]] = {}
        self._refusal: errors.Refused | None = None
        self.is_closed = False

    def open(self, writer: Writer) -> None:
        self._writer = writer
        self._conn = writer.opened(self)

    async def ask(self, frame_type: str, payload: object) -> None:
        """Send a frame and wait for its ack. Raises: Refused; Unavailable, if none comes."""
        frame_id = self._ids.new()
        answer: asyncio.Future[None] = self._loop.create_future()
        self._answers[frame_id] = answer
        self._tell(frame_type, payload, frame_id)
        try:
            async with asyncio.timeout(ANSWER_WAIT_S):
                await answer
        except TimeoutError as error:
            message = "the scheduler does not answer now"
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, message) from error
        finally:
            self._answers.pop(frame_id, None)

    def _tell(self, frame_type: str, payload: object, frame_id: str | None = None) -> None:
        ack = None if frame_id is None else AckInfo(True)
        frame = Envelope(
            frame_type,
            frame_id or self._ids.new(),
            "",
            self._tenant,
            self._sender,
            payload,
            ack=ack,
        )
        assert self._writer is not None
        self._writer.received(self._conn, codec.encode(frame, iso(self._clock.wall_ms())))

    # -- what the writer calls ----------------------------------------------------------------

    def send(self, frames: list[bytes]) -> None:
        for raw in frames:
            self._take(codec.decode(raw))

    def _take(self, frame: Envelope) -> None:
        payload = frame.payload
        if isinstance(payload, control.ControlAck):
            answer = self._answers.get(payload.for_ or "")
            if answer is not None and not answer.done():
                answer.set_result(None)
        elif isinstance(payload, control.Reset):
            self._refuse(errors.Refused(errors.SESSION_DENIED, f"{payload.code}: {payload.reason}"))
        elif isinstance(payload, control.ControlError):
            answer = self._answers.get(payload.for_)
            if answer is not None and not answer.done():
                pointer = (payload.pointer or "").removeprefix("/payload")
                refused = errors.Refused(errors.REQUEST_INVALID, payload.message, pointer=pointer)
                answer.set_exception(refused)
        elif frame.seq is not None:
            # In the next turn: the writer is sending.
            self._loop.call_soon(self._turn_down, frame)

    def _turn_down(self, frame: Envelope) -> None:
        if not self.is_closed:
            unknown = errors.CMD_UNKNOWN.code
            self._tell(control.ERROR, control.ControlError(frame.id, unknown, _NOTHING_ELSE))
            self._tell(control.ACK, control.ControlAck(None, frame.seq, "0", limits.WINDOW))

    def _refuse(self, refusal: errors.Refused) -> None:
        self._refusal = refusal
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(refusal)

    def room(self) -> int:
        return limits.MAX_OWED_BYTES

    def peer(self) -> str:
        return "http"

    def admit(self) -> None:
        pass

    def close(self, code: int) -> None:
        self.is_closed = True
        if self._refusal is None:
            self._refuse(errors.Refused(errors.SESSION_DENIED, "the session was closed"))


class ReportedWorkers:
    """The workers that have registered over HTTP with this scheduler. Use from its loop."""

    def __init__(self, current: Current, ids: IdSource, clock: Clock) -> None:
        self._current = current
        self._ids = ids
        self._clock = clock
        self._lines: dict[tuple[str, str], _ReportedLine] = {}

    async def register(self, worker: ReportedWorker) -> None:
        """Make a worker known, or replace what it said before.

        Raises:
            Refused: its id is another's, or it says what no worker can say.
        """
        key = (worker.tenant, worker.worker_id)
        line = self._open_line(key)
        if line is None:
            line = _ReportedLine(*key, self._ids, self._clock)
            line.open(self._current.serving.writer)
            await line.ask(control.HANDSHAKE, _handshake_of(worker))
            self._forget_closed()
            self._lines[key] = line
        await line.ask(control.REGISTER, _register_of(worker))

    async def heartbeat(self, tenant: str, worker_id: str, heartbeat: control.Heartbeat) -> None:
        """Raises: NotFound, if the worker has to register first; Refused."""
        line = self._open_line((tenant, worker_id))
        unknown = errors.NotFound(
            errors.WORKER_NOT_FOUND,
            f"no such worker has registered over HTTP: {worker_id[:64]}; register it",
        )
        if line is None:
            raise unknown
        try:
            await line.ask(control.HEARTBEAT, heartbeat)
        except errors.Refused as refused:
            # Its session ended while it asked: it was silent for too long, as others see already.
            if refused.code is errors.SESSION_DENIED and line.is_closed:
                raise unknown from refused
            raise

    def _open_line(self, key: tuple[str, str]) -> _ReportedLine | None:
        line = self._lines.get(key)
        return None if line is None or line.is_closed else line

    def _forget_closed(self) -> None:
        self._lines = {key: line for key, line in self._lines.items() if not line.is_closed}


def _handshake_of(worker: ReportedWorker) -> control.Handshake:
    about = control.HandshakeWorker(
        worker.worker_id, 0, worker.name, worker.version, worker.hostname
    )
    return control.Handshake(2, control.Auth("token", worker.token), about)


def _register_of(worker: ReportedWorker) -> control.Register:
    packages = tuple(
        control.RegisteredPackage(name, version, PACKAGE_STATUS)
        for name, version in worker.packages
    )
    concurrency = control.Concurrency(worker.max_parallel)
    return control.Register(
        control.Capabilities(concurrency), packages=packages, labels=worker.labels
    )
