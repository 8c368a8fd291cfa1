"""One tenant has a million tasks that wait; how fast is another one served, and what does the scheduler hold?"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import msgspec
import uvloop

from astraflow.bench.processes import TOKEN, BenchClient, System, running, wide
from benchmarks.figures import Figure
from benchmarks.usage import rss_mib

QUEUED = 1_000_000
PER_RUN = 50_000
RUNS = 200
TENANT = "crowd"


class TenantClient(BenchClient):
    """A client with a token of its own."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(port)
        self._token = token

    def _head(self, method: str, path: str, length: int, *headers: str) -> bytes:
        head = super()._head(method, path, length, *headers)
        return head.replace(TOKEN.encode(), self._token.encode())


async def p50_ms(client: BenchClient) -> float:
    """From the request to the event that a run of one node has succeeded."""
    request = wide(1)
    times = []
    async with client.stream() as events:
        for _ in range(RUNS):
            started = perf_counter()
            run_id = await client.submit(request)
            await client.ended({run_id}, events)
            times.append(perf_counter() - started)
    return median(times) * 1000


async def queue(system: System, admin: BenchClient) -> float:
    """Fill the queue of the other tenant, which has no worker; seconds."""
    tenant = msgspec.json.encode({"tenant": TENANT})
    await admin.request("POST", "/api/v1/tenants", tenant)
    wanted = msgspec.json.encode({"tenant": TENANT, "role": "operator"})
    token = (await admin.request("POST", "/api/v1/tokens", wanted))["token"]
    client = TenantClient(system.port, token)
    started = perf_counter()
    for _ in range(QUEUED // PER_RUN):
        await client.submit(wide(PER_RUN))
    taken = perf_counter() - started
    await client.close()
    return taken


async def measure(system: System) -> list[Figure]:
    assert system.scheduler is not None
    pid = system.scheduler.pid
    admin = BenchClient(system.port)
    await p50_ms(admin)  # warm up
    idle_ms = await p50_ms(admin)
    idle_mib = rss_mib(pid)
    filling_s = await queue(system, admin)
    full_mib = rss_mib(pid)
    busy_ms = await p50_ms(admin)
    await admin.close()
    return [
        Figure("a run of one node, p50, idle", idle_ms, "ms"),
        Figure("the same beside 1,000,000 waiting tasks of a tenant", busy_ms, "ms"),
        Figure("of the idle one", busy_ms / idle_ms, "times", 2),
        Figure("scheduler, idle", idle_mib, "MiB"),
        Figure("scheduler with 1,000,000 waiting tasks", full_mib, "MiB", 1_024),
        Figure("of it, a task", (full_mib - idle_mib) * 1024**2 / QUEUED, "bytes"),
        Figure("taking 1,000,000 tasks", filling_s, "s"),
    ]


def figures() -> list[Figure]:
    with running() as system:
        return uvloop.run(measure(system))
