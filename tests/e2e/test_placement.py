"""Requests and labels on real processes: what runs side by side, what waits and why, also over a `kill -9`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.processes.system import System, running

SLEEP_S = 3


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path) as made:
        made.new_worker("small", "--cpu", "1", "--memory-bytes", "1000", "--gpu", "0").start()
        made.new_worker("large", "--cpu", "4", "--gpu", "1", "--label", "zone=eu").start()
        made.until(lambda: len(made.rest.online()) == 2, "both workers online")
        yield made


def sleeping(label: str, seconds: float = SLEEP_S, **fields: Any) -> dict[str, Any]:
    return node("core.sleep", label, parameters={"seconds": seconds}, **fields)


def names(system: System, run_id: str) -> dict[str, str | None]:
    workers = {one["workerId"]: one["name"] for one in system.rest.get("workers")["items"]}
    return {label: workers.get(one["workerId"]) for label, one in system.rest.nodes(run_id).items()}


def test_a_request_goes_where_it_fits_and_labels_hold(system: System) -> None:
    view = system.rest.run(
        workflow(
            sleeping("tight", 0, resources={"cpu": 1}),
            sleeping("wide", 0, resources={"cpu": 2, "memoryBytes": 2_000}),
            sleeping("card", 0, resources={"gpu": 1}),
            sleeping("labelled", 0, workerHints={"labels": {"zone": "eu"}}),
        )
    )
    assert view["status"] == "succeeded"
    placed = names(system, view["runId"])
    assert placed["tight"] == "small"
    assert {placed[one] for one in ("wide", "card", "labelled")} == {"large"}


def test_two_that_do_not_fit_beside_each_other_run_one_after_the_other(system: System) -> None:
    """Also over a scheduler that dies between them: what runs is counted again."""
    asked = {"cpu": 3}
    run_id = system.rest.submit(
        workflow(sleeping("first", resources=asked), sleeping("second", resources=asked))
    )

    def waits() -> dict[str, Any] | None:
        nodes = system.rest.nodes(run_id).values()
        found = [one["waitingFor"] for one in nodes if one["waitingFor"]]
        is_running = any(one["status"] == "running" for one in nodes)
        return found[0] if found and is_running else None

    reason = system.until(waits, "a request that waits beside one that runs")
    assert reason["kind"] == "slot"
    assert "has 1 cpu free of the 3 cpu asked for" in reason["detail"]
    large = next(one for one in system.rest.online() if one["name"] == "large")
    detail = system.rest.worker(large["workerId"])
    assert (detail["capacity"]["cpu"], detail["reserved"]["cpu"]) == (4, 3)
    system.restart()
    view = system.rest.finished(run_id)
    assert view["status"] == "succeeded"
    details = [system.rest.get(f"runs/{run_id}/nodes/{one['nodeId']}") for one in view["nodes"]]
    attempts = [one for detail in details for one in detail["attempts"] if one["startedAt"]]
    spans = sorted((one["startedAt"], one["finishedAt"]) for one in attempts)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), spans
    assert system.rest.worker(large["workerId"])["reserved"]["cpu"] == 0


def test_what_nobody_has_is_told_until_somebody_has_it(system: System) -> None:
    run_id = system.rest.submit(
        workflow(
            sleeping("huge", 0, resources={"cpu": 64}),
            sleeping("elsewhere", 0, workerHints={"labels": {"zone": "us"}}),
        )
    )

    def waits() -> dict[str, Any] | None:
        nodes = system.rest.nodes(run_id)
        said = {label: one["waitingFor"] for label, one in nodes.items()}
        return said if all(said.values()) else None

    said = system.until(waits, "two reasons to wait")
    assert said["huge"]["kind"] == "capacity"
    assert said["huge"]["detail"].startswith("64 cpu asked for; worker ")
    assert said["elsewhere"]["kind"] == "worker"
    assert said["elsewhere"]["detail"].endswith("has the label zone=us")
    huge = system.rest.nodes(run_id)["huge"]["nodeId"]
    told = "waits for capacity: 64 cpu asked for"
    system.until(lambda: told in system.rest.story(run_id, huge), "a line in the story")
    system.new_worker("huge", "--cpu", "64", "--label", "zone=us").start()
    assert system.rest.finished(run_id)["status"] == "succeeded"


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [({"cpu": -1}, "cpu"), ({"memoryBytes": "1"}, "memoryBytes"), ({"gpu": True}, "gpu")],
)
def test_a_wrong_request_is_refused_alike(system: System, asked: Any, pointer: str) -> None:
    definition = workflow(sleeping("n", 0, resources=asked))
    for path, body in (("runs", {"workflow": definition}), ("workflows/validate", definition)):
        answer = system.rest.http.post(f"/api/v1/{path}", json=body)
        problems = answer.json().get("errors") or answer.json().get("problems")
        assert problems[0]["pointer"].endswith(f"/nodes/0/resources/{pointer}"), answer.text
