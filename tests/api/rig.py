"""The real application and the real scheduler, on a real socket, with a store in memory or the one that a test names.

Nothing executes unless a test opens a worker (`Rig.worker`), which then does what the test says (`scripted`).
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from astraflow.api.app import Application, make_app
from astraflow.api.routes import Timing
from astraflow.api.server import server_config
from astraflow.api.worker_socket import OnePlace, socket_class
from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings, Secret
from astraflow.core.security.bearer import ApiTokens, TokenRecord, digest_of
from astraflow.core.security.policy import Role
from astraflow.observe.metrics import Metrics
from astraflow.scheduler.assembly import assemble
from astraflow.scheduler.service import Scheduler
from astraflow.store import open_store
from tests.api.scripted import ScriptedWorker, connected, token_of

TENANT = "default"
OTHER = "umbrella"
WAIT_S = 60.0
LOOK_S = 0.01

NODE_A = "2b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"
NODE_B = "8f5dea1f-6a13-4e43-843f-5361c40f8f5a"
WORKFLOW = "0f1d5c9e-7f7c-4c1b-9d61-0c3a2f6d1b11"


def definition(**more: Any) -> dict[str, Any]:
    """Two nodes side by side."""
    return {
        "id": WORKFLOW,
        "metadata": {"name": "two"},
        "nodes": [
            {"id": NODE_A, "type": "core.echo", "parameters": {"value": 1}},
            {"id": NODE_B, "type": "core.noop", "parameters": {}},
        ],
        "edges": [],
        **more,
    }


def make_tokens() -> ApiTokens:
    """A token for every role of two tenants, one that has expired, and one that was revoked."""
    tokens = ApiTokens()
    for tenant in (TENANT, OTHER):
        for role in Role:
            text = token_of(role, tenant)
            tokens.put(TokenRecord(digest_of(text), tenant, f"{role} of {tenant}", role))
    tokens.put(TokenRecord(digest_of("expired"), TENANT, "late", Role.ADMIN, expires_at=1.0))
    tokens.put(TokenRecord(digest_of("revoked"), TENANT, "gone", Role.ADMIN, is_revoked=True))
    return tokens


class Rig:
    """A served application and a client of it, who is an admin unless it says otherwise."""

    def __init__(self, scheduler: Scheduler, app: Application, metrics: Metrics, port: int) -> None:
        self.scheduler: Any = scheduler
        self.app = app
        self.metrics = metrics
        self.port = port
        self.client: httpx.AsyncClient
        self.connections: Callable[[], int]

    async def get(self, path: str, **more: Any) -> httpx.Response:
        return await self.client.get(path, **more)

    async def post(self, path: str, **more: Any) -> httpx.Response:
        return await self.client.post(path, **more)

    async def as_(self, role: Role | str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {token_of(role)}", **more.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **more)

    async def submit(self, **more: Any) -> str:
        answer = await self.post("/api/v1/runs", json={"workflow": definition()}, **more)
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["runId"]
        return run_id

    def worker(
        self, name: str = "w1", tenant: str = TENANT, **more: Any
    ) -> AbstractAsyncContextManager[ScriptedWorker]:
        """A worker that does what the test says."""
        return connected(self.port, name, tenant, **more)

    async def until(self, path: str, holds: Callable[[Any], Any]) -> Any:
        """What is at a path, once it is as it should be."""
        async with asyncio.timeout(WAIT_S):
            while True:
                body = (await self.get(path)).json()
                if holds(body):
                    return body
                await asyncio.sleep(LOOK_S)

    async def status(self, run_id: str, *wanted: str) -> dict[str, Any]:
        """The run, once it has one of these statuses."""
        path = f"/api/v1/runs/{run_id}"
        run: dict[str, Any] = await self.until(path, lambda body: body["status"] in wanted)
        return run

    @property
    def followers(self) -> int:
        """How many event streams read from the scheduler."""
        count: int = self.scheduler._feed.followers
        return count

    async def until_left(self) -> None:
        """Until no event stream reads any more."""
        async with asyncio.timeout(WAIT_S):
            while True:
                if not self.followers:
                    return
                await asyncio.sleep(LOOK_S)

    async def raw(self, request: bytes) -> bytes:
        """Send bytes, and read until the server hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await asyncio.wait_for(reader.read(), WAIT_S)
        finally:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def serving(
    store_url: str = "memory://",
    *,
    folder: Path | None = None,
    timing: Timing | None = None,
    is_running: bool = True,
    **settings: Any,
) -> AsyncIterator[Rig]:
    """Serve until the block ends. `is_running` False: the scheduler never begins, and is not ready."""
    with (
        tempfile.TemporaryDirectory() as other,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        made = SchedulerSettings(data_dir=folder or Path(other), **settings)
        metrics = Metrics()
        scheduler = assemble(
            made,
            store=open_store(store_url),
            clock=SystemClock(),
            secret=Secret("a secret for tests only"),
            tokens=make_tokens(),
            metrics=metrics,
            origin=f"http://127.0.0.1:{listener.getsockname()[1]}",
        )
        app = make_app(
            scheduler,
            made,
            secret=Secret("a secret for tests only"),
            metrics=metrics,
            timing=timing,
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(scheduler.run()) if is_running else None
            if running is not None:
                await scheduler.ready.wait()
            try:
                async with _listening(scheduler, app, metrics, listener) as rig:
                    yield rig
                    scheduler.end_streams()
            finally:
                if running is not None:
                    running.cancel()


@asynccontextmanager
async def _listening(
    scheduler: Scheduler, app: Application, metrics: Metrics, listener: socket.socket
) -> AsyncIterator[Rig]:
    port = listener.getsockname()[1]
    config = server_config(app, "127.0.0.1", port, sockets=socket_class(OnePlace(scheduler)))
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    rig = Rig(scheduler, app, metrics, port)
    rig.connections = lambda: len(server.server_state.connections)
    try:
        async with (
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}",
                headers={"authorization": f"Bearer {token_of(Role.ADMIN)}"},
                timeout=WAIT_S,
                trust_env=False,
                verify=False,  # there is no TLS here, and reading certificates takes longer than most tests
            ) as rig.client
        ):
            yield rig
    finally:
        await _stop(server)
        listener.close()


async def _stop(server: uvicorn.Server) -> None:
    """As uvicorn does it, without the tenth of a second that it waits between two looks."""
    for listening in server.servers:
        listening.close()
    for connection in list(server.server_state.connections):
        connection.shutdown()
    if server.server_state.tasks:
        await asyncio.wait(server.server_state.tasks, timeout=WAIT_S)
    for listening in server.servers:
        await listening.wait_closed()


def problem_of(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is a problem document, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["code"] == code, body
    assert body["type"] == f"urn:astraflow:error:{code}"
    assert body["title"]
    assert body["detail"]
    return body
