"""The scheduler dies while a thousand nodes are at work."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.chaos import checkers
from tests.chaos.shapes import python_node
from tests.chaos.supervisor import Supervisor, supervised
from tests.chaos.truth import read_truth
from tests.chaos.workload import Api, Told
from tests.definitions import workflow
from tests.processes.waiting import until_seen

WORKERS, SLOTS = 4, 250
NODES = WORKERS * SLOTS
WORK_S = 6.0
"""Longer than it takes to start them all, so that they are all at work at once."""
LEASE_S = 10.8
WITHIN_S = 60.0


@pytest.mark.timeout(180)
async def test_a_scheduler_killed_under_a_thousand_nodes_takes_them_up_again(
    tmp_path: Path,
) -> None:
    truth = tmp_path / "truth"
    truth.mkdir()

    heartbeat_ms = int(LEASE_S / 6 * 1000)
    async with (
        supervised(tmp_path, workers=WORKERS, slots=SLOTS, heartbeat_ms=heartbeat_ms) as supervisor,
        Api(lambda: supervisor.system.url) as api,
    ):
        await _kill_in_flight(supervisor, api, truth)


def _ended(truth: Path) -> int:
    return sum(line.word == "end" for lines in read_truth(truth).values() for line in lines)


async def _kill_in_flight(supervisor: Supervisor, api: Api, truth: Path) -> None:
    nodes = [python_node(truth, f"k{at}", "still", seconds=WORK_S) for at in range(NODES)]
    answer = await api.ask("POST", "/api/v1/runs", json={"workflow": workflow(*nodes)})
    keys = {node["id"]: node["parameters"]["inputs"]["key"] for node in nodes}
    told = Told(answer.json()["runId"], time.monotonic_ns(), keys)
    async with asyncio.TaskGroup() as group:
        group.create_task(api.follow(told))
        await until_seen(lambda: sum(1 for _ in truth.iterdir()) == NODES, WITHIN_S)
        supervisor.kill(supervisor.scheduler)
        done = _ended(truth)
        killed_at = time.monotonic()
        supervisor.spawn(supervisor.scheduler)
        await until_seen(lambda: told.is_over, LEASE_S + 5.0)
        took_s = time.monotonic() - killed_at
    told.views.append((await api.ask("GET", f"/api/v1/runs/{told.run_id}")).json())
    lines = read_truth(truth)
    attempts = sum(line.word == "start" for one in lines.values() for line in one)
    print(
        f"killed with {NODES - done} of {NODES} nodes at work: all done {took_s:.2f} s later, "
        f"{attempts} attempts, stream resumed {told.resumes} times"
    )
    assert told.views[-1]["status"] == "succeeded"
    assert {node["status"] for node in told.views[-1]["nodes"]} == {"succeeded"}
    assert checkers.started_twice(lines) == []
    assert checkers.overlapping(lines) == []
    assert checkers.results_without_truth([told], lines) == []
    assert told.resumes > 0
    assert checkers.events_are_complete([told]) == []
