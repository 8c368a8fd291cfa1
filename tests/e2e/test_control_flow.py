"""Conditions, expressions, handled failures, approvals, signals and waits on real processes, with `kill -9`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.processes.system import System, running

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1) as made:
        yield made


def example(name: str) -> dict[str, Any]:
    definition: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text("utf-8"))
    return definition


def by_label(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["label"]: one for one in view["nodes"]}


def waits_at(system: System, run_id: str, label: str) -> dict[str, Any]:
    """The node, when the run waits at it."""

    def look() -> dict[str, Any] | None:
        found = by_label(system.rest.get(f"runs/{run_id}"))[label]
        return found if found["status"] == "waiting" else None

    return system.until(look, f"a run that waits at {label}")


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("expressions", {}, {"bill": "ADA pays 25.0 for tea and pot"}),
        ("conditions", {}, {"said": "120: paid"}),
        ("conditions", {"total": 1000}, {"said": "1000: asked"}),
        ("conditions", {"total": 0}, {"said": "0: nothing"}),
        ("middleware", {}, {"forecast": "Oslo: sunny, said call 3"}),
        ("large-results", {}, {"said": "500000 numbers, total 124999750000"}),
        ("placement", {}, {"said": "small and large"}),
        ("error-port", {}, {"note": "E.RUNNER.FAILURE: the service is closed on Mondays"}),
    ],
)
def test_an_example_has_its_golden_result(
    system: System, name: str, inputs: dict[str, Any], outputs: dict[str, Any]
) -> None:
    view = system.rest.run(example(name), inputs=inputs)
    assert (view["status"], view["outputs"]) == ("succeeded", outputs)


def test_an_approval_a_signal_and_a_wait_survive_the_scheduler(system: System) -> None:
    run_id = system.rest.submit(example("approval"))
    asked = waits_at(system, run_id, "Approve")
    assert asked["waitingFor"]["detail"] == "Pay 500 to Ada?"
    system.restart()
    waits_at(system, run_id, "Approve")
    (open_one,) = system.rest.get("approvals")["items"]
    assert (open_one["runId"], open_one["message"]) == (run_id, "Pay 500 to Ada?")
    path = f"/api/v1/runs/{run_id}/nodes/{asked['nodeId']}/approval"
    refused = system.rest.http.post(path, json={"approved": True})
    assert (refused.status_code, refused.json()["code"]) == (422, "E.APPROVAL.FORM")
    assert refused.json()["errors"][0]["pointer"] == "/values/budget"
    decision = {"approved": True, "comment": "fine", "values": {"budget": "IT"}}
    assert system.rest.http.post(path, json=decision).status_code == 204
    system.restart()
    again = system.rest.http.post(path, json=decision)
    assert (again.status_code, again.json()["code"]) == (409, "E.APPROVAL.NOT_OPEN")
    assert system.rest.get("approvals")["items"] == []
    waits_at(system, run_id, "Paid")
    for _ in range(2):
        told = system.rest.http.post(
            f"/api/v1/runs/{run_id}/signals/paid",
            json={"payload": {"sum": 7}},
            headers={"Idempotency-Key": "m-1"},
        )
        assert told.status_code in (202, 409), told.text
    system.restart()
    view = system.rest.finished(run_id)
    nodes = by_label(view)
    assert view["status"] == "succeeded"
    assert nodes["Report"]["result"] == {"text": "7 from IT"}
    assert nodes["Rejected"]["error"]["code"] == "E.TASK.BRANCH_NOT_TAKEN"
    assert nodes["Approve"]["result"]["approved"] is True


def test_a_rejection_takes_the_other_branch(system: System) -> None:
    run_id = system.rest.submit(example("approval"))
    asked = waits_at(system, run_id, "Approve")
    path = f"/api/v1/runs/{run_id}/nodes/{asked['nodeId']}/approval"
    rejected = {"approved": False, "comment": "too much"}
    assert system.rest.http.post(path, json=rejected).status_code == 204
    nodes = by_label(system.rest.finished(run_id))
    assert nodes["Rejected"]["result"] == {"value": "too much"}
    assert nodes["Report"]["status"] == "skipped"


def test_a_signal_that_comes_early_is_kept_over_a_kill(system: System) -> None:
    first = node("core.wait", "pause", wait={"seconds": 3})
    second = node("core.signal", "take", signal={"name": "go: x", "timeoutSeconds": 600})
    edge = {"source": {"node": first["id"]}, "target": {"node": second["id"]}}
    run_id = system.rest.submit(workflow(first, second, edges=[edge]))
    told = system.rest.http.post(f"/api/v1/runs/{run_id}/signals/go:%20x", json={"payload": [1]})
    assert told.status_code == 202, told.text
    system.restart()
    view = system.rest.finished(run_id)
    assert by_label(view)["take"]["result"]["payload"] == [1]


def test_what_cannot_be_told_is_refused(system: System) -> None:
    waiting = node("core.signal", "wait", signal={"name": "go"})
    run_id = system.rest.submit(workflow(waiting))
    post = system.rest.http.post
    base = f"/api/v1/runs/{run_id}"
    assert post("/api/v1/runs/nobody/signals/go").status_code == 404
    assert (
        post(f"{base}/nodes/{waiting['id']}/approval", json={"approved": True}).status_code == 409
    )
    assert post(f"{base}/nodes/nobody/approval", json={"approved": True}).status_code == 404
    assert post(f"{base}/nodes/{waiting['id']}/approval", json={}).status_code == 400
    assert post(f"{base}/nodes/x/approval", json={"approved": 1}).status_code == 400
    assert post(f"{base}/signals/{'x' * 129}").status_code == 400
    large = {"payload": "x" * 300_000}
    assert post(f"{base}/signals/go", json=large).status_code == 413
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    assert post(f"{base}/signals/go", json={"payload": deep}).status_code == 400
    kept = {"payload": "x" * 250_000}
    answers = [post(f"{base}/signals/other", json=kept) for _ in range(20)]
    assert [one.status_code for one in answers] == [202] * 16 + [409] * 4
    assert answers[-1].json()["code"] == "E.RUN.SIGNALS_FULL"
    assert system.rest.run_status(run_id) == "running"
    assert post(f"{base}/signals/go").status_code == 202
    assert system.rest.finished(run_id)["status"] == "succeeded"
    assert post(f"{base}/signals/go").status_code == 409


def test_a_cancel_ends_a_wait(system: System) -> None:
    run_id = system.rest.submit(workflow(node("core.wait", "w", wait={"seconds": 86_400})))
    waits_at(system, run_id, "w")
    system.rest.post(f"runs/{run_id}/cancel", wanted=200)
    assert system.rest.finished(run_id)["status"] == "cancelled"
