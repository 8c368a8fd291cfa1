"""A worker of protocol 1, written from its text alone: bytes on a socket, nothing of the product."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from tests.processes.rest import TOKEN
from tests.rawsocket import CLOSE, TEXT, RawSocket, new_id

__all__ = ["OldWorker", "envelope", "greeting"]

WAIT_S = 30.0
OFFER = {
    "capabilities": {"concurrency": {"max_parallel": 4}},
    "packages": [{"name": "core", "version": "1.0.0"}],
}

Frame = dict[str, Any]


def envelope(worker: str, kind: str, payload: Any, **more: Any) -> Frame:
    return {
        "type": kind,
        "id": new_id(),
        "ts": "2026-01-15T10:00:00.000Z",
        "tenant": "default",
        "sender": {"role": "worker", "id": worker},
        "payload": payload,
        **more,
    }


def greeting(**changed: Any) -> dict[str, Any]:
    return {"protocol": 1, "auth": {"mode": "token", "token": TOKEN}, **changed}


class OldWorker:
    """One worker with one connection at a time."""

    def __init__(self, port: int, name: str, subprotocol: str | None = "astraflow.v1") -> None:
        self.port = port
        self.name = name
        self.subprotocol = subprotocol
        self.frames: list[Frame] = []
        """All that has come, of all connections."""
        self._unread: list[Frame] = []
        self.closed_with: int | None = None
        self.acks_commands = True
        self.socket: RawSocket | None = None

    async def connect(self) -> RawSocket:
        if self.socket is not None:
            await self.socket.close()
        self.socket = await RawSocket.open(self.port, subprotocol=self.subprotocol)
        assert self.socket.status == 101
        self.closed_with = None
        self._unread = []
        return self.socket

    async def enter(self, **offer: Any) -> None:
        """Handshake, register, heartbeat."""
        await self.connect()
        hello = self.say("handshake", greeting(), ack={"request": True})
        await self.until_acked(hello)
        await self.until_acked(self.say("register", {**OFFER, **offer}))
        self.beat()

    def say(self, kind: str, payload: Any, **more: Any) -> str:
        """Send a frame; its id."""
        assert self.socket is not None
        sent = envelope(self.name, kind, payload, **more)
        self.socket.send(json.dumps(sent).encode())
        return str(sent["id"])

    def beat(self, **more: Any) -> str:
        return self.say("heartbeat", {"healthy": True, **more}, ack={"request": True})

    def report(self, dispatch: Frame, result: Any = None, **more: Any) -> str:
        """The result of a dispatch, as the example of the text has it; its id."""
        given = dispatch["payload"]
        payload = {"run_id": given["run_id"], "task_id": given["task_id"], "status": "SUCCEEDED"}
        payload["result"] = (
            {"value": given["parameters"].get("value")} if result is None else result
        )
        numbered = {"corr": given["task_id"], "seq": dispatch["seq"], **more}
        return self.say("result", payload, **numbered)

    async def step(self) -> Frame | None:
        """Take one frame; None if the connection is closed."""
        assert self.socket is not None
        while True:
            kind, raw = await self.socket.receive()
            if kind == CLOSE:
                self.closed_with = int.from_bytes(raw[:2], "big") if raw else 0
                return None
            if kind == TEXT:
                break
        frame: Frame = json.loads(raw)
        self.frames.append(frame)
        self._unread.append(frame)
        if (frame.get("ack") or {}).get("request") and self.acks_commands:
            self.say("ack", {"for": frame["id"]})
        return frame

    async def find(self, is_meant: Callable[[Frame], bool], what: str) -> Frame:
        """The first frame that is meant and that was not found before."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for frame in self._unread:
                    if is_meant(frame):
                        self._unread.remove(frame)
                        return frame
                got = await self.step()
                assert got is not None, f"closed with {self.closed_with} before {what}"

    async def next(self, kind: str) -> Frame:
        return await self.find(lambda frame: frame["type"] == kind, kind)

    async def until_acked(self, frame_id: str) -> Frame:
        """Wait for the ack of a frame."""

        def is_meant(frame: Frame) -> bool:
            return bool(frame["type"] == "ack" and frame["payload"]["for"] == frame_id)

        return await self.find(is_meant, f"an ack of {frame_id}")

    async def until_closed(self) -> list[Frame]:
        """What comes until the connection is closed."""
        first = len(self.frames)
        async with asyncio.timeout(WAIT_S):
            while await self.step() is not None:
                pass
        return self.frames[first:]

    async def work(self, answer: Callable[[Frame], Any] | None = None) -> None:
        """Do what is dispatched, once each, until cancelled; comes back when the connection ends."""
        seen: set[str] = set()
        beating = asyncio.create_task(self._beat_on())
        try:
            while True:
                frame = await self.step()
                if frame is None:
                    await self._come_back()
                elif frame["type"] == "cmd.dispatch" and frame["id"] not in seen:
                    seen.add(frame["id"])
                    self.report(frame, None if answer is None else answer(frame))
        finally:
            beating.cancel()

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            with contextlib.suppress(OSError):
                self.beat()

    async def _come_back(self) -> None:
        while True:
            with contextlib.suppress(OSError, AssertionError, asyncio.IncompleteReadError):
                await self.enter()
                return
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        if self.socket is not None:
            await self.socket.close()

    async def __aenter__(self) -> OldWorker:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
