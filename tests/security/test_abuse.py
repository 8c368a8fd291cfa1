"""Very many connections, and very many sessions of one tenant: limits hold, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.hostile.foreign import echo, working
from tests.processes.rest import TOKEN
from tests.processes.system import System, running
from tests.rawsocket import RawSocket, frame, hello

CONNECTIONS = 10_000
"""As many as the scheduler holds."""
BEYOND = 50
SESSIONS = 1_000
AT_ONCE = 50
FILES = CONNECTIONS + 1_000
GROWTH_MIB = 256.0
OFFER = {"capabilities": {"concurrency": {"max_parallel": 1}}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[System]:
    """A scheduler that may open as many files as it takes connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    try:
        with running(tmp_path, heartbeat_ms=20_000) as server:
            yield server
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def run_one(server: System, client: httpx.AsyncClient) -> None:
    """A run ends, over a connection that was there before."""
    made = await client.post("/api/v1/runs", json={"workflow": echo()})
    assert made.status_code == 202, made.text
    path = f"/api/v1/runs/{made.json()['runId']}"
    async with asyncio.timeout(30):
        while True:
            if (await client.get(path)).json()["status"] == "succeeded":
                return
            await asyncio.sleep(0.05)


def customer(server: System) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    limits = httpx.Limits(max_connections=1, keepalive_expiry=600)
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30, limits=limits)


class Crowd:
    """Connections that ask once and then stay."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.held: list[asyncio.StreamWriter] = []
        self.turned_away = 0

    async def grow(self) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answer = await reader.read(12)
        except ConnectionError:
            self.turned_away += 1
            return
        if answer:
            assert answer == b"HTTP/1.1 200"
            self.held.append(writer)
        else:
            self.turned_away += 1
            writer.close()

    async def leave(self) -> None:
        for writer in self.held:
            writer.close()
        await asyncio.gather(*(one.wait_closed() for one in self.held), return_exceptions=True)


async def test_ten_thousand_connections(server: System) -> None:
    crowd = Crowd(server.port)
    before = server.scheduler.rss_mib
    async with customer(server) as client, working(server.port, "innocent") as worker:
        await run_one(server, client)
        while crowd.turned_away < BEYOND:
            await asyncio.gather(*(crowd.grow() for _ in range(AT_ONCE)))
            assert len(crowd.held) <= CONNECTIONS
        assert len(crowd.held) > CONNECTIONS - AT_ONCE
        # Nobody is served less who was there before.
        await run_one(server, client)
        assert len(worker.accepts) == 1, "it never had to come back"
        assert server.scheduler.rss_mib - before < GROWTH_MIB
        await crowd.leave()
        await asyncio.to_thread(server.until, lambda: server.rest.status("/healthz") == 200)
        await run_one(server, client)


async def test_a_thousand_sessions_of_one_tenant(server: System) -> None:
    server.rest.post("tenants", {"tenant": "umbrella"}, wanted=201)
    changed = server.rest.http.patch("/api/v1/tenants/umbrella", json={"maxWorkers": SESSIONS})
    assert changed.status_code == 200, changed.text
    body = {"role": "worker", "tenant": "umbrella", "ttlSeconds": 600}
    token = server.rest.post("tokens", body, wanted=201)["token"]
    sockets: list[RawSocket] = []

    async def begin(name: str) -> RawSocket:
        socket = await RawSocket.open(server.port)
        sockets.append(socket)
        greeting = hello(name, token)
        socket.send(frame(name, "control.handshake", greeting, tenant="umbrella"))
        socket.send(frame(name, "control.register", OFFER, tenant="umbrella"))
        return socket

    async def enter(name: str) -> None:
        await (await begin(name)).next("control.session.accept")

    before = server.scheduler.rss_mib
    async with customer(server) as client, working(server.port, "innocent") as worker:
        for first in range(0, SESSIONS, AT_ONCE):
            await asyncio.gather(*(enter(f"w{first + place}") for place in range(AT_ONCE)))
        frames, closed = await (await begin("one-more")).until_close()
        assert (frames[-1]["payload"]["code"], closed) == ("E.QUOTA.WORKERS", 1008)
        await run_one(server, client)
        assert server.scheduler.rss_mib - before < GROWTH_MIB
        shown = (await client.get("/api/v1/workers")).json()["items"]
        assert [one["workerId"] for one in shown] == ["innocent"]
        assert len(worker.accepts) == 1, "it never had to come back"
        for socket in sockets:
            await socket.close()
