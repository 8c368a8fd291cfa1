"""An error in handling one worker's input costs that worker at most: the process lives, and others are served."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.foreign import Foreign, echo, working
from tests.processes.system import System, running

PROGRAM = (sys.executable, str(Path(__file__).with_name("faulty_server.py")))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, command=PROGRAM, heartbeat_ms=1000) as server:
        yield server


def ready(resource_id: str) -> dict[str, Any]:
    return {"resource_id": resource_id, "state": "ready"}


async def served(server: System) -> None:
    """A run of another worker ends, as soon as there is an engine again."""
    await asyncio.to_thread(server.until, lambda: server.rest.status("/readyz") == 200)
    run_id = await asyncio.to_thread(server.rest.submit, echo())
    await asyncio.to_thread(server.until, lambda: server.rest.run_status(run_id) == "succeeded")


async def resources(server: System) -> set[str]:
    rows = (await asyncio.to_thread(server.rest.get, "resources?limit=200"))["items"]
    return {row["resourceId"] for row in rows}


@pytest.mark.parametrize("part", ["gateway", "engine", "rows", "store"])
async def test_a_frame_at_which_the_scheduler_fails_is_refused_when_it_comes_again(
    server: System, part: str
) -> None:
    """It comes with good ones before and after it, which are kept; it is answered as a bad payload and acknowledged."""

    async with working(server.port, "innocent") as innocent, Foreign(server.port, "bad") as bad:
        await bad.enter()
        good = [f"good-{number}" for number in range(6)]
        for name in good[:3]:
            bad.tell("biz.resource.event", ready(name))
        poison = bad.tell("biz.resource.event", ready(f"{part}-poison"))
        for name in good[3:]:
            bad.tell("biz.resource.event", ready(name))
        await bad.until_acked()
        refused = [one for one in bad.errors if one.get("for") == poison]
        assert [one["code"] for one in refused] == ["E.PROTOCOL.BAD_PAYLOAD"]
        await served(server)
        assert await resources(server) == set(good)
        if part == "gateway":
            assert len(innocent.accepts) == 1, "it cost nobody else anything"
    server.rest.read_everything()
    assert server.rest.metric("astraflow_input_failures_total") >= 1
    assert "a fault of the test" in server.scheduler.said()


async def test_a_register_at_which_the_scheduler_fails_shuts_its_worker_out(server: System) -> None:
    async with working(server.port, "innocent"), Foreign(server.port, "bad") as bad:
        for _ in range(5):
            with pytest.raises((AssertionError, OSError)):
                await bad.enter(register={"labels": {"label-bad": ""}})
        await served(server)
    assert server.rest.metric("astraflow_input_failures_total") == 1, (
        "it happens once, not at every try"
    )
