"""What a call gives to another workflow is refused with its pointer by validation, save and submission alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import link, node, workflow
from tests.processes.command_line import astra
from tests.processes.rest import TOKEN
from tests.processes.system import System, running

KEY = "c2VjcmV0cyBvZiB0aGUgdGVzdHMgb2YgdHJpZ2dlcnM="


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1, environ={"ASTRA_SCHEDULER_SECRETS_KEY": KEY}) as made:
        yield made


def calling(callee: str, **inputs: Any) -> dict[str, Any]:
    call = {"call": {"workflowId": callee}, "parameters": {"inputs": inputs}}
    first = node("core.echo", "First", parameters={"value": 1})
    called = node("core.call", "Call", **call)
    return workflow(first, called, edges=[link(first, called)])


def refusals(system: System, definition: dict[str, Any], file: Path) -> list[Any]:
    """What each way to hand a definition in says of it: pointers and messages."""
    told = []
    for path, body in (
        ("workflows/validate", definition),
        ("workflows", definition),
        ("runs", {"workflow": definition}),
    ):
        answer = system.rest.http.post(f"/api/v1/{path}", json=body)
        assert answer.status_code == 422, (path, answer.text)
        told.append([(one["pointer"], one["message"]) for one in answer.json()["errors"]])
    file.write_text(json.dumps(definition))
    done = astra(
        "workflows",
        "validate",
        str(file),
        cwd=file.parent,
        ASTRA_SERVER=system.url,
        ASTRA_TOKEN=TOKEN,
    )
    assert done.code != 0
    assert all(pointer in done.err for pointer, _ in told[0]), done
    return told


def test_constants_of_a_call_are_checked_wherever_a_definition_is_handed_in(
    system: System, tmp_path: Path
) -> None:
    inside = node("core.echo", "Inside", parameters={"value": "=inputs.n + 1"})
    declared = {"n": {"required": True, "schema": {"type": "integer"}}}
    outputs = {"sum": {"source": {"node": inside["id"], "port": "value"}}}
    callee = workflow(inside, inputs=declared, outputs=outputs)
    system.rest.post("workflows", callee, wanted=201)

    validated, saved, submitted = refusals(
        system, calling(callee["id"], n="x", m=1), tmp_path / "wrong.json"
    )
    assert validated == saved == submitted
    assert [pointer for pointer, _ in validated] == [
        "/nodes/1/parameters/inputs/m",
        "/nodes/1/parameters/inputs/n",
    ]
    view = system.rest.run(calling(callee["id"], n="=nodes.First.results.value"))
    assert view["status"] == "succeeded", view["error"]

    late = system.rest.run(calling(callee["id"], n="=str(nodes.First.results.value)"))
    assert (late["status"], late["error"]["code"]) == ("failed", "E.TASK.INPUT_INVALID")
    assert "/inputs/n" in late["error"]["message"]


def test_a_caller_is_refused_once_the_other_workflow_takes_other_inputs(system: System) -> None:
    inside = node("core.echo", "Inside", parameters={"value": 1})
    callee = workflow(inside, inputs={"n": {}})
    system.rest.post("workflows", callee, wanted=201)
    caller = calling(callee["id"], n=1)
    assert system.rest.run(caller)["status"] == "succeeded"
    path = f"/api/v1/workflows/{callee['id']}"
    changed = {**callee, "inputs": {"number": {"required": True}}}
    answer = system.rest.http.put(path, json=changed)
    assert answer.status_code == 200, answer.text
    refused = system.rest.http.post("/api/v1/runs", json={"workflow": caller})
    assert refused.status_code == 422
    assert {one["pointer"] for one in refused.json()["errors"]} == {
        "/nodes/1/parameters/inputs/n",
        "/nodes/1/parameters/inputs/number",
    }
    caller["nodes"][1]["call"]["version"] = 1
    assert system.rest.run(caller)["status"] == "succeeded"


def test_a_stored_value_is_given_to_a_call_and_a_secret_is_not(system: System) -> None:
    rest = system.rest
    assert rest.http.put("/api/v1/secrets/KEY", json={"value": "hush"}).status_code == 200
    code = "def main(rows):\n    return {'rows': len(rows)}"
    counts = {"code": code, "inputs": {"rows": "=inputs.rows"}}
    inside = node("core.python", "Inside", parameters=counts)
    callee = workflow(inside, inputs={"rows": {"schema": {"type": "array"}}})
    rest.post("workflows", callee, wanted=201)
    code = "def main():\n    return {'rows': [1] * 2_000_000}"
    large = node("core.python", "Large", parameters={"code": code})
    inputs = {"rows": "=nodes.Large.results.rows"}
    call = node(
        "core.call", "Call", call={"workflowId": callee["id"]}, parameters={"inputs": inputs}
    )
    view = rest.run(workflow(large, call, edges=[link(large, call)]))
    assert view["status"] == "succeeded", view["error"]
    shown = rest.get(f"runs/{view['runId']}/nodes/{inside['id']}", scope=f"{call['id']}:0")
    assert shown["result"] == {"rows": 2_000_000}
    refused = rest.http.post(
        "/api/v1/runs", json={"workflow": calling(callee["id"], rows="=secrets.KEY")}
    )
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == "/nodes/1/parameters/inputs/rows"
    assert "cannot be given a secret" in refused.text
