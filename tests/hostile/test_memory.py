"""Large runs that have ended, and were read, leave no more memory behind than the caches may hold."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.hostile.foreign import succeed, working
from tests.hostile.server import running

RUNS = 200
READS = 150
PARAMETERS = "p" * 1_000_000
RESULT = "r" * 1_500_000
GROWTH_MIB = 150.0
"""The caches of plans and of ended runs together take 64 MiB; without a bound it is more than 500 MiB."""


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
