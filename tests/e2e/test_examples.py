"""The examples that need more than one run of a definition to show what they are for, each with its golden result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_control_flow import EXAMPLES, by_label, example, waits_at
from tests.e2e.test_scopes import save
from tests.processes.process import ROOT
from tests.processes.system import System, running

UNDONE = {
    "Cancel the hotel": {"text": "room 22 is cancelled"},
    "Cancel the flight": {"text": "flight F-11 is cancelled"},
    "Tell the traveller": {},
}
"""What undoes the trip, in this order."""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1) as made:
        yield made


def order(view: dict[str, Any]) -> list[str]:
    """The labels of the nodes that have run, in the order of their starts."""
    begun = [one for one in view["nodes"] if one["startedAt"] is not None]
    return [one["label"] for one in sorted(begun, key=lambda one: str(one["startedAt"]))]


def test_compensation_undoes_the_last_first(system: System) -> None:
    view = system.rest.run(example("compensation"))
    assert (view["status"], view["error"]["message"]) == ("failed", "RuntimeError: no car is left")
    nodes = by_label(view)
    assert {label: nodes[label]["result"] for label in UNDONE} == UNDONE
    done = ["Book the flight", "Book the hotel", "Book the car"]
    assert order(view) == [*done, *UNDONE]


def test_compensation_goes_on_over_a_kill_and_is_skipped_where_nothing_failed(
    system: System,
) -> None:
    definition = example("compensation")
    hotel = next(one for one in definition["nodes"] if one["label"] == "Cancel the hotel")
    hotel.pop("parameters")
    hotel.update({"type": "core.signal", "signal": {"name": "cancelled"}})
    run_id = system.rest.submit(definition)
    waits_at(system, run_id, "Cancel the hotel")
    system.restart()
    assert by_label(system.rest.get(f"runs/{run_id}"))["Cancel the flight"]["startedAt"] is None
    system.rest.post(f"runs/{run_id}/signals/cancelled", {"payload": None})
    view = system.rest.finished(run_id)
    assert (view["status"], order(view)[-2:]) == ("failed", list(UNDONE)[1:])
    assert all(one["attempt"] == 1 for one in view["nodes"] if one["label"] in list(UNDONE)[1:])
    fine = system.rest.run(example("compensation"), inputs={"cars": 1})
    assert (fine["status"], fine["outputs"]) == ("succeeded", {"trip": "flight, hotel and car"})
    skipped = {by_label(fine)[label]["error"]["code"] for label in UNDONE}
    assert skipped == {"E.TASK.NOT_NEEDED"}


def test_a_rerun_takes_over_what_had_succeeded(system: System) -> None:
    first = system.rest.run(example("rerun"))
    assert (first["status"], first["error"]["message"]) == ("failed", "AssertionError: yaml")
    check = by_label(first)["Check"]["nodeId"]
    change = {"mode": "failed", "parameters": {check: {"inputs": {"wanted": "json"}}}}
    answer = system.rest.post(f"runs/{first['runId']}/rerun", change)
    second = system.rest.finished(answer["runId"])
    assert (second["status"], second["outputs"]) == ("succeeded", {"ok": {"ok": True}})
    assert second["rerunOf"] == first["runId"]
    assert [by_label(second)[label]["attempt"] for label in ("Given", "Check")] == [0, 1]


def test_the_triggers_of_the_example_start_it(system: System) -> None:
    definition = example("triggers")
    save(system, definition)
    path = f"workflows/{definition['id']}/triggers"
    shown = {one["id"]: one["enabled"] for one in system.rest.get(path)["items"]}
    assert shown == {"weekdays": False, "push": True, "by-hand": True}
    by_hand = system.rest.post(f"{path}/by-hand/run", {"inputs": {"city": "Chur"}})
    view = system.rest.finished(by_hand["runId"])
    assert (view["status"], view["outputs"]) == (
        "succeeded",
        {"report": "all is well in Chur"},
    )
    hook = system.rest.get(f"{path}/push")["hookPath"]
    pushed = system.rest.http.post(hook, json={"city": "Lugano"})
    assert pushed.status_code == 202, pushed.text
    view = system.rest.finished(pushed.json()["runId"])
    assert view["outputs"] == {"report": "all is well in Lugano"}


def test_versions_of_the_example_run_side_by_side(system: System) -> None:
    definition = example("greeting")
    save(system, definition)
    definition["nodes"][0]["parameters"]["template"] = "Good morning {{name}}"
    path = f"/api/v1/workflows/{definition['id']}"
    answer = system.rest.http.put(path, json=definition)
    assert answer.status_code == 200, answer.text
    said = []
    for version in (1, 2, None):
        wanted = {} if version is None else {"version": version}
        body = {"workflowId": definition["id"], "inputs": {"name": "Ada"}, **wanted}
        run_id = system.rest.post("runs", body)["runId"]
        said.append(system.rest.finished(run_id)["outputs"]["text"])
    assert said == ["Hello Ada", "Good morning Ada", "Good morning Ada"]


def test_every_example_is_run_by_a_test() -> None:
    texts = [
        path.read_text("utf-8")
        for folder in ("e2e", "cli")
        for path in (ROOT / "tests" / folder).glob("test_*.py")
    ]
    for path in EXAMPLES.glob("*.json"):
        names = (f'"{path.stem}"', f'"{path.name}"', f'"examples/{path.name}"')
        assert any(name in text for text in texts for name in names), path.name
