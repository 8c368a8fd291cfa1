"""A worker that is written on the generated models opens a session of a real scheduler and executes a task."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.e2e.typed_worker import TypedWorker
from tests.hostile.foreign import echo
from tests.processes.system import running


async def test_a_worker_on_the_generated_models_executes_a_task(tmp_path: Path) -> None:
    with running(tmp_path, heartbeat_ms=20_000) as server:
        async with await TypedWorker.open(server.port, "typed") as worker, asyncio.timeout(30):
            worker.enter()
            while worker.session is None:
                await worker.step()
            assert worker.session["worker_instance_id"] == "typed"
            run_id = await asyncio.to_thread(server.rest.submit, echo("hello"))
            while worker.acked != 0:
                await worker.step()
            (given,) = worker.done
            assert (given["run_id"], given["node_type"]) == (run_id, "core.echo")
            await asyncio.to_thread(
                server.until, lambda: server.rest.run_status(run_id) == "succeeded"
            )
            run = await asyncio.to_thread(server.rest.get, f"runs/{run_id}")
            assert run["nodes"][0]["result"] == {"value": "hello"}
            assert worker.errors == []
