"""A worker without a session as an ASGI application: POST a task anywhere, GET answers that it is alive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from astraflow_sdk.serverless.envelope import MAX_ENVELOPE_BYTES, BadEnvelope
from astraflow_sdk.serverless.worker import PushReply, reply_of

if TYPE_CHECKING:
    from astraflow_sdk.serverless.worker import ServerlessWorker

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class AsgiWorker:
    """Attempts run in threads. What is beyond `max_parallel` is refused with 429: the pool tries again."""

    def __init__(self, worker: ServerlessWorker, *, max_parallel: int, background: bool) -> None:
        self._worker = worker
        self._max_parallel = max_parallel
        self._background = background
        self._threads = ThreadPoolExecutor(max_parallel, thread_name_prefix="astraflow-attempt")
        self._running: set[asyncio.Future[PushReply]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await _answer(send, await self._reply(scope, receive))

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if self._running:
                    await asyncio.wait(self._running)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _reply(self, scope: Scope, receive: Receive) -> PushReply:
        if scope["method"] in ("GET", "HEAD"):
            return _says(200, {"nodeTypes": self._worker.node_types})
        if scope["method"] != "POST":
            return _says(405, {"error": "POST a task here"})
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            envelope = self._worker.accept(await _body(receive), headers)
        except BadEnvelope as refused:
            return reply_of(refused)
        if len(self._running) >= self._max_parallel:
            return _says(429, {"error": "all slots are taken"})
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, self._worker.run, envelope)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        if self._background:
            return _says(202, {"status": "accepted"})
        return await asyncio.shield(running)


def _says(status: int, body: Mapping[str, Any]) -> PushReply:
    return PushReply(status, json.dumps(body).encode())


async def _body(receive: Receive) -> bytes:
    """Raises: BadEnvelope, when it is too large or the caller has gone."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise BadEnvelope(400, "the request was broken off")
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_ENVELOPE_BYTES:
            raise BadEnvelope(413, "the envelope is too large")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _answer(send: Send, reply: PushReply) -> None:
    headers = [
        (b"content-type", reply.content_type.encode()),
        (b"content-length", str(len(reply.body)).encode()),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
