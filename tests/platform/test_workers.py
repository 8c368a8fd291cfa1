"""Workers that end: drained by an operator, or killed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.platform.site import QUICK, Site, running, until

RUNS = 20


def noop() -> dict[str, Any]:
    node = {"id": str(uuid.uuid4()), "type": "core.noop", "label": "n", "parameters": {}}
    return {"id": str(uuid.uuid4()), "nodes": [node], "edges": []}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(tmp_path / "site", 1, **QUICK) as site:
        yield site


def command(site: Site, worker_id: str, kind: str) -> None:
    answer = site.http.post(f"/api/v1/workers/{worker_id}/commands", json={"type": kind})
    assert answer.status_code == 202, answer.text


def status(site: Site, worker_id: str) -> str:
    return str(site.get(f"workers/{worker_id}")["status"])


def test_a_drained_worker_is_offline_and_stays_so_when_the_drain_is_taken_back(site: Site) -> None:
    [worker] = site.online()
    worker_id = worker["workerId"]
    seen: set[str] = set()

    def ended() -> bool:
        seen.add(status(site, worker_id))
        return bool(seen & {"offline", "lost"})

    command(site, worker_id, "drain")
    assert site.ended_worker("worker-1") == 0
    until(ended, "the end of the drained worker")
    assert seen <= {"online", "draining", "offline"}
    command(site, worker_id, "undrain")
    assert status(site, worker_id) == "offline"
    run_id = site.submit(noop())
    until(lambda: site.nodes(run_id)["n"]["waitingFor"], "a reason to wait")
    node = site.nodes(run_id)["n"]
    assert (node["attempt"], node["waitingFor"]["kind"]) == (0, "worker")
    assert status(site, worker_id) == "offline"
    site.start_worker("worker-1")
    run = site.finished(run_id)
    assert (run["status"], run["nodes"][0]["attempt"]) == ("succeeded", 1)
    assert run["nodes"][0]["workerId"] == worker_id


def test_after_a_kill_new_runs_go_to_the_other_worker_at_once(site: Site) -> None:
    site.start_worker("worker-2")
    until(lambda: len(site.online()) == 2, "both workers online")
    others = {one["workerId"] for one in site.online() if one["name"] == "worker-2"}
    site.kill_worker("worker-1")
    runs = [site.submit(noop()) for _ in range(RUNS)]
    for run_id in runs:
        run = site.finished(run_id)
        [node] = run["nodes"]
        assert run["status"] == "succeeded", run
        # Nothing was sent to the dead one: no attempt of it had to be withdrawn or waited for.
        assert (node["attempt"], {node["workerId"]}) == (1, others), site.story(
            run_id, node["nodeId"]
        )
