"""Memory that is bounded in bytes: large runs that have ended, and strangers that make up names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.hostile.foreign import frame, succeed, working
from tests.hostile.server import running
from tests.rawsocket import CLOSE, RawSocket

RUNS = 200
READS = 150
PARAMETERS = "p" * 1_000_000
RESULT = "r" * 1_500_000
GROWTH_MIB = 150.0
"""The caches of plans and of ended runs together take 64 MiB; without a bound it is more than 500 MiB."""
STRANGERS = 1_500
STRANGERS_MIB = 8.0


def test_large_runs_that_have_ended_leave_no_memory_behind(tmp_path: Path) -> None:
    """Each has other parameters, so that none is the plan of another."""

    def answer(dispatch: dict[str, Any]) -> dict[str, Any]:
        return {**succeed(dispatch), "result": {"value": RESULT}}

    with running(tmp_path) as server:

        async def scene() -> list[str]:
            runs = []
            async with working(server.port, "large") as worker:
                worker.answer = answer
                for number in range(RUNS):
                    run_id = await asyncio.to_thread(server.submit, f"{number}{PARAMETERS}")
                    runs.append(run_id)
                    await worker_is_done(worker, number + 1)
            return runs

        async def worker_is_done(worker: Any, number: int) -> None:
            await asyncio.to_thread(server.until, lambda: worker.done >= number)

        before = server.rss_mib
        runs = asyncio.run(scene())
        server.until(lambda: all(server.run_status(one) == "succeeded" for one in runs[-5:]))
        assert server.rss_mib - before < GROWTH_MIB
        for run_id in runs[:READS]:
            node = server.get(f"runs/{run_id}")["nodes"][0]
            assert node["status"] == "succeeded", node
        assert server.rss_mib - before < GROWTH_MIB


def test_strangers_that_make_up_tenants_cost_no_memory_and_no_series(tmp_path: Path) -> None:
    """Each names a tenant of its own, over the worker's door and over HTTP, and has no token that opens it."""

    async def knock(port: int, tenant: str) -> None:
        socket = await RawSocket.open(port)
        worker = {
            "worker_instance_id": tenant,
            "incarnation": 1,
            "worker_name": tenant,
            "version": "0",
            "hostname": "h",
        }
        hello = {"protocol": 2, "auth": {"mode": "token", "token": "no"}, "worker": worker}
        socket.send(frame(tenant, "control.handshake", hello, tenant=tenant))
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

    with running(tmp_path) as server:
        asyncio.run(scene(server.port, 0))  # what is loaded at the first of them
        before = server.rss_mib
        server.status("/metrics")  # has a series of its own
        lines = len(str(server.ask("GET", "/metrics")[1]).splitlines())
        asyncio.run(scene(server.port, STRANGERS))
        text = str(server.ask("GET", "/metrics")[1])
        assert "made-up" not in text
        assert len(text.splitlines()) == lines
        assert server.rss_mib - before < STRANGERS_MIB
