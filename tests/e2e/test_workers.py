"""Workers that end: drained by an operator, or killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.processes.system import System, running
from tests.processes.waiting import until

RUNS = 20


def noop() -> dict[str, Any]:
    return workflow(node("core.noop", "n"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path / "site", 1) as site:
        yield site


def command(site: System, worker_id: str, kind: str) -> None:
    site.rest.post(f"workers/{worker_id}/commands", {"type": kind})


def status(site: System, worker_id: str) -> str:
    return str(site.rest.get(f"workers/{worker_id}")["status"])


def test_a_drained_worker_is_offline_and_stays_so_when_the_drain_is_taken_back(
    site: System,
) -> None:
    [worker] = site.rest.online()
    worker_id = worker["workerId"]
    seen: set[str] = set()

    def ended() -> bool:
        seen.add(status(site, worker_id))
        return bool(seen & {"offline", "lost"})

    command(site, worker_id, "drain")
    assert site.workers["worker-1"].wait() == 0
    until(ended, "the end of the drained worker")
    assert seen <= {"online", "draining", "offline"}
    command(site, worker_id, "undrain")
    assert status(site, worker_id) == "offline"
    run_id = site.rest.submit(noop())
    until(lambda: site.rest.nodes(run_id)["n"]["waitingFor"], "a reason to wait")
    node = site.rest.nodes(run_id)["n"]
    assert (node["attempt"], node["waitingFor"]["kind"]) == (0, "worker")
    assert status(site, worker_id) == "offline"
    site.workers["worker-1"].start()
    run = site.rest.finished(run_id)
    assert (run["status"], run["nodes"][0]["attempt"]) == ("succeeded", 1)
    assert run["nodes"][0]["workerId"] == worker_id


def test_after_a_kill_new_runs_go_to_the_other_worker_at_once(site: System) -> None:
    site.new_worker("worker-2").start()
    until(lambda: len(site.rest.online()) == 2, "both workers online")
    others = {one["workerId"] for one in site.rest.online() if one["name"] == "worker-2"}
    site.workers["worker-1"].kill()
    runs = [site.rest.submit(noop()) for _ in range(RUNS)]
    for run_id in runs:
        run = site.rest.finished(run_id)
        [node] = run["nodes"]
        assert run["status"] == "succeeded", run
        # Nothing was sent to the dead one: no attempt of it had to be withdrawn or waited for.
        assert (node["attempt"], {node["workerId"]}) == (1, others), site.rest.story(
            run_id, node["nodeId"]
        )
