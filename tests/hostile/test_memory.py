"""Memory that is bounded in bytes: large runs that have ended, and strangers that make up names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.hostile.foreign import echo, succeed, working
from tests.processes.system import running
from tests.processes.waiting import until_seen
from tests.rawsocket import CLOSE, RawSocket, frame, hello

RUNS = 200
READS = 150
PARAMETERS = "p" * 1_000_000
RESULT = "r" * 1_500_000
GROWTH_MIB = 150.0
"""The caches of plans and of ended runs together take 64 MiB; without a bound it is more than 500 MiB."""
STRANGERS = 1_500
STRANGERS_MIB = 8.0


async def test_large_runs_that_have_ended_leave_no_memory_behind(tmp_path: Path) -> None:
    """Each has other parameters, so that none is the plan of another."""

    def answer(dispatch: dict[str, Any]) -> dict[str, Any]:
        return {**succeed(dispatch), "result": {"value": RESULT}}

    with running(tmp_path, heartbeat_ms=1000) as server:
        before = server.scheduler.rss_mib
        runs = []
        async with working(server.port, "large") as worker:
            worker.answer = answer
            for number in range(RUNS):
                large = echo(f"{number}{PARAMETERS}")
                runs.append(await asyncio.to_thread(server.rest.submit, large))
                await until_seen(lambda: worker.done == len(runs))
        server.until(lambda: all(server.rest.run_status(one) == "succeeded" for one in runs[-5:]))
        assert server.scheduler.rss_mib - before < GROWTH_MIB
        for run_id in runs[:READS]:
            node = server.rest.get(f"runs/{run_id}")["nodes"][0]
            assert node["status"] == "succeeded", node
        assert server.scheduler.rss_mib - before < GROWTH_MIB


async def test_strangers_that_make_up_tenants_cost_no_memory_and_no_series(tmp_path: Path) -> None:
    """Each names a tenant of its own, over the worker's door and over HTTP, and has no token that opens it."""

    async def knock(port: int, tenant: str) -> None:
        socket = await RawSocket.open(port)
        socket.send(frame(tenant, "control.handshake", hello(tenant, "no"), tenant=tenant))
        while (await socket.receive())[0] != CLOSE:
            pass
        await socket.close()

    async def ask(port: int, tenant: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = (
            f"GET /api/v1/runs/{tenant}?tenant={tenant} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {tenant}",
            f"X-Tenant: {tenant}",
            "Connection: close",
        )
        writer.write("\r\n".join((*lines, "", "")).encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 401")
        writer.close()
        await writer.wait_closed()

    async def scene(port: int, first: int) -> None:
        for start in range(first, first + STRANGERS, 20):
            some = [f"made-up-{number}-{'x' * 40}" for number in range(start, start + 20)]
            await asyncio.gather(*(knock(port, one) for one in some))
            await asyncio.gather(*(ask(port, one) for one in some))

    with running(tmp_path, heartbeat_ms=1000) as server:
        await scene(server.port, 0)  # what is loaded at the first of them
        before = server.scheduler.rss_mib
        server.rest.status("/metrics")  # has a series of its own
        lines = len(server.rest.http.get("/metrics").text.splitlines())
        await scene(server.port, STRANGERS)
        text = server.rest.http.get("/metrics").text
        assert "made-up" not in text
        assert len(text.splitlines()) == lines
        assert server.scheduler.rss_mib - before < STRANGERS_MIB
