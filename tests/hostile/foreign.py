"""A worker made from the documents alone: bytes on a socket, the standard library, nothing of the product."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.definitions import node, workflow
from tests.processes.rest import TOKEN
from tests.rawsocket import CLOSE, TEXT, RawSocket, frame, hello, masked, new_id, upgrade_request

__all__ = ["NODE", "Flood", "Foreign", "echo", "succeed", "working"]

NODE = "3f2b6d1e-7c0a-4d65-9a54-0d5f6a1c2b3e"


def echo(value: Any = "x") -> dict[str, Any]:
    """A workflow of one node."""
    known = "6b1f7e52-0c1d-4f7a-8a9e-2d3c4b5a6f70"
    return workflow({**node("core.echo", parameters={"value": value}), "id": NODE}) | {"id": known}


def succeed(dispatch: dict[str, Any]) -> dict[str, Any]:
    named = {name: dispatch[name] for name in ("run_id", "task_id", "attempt")}
    return {**named, "status": "SUCCEEDED", "result": {"value": 1}}


class Foreign:
    """One worker with one connection at a time. It keeps what is not acknowledged and sends it again, as it must."""

    def __init__(self, port: int, name: str) -> None:
        self.port = port
        self.name = name
        self.seq = 0
        self.acked = -1
        self.taken: int | None = None
        self.unacked: list[tuple[str, str, Any, str | None]] = []
        self.errors: list[dict[str, Any]] = []
        self.accepts: list[dict[str, Any]] = []
        self.is_closed = False
        self.done = 0
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = succeed
        """What it says to a dispatch."""
        self._socket: RawSocket | None = None

    async def enter(self, *, register: dict[str, Any] | None = None, incarnation: int = 1) -> None:
        """Connect, shake hands, register; what is unacknowledged is sent again."""
        if self._socket is not None:
            await self._socket.close()
        self._socket = await RawSocket.open(self.port)
        assert self._socket.status == 101, self._socket.status
        self.is_closed = False
        greeting = hello(self.name, TOKEN, incarnation=incarnation)
        self.say("control.handshake", greeting, ack={"request": True})
        offer = {
            "capabilities": {"concurrency": {"max_parallel": 8}, "runtimes": ["python"]},
            "packages": [{"name": "core", "version": "1.0.0", "status": "installed"}],
            **(register or {}),
        }
        self.say("control.register", offer, ack={"request": True})
        while True:
            kind, got = await self._receive()
            assert kind == TEXT, (kind, got, self.errors)
            if got["type"] == "control.session.accept":
                break
            assert got["type"] == "control.ack", got
        self.accepts.append(got["payload"])
        self.seq, self.acked, self.taken = 0, -1, None
        self.say("control.heartbeat", {"attempts": []})
        unacked, self.unacked = self.unacked, []
        for frame_id, frame_type, payload, corr in unacked:
            self.tell(frame_type, payload, corr, frame_id)

    def say(self, kind: str, payload: Any, **more: Any) -> None:
        assert self._socket is not None
        self._socket.send(frame(self.name, kind, payload, **more))

    def send_raw(self, payload: bytes, opcode: int = TEXT) -> None:
        assert self._socket is not None
        self._socket.send(payload, opcode)

    def tell(
        self, kind: str, payload: Any, corr: str | None = None, frame_id: str | None = None
    ) -> str:
        """A sequenced frame; returns its id, which it keeps when it is sent again."""
        frame_id = frame_id or new_id()
        self.unacked.append((frame_id, kind, payload, corr))
        more = {} if corr is None else {"corr": corr}
        self.say(kind, payload, seq=self.seq, id=frame_id, **more)
        self.seq += 1
        return frame_id

    async def _receive(self) -> tuple[int, Any]:
        assert self._socket is not None
        while True:
            kind, raw = await self._socket.receive()
            if kind in (TEXT, CLOSE):
                return kind, json.loads(raw) if kind == TEXT else raw

    async def step(self) -> dict[str, Any] | None:
        """Take one frame; None if the connection is closed. A dispatch is acknowledged and done."""
        kind, got = await self._receive()
        if kind == CLOSE:
            self.is_closed = True
            return None
        taken: dict[str, Any] = got
        payload = got["payload"]
        self._note_ack(payload if got["type"] == "control.ack" else got.get("ack") or {})
        if got["type"] in ("control.error", "control.reset"):
            self.errors.append(payload)
        is_again = "seq" in got and self.taken is not None and got["seq"] <= self.taken
        if "seq" in got:
            self.taken = self.taken if is_again else got["seq"]
            window = {"ack_seq": self.taken, "ack_bitmap": "0", "recv_window": 256}
            self.say("control.ack", window)
        if got["type"] == "biz.exec.dispatch" and not is_again:
            self.tell("biz.exec.result", self.answer(payload), payload["task_id"])
            self.done += 1
        return taken

    def _note_ack(self, ack: dict[str, Any]) -> None:
        number = ack.get("ack_seq", ack.get("seq"))
        if isinstance(number, int) and number > self.acked:
            del self.unacked[: number - self.acked]
            self.acked = number

    async def until(self, holds: Callable[[], bool]) -> None:
        """Take frames until something holds; comes back after every end of its connection."""
        async with asyncio.timeout(30):
            while not holds():
                if await self.step() is None:
                    await self._come_back()

    async def _come_back(self) -> None:
        while True:
            try:
                await self.enter()
                return
            except (OSError, AssertionError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.1)

    async def until_acked(self) -> None:
        await self.until(lambda: not self.unacked)

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def __aenter__(self) -> Foreign:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@contextlib.asynccontextmanager
async def working(port: int, name: str, *, beat_s: float = 0.5) -> AsyncIterator[Foreign]:
    """An innocent worker: it does what it is told, beats, and comes back when it is cut off."""
    worker = Foreign(port, name)
    await worker.enter()

    async def beat() -> None:
        while True:
            await asyncio.sleep(beat_s)
            with contextlib.suppress(OSError):
                worker.say("control.heartbeat", {"attempts": []})

    # `wait_for` may lose a cancel that comes with what it waits for.
    is_over = asyncio.Event()

    async def work() -> None:
        while not is_over.is_set():
            if await worker.step() is None and not is_over.is_set():
                await worker._come_back()

    try:
        async with asyncio.TaskGroup() as group:  # ends the test if one of them fails
            tasks = [group.create_task(beat()), group.create_task(work())]
            yield worker
            is_over.set()
            for task in tasks:
                task.cancel()
    finally:
        await worker.close()


class Flood:
    """A blocking socket that sends the same bytes as fast as they are taken, and never reads.

    After an upgrade, and with `worker` after a whole opening, which it has to read."""

    def __init__(self, port: int, worker: str | None = None) -> None:
        self.sent = 0
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.sendall(upgrade_request(port))
        self._read_until(b"\r\n\r\n")
        if worker is not None:
            self._enter(worker)

    def _enter(self, worker: str) -> None:
        offer = {"capabilities": {"concurrency": {"max_parallel": 1}}}
        self._socket.sendall(masked(frame(worker, "control.handshake", hello(worker, TOKEN))))
        self._socket.sendall(masked(frame(worker, "control.register", offer)))
        self._read_until(b"control.session.accept")

    def _read_until(self, mark: bytes) -> None:
        got = b""
        while mark not in got:
            more = self._socket.recv(4096)
            assert more, got
            got += more

    def pour(self, what: bytes, at_most: int, *, stall_s: float = 1.5) -> bool:
        """Send up to so many bytes; True if all were taken, False if it was closed or nothing is taken any more."""
        self._socket.settimeout(stall_s)
        view = memoryview(what)
        at = self.sent % len(what)
        while self.sent < at_most:
            try:
                done = self._socket.send(view[at:])
            except OSError:
                return False
            self.sent += done
            at = (at + done) % len(what)
        return True

    def is_closed(self) -> bool:
        """Whether the scheduler has hung up; what it said is read now."""
        self._socket.settimeout(0.05)
        try:
            while self._socket.recv(1 << 20):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def end(self) -> None:
        """Let `pour` return, in whatever thread it is."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()
