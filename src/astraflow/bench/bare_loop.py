"""The bare loop: the least that can honestly be called the same work.

A server and a worker, two processes, the same socket library, the same frames, the same rows in SQLite with a flush at
every commit, the lease committed before its frame leaves. No session, no window, no plan, no state machine, no other
tenant, no host process. What the system costs beyond this is what its promises cost.

`python -m astraflow.bench.bare_loop worker URL` is its other end.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop
from picows import (
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    ws_connect,
    ws_create_server,
)

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.websocket import text_head
from astraflow.core.protocol.wire import Envelope, Sender
from astraflow.core.runs.facts import AttemptStarted, TaskLeased, TaskSucceeded, encode_fact

IN_FLIGHT = 64
AT = 1_800_000_000_000
RUN = RunId("01J8ZQ5T9GQ4X7V2N3M1K0HABC")
TS = "2026-01-15T10:00:00.000Z"


class _DispatchFrame(Envelope, frozen=True):
    payload: business.Dispatch


class _ResultFrame(Envelope, frozen=True):
    payload: business.Result


_encode = msgspec.json.Encoder().encode
_decode_dispatch = msgspec.json.Decoder(_DispatchFrame).decode
_decode_result = msgspec.json.Decoder(_ResultFrame).decode


class _Scheduler(WSListener):
    """Runs `count` nodes, `in_flight` at a time; one transaction for all that came in one turn."""

    def __init__(self, database: Path) -> None:
        self.connection = sqlite3.connect(database, isolation_level=None)
        self.connection.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE shards (shard INTEGER PRIMARY KEY, epoch INTEGER, number INTEGER);"
            "INSERT INTO shards VALUES (0, 1, 0);"
            "CREATE TABLE pages (run TEXT, first INTEGER, last INTEGER, body BLOB,"
            " PRIMARY KEY (run, first)) WITHOUT ROWID;"
        )
        self.loop = asyncio.get_running_loop()
        self.connected = asyncio.Event()
        self.over = asyncio.Event()
        self.transport: WSTransport | None = None
        self.commits = 0
        self.events = 0
        self.count = self.next = self.done = 0
        self.arrived: list[business.Result] = []
        self.is_turning = False

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport
        self.connected.set()

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        self.arrived.append(_decode_result(frame.get_payload_as_bytes()).payload)
        if not self.is_turning:
            self.is_turning = True
            self.loop.call_soon(self.turn)

    async def run(self, count: int, in_flight: int) -> None:
        self.count, self.next, self.done = count, 0, 0
        self.over.clear()
        self.lease(min(in_flight, count), [])
        await self.over.wait()

    def turn(self) -> None:
        self.is_turning = False
        arrived, self.arrived = self.arrived, []
        self.done += len(arrived)
        lines = []
        for result in arrived:
            task = int(result.task_id.rpartition(".")[2])
            lines.append(encode_fact(AttemptStarted(AT, task, 1)))
            lines.append(encode_fact(TaskSucceeded(AT, task, 1, result.result, (), 1)))
        self.lease(min(len(arrived), self.count - self.next), lines)
        if self.done == self.count:
            self.over.set()

    def lease(self, number: int, lines: list[bytes]) -> None:
        tasks = range(self.next, self.next + number)
        self.next += number
        lines += (encode_fact(TaskLeased(AT, task, 1, "w1", 1, 30_000)) for task in tasks)
        self.commit(lines)
        assert self.transport is not None
        pieces: list[bytes] = []
        for task in tasks:
            frame = _encode(_dispatch(f"{RUN}.{task}"))
            pieces += (text_head(len(frame)), frame)
        self.transport.underlying_transport.write(b"".join(pieces))

    def commit(self, lines: list[bytes]) -> None:
        self.commits += 1
        first, self.events = self.events + 1, self.events + len(lines)
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        execute("UPDATE shards SET number = ? WHERE shard = 0 AND epoch = 1", (self.commits,))
        execute(
            "INSERT INTO pages VALUES (?, ?, ?, ?)", (RUN, first, self.events, b"\n".join(lines))
        )
        execute("COMMIT")


class _Worker(WSListener):
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.results: list[bytes] = []

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        dispatch = _decode_dispatch(frame.get_payload_as_bytes()).payload
        result = business.Result(
            dispatch.run_id, dispatch.task_id, dispatch.attempt, "SUCCEEDED", dispatch.parameters
        )
        if not self.results:
            self.loop.call_soon(self.send, transport)
        self.results.append(_encode(_envelope(business.RESULT, "worker", dispatch.task_id, result)))

    def send(self, transport: WSTransport) -> None:
        results, self.results = self.results, []
        for result in results:
            transport.send(WSMsgType.TEXT, result)


def _envelope(kind: str, role: str, task_id: str, payload: object) -> Envelope:
    sender = Sender(role, "one")
    return Envelope(kind, RUN, TS, "default", sender, payload, task_id, 1)


def _dispatch(task_id: str) -> Envelope:
    dispatch = business.Dispatch(
        RUN, TaskId(task_id), 1, 0, "2b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164", "core.noop",
        business.PackageId("core", "1.0.0"), msgspec.Raw(b"{}"), business.LeaseGrant(30_000, RUN),
    )  # fmt: skip
    return _envelope(business.DISPATCH, "scheduler", task_id, dispatch)


async def _work(url: str) -> None:
    transport, _ = await ws_connect(_Worker, url)
    await transport.wait_disconnected()


def _start_worker(url: str) -> subprocess.Popen[bytes]:
    # Our own program, with an address that we made.
    return subprocess.Popen([sys.executable, "-m", "astraflow.bench.bare_loop", "worker", url])  # noqa: S603


async def _measure(nodes: int, steps: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        scheduler = _Scheduler(Path(folder) / "bare.db")

        def listen(request: WSUpgradeRequest) -> WSListener:
            return scheduler

        server = await ws_create_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        url = f"ws://127.0.0.1:{port}/"
        worker = _start_worker(url)
        try:
            await scheduler.connected.wait()
            await scheduler.run(200, IN_FLIGHT)  # warm
            started = perf_counter()
            await scheduler.run(nodes, IN_FLIGHT)
            fan_out = perf_counter() - started
            started = perf_counter()
            await scheduler.run(steps, 1)
            chain = perf_counter() - started
        finally:
            worker.kill()
            worker.wait()
            server.close()
            scheduler.connection.close()
    return nodes / fan_out, chain / steps * 1000


def measure(nodes: int = 5_000, steps: int = 200) -> tuple[float, float]:
    """Nodes a second in a fan-out, and milliseconds a step in a chain."""
    return uvloop.run(_measure(nodes, steps))


if __name__ == "__main__":
    uvloop.run(_work(sys.argv[2]))
