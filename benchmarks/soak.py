"""Soak: minutes of mixed load on a scheduler and a worker, and whether the scheduler's memory levels off.

Every definition is a new one, so that nothing is found in a cache: small runs, fan-outs, large parameters and results,
runs that fail, runs of saved workflows, reads of ended runs, and event streams that begin and end.
"""

from __future__ import annotations

import asyncio
import uuid
from itertools import count
from statistics import median
from time import monotonic
from typing import Any

import msgspec
import uvloop

from astraflow.bench.processes import BenchClient, System, chain, fan_out, running, wide
from benchmarks.figures import Figure
from benchmarks.usage import rss_mib

MINUTES = 2.0
LANES = 4
LARGE_EVERY = 8
LARGE_BYTES = 512 * 1024
LEVEL_MIB = 8.0
"""The growth from the third quarter of the time to the last, by medians, that counts as level."""
SAMPLE_S = 15.0

_encode = msgspec.json.encode
_decode = msgspec.json.decode


def _failing() -> bytes:
    retry = {"maxAttempts": 2, "backoff": {"initialMs": 10}}
    return wide(1, type="core.fail", parameters={"message": "as asked"}, retry=retry)


def _large() -> bytes:
    return wide(1, type="core.echo", parameters={"value": uuid.uuid4().hex * (LARGE_BYTES // 32)})


class Load:
    """What some clients do at once until they are told to stop."""

    def __init__(self, system: System) -> None:
        self._port = system.port
        self._ended: dict[str, asyncio.Future[None]] = {}
        self.is_over = False
        self.runs = 0

    async def run(self) -> None:
        client = BenchClient(self._port)
        async with client.stream() as events:
            listening = asyncio.create_task(self._listen(events))
            await asyncio.gather(*(self._lane() for _ in range(LANES)))
            listening.cancel()

    async def _listen(self, events: Any) -> None:
        async for kind, raw in events:
            if kind == "run.status":
                event = _decode(raw)["data"]
                if event["status"] not in ("queued", "running"):
                    waiting = self._ended.setdefault(event["runId"], asyncio.Future())
                    if not waiting.done():
                        waiting.set_result(None)

    async def _lane(self) -> None:
        """With a client of its own: of those of a shared one, some would be idle for so long that they are closed."""
        client = BenchClient(self._port)
        for number in count():
            if self.is_over:
                break
            await self._finished(client, await client.submit(chain(1)))
            await self._finished(client, await client.submit(fan_out(20)))
            await self._finished(client, await client.submit(_failing()))
            await self._saved(client)
            await self._followed(client, await client.submit(chain(3)))
            if number % LARGE_EVERY == 0:
                await self._finished(client, await client.submit(_large()))
        await client.close()

    async def _finished(self, client: BenchClient, run_id: str) -> None:
        await self._ended.setdefault(run_id, asyncio.Future())
        del self._ended[run_id]
        self.runs += 1
        await client.request("GET", f"/api/v1/runs/{run_id}")

    async def _saved(self, client: BenchClient) -> None:
        """A workflow is saved twice, and run."""
        workflow = _decode(fan_out(5))["workflow"]
        path = f"/api/v1/workflows/{workflow['id']}"
        await client.request("POST", "/api/v1/workflows", _encode(workflow))
        await client.request("PUT", path, _encode(workflow))
        run_id = await client.submit(_encode({"workflowId": workflow["id"]}))
        await self._finished(client, run_id)

    async def _followed(self, client: BenchClient, run_id: str) -> None:
        """Somebody watches from the beginning, and leaves at the end."""
        async with client.stream(f"?runId={run_id}") as events:
            async for kind, raw in events:
                if kind == "run.status" and _decode(raw)["data"]["status"] == "succeeded":
                    break
        await self._finished(client, run_id)


async def _soak(system: System, minutes: float) -> tuple[list[float], int]:
    """The scheduler's memory from time to time, and how many runs there were."""
    assert system.scheduler is not None
    load = Load(system)
    loading = asyncio.create_task(load.run())
    began = monotonic()
    samples = [rss_mib(system.scheduler.pid)]
    spent = 0.0
    while spent < minutes and not loading.done():
        await asyncio.wait({loading}, timeout=SAMPLE_S)
        spent = (monotonic() - began) / 60
        samples.append(rss_mib(system.scheduler.pid))
        print(f"{spent:8.2f} min {load.runs:8,} runs {samples[-1]:8.1f} MiB", flush=True)
    load.is_over = True
    await loading
    return samples, load.runs


def figures(minutes: float = MINUTES) -> list[Figure]:
    with running() as system:
        samples, runs = uvloop.run(_soak(system, minutes))
    later = samples[len(samples) // 2 :]
    half = len(later) // 2
    growth = median(later[half:]) - median(later[: max(1, half)])
    return [
        Figure("runs", float(runs), "runs"),
        Figure("scheduler at the start", samples[0], "MiB"),
        Figure("scheduler at the most", max(samples), "MiB"),
        Figure("scheduler at the end", samples[-1], "MiB"),
        Figure("growth from the third quarter to the last", growth, "MiB", LEVEL_MIB),
    ]
