"""Runs that repeat others, comparisons, and what is done to many runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.rig import NODE_A, NODE_B, WORKFLOW, Rig, definition, problem_of, serving
from tests.api.scripted import ScriptedWorker

RUNS = "/api/v1/runs"
NODE_C = "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"


def chain(**more: Any) -> dict[str, Any]:
    """A feeds B; C stands alone."""
    nodes = [
        {"id": NODE_A, "type": "core.echo", "label": "A", "parameters": {"value": 1}},
        {"id": NODE_B, "type": "core.echo", "label": "B", "parameters": {"value": 2}},
        {"id": NODE_C, "type": "core.echo", "label": "C", "parameters": {"value": "=inputs.n"}},
    ]
    edges = [{"source": {"node": NODE_A}, "target": {"node": NODE_B}}]
    inputs = {"n": {"default": 7}}
    return definition(nodes=nodes, edges=edges, inputs=inputs, **more)


async def started(rig: Rig, **more: Any) -> str:
    answer = await rig.post(RUNS, json={"workflow": chain(), **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


async def failed_run(rig: Rig, worker: ScriptedWorker, artifacts: Any = ()) -> str:
    """A and C succeed, B fails."""
    run_id = await started(rig)
    first, alone = await worker.tasks(NODE_A, NODE_C)
    first.succeed({"value": "a"}, artifacts=list(artifacts))
    alone.succeed({"value": 7})
    (second,) = await worker.tasks(NODE_B)
    second.fail()
    await rig.status(run_id, "failed")
    return run_id


async def rerun(rig: Rig, run_id: str, **body: Any) -> dict[str, Any]:
    answer = await rig.post(f"{RUNS}/{run_id}/rerun", json=body)
    assert answer.status_code == 202, answer.text
    made: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"{RUNS}/{made['runId']}"
    return made


async def test_what_failed_is_repeated_and_the_rest_taken_over() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
        made = await rerun(rig, run_id)
        assert made["rerunOf"] == run_id
        assert sorted(made["kept"]) == sorted([NODE_A, NODE_C])
        (again,) = await worker.tasks(NODE_B)
        again.succeed({"value": "b"})
        done = await rig.status(made["runId"], "succeeded")
        assert done["rerunOf"] == run_id
        assert [node["attempt"] for node in done["nodes"] if node["nodeId"] != NODE_B] == [0, 0]
        node = (await rig.get(f"{RUNS}/{made['runId']}/nodes/{NODE_A}")).json()
        assert node["result"] == {"value": "a"}
        assert "took over its result" in node["story"][0]
        assert node["reusedFrom"] == {"runId": run_id, "nodeId": NODE_A}
        repeated = (await rig.get(f"{RUNS}/{made['runId']}/nodes/{NODE_B}")).json()
        assert "reusedFrom" not in repeated
        assert (await rig.status(run_id, "failed"))["status"] == "failed"
        listed = (await rig.get(RUNS)).json()["items"]
        assert [one.get("rerunOf") for one in listed] == [run_id, None]


async def test_a_run_is_repeated_from_a_node_with_other_parameters() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
        made = await rerun(
            rig, run_id, mode="from", nodes=[NODE_A], parameters={NODE_A: {"value": "new"}}
        )
        assert made["kept"] == [NODE_C]
        (task,) = await worker.tasks(NODE_A)
        assert task.payload["parameters"]["value"] == "new"
        used = (await rig.get(f"{RUNS}/{made['runId']}/definition")).json()
        assert used["nodes"][0]["parameters"] == {"value": "new"}
        assert (await rig.get(f"{RUNS}/{run_id}/definition")).json() == chain()


async def test_changed_parameters_and_inputs_repeat_what_depends_on_them() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
        changed = await rerun(rig, run_id, parameters={NODE_A: {"value": 5}})
        assert changed["kept"] == [NODE_C]
        other = await rerun(rig, run_id, inputs={"n": 8})
        assert other["kept"] == [NODE_A]
        whole = await rerun(rig, run_id, mode="all")
        assert whole["kept"] == []


async def test_a_result_whose_artifact_is_gone_is_made_again() -> None:
    resources = "/api/v1/resources"

    async with serving() as rig, rig.worker() as worker:
        worker.hold("r1", type="file")
        await rig.until(resources, lambda body: body["items"])
        artifact = {"resource_id": "r1", "worker_id": "w1", "type": "file"}
        run_id = await failed_run(rig, worker, [artifact])
        assert len((await rerun(rig, run_id))["kept"]) == 2
        worker.hold("r1", type="file", state="evicted")
        await rig.until(f"{resources}?state=evicted", lambda body: body["items"])
        assert (await rerun(rig, run_id))["kept"] == [NODE_C]


async def test_a_run_that_is_active_is_not_repeated_and_bad_requests_are_refused() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
        active = await started(rig)
        path = f"{RUNS}/{active}/rerun"
        problem_of(await rig.post(path, json={}), 409, "E.RUN.NOT_TERMINAL")
        problem_of(await rig.post(f"{RUNS}/nothing/rerun"), 404, "E.RUN.NOT_FOUND")
        path = f"{RUNS}/{run_id}/rerun"
        bodies: list[dict[str, Any]] = [
            {"mode": "from"},
            {"nodes": [NODE_A]},
            {"mode": "some"},
            {"parameters": {NODE_A: 5}},
            {"parameters": {"nobody": {}}},
            {"packages": {"no.such": "1.0.0"}},
            {"inputs": []},
        ]
        for body in bodies:
            problem_of(await rig.post(path, json=body), 400, "E.REQUEST.INVALID")
        unknown = await rig.post(path, json={"mode": "from", "nodes": ["nobody"]})
        problem_of(unknown, 422, "E.WORKFLOW.UNKNOWN_NODE")
        version = await rig.post(path, json={"packages": {"core": "99.0.0"}})
        assert problem_of(version, 422, "E.WORKFLOW.INVALID")["errors"]
        wrong = await rig.post(path, json={"inputs": {"m": 1}})
        problem_of(wrong, 422, "E.WORKFLOW.INPUT")


async def test_the_same_key_repeats_a_run_once() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
        path, headers = f"{RUNS}/{run_id}/rerun", {"idempotency-key": "k"}
        one = (await rig.post(path, json={}, headers=headers)).json()
        two = (await rig.post(path, json={}, headers=headers)).json()
        assert one == two
        other = await rig.post(path, json={"mode": "all"}, headers=headers)
        problem_of(other, 409, "E.RUN.IDEMPOTENCY_CONFLICT")


async def test_a_stored_run_is_repeated_after_a_restart(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with serving(url, folder=tmp_path) as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
    async with serving(url, folder=tmp_path) as rig, rig.worker() as worker:
        made = await rerun(rig, run_id)
        assert len(made["kept"]) == 2
        (again,) = await worker.tasks(NODE_B)
        again.succeed({"value": "b"})
        await rig.status(made["runId"], "succeeded")


async def test_a_run_of_a_saved_workflow_keeps_its_version_unless_something_changed() -> None:
    async with serving() as rig, rig.worker() as worker:
        await rig.post("/api/v1/workflows", json=definition())
        answer = await rig.post(RUNS, json={"workflowId": WORKFLOW})
        run_id = answer.json()["runId"]
        for task in await worker.tasks(NODE_A, NODE_B):
            task.fail()
        await rig.status(run_id, "failed")
        await rerun(rig, run_id)
        await rerun(rig, run_id, parameters={NODE_A: {"value": 2}})
        listed = (await rig.get(RUNS)).json()["items"]
        assert [one["workflowVersion"] for one in listed] == [None, 1, 1]


async def test_two_runs_are_compared_node_by_node() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await failed_run(rig, worker)
        made = await rerun(rig, run_id, parameters={NODE_B: {"value": 3}}, inputs={"n": 8})
        (again, alone) = await worker.tasks(NODE_B, NODE_C)
        again.succeed({"value": "b"})
        alone.succeed({"value": 8})
        await rig.status(made["runId"], "succeeded")
        found = (await rig.get(f"{RUNS}/{run_id}/compare/{made['runId']}")).json()
        assert (found["firstStatus"], found["secondStatus"]) == ("failed", "succeeded")
        assert [one["pointer"] for one in found["inputs"]] == ["/n"]
        nodes = {one["nodeId"]: one for one in found["nodes"]}
        assert nodes[NODE_A]["isEqual"] is True
        assert (nodes[NODE_B]["result"], nodes[NODE_B]["isEqual"]) == ("only_second", False)
        assert nodes[NODE_B]["parameters"][0]["pointer"] == "/value"
        assert nodes[NODE_C]["resultChanges"] == [
            {"pointer": "/value", "kind": "changed", "before": 7, "after": 8}
        ]
        assert nodes[NODE_C]["second"]["workerId"] == "w1"
        same = (await rig.get(f"{RUNS}/{run_id}/compare/{run_id}")).json()
        assert all(one["isEqual"] for one in same["nodes"])
        problem_of(await rig.get(f"{RUNS}/{run_id}/compare/x"), 404, "E.RUN.NOT_FOUND")


async def test_many_runs_are_cancelled_by_a_filter_a_page_at_a_time() -> None:
    async with serving() as rig:
        runs = [await started(rig) for _ in range(5)]
        dry = (await rig.post(f"{RUNS}/cancel", json={"dryRun": True, "limit": 2})).json()
        assert [one["runId"] for one in dry["items"]] == runs[:2:-1]
        assert (dry["more"], dry["dryRun"]) == (True, True)
        none = (await rig.post(f"{RUNS}/cancel", json={"workflowId": NODE_A})).json()
        assert (none["items"], none["more"]) == ([], False)
        first = (await rig.post(f"{RUNS}/cancel", json={"limit": 3})).json()
        rest = (await rig.post(f"{RUNS}/cancel", json={"cursor": first["nextCursor"]})).json()
        assert [one["runId"] for one in first["items"] + rest["items"]] == runs[::-1]
        assert rest["more"] is False
        for run_id in runs:
            await rig.status(run_id, "cancelled")
        again = (await rig.post(f"{RUNS}/cancel", json={})).json()
        assert again["items"] == []


async def test_many_runs_are_repeated_once_with_one_key() -> None:
    async with serving() as rig, rig.worker() as worker:
        runs = [await failed_run(rig, worker) for _ in range(3)]
        dry = (await rig.post(f"{RUNS}/rerun", json={"dryRun": True})).json()
        assert [one["runId"] for one in dry["items"]] == runs[::-1]
        assert all("newRunId" not in one for one in dry["items"])
        headers = {"idempotency-key": "k"}
        one = (await rig.post(f"{RUNS}/rerun", json={}, headers=headers)).json()
        assert [item["runId"] for item in one["items"]] == runs[::-1]
        two = (await rig.post(f"{RUNS}/rerun", json={}, headers=headers)).json()
        assert one["items"] == two["items"]
        pinned = {"packages": {"core": "99.0.0"}}
        bad = (await rig.post(f"{RUNS}/rerun", json=pinned)).json()
        assert {item["code"] for item in bad["items"]} == {"E.WORKFLOW.INVALID"}


@pytest.mark.parametrize("body", [{"status": "failed"}, {"limit": 0}, {"limit": 201}, {"x": 1}])
async def test_a_filter_that_is_none_is_refused(body: Any) -> None:
    async with serving() as rig:
        problem_of(await rig.post(f"{RUNS}/cancel", json=body), 400, "E.REQUEST.INVALID")


async def test_a_node_says_what_it_was_given_and_by_which_package() -> None:
    async with serving() as rig, rig.worker() as worker:
        run_id = await started(rig, inputs={"n": 8})
        path = f"{RUNS}/{run_id}/nodes"
        _, alone = await worker.tasks(NODE_A, NODE_C)
        node = (await rig.get(f"{path}/{NODE_C}")).json()
        assert node["parameters"] == {"value": 8}
        assert "parametersTruncated" not in node
        assert node["package"]["name"] == "core"
        assert node["package"]["version"]
        assert (await rig.get(f"{path}/{NODE_B}")).json()["parameters"] is None
        alone.succeed({"value": 8})


async def test_parameters_that_are_too_large_are_left_out_and_said_to_be() -> None:
    async with serving() as rig, rig.worker() as worker:
        parameters = {"value": ["=inputs.n", "=inputs.n"]}
        nodes = [{"id": NODE_C, "type": "core.echo", "parameters": parameters}]
        document = definition(nodes=nodes, edges=[], inputs={"n": {}})
        inputs = {"n": "x" * 600_000}
        answer = await rig.post(RUNS, json={"workflow": document, "inputs": inputs})
        run_id = answer.json()["runId"]
        await worker.tasks(NODE_C)
        node = (await rig.get(f"{RUNS}/{run_id}/nodes/{NODE_C}")).json()
        assert (node["parameters"], node["parametersTruncated"]) == (None, True)
