"""A scheduler and a worker as processes, and a client that costs little, for benchmarks of the whole."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec

TOKEN = "a token for benchmarks"  # noqa: S105 - opens a scheduler that lives for half a minute
_OF_ALL_THREADS = 2
"""The kind of a clock, in the lower bits of its id: `CPUCLOCK_SCHED` of Linux."""
_encode = msgspec.json.encode
_decode = msgspec.json.decode


def _node(**fields: Any) -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "type": "core.noop", "parameters": {}, **fields}


def _edge(source: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    return {"source": {"node": source["id"]}, "target": {"node": target["id"]}}


def fan_out(width: int) -> bytes:
    """One node, `width` after it, one after them."""
    first, last = _node(), _node()
    between = [_node() for _ in range(width)]
    edges = [_edge(first, one) for one in between] + [_edge(one, last) for one in between]
    return _request([first, *between, last], edges)


def chain(steps: int) -> bytes:
    nodes = [_node() for _ in range(steps)]
    return _request(nodes, [_edge(*pair) for pair in pairwise(nodes)])


def wide(count: int, **fields: Any) -> bytes:
    """Nodes that wait for nothing."""
    return _request([_node(**fields) for _ in range(count)], [])


def _request(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> bytes:
    workflow = {"id": str(uuid.uuid4()), "nodes": nodes, "edges": edges}
    return _encode({"workflow": workflow})


class System:
    """The processes of one installation, in a folder of its own."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are variables of the environment, beside those that are always set."""
        self.folder = folder
        self.settings = dict(settings or {})
        self.port = 0
        self.scheduler: subprocess.Popen[str] | None = None
        self.workers: list[subprocess.Popen[str]] = []

    def start_scheduler(self, *flags: str) -> None:
        self.scheduler = self._start(
            "server", "--port", str(self.port), "--data-dir", str(self.folder), *flags
        )
        assert self.scheduler.stdout is not None
        line = self.scheduler.stdout.readline()
        assert line.startswith("listening on "), line
        self.port = int(line.rpartition(":")[2])

    def start_worker(self, *flags: str) -> None:
        url = f"ws://127.0.0.1:{self.port}/ws/worker"
        folder = self.folder / f"worker{len(self.workers)}"
        self.workers.append(
            self._start("worker", "--scheduler-url", url, "--data-dir", str(folder), *flags)
        )

    def stop(self) -> None:
        """The workers first: they hand their results over, which they would wait for without a scheduler."""
        for processes in (self.workers, [self.scheduler]):
            for process in processes:
                if process is not None and process.poll() is None:
                    process.send_signal(signal.SIGTERM)
            for process in processes:
                if process is not None:
                    process.wait(30)
                    assert process.stdout is not None
                    process.stdout.close()

    def kill_scheduler(self) -> None:
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()
        assert self.scheduler.stdout is not None
        self.scheduler.stdout.close()

    def scheduler_cpu_s(self) -> float:
        """Processor time that the scheduler has used so far, all its threads together."""
        assert self.scheduler is not None
        return cpu_s(self.scheduler.pid)

    def command(self, *arguments: str) -> list[str]:
        """The program to start, with its arguments."""
        return [sys.executable, "-m", "astraflow", *arguments]

    def environment(self, *_arguments: str) -> dict[str, str]:
        """The environment of a process, by its arguments."""
        return {
            **os.environ,
            "ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": TOKEN,
            "ASTRA_WORKER_AUTH_TOKEN": TOKEN,
            "ASTRA_SCHEDULER_LOG_LEVEL": "warning",
            "ASTRA_WORKER_LOG_LEVEL": "warning",
            **self.settings,
        }

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        # Our own program, with arguments that we made.
        return subprocess.Popen(  # noqa: S603
            self.command(*arguments),
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment(*arguments),
        )


def cpu_s(pid: int) -> float:
    """Processor time that a process has used so far, all its threads together, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | _OF_ALL_THREADS)


SystemT = TypeVar("SystemT", bound=System)


@contextmanager
def running_as(system_type: type[SystemT], *worker_flags: str) -> Iterator[SystemT]:
    """A scheduler and a worker; stopped, and their folder removed, at the end."""
    with tempfile.TemporaryDirectory() as folder:
        system = system_type(Path(folder))
        system.start_scheduler()
        system.start_worker("--max-parallel", "64", *worker_flags)
        try:
            yield system
        finally:
            system.stop()


def running(*worker_flags: str) -> AbstractContextManager[System]:
    return running_as(System, *worker_flags)


class BenchClient:
    """Speaks HTTP/1.1 over kept connections, and reads no more of an answer than it must."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def request(self, method: str, path: str, body: bytes = b"", *headers: str) -> Any:
        reader, writer = self._idle.pop() if self._idle else await self._connect()
        writer.write(self._head(method, path, len(body), *headers) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        self._idle.append((reader, writer))
        assert head[9:10] == b"2", (head, answer)
        return _decode(answer)

    async def submit(self, request: bytes, *headers: str) -> str:
        answer = await self.request("POST", "/api/v1/runs", request, *headers)
        run_id: str = answer["runId"]
        return run_id

    @asynccontextmanager
    async def stream(self, query: str = "") -> AsyncIterator[AsyncIterator[tuple[str, bytes]]]:
        """Events as (type, data), of the tenant or of one run."""
        reader, writer = await self._connect()
        writer.write(self._head("GET", f"/api/v1/events{query}", 0))
        await reader.readuntil(b"\r\n\r\n")

        async def events() -> AsyncIterator[tuple[str, bytes]]:
            kind = ""
            while line := await reader.readline():
                if line.startswith(b"event: "):
                    kind = line[7:-1].decode()
                elif line.startswith(b"data: "):
                    yield kind, line[6:-1]

        try:
            yield events()
        finally:
            await _close(writer)

    async def ended(self, wanted: set[str], events: AsyncIterator[tuple[str, bytes]]) -> None:
        """Read a tenant's stream until these runs have ended; they must have succeeded."""
        async for kind, raw in events:
            if kind != "run.status":
                continue
            event = _decode(raw)["data"]
            if event["runId"] in wanted and event["status"] not in ("queued", "running"):
                assert event["status"] == "succeeded", event
                wanted.discard(event["runId"])
                if not wanted:
                    return

    async def close(self) -> None:
        for _, writer in self._idle:
            await _close(writer)
        self._idle.clear()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=64 * 1024**2)

    def _head(self, method: str, path: str, length: int, *headers: str) -> bytes:
        lines = (
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Authorization: Bearer {TOKEN}",
            "Content-Type: application/json",
            f"Content-Length: {length}",
        )
        return "\r\n".join((*lines, *headers, "", "")).encode()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
