"""Maps, containers and calls of workflows on real processes, with `kill -9`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import link, node, workflow
from tests.e2e.test_control_flow import by_label, example
from tests.processes.system import System, running


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1) as made:
        yield made


def save(system: System, definition: dict[str, Any]) -> None:
    answer = system.rest.http.post("/api/v1/workflows", json=definition)
    assert answer.status_code == 201, answer.text


REFUSED = {
    "index": 1,
    "code": "E.RUNNER.FAILURE",
    "category": "USER_CODE",
    "message": "node Refuse: an order needs a price and a count",
}


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        (
            "map",
            {
                "letter": "1. Hello Paris; 2. Hello Lagos; 3. Hello Lima",
                "greetings": ["1. Hello Paris", "2. Hello Lagos", "3. Hello Lima"],
            },
        ),
        ("container", {"total": 48.0, "refused": [REFUSED]}),
        ("call", {"greetings": ["Hello Ada", "Hello Grace"]}),
    ],
)
def test_an_example_has_its_golden_result(
    system: System, name: str, outputs: dict[str, Any]
) -> None:
    if name == "call":
        refused = system.rest.http.post("/api/v1/runs", json={"workflow": example(name)})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
            422,
            "/nodes/0/call",
        )
        save(system, example("greeting"))
    view = system.rest.run(example(name))
    assert (view["status"], view["outputs"]) == ("succeeded", outputs)


def mapped(count: int, seconds: float = 0.0, **over: Any) -> dict[str, Any]:
    code = (
        "import time\n"
        f"def main(n):\n    time.sleep({seconds})\n    return {{'n': n, 'square': n * n}}\n"
    )
    parameters = {"code": code, "inputs": {"n": "=item"}}
    over = {"over": f"=range({count})", **over}
    return workflow(node("core.python", "square", parameters=parameters, map=over))


def test_a_map_survives_the_death_of_the_scheduler_and_of_its_worker(system: System) -> None:
    run_id = system.rest.submit(mapped(300, 0.01, concurrency=20))
    path = f"runs/{run_id}"

    def some_have_ended() -> bool | None:
        counts = by_label(system.rest.get(path))["square"]["items"]
        return True if counts["succeeded"] > 40 else None

    system.until(some_have_ended, "a map that is under way")
    system.restart()
    view = system.rest.finished(run_id)
    assert view["status"] == "succeeded", view["error"]
    shown = by_label(view)["square"]
    assert shown["items"]["succeeded"] == 300
    result = system.rest.get(f"{path}/nodes/{shown['nodeId']}")["result"]
    assert result["items"] == [{"n": n, "square": n * n} for n in range(300)]


def events(system: System, run_id: str) -> list[dict[str, Any]]:
    with system.rest.http.stream(
        "GET", "/api/v1/events", params={"runId": run_id}, timeout=60
    ) as stream:
        return [
            json.loads(line.removeprefix("data: "))
            for line in stream.iter_lines()
            if line.startswith("data: ")
        ]


def test_items_are_listed_in_order_and_each_is_a_node(system: System) -> None:
    run_id = system.rest.submit(mapped(7))
    view = system.rest.finished(run_id)
    owner = by_label(view)["square"]["nodeId"]
    path = f"runs/{run_id}/nodes/{owner}"
    first = system.rest.get(f"{path}/items?limit=5")
    assert [one["item"] for one in first["items"]] == [0, 1, 2, 3, 4]
    rest = system.rest.get(f"{path}/items?limit=5&cursor={first['nextCursor']}")
    assert [one["result"]["square"] for one in rest["items"]] == [25, 36]
    assert rest["nextCursor"] is None
    assert system.rest.get(f"{path}/items?status=failed")["items"] == []
    third = system.rest.get(f"{path}?scope={first['items'][3]['scopePath']}")
    assert (third["item"], third["result"]["square"]) == (3, 9)
    assert third["attempts"][0]["status"] == "succeeded"
    [inside] = system.rest.get(f"{path}/body?item=6")["nodes"]
    assert inside["result"]["n"] == 6
    for wrong in (
        f"{owner}:7",
        f"{owner}:x",
        "x:0",
        f"{owner}",
        f"{owner}:1/{owner}:0",
        "/",
        ":",
        f"{owner}:01",
    ):
        answer = system.rest.http.get(f"/api/v1/{path}", params={"scope": wrong})
        assert answer.status_code == 404, (wrong, answer.text)
    seen = events(system, run_id)
    assert [one["id"] for one in seen] == list(range(1, len(seen) + 1))
    places = {one["data"].get("scopePath") for one in seen if one["type"] == "node.state"}
    assert places == {None, *(f"{owner}:{item}" for item in range(7))}


def test_a_cancelled_map_ends(system: System) -> None:
    run_id = system.rest.submit(mapped(2_000, 30, concurrency=5))
    system.until(
        lambda: by_label(system.rest.get(f"runs/{run_id}"))["square"]["items"] or None,
        "a map that has begun",
    )
    answer = system.rest.http.post(f"/api/v1/runs/{run_id}/cancel")
    assert answer.status_code in (200, 202), answer.text
    view = system.rest.finished(run_id)
    counts = by_label(view)["square"]["items"]
    assert (view["status"], counts["cancelled"]) == ("cancelled", 2_000)


def test_an_approval_inside_of_a_map_is_decided_by_its_path(system: System) -> None:
    asks = node("core.approval", "ask", approval={"message": "=item"}, map={"over": "=['a', 'b']"})
    run_id = system.rest.submit(workflow(asks))

    def open_ones() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = system.rest.get("approvals")["items"]
        return found if len(found) == 2 else None

    waiting = system.until(open_ones, "two approvals")
    assert [one["message"] for one in waiting] == ["a", "b"]
    system.restart()
    path = f"/api/v1/runs/{run_id}/nodes/{asks['id']}/approval"
    assert system.rest.http.post(path, json={"approved": True}).status_code == 409
    for one in waiting:
        decision = {"approved": one["message"] == "a", "scope": one["scopePath"]}
        assert system.rest.http.post(path, json=decision).status_code == 204
        assert system.rest.http.post(path, json=decision).status_code == 409
    view = system.rest.finished(run_id)
    results = by_label(view)["ask"]["result"]["items"]
    assert [one["approved"] for one in results] == [True, False]


def test_what_a_map_collects_is_stored_when_it_is_large(system: System) -> None:
    code = "def main(n):\n    return {'n': n, 'text': 'x' * 20_000}"
    count = node(
        "core.python",
        "count",
        parameters={
            "code": "def main(rows):\n    return {'rows': len(rows), 'last': rows[-1]['n']}"
        },
        ui={"inputPorts": [{"key": "rows", "binding": {"path": "parameters.inputs.rows"}}]},
    )
    made = node(
        "core.python",
        "make",
        parameters={"code": code, "inputs": {"n": "=item"}},
        map={"over": "=range(300)"},
    )
    edge = {
        "source": {"node": made["id"], "port": "items"},
        "target": {"node": count["id"], "port": "rows"},
    }
    run_id = system.rest.submit(workflow(made, count, edges=[edge]))

    def almost() -> bool | None:
        shown = by_label(system.rest.get(f"runs/{run_id}"))["make"]["items"]
        return True if shown is not None and shown["succeeded"] > 250 else None

    system.until(almost, "a map that has almost ended")
    system.restart()
    view = system.rest.finished(run_id)
    assert view["status"] == "succeeded", view
    nodes = by_label(view)
    assert nodes["count"]["result"] == {"rows": 300, "last": 299}
    ref = nodes["make"]["result"]["items"]["resourceRef"]
    assert ref["sizeBytes"] > 6_000_000
    got = system.rest.http.get(f"/api/v1/artifacts/{ref['resourceId']}", follow_redirects=True)
    assert [one["n"] for one in got.json()] == list(range(300))
    item = system.rest.get(f"runs/{run_id}/nodes/{made['id']}?scope={made['id']}:7")
    assert item["result"]["n"] == 7


def test_items_whose_files_are_lost_with_their_worker_end_the_map_and_not_the_scheduler(
    system: System,
) -> None:
    files = node("core.file", "files", parameters={"text": "=str(item)"}, map={"over": "=[1, 2]"})
    files["parameters"]["name"] = "=f'{item}.txt'"
    asks = node("core.approval", "ask", approval={"message": "?"})
    over = {"over": "=nodes.files.results.items"}
    reads = node("core.read_file", "reads", parameters={"file": "=item.file"}, map=over)
    run_id = system.rest.submit(
        workflow(files, asks, reads, edges=[link(files, asks), link(asks, reads)])
    )
    system.until(lambda: system.rest.get("approvals")["items"], "an approval")
    system.workers["worker-1"].kill()
    path = f"/api/v1/runs/{run_id}/nodes/{asks['id']}/approval"
    assert system.rest.http.post(path, json={"approved": True}).status_code == 204
    view = system.rest.finished(run_id)
    assert (view["status"], view["error"]["code"]) == ("failed", "E.RESOURCE.LOST")
    counts = by_label(view)["reads"]["items"]
    assert (counts["failed"], counts["cancelled"]) == (1, 1)
