"""A worker that does what a test says: it speaks the protocol on a real socket and decides nothing by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from astraflow.core.security.policy import Role
from tests.rawsocket import CLOSE, TEXT, RawSocket, frame, hello

__all__ = ["CORE", "ScriptedWorker", "Task", "connected", "token_of"]

WAIT_S = 20.0
CORE = {"name": "core", "version": "1.0.0", "status": "installed"}


def token_of(role: Role | str, tenant: str = "default") -> str:
    return f"token-of-{tenant}-{role}"


class Task:
    """A dispatch that the worker was sent."""

    def __init__(self, worker: ScriptedWorker, payload: dict[str, Any]) -> None:
        self._worker = worker
        self.payload = payload
        self.names = {name: payload[name] for name in ("run_id", "task_id", "attempt")}

    @property
    def node_id(self) -> str:
        node_id: str = self.payload["node_id"]
        return node_id

    def say(self, *texts: str, **more: Any) -> None:
        """Report output, one piece for each text."""
        chunks = [
            {"channel": "stdout", "index": index, "text": text} for index, text in enumerate(texts)
        ]
        self._worker.tell("biz.exec.feedback", {**self.names, "chunks": chunks, **more})

    def succeed(self, result: Any = None, **more: Any) -> None:
        value = {"value": 1} if result is None else result
        body = {**self.names, "status": "SUCCEEDED", "result": value, **more}
        self._worker.tell("biz.exec.result", body)

    def fail(self, message: str = "it broke") -> None:
        error = {"code": "E.RUNNER.FAILURE", "category": "USER_CODE", "message": message}
        self._worker.tell("biz.exec.result", {**self.names, "status": "FAILED", "error": error})

    def cancelled(self) -> None:
        self._worker.tell("biz.exec.result", {**self.names, "status": "CANCELLED"})


class ScriptedWorker:
    """One worker with one connection. Frames wait until a test takes them."""

    def __init__(self, port: int, name: str, tenant: str, *, takes: bool, token: str = "") -> None:
        self.name = name
        self.tenant = tenant
        self._token = token or token_of(Role.WORKER, tenant)
        self._port = port
        self._takes = takes
        self._seq = 0
        self._frames: dict[str, asyncio.Queue[dict[str, Any]]] = {}

    async def open(self, offer: dict[str, Any]) -> None:
        self._socket = await RawSocket.open(self._port)
        assert self._socket.status == 101, self._socket.status
        self.send("control.handshake", hello(self.name, self._token))
        self.send("control.register", offer)
        self._beside = [asyncio.create_task(self._read())]
        await self.next("control.session.accept")

    def send(self, kind: str, payload: Any, **more: Any) -> None:
        self._socket.send(frame(self.name, kind, payload, tenant=self.tenant, **more))

    def tell(self, kind: str, payload: Any) -> None:
        """A frame that is acknowledged and kept."""
        self.send(kind, payload, seq=self._seq)
        self._seq += 1

    async def _read(self) -> None:
        while True:
            opcode, raw = await self._socket.receive()
            if opcode == CLOSE:
                return
            if opcode != TEXT:
                continue
            received = msgspec.json.decode(raw)
            if "seq" in received and self._takes:
                window = {"ack_seq": received["seq"], "ack_bitmap": "0", "recv_window": 256}
                self.send("control.ack", window)
            self._queue(received["type"]).put_nowait(received["payload"])

    def _queue(self, kind: str) -> asyncio.Queue[dict[str, Any]]:
        return self._frames.setdefault(kind, asyncio.Queue())

    async def next(self, kind: str) -> dict[str, Any]:
        """The payload of the next frame of a type."""
        return await asyncio.wait_for(self._queue(kind).get(), WAIT_S)

    async def task(self) -> Task:
        """The next dispatch."""
        return Task(self, await self.next("biz.exec.dispatch"))

    async def tasks(self, *node_ids: str) -> list[Task]:
        """The dispatches of these nodes, in this order."""
        found = {task.node_id: task for task in [await self.task() for _ in node_ids]}
        return [found[node_id] for node_id in node_ids]

    def hold(self, resource_id: str, **more: Any) -> None:
        """Say that it keeps a resource."""
        event = {
            "resource_id": resource_id,
            "state": "ready",
            "type": "file",
            "created_at": "2026-01-15T10:00:00.000Z",
            "metadata": {"mime": "image/png", "filename": "shot \u00e4.png"},
            **more,
        }
        self.tell("biz.resource.event", event)

    def serve_exports(self) -> list[str]:
        """From now on upload what is asked for: the id of the resource, as bytes. Returns the ids as they come."""
        served: list[str] = []

        async def serve() -> None:
            async with httpx.AsyncClient(trust_env=False, verify=False) as client:
                while True:
                    asked = await self._queue("biz.resource.export").get()
                    served.append(asked["resource_id"])
                    body = asked["resource_id"].encode()
                    answer = await client.put(asked["upload_url"], content=body)
                    assert answer.status_code == 201, answer.text

        self._beside.append(asyncio.create_task(serve()))
        return served

    async def close(self) -> None:
        for task in self._beside:
            # More than once: `wait_for` may take a cancel for itself when its answer comes in the same turn.
            while not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=0.1)
        await self._socket.close()


@asynccontextmanager
async def connected(
    port: int,
    name: str = "w1",
    tenant: str = "default",
    *,
    slots: int = 400,
    packages: tuple[dict[str, str], ...] = (CORE,),
    takes: bool = True,
    features: tuple[str, ...] = (),
    token: str = "",
) -> AsyncIterator[ScriptedWorker]:
    """A worker with an open session. `takes`: it acknowledges what it is sent."""
    worker = ScriptedWorker(port, name, tenant, takes=takes, token=token)
    capabilities = {
        "concurrency": {"max_parallel": slots},
        "runtimes": ["python"],
        "features": list(features),
    }
    await worker.open({"capabilities": capabilities, "packages": list(packages)})
    try:
        yield worker
    finally:
        await worker.close()
