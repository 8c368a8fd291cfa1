"""A real worker of a tenant with several lanes: its process's parts, its hosts, and sockets on the loopback interface.
The scheduler of each lane is a real gateway behind a WebSocket server, whose engine is the test.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport, ws_create_server

from astraflow.clock import SystemClock
from astraflow.config import WorkerSettings
from astraflow.config.secret import Secret
from astraflow.core import errors
from astraflow.core.ids import RunId, SessionId, TaskId
from astraflow.core.protocol import business, control
from astraflow.core.protocol.bundles import decode_message, encode_first
from astraflow.core.protocol.events import (
    Delivered,
    HeartbeatArrived,
    RegisterArrived,
    SendFrame,
    SlotsArrived,
)
from astraflow.core.protocol.gateway import Gateway
from astraflow.core.protocol.wire import Envelope
from astraflow.core.timestamps import iso
from astraflow.worker.lanes import WorkerLanes
from astraflow.worker.process import Surroundings, _open
from astraflow.worker.socket import connecting
from tests.unit.core.protocol.pair import GOOD_TOKEN, TENANT, CountedIds, Doors, PlainTokens

__all__ = ["LaneScheduler", "Rig", "lane_rig"]

WAIT_S = 60.0
"""For what must happen; it is never waited out unless something is broken."""
TTL_MS = 30_000


class _Connection(WSListener):
    """One connection of a worker."""

    def __init__(self, scheduler: LaneScheduler, conn: int) -> None:
        self.scheduler = scheduler
        self.conn = conn
        self.transport: WSTransport | None = None

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport
        self.scheduler.connected(self)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.CLOSE:
            transport.send_close(WSCloseCode.OK)
            transport.disconnect()
        elif frame.msg_type == WSMsgType.TEXT:
            self.scheduler.received(self.conn, frame.get_payload_as_bytes())

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self.scheduler.disconnected(self.conn)


class LaneScheduler:
    """The scheduler of one lane. Registers are accepted, results committed and heartbeats answered; slots are
    remembered, and answered when the test says so."""

    def __init__(self, lane: int, changed: asyncio.Event) -> None:
        self.lane = lane
        self.url = ""
        self.slots: list[int] = []
        self.registers: list[control.Register] = []
        self.heartbeats: list[control.Heartbeat] = []
        self.results: dict[str, business.Result] = {}
        self.frames: list[Any] = []
        self.answers_slots = True
        self.answers_heartbeats = True
        self.stops_all = False
        self.resumes = 0
        self.handshakes = 0
        self._unanswered: list[tuple[SessionId, str]] = []
        self._since = ""
        self._clock = SystemClock()
        self._changed = changed
        self._connections: dict[int, _Connection] = {}
        self._conns = 0
        self._worker = ""
        self._timer: asyncio.TimerHandle | None = None
        self.gateway = Gateway(
            scheduler_id=f"sched-{lane}",
            ids=CountedIds(str(lane + 1)),
            rng=Random(lane),
            authenticate=Doors(),
            tokens=PlainTokens(),
        )
        self.gateway.serve_lane(TENANT, lane)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        def listen(request: object) -> WSListener:
            self._conns += 1
            return _Connection(self, self._conns)

        server = await ws_create_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}/ws/worker"
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for one in self._connections.values():
                assert one.transport is not None
                one.transport.disconnect()
            server.close()
            await server.wait_closed()

    # -- what a test does ---------------------------------------------------------------------

    @property
    def session_id(self) -> SessionId:
        found = self.gateway.session_of(TENANT, self._worker)
        assert found is not None
        return SessionId(found)

    def tell(self, frame_type: str, payload: object) -> None:
        """Send a frame without a number."""
        assert self.gateway.tell(self.session_id, frame_type, payload, self._now)
        self._step()

    def hungry(self, tasks: int, runs: int = 1) -> None:
        self.tell(control.HUNGER, control.Hunger(tasks, runs))

    def lanes(self, *others: LaneScheduler) -> None:
        places = tuple(control.LanePlace(one.lane, one.url) for one in others)
        self.tell(control.LANES, control.Lanes(places))

    def dispatch(self, task: str, node_type: str = "core.noop", **parameters: object) -> None:
        made = business.Dispatch(
            RunId(f"run-{self.lane}"),
            TaskId(task),
            1,
            0,
            "n",
            node_type,
            business.PackageId("core", "1.0.0"),
            msgspec.Raw(msgspec.json.encode(parameters)),
            business.LeaseGrant(TTL_MS, self._since),
        )
        self.gateway.send(self.session_id, business.DISPATCH, made, made.task_id, self._now)
        self._step()

    def send(self, frame_type: str, payload: object, corr: str | None = None) -> None:
        self.gateway.send(self.session_id, frame_type, payload, corr, self._now)
        self._step()

    def drain(self) -> None:
        self.gateway.drain(self.session_id, "enough", self._now)
        self._step()

    def answer_slots(self) -> None:
        """Answer what was not answered yet."""
        for session_id, frame_id in self._unanswered:
            self.gateway.answer(session_id, frame_id, self._now)
        self._unanswered.clear()
        self._step()

    def cut(self) -> None:
        """Break the connection; the session can go on."""
        for one in list(self._connections.values()):
            assert one.transport is not None
            one.transport.disconnect()

    def end(self, code: errors.Code = errors.SESSION_UNKNOWN, location: str | None = None) -> None:
        """End the session, as a scheduler that has started again."""
        self.gateway.end(self.session_id, code, self._now, location=location)
        self._step()

    @property
    def told_slots(self) -> int | None:
        """What the worker has said last in this session."""
        return self.slots[-1] if self.slots else self.registers[-1].slots

    # -- what the connections say -------------------------------------------------------------

    def connected(self, connection: _Connection) -> None:
        self._connections[connection.conn] = connection
        self.gateway.opened(connection.conn, self._now)
        self._step()

    def received(self, conn: int, raw: bytes) -> None:
        for envelope in decode_message(raw):
            self.resumes += isinstance(envelope.payload, control.Resume)
            self.handshakes += isinstance(envelope.payload, control.Handshake)
            self._worker = envelope.sender.id
            self.gateway.feed(conn, envelope, self._now, self._wall)
        self._step()

    def disconnected(self, conn: int) -> None:
        self._connections.pop(conn, None)
        self.gateway.closed(conn, self._now)
        self._step()

    # -- inside -------------------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return self._clock.now()

    @property
    def _wall(self) -> float:
        return self._clock.wall_ms() / 1000

    def _step(self) -> None:
        while events := self.gateway.take_events():
            for event in events:
                self._on_event(event)
        self._put()
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.gateway.deadline()
        if deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, deadline - self._now), self._on_timer)
        self._changed.set()

    def _on_timer(self) -> None:
        self.gateway.tick(self._now, self._wall)
        self._step()

    def _on_event(self, event: object) -> None:
        if isinstance(event, RegisterArrived):
            self.registers.append(event.register)
            self._since = event.frame_id
            self.gateway.accept(event.session_id, self._now, self._wall)
        elif isinstance(event, HeartbeatArrived):
            self.heartbeats.append(event.heartbeat)
            if self.answers_heartbeats:
                self._since = event.frame_id
                stop = event.heartbeat.attempts if self.stops_all else ()
                self.gateway.answer_heartbeat(event.session_id, event.frame_id, stop, self._now)
        elif isinstance(event, SlotsArrived):
            self.slots.append(event.slots)
            self._unanswered.append((event.session_id, event.frame_id))
            if self.answers_slots:
                self.answer_slots()
        elif isinstance(event, Delivered):
            payload = event.envelope.payload
            self.frames.append(payload)
            if isinstance(payload, business.Result):
                self.results[payload.task_id] = payload
            self.gateway.committed(event.session_id, (event.seq,))

    def _put(self) -> None:
        ts = iso(self._clock.wall_ms())
        for item in self.gateway.take_output():
            assert isinstance(item.conn, int)
            connection = self._connections.get(item.conn)
            if connection is None or connection.transport is None:
                continue
            if isinstance(item, SendFrame):
                frames: deque[Envelope] = deque([item.envelope])
                connection.transport.send(
                    WSMsgType.TEXT, encode_first(frames, ts, bundled=False)[0]
                )
            else:
                connection.transport.send_close(WSCloseCode(item.code))
                connection.transport.disconnect()


class Rig:
    """The worker, the schedulers of its lanes, and handlers that wait until they are let go."""

    def __init__(self, folder: Path, max_parallel: int, lanes: int) -> None:
        self.folder = folder
        self.max_parallel = max_parallel
        self.changed = asyncio.Event()
        self.schedulers = [LaneScheduler(lane, self.changed) for lane in range(lanes)]
        self.worker: WorkerLanes
        self.code: int | None = None

    @property
    def home(self) -> LaneScheduler:
        return self.schedulers[0]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def exit_code(self) -> int | None:
        """Of the worker, when it has ended."""
        await self.until(lambda: self.code is not None)
        return self.code

    async def open_lanes(self) -> None:
        """All lanes are there, and have equal shares."""
        await self.until(lambda: self.home.heartbeats)
        self.home.lanes(*self.schedulers[1:])
        await self.until(lambda: all(one.heartbeats for one in self.schedulers))

    def hold(self, scheduler: LaneScheduler, task: str) -> None:
        """Dispatch an attempt that says when it has begun, and then waits."""
        for name in ("begun", "end"):
            os.mkfifo(self.folder / f"{task}.{name}")
        code = (
            "import asyncio\n"
            "def wait(path):\n"
            "    open(path + '.begun', 'w').close()\n"
            "    open(path + '.end').close()\n"
            "async def main(path):\n"
            "    await asyncio.to_thread(wait, path)\n"
            "    import os\n"
            "    return os.getpid()\n"
        )
        inputs = {"path": str(self.folder / task)}
        scheduler.dispatch(task, "core.python", code=code, inputs=inputs)

    async def begun(self, task: str) -> None:
        """Wait until a held attempt runs."""
        async with asyncio.timeout(WAIT_S):
            await asyncio.to_thread(self._meet, task, "begun", os.O_RDONLY)

    async def let_go(self, task: str) -> None:
        """Let a held attempt that runs end."""
        async with asyncio.timeout(WAIT_S):
            await asyncio.to_thread(self._meet, task, "end", os.O_WRONLY)

    def _meet(self, task: str, name: str, flags: int) -> None:
        os.close(os.open(self.folder / f"{task}.{name}", flags))


@asynccontextmanager
async def lane_rig(folder: Path, *, max_parallel: int = 4, lanes: int = 2) -> AsyncIterator[Rig]:
    rig = Rig(folder, max_parallel, lanes)

    @contextmanager
    def controlled(worker: WorkerLanes) -> Iterator[None]:
        rig.worker = worker
        rig.changed.set()
        yield

    async with AsyncExitStack() as stack:
        for one in rig.schedulers:
            await stack.enter_async_context(one.serving())
        settings = WorkerSettings(
            scheduler_ws_url=(rig.home.url,),
            auth_token=Secret(GOOD_TOKEN),
            tenant=TENANT,
            data_dir=folder / "worker",
            concurrency_max_parallel=max_parallel,
        )
        surroundings = Surroundings(lambda tls: connecting(), controlled, renews_token=False)

        async def work() -> None:
            rig.code = await _open(settings, SystemClock(), surroundings)
            rig.changed.set()

        working = asyncio.create_task(work())
        try:
            yield rig
        finally:
            if not working.done():
                rig.worker.end(0, "the test is over")
            async with asyncio.timeout(WAIT_S):
                await working
