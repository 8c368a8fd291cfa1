"""What the front page shows is run here, so that it cannot rot."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec

from astraflow.bench.processes import BenchClient, running

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_workflow_of_the_front_page_does_what_it_says() -> None:
    (example,) = blocks("json")

    async def main(port: int) -> None:
        client = BenchClient(port)
        workflow = msgspec.json.decode(example.replace("localhost:8080", f"127.0.0.1:{port}"))
        async with client.stream() as events:
            run_id = await client.submit(msgspec.json.encode({"workflow": workflow}))
            await client.ended({run_id}, events)
        run = await client.request("GET", f"/api/v1/runs/{run_id}")
        await client.close()
        assert run["nodes"][1]["result"] == {"isHealthy": True}

    with running() as system:
        asyncio.run(main(system.port))


def test_the_request_of_the_front_page_is_accepted_as_it_is() -> None:
    (command,) = [block for block in blocks("") if block.startswith("curl")]
    named = re.search(r"-d @(\S+)", command)
    assert named is not None
    request = (ROOT / named[1]).read_bytes()

    async def main(port: int) -> None:
        client = BenchClient(port)
        async with client.stream() as events:
            run_id = await client.submit(request)
            await client.ended({run_id}, events)
        await client.close()

    with running() as system:
        asyncio.run(main(system.port))
